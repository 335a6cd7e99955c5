"""The rows of a subquery apart from the conditions that compare them with a row of the query around it.

``rows_of`` takes such conditions out from under filters, projections, inner joins and the left sides of other joins. Grouping, DISTINCT and LIMIT
are over the rows for one outer row: there a condition must be an equality with something of the subquery, which becomes a key:

    aggregate[k; a](filter[x = o](R))   =  o = x'  on  aggregate[x' = x, k; a](R)                 o: of the query around it
    distinct(filter[x = o](R))          =  o = x'  on  distinct(R, x' = x)
    top[k](filter[x = o](R))            =  o = x'  on  top[k; partition x'](R, x' = x)

An outer column that equals something of the subquery is replaced by it. Where this does not reach, ``dependent`` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from everview.errors import Span
from everview.query.expression import Expression, PlanColumn
from everview.relational.columns import (
    Equal,
    conditions_over,
    equality,
    exactly,
    new_column,
    over,
    reads,
    same,
)
from everview.relational.plan import (
    Aggregate,
    Condition,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    TopK,
    columns_read,
    outer_columns,
)
from everview.rules.dependent import Dependent, calls_over

_GROUPED_KINDS = (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True, slots=True)
class Rows:
    """A node that has the columns of a subquery, and the conditions under which its rows are those for an outer row."""

    node: Node
    conditions: tuple[Condition, ...] = ()


def subquery_rows(subquery: Node, around: Node, span: Span, ids: Iterator[int], *, keyed: bool = False) -> Rows:
    """The rows of a subquery over ``around``. ``keyed``: all conditions are equalities, or read nothing of the subquery."""
    found = rows_of(subquery, frozenset(around.columns), ids)
    if found is not None and (not keyed or key_of(found, ids) is not None):
        return found
    read = outer_columns(subquery)
    columns = tuple(c for c in around.columns if c in read)
    node, given = Dependent(around, columns, span, ids).rows(subquery)
    node = exactly(node, (*subquery.columns, *given.values()))
    return Rows(node, same({c: c for c in columns}, given, span))


@dataclass(frozen=True, slots=True)
class Key:
    """What the rows for an outer row have in common: new columns, and the conditions in terms of these."""

    items: tuple[tuple[PlanColumn, Expression], ...]
    conditions: tuple[Condition, ...]


def key_of(rows: Rows, ids: Iterator[int]) -> Key | None:
    """The key of the conditions, if each is an equality or reads nothing of the subquery."""
    items: dict[Expression, PlanColumn] = {}
    conditions = []
    for condition in rows.conditions:
        if not reads(condition.expression, rows.node.columns):
            conditions.append(condition)
            continue
        found = equality(condition, rows.node.columns)
        if found is None:
            return None
        column = items.setdefault(found.inner, new_column(ids, found.inner))
        conditions.append(found.with_inner(column))
    return Key(tuple((column, e) for e, column in items.items()), tuple(conditions))


def rows_of(node: Node, outer: frozenset[PlanColumn], ids: Iterator[int]) -> Rows | None:
    """The rows of a subquery, if the conditions that read ``outer`` can be taken out of it."""
    if outer.isdisjoint(outer_columns(node)):
        return Rows(node)
    match node:
        case Filter(input=below, conditions=conditions):
            rows = rows_of(below, outer, ids)
            return None if rows is None else _filtered(rows, conditions, outer)
        case Project(input=below, items=items):
            rows = rows_of(below, outer, ids)
            return None if rows is None else _projected(rows, items, outer)
        case Join(kind=JoinKind.INNER):
            left, right = rows_of(node.left, outer, ids), rows_of(node.right, outer, ids)
            if left is None or right is None:
                return None
            joined = Join(JoinKind.INNER, left.node, right.node, ())
            found = _filtered(Rows(joined, (*left.conditions, *right.conditions)), node.conditions, outer)
            if isinstance(found.node, Filter):
                return replace(found, node=replace(joined, conditions=found.node.conditions))
            return found
        case Join(kind=kind) if kind in _GROUPED_KINDS:
            left = rows_of(node.left, outer, ids)
            if left is None or not outer.isdisjoint(outer_columns(node.right)):
                return None
            conditions = conditions_over(node.conditions, _equal_columns(left))
            if any(reads(c.expression, outer) for c in conditions):
                return None
            return replace(left, node=replace(node, left=left.node, conditions=conditions))
        case Aggregate(keys=keys) if keys:
            return _grouped(node, outer, ids)
        case Distinct(input=below) | TopK(input=below):
            return _keyed(node, below, outer, ids)
        case _:
            return None


def _equal_columns(rows: Rows) -> dict[PlanColumn, Expression]:
    """Outer columns that have the same value as something of the subquery. Zeros of both signs are equal: not floating point."""
    found: dict[PlanColumn, Expression] = {}
    for condition in rows.conditions:
        equal = equality(condition, rows.node.columns)
        if equal is not None and _is_exact(equal) and isinstance(equal.outer, PlanColumn):
            found.setdefault(equal.outer, equal.inner)
    return found


def _is_exact(equal: Equal) -> bool:
    return equal.outer.type == equal.inner.type and not equal.inner.type.is_floating


def _filtered(rows: Rows, conditions: tuple[Condition, ...], outer: frozenset[PlanColumn]) -> Rows:
    equalities = [c for c in conditions if equality(c, rows.node.columns) is not None and reads(c.expression, outer)]
    rows = replace(rows, conditions=(*rows.conditions, *equalities))
    others = conditions_over((c for c in conditions if c not in equalities), _equal_columns(rows))
    inside = tuple(c for c in others if not reads(c.expression, outer))
    outside = tuple(c for c in others if c not in inside)
    node = Filter(rows.node, inside) if inside else rows.node
    return Rows(node, (*rows.conditions, *outside))


def _projected(rows: Rows, items: Sequence[tuple[PlanColumn, Expression]], outer: frozenset[PlanColumn]) -> Rows | None:
    equal = _equal_columns(rows)
    computed = [(column, over(e, equal)) for column, e in items]
    if any(reads(e, outer) for _, e in computed):
        return None
    made, known = {column for column, _ in computed}, set(rows.node.columns)
    needed = dict.fromkeys(c for condition in rows.conditions for c in columns_read(condition.expression))
    passed = [(c, c) for c in needed if c in known and c not in made]
    return Rows(Project(rows.node, (*computed, *passed)), rows.conditions)


def _grouped(node: Aggregate, outer: frozenset[PlanColumn], ids: Iterator[int]) -> Rows | None:
    rows = rows_of(node.input, outer, ids)
    key = None if rows is None else key_of(rows, ids)
    if rows is None or key is None:
        return None
    equal = _equal_columns(rows)
    keys = tuple((column, over(e, equal)) for column, e in node.keys)
    calls = calls_over(node.calls, equal)
    read = [e for _, e in keys] + [e for _, call in calls for e in call.expressions]
    if any(reads(e, outer) for e in read):
        return None
    return Rows(replace(node, input=rows.node, keys=(*keys, *key.items), calls=calls), key.conditions)


def _keyed(node: Distinct | TopK, below: Node, outer: frozenset[PlanColumn], ids: Iterator[int]) -> Rows | None:
    rows = rows_of(below, outer, ids)
    key = None if rows is None else key_of(rows, ids)
    if rows is None or key is None:
        return None
    kept = Project(rows.node, (*((c, c) for c in below.columns), *key.items))
    if isinstance(node, Distinct):
        return Rows(replace(node, input=kept), key.conditions)
    places = tuple(range(len(below.columns), len(kept.columns)))
    return Rows(replace(node, input=kept, partition=(*node.partition, *places)), key.conditions)
