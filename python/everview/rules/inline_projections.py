"""Projections go up through joins and filters and into what reads them, until one is left per block.

    project[e](project[f](R))         =  project[e of f](R)
    filter[p](project[f](R))          =  project[f](filter[p of f](R))
    join[p](project[f](R), S)         =  project[f, S.*](join[p of f](R, S))      on the right of LEFT for bare columns only
    aggregate[k; a](project[f](R))    =  aggregate[k of f; a of f](R)
    repeat[n](project[f](R))          =  project[f](repeat[n of f](R))

So nothing is left of a derived table that only selects, joins and computes: its scans are part of the block around it.
An expression that is used twice stays one value (expressions are DAGs), so plans grow by the text alone. Expressions
that may fail move above filters and joins: they are evaluated on the rows that remain, as in Spark.
"""

from __future__ import annotations

from dataclasses import replace

from everview.query.expression import PlanColumn
from everview.relational.columns import Columns, conditions_over, over
from everview.relational.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    Repeat,
    Scan,
    TopK,
    UnionAll,
    Values,
)


def inline_projections(node: Node) -> Node:
    """The plan with a projection only where one is needed."""
    inner, computed = _pull(node)
    return _project(inner, computed, node.columns)


def _project(node: Node, computed: Columns, columns: tuple[PlanColumn, ...]) -> Node:
    if not computed and node.columns == columns:
        return node
    return Project(node, tuple((c, computed.get(c, c)) for c in columns))


def _pull(node: Node) -> tuple[Node, Columns]:
    """A node without projections on top, and the columns that are to be computed from it."""
    match node:
        case Scan() | Values():
            return node, {}
        case Filter(input=below):
            inner, computed = _pull(below)
            return replace(node, input=inner, conditions=conditions_over(node.conditions, computed)), computed
        case Join():
            return _pull_join(node)
        case Project(input=below):
            inner, computed = _pull(below)
            return inner, {column: over(expression, computed) for column, expression in node.items}
        case Aggregate(input=below):
            inner, computed = _pull(below)
            keys = tuple((column, over(key, computed)) for column, key in node.keys)
            calls = tuple((column, call.changed(lambda e: over(e, computed))) for column, call in node.calls)
            return replace(node, input=inner, keys=keys, calls=calls), {}
        case Distinct(input=below) | TopK(input=below):
            return replace(node, input=inline_projections(below)), {}
        case Repeat(input=below):
            inner, computed = _pull(below)
            return replace(node, input=inner, count=over(node.count, computed)), computed
        case UnionAll():
            return replace(node, inputs=tuple(inline_projections(below) for below in node.inputs)), {}
        case _:
            raise AssertionError(f"{type(node).__name__} is gone by now")


def _pull_join(node: Join) -> tuple[Node, Columns]:
    left, of_left = _pull(node.left)
    right, of_right = _pull(node.right)
    if node.kind is JoinKind.LEFT and not all(isinstance(e, PlanColumn) for e in of_right.values()):
        right, of_right = (
            _project(right, of_right, node.right.columns),
            {},
        )  # what is computed is NULL without a partner
    conditions = conditions_over(node.conditions, {**of_left, **of_right})
    joined = Join(node.kind, left, right, conditions)
    match node.kind:
        case JoinKind.INNER:
            return joined, {**of_left, **of_right}
        case JoinKind.LEFT:
            nullable = {c: replace(e, nullable=True) for c, e in of_right.items() if isinstance(e, PlanColumn)}
            return joined, {**of_left, **nullable}
        case _:
            return joined, of_left
