"""FULL JOIN as a left join and the rows of the right that it leaves out.

    R full join[p] S  =  (R left join[p] S)  union all  project[NULLs, S](S anti join[p] R)

Both halves are edges of join trees: nothing of the join is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.query.expression import Literal
from everview.relational.canonical import copied
from everview.relational.columns import exactly, new_column, new_ids
from everview.relational.plan import Join, JoinKind, Node, Project, UnionAll, inputs_of, with_inputs


def full_joins(node: Node) -> Node:
    """The plan without FULL JOIN."""
    return _without(node, new_ids(node))


def _without(node: Node, ids: Iterator[int]) -> Node:
    node = with_inputs(node, tuple(_without(below, ids) for below in inputs_of(node)))
    return as_union(node, ids) if isinstance(node, Join) and node.kind is JoinKind.FULL else node


def as_union(join: Join, ids: Iterator[int]) -> Node:
    """A FULL JOIN as a union of two halves."""
    first, _ = copied(Join(JoinKind.LEFT, join.left, join.right, join.conditions), ids)
    second, _ = copied(Join(JoinKind.LEFT, join.right, join.left, join.conditions), ids)
    assert isinstance(second, Join)
    right = second.left
    alone = Join(JoinKind.ANTI, right, second.right, second.conditions)
    nulls = tuple(Literal(None, c.type) for c in join.left.columns)
    items = [(new_column(ids, null), null) for null in nulls] + [(new_column(ids, c), c) for c in right.columns]
    return UnionAll((exactly(first, first.columns), Project(alone, tuple(items))), join.columns, ("full_join",))
