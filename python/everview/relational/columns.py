"""Columns of relational plans: new ones, expressions over other ones, and which of them equalities make the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from everview.errors import Span
from everview.query.expression import Call, Expression, PlanColumn, rewrite
from everview.relational.canonical import copied
from everview.relational.plan import (
    Condition,
    Distinct,
    Node,
    Project,
    columns_read,
    nodes_of,
)
from everview.schema.datatype import BOOLEAN

Columns = Mapping[PlanColumn, Expression]


def new_ids(node: Node) -> Iterator[int]:
    """Numbers that no column of a plan has."""
    return count(1 + max((c.id for n in nodes_of(node) for c in n.columns), default=-1))


def new_column(ids: Iterator[int], expression: Expression, name: str = "") -> PlanColumn:
    """A new column that holds an expression."""
    known = expression.name if isinstance(expression, PlanColumn) else ""
    return PlanColumn(next(ids), expression.type, expression.nullable, name or known)


def over(expression: Expression, columns: Columns) -> Expression:
    """The expression with some columns replaced."""
    if not columns:
        return expression
    return rewrite(expression, lambda part: columns.get(part) if isinstance(part, PlanColumn) else None)


def conditions_over(conditions: Iterable[Condition], columns: Columns) -> tuple[Condition, ...]:
    """The conditions with some columns replaced."""
    return tuple(replace(c, expression=over(c.expression, columns)) for c in conditions)


def reads(expression: Expression, columns: Iterable[PlanColumn]) -> bool:
    """Whether an expression reads one of these columns."""
    return not set(columns).isdisjoint(columns_read(expression))


@dataclass(frozen=True, slots=True)
class Equal:
    """An equality between an expression over an outer query and one over an inner, by ``=`` or ``<=>``."""

    outer: Expression
    inner: Expression
    condition: Condition

    def with_inner(self, column: PlanColumn) -> Condition:
        """The equality with a column in place of the inner expression."""
        assert isinstance(self.condition.expression, Call)
        call = self.condition.expression
        return replace(self.condition, expression=Call(call.op, (self.outer, column), call.type, call.nullable))


def equality(condition: Condition, inner: Sequence[PlanColumn]) -> Equal | None:
    """A condition as an equality of something over the ``inner`` columns alone and something that reads none of them."""
    call = condition.expression
    if not isinstance(call, Call) or call.op not in ("eq", "eq_null_safe"):
        return None
    known = set(inner)
    for outside, inside in (call.args, call.args[::-1]):
        read = columns_read(inside)
        if read and known.issuperset(read) and known.isdisjoint(columns_read(outside)) and columns_read(outside):
            return Equal(outside, inside, condition)
    return None


def same(
    one: Mapping[PlanColumn, PlanColumn], two: Mapping[PlanColumn, PlanColumn], span: Span
) -> tuple[Condition, ...]:
    """That what stands for a column on one side and on the other has the same value, NULL being one."""
    return tuple(Condition(Call("eq_null_safe", (one[c], two[c]), BOOLEAN, nullable=False), span) for c in one)


def exactly(node: Node, columns: Sequence[PlanColumn]) -> Node:
    """The node with these columns, and no others."""
    return node if node.columns == tuple(columns) else Project(node, tuple((c, c) for c in columns))


def domain_of(
    node: Node, columns: Sequence[PlanColumn], ids: Iterator[int]
) -> tuple[Node, Mapping[PlanColumn, PlanColumn]]:
    """The values that some columns of a node have, each combination once, in columns of its own, and which stands for which."""
    rows, _ = copied(node, ids)
    renamed = dict(zip(node.columns, rows.columns, strict=True))
    given = {column: new_column(ids, renamed[column]) for column in columns}
    items = tuple((given[column], renamed[column]) for column in columns)
    return Distinct(Project(rows, items), ("values",)), given
