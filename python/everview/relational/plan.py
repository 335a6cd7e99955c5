"""The nodes of the relational plan.

What: a tree of relational operators over bags of rows; ``Shared`` makes it a DAG.
Representation: frozen values. A column is a ``PlanColumn``, a number that no other column of the plan has; names live in
``Query`` (the output list) and, for messages only, on the columns. Every node computes its ``columns`` from its inputs;
an expression reads columns of the inputs of its node.
Invariants: R1, a column id is made by exactly one node (a scan, a projection, an aggregate, a union, a use of something
shared); R2, an expression reads only columns that its node's inputs have.
Cost: columns are computed on demand, linear in the node's width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from everview.errors import Span
from everview.query.expression import Expression, PlanColumn, parts, rewrite
from everview.query.logical_view import SortKey
from everview.schema.datatype import DataType
from everview.schema.table import Table

ADDED: Mapping[str, bool] = MappingProxyType({"added": True})
"""The metadata of fields that a node got after state of it was stored: at their default they do not count in ``meaning``."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunct, and where it stands in the SQL text. Rows pass for which it is true."""

    expression: Expression
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Scan:
    """An occurrence of a table or, with ``is_view``, of another view; ``columns`` are those of the table, in order.

    ``path``: its alias, after those of the derived tables around it; the outermost comes first.
    """

    table: Table
    path: tuple[str, ...] = field(compare=False)
    columns: tuple[PlanColumn, ...]
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows of the input for which all conditions are true."""

    input: Node
    conditions: tuple[Condition, ...]

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    """Computes every column from a row of the input."""

    input: Node
    items: tuple[tuple[PlanColumn, Expression], ...]

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        return tuple(column for column, _ in self.items)


class JoinKind(StrEnum):
    """The joins. A partner of a row of the left is a row of the right for which all conditions are true.

    INNER: every row with each of its partners. LEFT: likewise, and rows without a partner once, with NULLs. FULL: likewise, for
    the rows of both sides. SEMI: rows that have a partner, ANTI: those that have none, both without the columns of the right.
    """

    INNER = "inner"
    LEFT = "left"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True, slots=True)
class Join:
    """A join of two inputs."""

    kind: JoinKind
    left: Node
    right: Node
    conditions: tuple[Condition, ...]

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        match self.kind:
            case JoinKind.INNER:
                return self.left.columns + self.right.columns
            case JoinKind.LEFT:
                return self.left.columns + as_nullable(self.right.columns)
            case JoinKind.FULL:
                return as_nullable(self.left.columns) + as_nullable(self.right.columns)
            case _:
                return self.left.columns


def as_nullable(columns: Iterable[PlanColumn]) -> tuple[PlanColumn, ...]:
    """Columns whose rows may be missing."""
    return tuple(replace(c, nullable=True) for c in columns)


@dataclass(frozen=True, slots=True)
class Lateral:
    """A join whose right side may read the columns of the left: it is computed for every row of it. INNER or LEFT."""

    kind: JoinKind
    left: Node
    right: Node
    conditions: tuple[Condition, ...]

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        return Join(self.kind, self.left, self.right, ()).columns


@dataclass(frozen=True, slots=True)
class Apply:
    """Rows of the input, and for each one value of a subquery, which may read its columns.

    Without ``operands``: EXISTS, whether it gives rows. With operands: ANY, whether by the ``comparison`` they compare with the columns of
    one of the rows, which is NULL where that depends on a NULL; by equality that is IN. ``scalar``: the value of its only column in its
    only row, NULL without a row; two rows are an error.
    """

    input: Node
    subquery: Node
    column: PlanColumn
    operands: tuple[Expression, ...] = ()
    span: Span = field(default=Span(0, 0), compare=False)
    comparison: str = field(default="eq", metadata=ADDED)
    scalar: bool = field(default=False, metadata=ADDED)

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        return (*self.input.columns, self.column)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate function of a group. Without ``argument`` it counts rows. ``second``: of functions of two arguments.

    With ``distinct``, which has all that the arguments read, of the rows of a group that agree there only one counts.
    """

    function: str
    argument: Expression | None
    type: DataType
    nullable: bool
    second: Expression | None = field(default=None, metadata=ADDED)
    distinct: tuple[Expression, ...] = field(default=(), metadata=ADDED)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(e for e in (self.argument, self.second, *self.distinct) if e is not None)

    def changed(self, change: Callable[[Expression], Expression]) -> AggregateCall:
        """The call with its expressions changed."""
        argument = None if self.argument is None else change(self.argument)
        second = None if self.second is None else change(self.second)
        return replace(self, argument=argument, second=second, distinct=tuple(map(change, self.distinct)))


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per group of the input. Without keys there is one group, also where there is no row (a global aggregate).

    ``path``: the aliases of the derived tables that it is in, as of a scan.
    """

    input: Node
    keys: tuple[tuple[PlanColumn, Expression], ...]
    calls: tuple[tuple[PlanColumn, AggregateCall], ...]
    path: tuple[str, ...] = field(default=(), compare=False)

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        return tuple(column for column, _ in (*self.keys, *self.calls))


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row of the input once. ``path``: the aliases of the derived tables that it is in."""

    input: Node
    path: tuple[str, ...] = field(default=(), compare=False)

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class UnionAll:
    """The rows of all inputs; ``columns`` hold those of each input, by position.

    ``path``: the aliases of the derived tables that it is in.
    """

    inputs: tuple[Node, ...]
    columns: tuple[PlanColumn, ...]
    path: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TopK:
    """Of the rows of the input, in order, those after the first ``offset``, at most ``limit`` (None: all).

    ``order``: positions of columns. Rows that are equal there are ordered by all columns of the input, one after another,
    ascending with NULL first; so no rule may change these columns. ``path``: the aliases of the derived tables that it is in.
    ``partition``: positions of columns; rows that agree on them are ordered, limited and numbered apart from others, NULLs being equal.
    ``rank``: a last column with the number of the row in its partition, from 1.
    """

    input: Node
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int
    path: tuple[str, ...] = field(default=(), compare=False)
    partition: tuple[int, ...] = field(default=(), metadata=ADDED)
    rank: PlanColumn | None = field(default=None, metadata=ADDED)

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        return self.input.columns if self.rank is None else (*self.input.columns, self.rank)


@dataclass(frozen=True, slots=True)
class Values:
    """Rows that are written in the text, one constant expression per column; without columns and with one row: no FROM.

    ``path``: its alias, as of a scan.
    """

    rows: tuple[tuple[Expression, ...], ...]
    columns: tuple[PlanColumn, ...]
    path: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Every row of the input as often as ``count``, a BIGINT, says; not at all where that is NULL or below 1."""

    input: Node
    count: Expression

    @property
    def columns(self) -> tuple[PlanColumn, ...]:
        return self.input.columns


Node = Scan | Values | Filter | Project | Join | Lateral | Apply | Aggregate | Distinct | UnionAll | TopK | Repeat


@dataclass(frozen=True, slots=True)
class Query:
    """A plan and the names of its columns, with the places where they are written, and the order in which rows are read.

    ``owners``: for messages, the aliases of the tables that columns are of; empty where a column is of none.
    """

    node: Node
    names: tuple[str, ...]
    spans: tuple[Span, ...] = field(compare=False)
    order: tuple[SortKey, ...] = ()
    owners: tuple[str, ...] = field(default=(), compare=False)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads."""
    match node:
        case Scan() | Values():
            return ()
        case Join(left=left, right=right) | Lateral(left=left, right=right):
            return (left, right)
        case UnionAll(inputs=inputs):
            return inputs
        case Apply(input=below, subquery=subquery):
            return (below, subquery)
        case _:
            return (node.input,)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The node over other inputs."""
    if all(a is b for a, b in zip(inputs_of(node), inputs, strict=True)):
        return node
    match node:
        case Scan() | Values():
            return node
        case Join() | Lateral():
            left, right = inputs
            return replace(node, left=left, right=right)
        case UnionAll():
            return replace(node, inputs=inputs)
        case Apply():
            below, subquery = inputs
            return replace(node, input=below, subquery=subquery)
        case _:
            return replace(node, input=inputs[0])


def nodes_of(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    open_nodes = [node]
    while open_nodes:
        found = open_nodes.pop()
        yield found
        open_nodes += reversed(inputs_of(found))


def expressions_of(node: Node) -> Iterator[Expression]:
    """The expressions of a node itself."""
    match node:
        case Scan() | Values() | Distinct() | UnionAll() | TopK():
            pass
        case Repeat(count=count):
            yield count
        case Filter(conditions=conditions) | Join(conditions=conditions) | Lateral(conditions=conditions):
            yield from (c.expression for c in conditions)
        case Project(items=items):
            yield from (e for _, e in items)
        case Aggregate(keys=keys, calls=calls):
            yield from (e for _, e in keys)
            yield from (e for _, c in calls for e in c.expressions)
        case Apply(operands=operands):
            yield from operands


def with_expressions(node: Node, change: Callable[[Expression], Expression]) -> Node:
    """The node with its own expressions changed."""
    match node:
        case Scan() | Values() | Distinct() | UnionAll() | TopK():
            return node
        case Repeat(count=count):
            return replace(node, count=change(count))
        case Filter(conditions=conditions) | Join(conditions=conditions) | Lateral(conditions=conditions):
            changed = tuple(replace(c, expression=change(c.expression)) for c in conditions)
            return replace(node, conditions=changed)
        case Project(items=items):
            return replace(node, items=tuple((column, change(e)) for column, e in items))
        case Aggregate(keys=keys, calls=calls):
            return replace(
                node,
                keys=tuple((column, change(e)) for column, e in keys),
                calls=tuple((column, call.changed(change)) for column, call in calls),
            )
        case Apply(operands=operands):
            return replace(node, operands=tuple(change(e) for e in operands))


def with_columns(node: Node, columns: Mapping[PlanColumn, Expression]) -> Node:
    """The plan with references to some columns, which none of its own nodes makes, replaced."""
    if not columns:
        return node

    def change(expression: Expression) -> Expression:
        return rewrite(expression, lambda part: columns.get(part) if isinstance(part, PlanColumn) else None)

    below = tuple(with_columns(n, columns) for n in inputs_of(node))
    return with_expressions(with_inputs(node, below), change)


def outer_columns(node: Node) -> frozenset[PlanColumn]:
    """The columns that a plan reads and does not have: those of what is around a subquery."""
    read = {column for n in nodes_of(node) for e in expressions_of(n) for column in columns_read(e)}
    return frozenset(read.difference(*(n.columns for n in nodes_of(node))))


def columns_read(expression: Expression) -> tuple[PlanColumn, ...]:
    """The columns that an expression reads, each once, in order."""
    return tuple(dict.fromkeys(e for e in parts(expression) if isinstance(e, PlanColumn)))
