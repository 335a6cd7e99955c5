"""Subqueries for all values of the columns that they read from the query around them, at once.

Let D be these values, each combination once. The dependent join of D and a node, every row of D with the rows that the node gives for it, goes
down to where it depends on nothing (Neumann and Kemper, Unnesting Arbitrary Queries, BTW 2015):

    D * R                        =  D join R                                        where R reads no column of D
    D * filter[p](R)             =  filter[p](D * R)
    D * project[e](R)            =  project[e, D](D * R)
    D * (R join[p] S)            =  (D * R) join[p, D <=> D'] (D' * S), or (D * R) join[p] S; semi, anti and left joins likewise
    D * aggregate[k; a](R)       =  aggregate[D, k; a](D * R)
    D * aggregate[; a](R)        =  D left join[D <=> D'] aggregate[D'; a](D' * R), counts being 0 without a partner
    D * distinct(R)              =  distinct(D * R)
    D * (R union all S)          =  (D * R) union all (D' * S)

Cost: D is a stage that is kept, and so is what is joined with it; ``subquery_rows`` does without where the columns are compared by equality.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from everview.errors import Span
from everview.query.expression import Expression, Literal, PlanColumn
from everview.relational.columns import conditions_over, domain_of, exactly, new_column, over, same
from everview.relational.plan import (
    Aggregate,
    AggregateCall,
    Condition,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    Repeat,
    TopK,
    UnionAll,
    as_nullable,
    outer_columns,
)
from everview.rules.full_joins import as_union
from everview.sql.coercion import coalesce

Given = Mapping[PlanColumn, PlanColumn]


@dataclass(frozen=True, slots=True)
class Dependent:
    """The dependent join of the values that ``columns`` have in ``source`` with other nodes."""

    source: Node
    columns: tuple[PlanColumn, ...]
    span: Span
    ids: Iterator[int]

    def domain(self) -> tuple[Node, Given]:
        """The values, in new columns."""
        return domain_of(self.source, self.columns, self.ids)

    def rows(self, node: Node) -> tuple[Node, Given]:
        """The join with a node: it has the columns of the node and, maybe among others, those that hold the values."""
        if not self._depends(node):
            values, given = self.domain()
            return Join(JoinKind.INNER, values, node, ()), given
        match node:
            case Filter(input=below, conditions=conditions):
                rows, given = self.rows(below)
                return Filter(rows, conditions_over(conditions, given)), given
            case Project(input=below, items=items):
                rows, given = self.rows(below)
                computed = tuple((column, over(e, given)) for column, e in items)
                return Project(rows, (*computed, *((c, c) for c in given.values()))), given
            case Join():
                return self._joined(node)
            case Aggregate():
                return self._grouped(node)
            case Distinct(input=below):
                rows, given = self._exact(below)
                return replace(node, input=rows), given
            case TopK(input=below):
                rows, given = self._exact(below)
                places = tuple(range(len(below.columns), len(rows.columns)))
                return replace(node, input=rows, partition=(*node.partition, *places)), given
            case Repeat(input=below, count=times):
                rows, given = self.rows(below)
                return Repeat(rows, over(times, given)), given
            case UnionAll():
                parts = [self._exact(below) for below in node.inputs]
                made = {c: new_column(self.ids, c) for c in self.columns}
                inputs = tuple(rows for rows, _ in parts)
                return replace(node, inputs=inputs, columns=(*node.columns, *made.values())), made
            case _:
                raise AssertionError(f"{type(node).__name__} reads no column, or is gone by now")

    def _depends(self, node: Node) -> bool:
        return not outer_columns(node).isdisjoint(self.columns)

    def _exact(self, node: Node) -> tuple[Node, Given]:
        rows, given = self.rows(node)
        return exactly(rows, (*node.columns, *given.values())), given

    def _joined(self, node: Join) -> tuple[Node, Given]:
        if node.kind is JoinKind.FULL:
            return self.rows(as_union(node, self.ids))
        if node.kind is JoinKind.INNER and not self._depends(node.left):
            right, given = self.rows(node.right)
            return replace(node, right=right, conditions=conditions_over(node.conditions, given)), given
        left, given = self.rows(node.left)
        right, conditions = node.right, conditions_over(node.conditions, given)
        if self._depends(right):
            right, theirs = self.rows(right)
            conditions += same(given, theirs, self.span)
        return replace(node, left=left, right=right, conditions=conditions), given

    def _grouped(self, node: Aggregate) -> tuple[Node, Given]:
        rows, given = self.rows(node.input)
        keys = {c: new_column(self.ids, g) for c, g in given.items()}
        made = tuple((keys[c], g) for c, g in given.items())
        grouped = replace(
            node,
            input=rows,
            keys=(*((column, over(e, given)) for column, e in node.keys), *made),
            calls=calls_over(node.calls, given),
        )
        if node.keys:
            return grouped, keys
        values, mine = self.domain()
        joined, computed = groups_or_none(values, grouped, same(mine, keys, self.span), self.ids)
        return Project(joined, (*computed.items(), *((c, c) for c in mine.values()))), mine


Calls = tuple[tuple[PlanColumn, AggregateCall], ...]


def calls_over(calls: Calls, columns: Mapping[PlanColumn, Expression]) -> Calls:
    """Aggregate calls with some columns replaced in their arguments."""
    return tuple((column, call.changed(lambda e: over(e, columns))) for column, call in calls)


def groups_or_none(
    node: Node, grouped: Aggregate, conditions: tuple[Condition, ...], ids: Iterator[int]
) -> tuple[Node, Mapping[PlanColumn, Expression]]:
    """Rows with their groups; and of each aggregate its value, which without a group is that of no rows."""
    inner = {column: new_column(ids, column) for column, _ in grouped.calls}
    grouped = replace(grouped, calls=tuple((inner[column], call) for column, call in grouped.calls))
    values = dict(zip(inner, as_nullable(inner.values()), strict=True))
    counted = {
        column for column, call in zip(inner, (call for _, call in grouped.calls), strict=True) if not call.nullable
    }
    found = {c: coalesce([v, Literal(0, v.type)]) if c in counted else v for c, v in values.items()}
    return Join(JoinKind.LEFT, node, grouped, conditions), found
