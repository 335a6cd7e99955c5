"""UNION, EXCEPT (also written MINUS) and INTERSECT: columns by position, in the type that the sides have in common, under the names of the first.

    R EXCEPT S      =  distinct(anti join[r <=> s](R, S))
    R INTERSECT S   =  distinct(semi join[r <=> s](R, S))

    R EXCEPT ALL S     =  repeat[n](aggregate[all columns; n = SUM(sign)](R with sign 1 UNION ALL S with sign -1))
    R INTERSECT ALL S  =  repeat[least(n, m)](aggregate[all columns; n = SUM(in R), m = SUM(in S)](R with 1, 0 UNION ALL S with 0, 1))

Rows are compared as DISTINCT does it: NULL equals NULL. INTERSECT binds stronger than the others, which the parser sees to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import SchemaError, Span
from everview.query.expression import Literal, PlanColumn
from everview.relational.plan import (
    Aggregate,
    AggregateCall,
    Condition,
    Distinct,
    Join,
    JoinKind,
    Node,
    Project,
    Query,
    Repeat,
    UnionAll,
)
from everview.schema.datatype import BIGINT
from everview.sql.coercion import case, cast_to, compare, unify
from everview.sql.literal import CoercionError
from everview.sql.reject import mismatch, reject
from everview.sql.spans import keyword_span, span_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everview.query.expression import Expression
    from everview.schema.datatype import DataType
    from everview.sql.bind import Binder


def bind_set_operation(
    query: exp.SetOperation, binder: Binder, bind: Callable[[exp.Expr], Query], path: tuple[str, ...]
) -> Query:
    """The plan of a set operation; ``bind`` makes that of a side."""
    return _SetOperation(query, binder, path).bound(bind)


class _SetOperation:
    def __init__(self, query: exp.SetOperation, binder: Binder, path: tuple[str, ...]) -> None:
        self._query = query
        self._binder = binder
        self._sql = binder.sql
        self._path = path
        self._name = self._keyword()
        if query.args.get("by_name"):
            raise reject("SET_OPERATION", self._sql, self._span(), name=f"{self._name} BY NAME")

    def bound(self, bind: Callable[[exp.Expr], Query]) -> Query:
        query = self._query
        parts = _parts(query)
        sides = [bind(part) for part in parts]
        first = sides[0]
        for other, part in zip(sides[1:], parts[1:], strict=True):
            if len(other.names) != len(first.names):
                article = "a" if self._name == "UNION" else "an"
                counts = f"{len(first.names)} columns and {len(other.names)} columns"
                message = f"{counts} do not make {article} {self._name}"
                raise SchemaError("COLUMN_COUNT", message, sql=self._sql, span=span_of(part))
        types = [self._common_type([s.node.columns[i] for s in sides]) for i in range(len(first.names))]
        inputs = tuple(self._cast(s, types) for s in sides)
        if isinstance(query, exp.Union):
            node = self._union(inputs, first.names)
            if query.args.get("distinct"):
                node = Distinct(node, self._path)
        elif query.args.get("distinct"):
            node = self._matched(*inputs)
        else:
            node = self._counted(*inputs)
        return Query(node, first.names, first.spans)

    def _union(self, inputs: tuple[Node, ...], names: Sequence[str]) -> Node:
        columns = tuple(
            PlanColumn(self._binder.new_id(), of_inputs[0].type, any(c.nullable for c in of_inputs), name)
            for of_inputs, name in zip(zip(*(n.columns for n in inputs), strict=True), names, strict=True)
        )
        return UnionAll(inputs, columns, self._path)

    def _matched(self, left: Node, right: Node) -> Node:
        """The rows of the left that are on the right, too, or those that are not, each once."""
        kind = JoinKind.SEMI if isinstance(self._query, exp.Intersect) else JoinKind.ANTI
        span = self._span()
        pairs = zip(left.columns, right.columns, strict=True)
        conditions = tuple(Condition(compare("eq_null_safe", one, two), span) for one, two in pairs)
        return Distinct(Join(kind, left, right, conditions), self._path)

    def _counted(self, left: Node, right: Node) -> Node:
        """The rows of both sides, each as often as their numbers there say."""
        signs = ((1,), (-1,)) if isinstance(self._query, exp.Except) else ((1, 0), (0, 1))
        names = [*(c.name for c in left.columns), *(f"count_{i}" for i in range(len(signs[0])))]
        inputs = tuple(self._with(side, numbers) for side, numbers in zip((left, right), signs, strict=True))
        rows = self._union(inputs, names)
        keys = tuple((replace(c, id=self._binder.new_id()), c) for c in rows.columns[: len(left.columns)])
        calls = tuple(
            (replace(c, id=self._binder.new_id()), AggregateCall("sum", c, BIGINT, nullable=False))
            for c in rows.columns[len(left.columns) :]
        )
        counts = [column for column, _ in calls]
        count: Expression = counts[0]
        if len(counts) > 1:
            count = case([(compare("lt", counts[0], counts[1]), counts[0])], counts[1])
        repeated = Repeat(Aggregate(rows, keys, calls, self._path), count)
        return Project(repeated, tuple((column, column) for column, _ in keys))

    def _with(self, side: Node, numbers: Sequence[int]) -> Node:
        """A side with further columns of constants."""
        constants = [Literal(number, BIGINT) for number in numbers]
        added = ((self._binder.column(constant, "count"), constant) for constant in constants)
        return Project(side, (*((column, column) for column in side.columns), *added))

    def _common_type(self, columns: Sequence[Expression]) -> DataType:
        try:
            return unify(list(columns))[0].type
        except CoercionError as error:
            raise mismatch(self._sql, self._query, str(error)) from None

    def _cast(self, query: Query, types: Sequence[DataType]) -> Node:
        columns = query.node.columns
        if [c.type for c in columns] == list(types):
            return query.node
        cast = [cast_to(c, t) for c, t in zip(columns, types, strict=True)]
        items = tuple((self._binder.column(e, n), e) for e, n in zip(cast, query.names, strict=True))
        return Project(query.node, items)

    def _span(self) -> Span:
        """The place of the operator."""
        whole = span_of(self._query)
        between = Span(span_of(self._query.this).end, span_of(self._query.expression).start)
        return keyword_span(self._sql, between if between.start < between.end else whole, self._name)

    def _keyword(self) -> str:
        """The operator as it is written."""
        between = self._sql[span_of(self._query.this).end : span_of(self._query.expression).start]
        name = type(self._query).__name__.upper()
        return "MINUS" if name == "EXCEPT" and "EXCEPT" not in between.upper() else name


def _parts(query: exp.SetOperation) -> list[exp.Expr]:
    """The sides; of a chain of UNION ALL all of them, which is one node. Chains are deep on the left: no recursion."""
    if not isinstance(query, exp.Union):
        return [query.this, query.expression]
    parts: list[exp.Expr] = []
    open_parts: list[exp.Expr] = [query]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, exp.Union) and (part is query or _continues(part, query)):
            open_parts += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def _continues(part: exp.Union, query: exp.Union) -> bool:
    """Whether a part of a UNION ALL is one itself, without clauses of its own: their inputs are those of one node."""
    known = ("this", "expression", "distinct")
    plain = not any(value for name, value in part.args.items() if name not in known)
    return plain and not part.args.get("distinct") and not query.args.get("distinct")
