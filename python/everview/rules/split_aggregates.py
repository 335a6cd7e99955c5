"""An Aggregate as several over the same rows, joined by their keys.

    aggregate[k; f, g](R)  =  aggregate[k; f](R)  join[k <=> k]  aggregate[k; g](R)

All have the same groups; without keys each has one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from everview.errors import Span
from everview.query.expression import PlanColumn
from everview.relational.canonical import copied
from everview.relational.plan import Aggregate, AggregateCall, Condition, Join, JoinKind, Node, Project
from everview.sql.coercion import compare

Calls = tuple[tuple[PlanColumn, AggregateCall], ...]


def split(node: Aggregate, parts: Sequence[Calls]) -> tuple[Aggregate, ...]:
    """The Aggregate with some of its calls each."""
    return tuple(replace(node, calls=calls) for calls in parts)


def joined(node: Aggregate, parts: Sequence[Aggregate], ids: Iterator[int]) -> Node:
    """Parts of an Aggregate put together again: a plan with its columns."""
    found: Node = parts[0]
    for other in parts[1:]:
        right, columns = copied(other, ids)
        conditions = []
        for key, _ in node.keys:
            op = "eq_null_safe" if key.nullable else "eq"
            conditions.append(Condition(compare(op, key, columns[key], pad=False), Span(0, 0)))
        items = [(c, c) for c in found.columns] + [(c, columns[c]) for c, _ in other.calls]
        found = Project(Join(JoinKind.INNER, found, right, tuple(conditions)), tuple(items))
    return Project(found, tuple((c, c) for c in node.columns))
