"""A plan with its columns numbered anew, in the order in which they come up: plans that differ in numbers alone become equal.

Places in the text and aliases do not count (they are no part of a node's value), so that two uses of a CTE, or two
derived tables with the same text, are one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from everview.query.expression import Expression, PlanColumn, rewrite
from everview.relational.plan import (
    Aggregate,
    Apply,
    Condition,
    Distinct,
    Filter,
    Join,
    Lateral,
    Node,
    Project,
    Repeat,
    Scan,
    TopK,
    UnionAll,
    Values,
)


def canonical(node: Node) -> Node:
    """The plan with columns 0, 1, 2, ... from the leaves up."""
    return _Renumbering(count()).node(node)


def copied(node: Node, ids: Iterator[int]) -> tuple[Node, Mapping[PlanColumn, PlanColumn]]:
    """A plan that means the same with columns of its own, and which of them stands for which."""
    renumbering = _Renumbering(ids)
    return renumbering.node(node), renumbering.columns


class _Renumbering:
    def __init__(self, ids: Iterator[int]) -> None:
        self.columns: dict[PlanColumn, PlanColumn] = {}
        self._ids = ids

    def node(self, node: Node) -> Node:
        match node:
            case Scan() | Values():
                return replace(node, columns=self._new(node.columns))
            case Filter():
                return Filter(self.node(node.input), self._conditions(node.conditions))
            case Project():
                below = self.node(node.input)
                computed = [self._over(e) for _, e in node.items]
                return Project(below, tuple(zip(self._new(node.columns), computed, strict=True)))
            case Join() | Lateral():
                left, right = self.node(node.left), self.node(node.right)
                return type(node)(node.kind, left, right, self._conditions(node.conditions))
            case Aggregate():
                below = self.node(node.input)
                keys = [self._over(e) for _, e in node.keys]
                calls = [call.changed(self._over) for _, call in node.calls]
                columns = self._new(node.columns)
                return Aggregate(
                    below,
                    tuple(zip(columns, keys, strict=False)),
                    tuple(zip(columns[len(keys) :], calls, strict=True)),
                )
            case Apply():
                below = self.node(node.input)
                subquery = self.node(node.subquery)
                operands = tuple(self._over(e) for e in node.operands)
                column = self._new([node.column])[0]
                return replace(node, input=below, subquery=subquery, column=column, operands=operands)
            case Distinct():
                return Distinct(self.node(node.input))
            case TopK():
                below = self.node(node.input)
                rank = None if node.rank is None else self._new([node.rank])[0]
                return TopK(below, node.order, node.limit, node.offset, partition=node.partition, rank=rank)
            case Repeat():
                return Repeat(self.node(node.input), self._over(node.count))
            case UnionAll():
                inputs = tuple(self.node(below) for below in node.inputs)
                return UnionAll(inputs, self._new(node.columns))

    def _new(self, columns: Iterable[PlanColumn]) -> tuple[PlanColumn, ...]:
        found = []
        for column in columns:
            self.columns[column] = replace(column, id=next(self._ids))
            found.append(self.columns[column])
        return tuple(found)

    def _over(self, expression: Expression) -> Expression:
        return rewrite(expression, lambda part: self.columns.get(part, part) if isinstance(part, PlanColumn) else None)

    def _conditions(self, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(replace(c, expression=self._over(c.expression)) for c in conditions)
