"""Conditions on row_number() become limits, and numbers that nothing reads are not made.

    filter[n <= k AND p](top[numbered n](R))        =  filter[p](top k[numbered n](R))       likewise <, =, >, >= and BETWEEN
    filter[n <= k](join[q](top[numbered n](R), S))  =  join[q](top k[numbered n](R), S)      where the rows of R reach the filter unchanged
    project[e](top k[numbered n](R))                =  project[e](top k(R))                  where e does not read n
    top all(R)                                      =  R

So the first rows of each partition are kept as LIMIT keeps the first of all, and a row behind them changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from everview.query.expression import Call, Expression, Literal, PlanColumn
from everview.relational.plan import (
    Apply,
    Condition,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Node,
    TopK,
    UnionAll,
    columns_read,
    expressions_of,
    inputs_of,
    nodes_of,
    outer_columns,
    with_inputs,
)
from everview.rules.inline_projections import inline_projections
from everview.schema.datatype import DOUBLE, INT, DataType, Kind
from everview.sql.coercion import decimal_for

_Conditions = tuple[Condition, ...]
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def number_limits(node: Node) -> Node:
    """The plan with limits for conditions on numbers."""
    if not any(isinstance(n, TopK) and n.rank is not None for n in nodes_of(node)):
        return node
    limited, _ = _limited(node, ())
    return inline_projections(_unnumbered(limited, frozenset(limited.columns)))


def _limited(node: Node, conditions: _Conditions) -> tuple[Node, _Conditions]:
    """The node where conditions hold that stand above it, and those of them that it does not see to."""
    match node:
        case Filter(input=below, conditions=own):
            inner, left = _limited(below, (*_split(own), *conditions))
            mine = tuple(c for c in left if c not in conditions)
            return (Filter(inner, mine) if mine else inner), tuple(c for c in left if c in conditions)
        case Join(kind=JoinKind.INNER, conditions=on):
            one, rest = _limited(node.left, (*on, *conditions))
            two, rest = _limited(node.right, rest)
            joined = Join(node.kind, one, two, tuple(c for c in on if c in rest))
            return joined, tuple(c for c in conditions if c in rest)
        case Join(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI, conditions=on):
            one, rest = _limited(node.left, conditions)
            two, on = _limited(node.right, on)
            return Join(node.kind, one, two, on), rest
        case TopK(rank=PlanColumn() as rank):
            below, _ = _limited(node.input, ())
            ranges = [(c, _range(c.expression, rank)) for c in conditions]
            found = [r for _, r in ranges if r is not None]
            return _within(replace(node, input=below), found), tuple(c for c, r in ranges if r is None)
        case _:
            return with_inputs(node, tuple(_limited(below, ())[0] for below in inputs_of(node))), conditions


def _split(conditions: _Conditions) -> _Conditions:
    """Conditions, what AND combines taken apart where a part of it is a comparison with a constant."""
    found: list[Condition] = []
    for c in conditions:
        expression = c.expression
        if isinstance(expression, Call) and expression.op == "and":
            found += _split(tuple(replace(c, expression=part) for part in expression.args))
        else:
            found.append(c)
    return tuple(found)


def _range(condition: Expression, rank: PlanColumn) -> tuple[int, float] | None:
    """The least and the largest number for which a condition is true, if it compares the number with a constant."""
    if not isinstance(condition, Call) or condition.op not in _TURNED:
        return None
    one, two, op = *map(_stripped, condition.args), condition.op
    if isinstance(one, Literal):
        one, two, op = two, one, _TURNED[op]
    if one != rank or not isinstance(two, Literal):
        return None
    value = two.value
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool) or not math.isfinite(value):
        return None
    low, high = math.ceil(value), math.floor(value)
    match op:
        case "le":
            return 1, high
        case "lt":
            return 1, low - 1
        case "ge":
            return low, math.inf
        case "gt":
            return high + 1, math.inf
        case _:
            return low, high


def _stripped(expression: Expression) -> Expression:
    """The expression without casts of exact numbers that keep every value."""
    while isinstance(expression, Call) and expression.op == "cast" and _keeps(expression.args[0].type, expression.type):
        expression = expression.args[0]
    return expression


def _keeps(source: DataType, target: DataType) -> bool:
    if not (source.is_integer or source.kind is Kind.DECIMAL):
        return False
    if target.is_floating:
        return source == INT and target == DOUBLE
    if not (target.is_integer or target.kind is Kind.DECIMAL):
        return False
    one, two = decimal_for(source), decimal_for(target)
    return one.scale <= two.scale and one.precision - one.scale <= two.precision - two.scale


def _within(node: TopK, ranges: Iterable[tuple[int, float]]) -> TopK:
    first, last = node.offset + 1, math.inf if node.limit is None else node.offset + node.limit
    for low, high in ranges:
        first, last = max(first, low), min(last, high)
    if first > last:
        return replace(node, limit=0, offset=0)
    return replace(node, limit=None if last == math.inf else int(last) - first + 1, offset=first - 1)


def _unnumbered(node: Node, needed: frozenset[PlanColumn]) -> Node:
    """The plan without numbers that are not among the columns needed."""
    if isinstance(node, TopK):
        if node.rank is not None and node.rank not in needed:
            node = replace(node, rank=None)
        if node.rank is None and node.limit is None and node.offset == 0:
            return _unnumbered(node.input, needed)
    needed = needed.union(column for e in expressions_of(node) for column in columns_read(e))
    if isinstance(node, Apply):
        needed = needed.union(node.subquery.columns, outer_columns(node.subquery))
    if isinstance(node, TopK | Distinct | UnionAll):  # which compare whole rows
        needed = needed.union(*(below.columns for below in inputs_of(node)))
    return with_inputs(node, tuple(_unnumbered(below, needed) for below in inputs_of(node)))
