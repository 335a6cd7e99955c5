"""EXISTS and IN as conditions of their own become semi-joins and anti-joins.

    filter[c](apply[c = EXISTS S](R))          =  semi join[p](R, S without p)         p: the conditions of S that read R
    filter[NOT c](apply[c = EXISTS S](R))      =  anti join[p](R, S without p)
    filter[c](apply[c = x IN S](R))            =  semi join[p AND x = s](R, S without p)
    filter[NOT c](apply[c = x IN S](R))        =  anti join[p AND x = s] and, where NULLs can be met:
                                                  anti join[p AND s IS NULL], anti join[p AND (x IS NULL) = TRUE]

x NOT IN S is not true if some s equals x, if some s is NULL, or if x is NULL and there is an s at all. What S projects, orders or makes
distinct does not matter to whether it has a row, nor does LIMIT if it leaves one. A condition of S that reads R can be pulled out of S where only filters, projections and
inner joins stand above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from everview.query.expression import Call, Expression, Literal, PlanColumn, rewrite
from everview.relational.canonical import copied
from everview.relational.plan import (
    Apply,
    Condition,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    TopK,
    columns_read,
    inputs_of,
    nodes_of,
    outer_columns,
    with_inputs,
)
from everview.schema.datatype import BOOLEAN
from everview.sql.coercion import compare
from everview.sql.functions import is_null


def decorrelate(node: Node) -> Node:
    """The plan with subqueries as joins where they are conditions of their own."""
    return _decorrelated(node, count(1 + max((c.id for n in nodes_of(node) for c in n.columns), default=0)))


def _decorrelated(node: Node, ids: Iterator[int]) -> Node:
    node = with_inputs(node, tuple(_decorrelated(below, ids) for below in inputs_of(node)))
    if not isinstance(node, Filter):
        return node
    applied: list[Apply] = []
    below = node.input
    while isinstance(below, Apply):
        applied.append(below)
        below = below.input
    conditions = list(node.conditions)
    kept: list[Apply] = []
    for apply in reversed(applied):  # the innermost first
        condition = next((c for c in conditions if c.expression in (apply.column, _negated(apply.column))), None)
        used = sum(apply.column in columns_read(c.expression) for c in conditions)
        joined = None
        if condition is not None and used == 1:
            negated = condition.expression != apply.column
            joined = _excluded(below, apply, condition, ids) if negated else _included(below, apply, condition)
        if joined is None:
            kept.append(apply)
            continue
        below = joined
        conditions.remove(condition)  # type: ignore[arg-type]
    for apply in kept:
        below = replace(apply, input=below)
    return Filter(below, tuple(conditions)) if conditions else below


def _negated(column: PlanColumn) -> Expression:
    return Call("not", (column,), BOOLEAN, column.nullable)


def _included(node: Node, apply: Apply, condition: Condition) -> Node | None:
    rows, values, pulled = _rows(_tested(apply))
    if outer_columns(rows):
        return None  # a condition that stands where it cannot be pulled out
    equal = (compare("eq", one, two) for one, two in zip(apply.operands, values, strict=False))
    return Join(JoinKind.SEMI, node, rows, (*pulled, *(replace(condition, expression=e) for e in equal)))


def _excluded(node: Node, apply: Apply, condition: Condition, ids: Iterator[int]) -> Node | None:
    rows, values, pulled = _rows(_tested(apply))
    if outer_columns(rows) or len(apply.operands) > 1:  # which of several NULLs matter depends on the other columns
        return None
    if not apply.operands:
        return Join(JoinKind.ANTI, node, rows, tuple(pulled))
    (operand,), (value,) = apply.operands, values
    tests = [compare("eq", operand, value)]
    if value.nullable:
        tests.append(is_null(value, negated=False))
    if operand.nullable:
        tests.append(compare("eq", is_null(operand, negated=False), Literal(True, BOOLEAN)))
    for test in tests:
        right, columns = copied(rows, ids)
        conditions = (*pulled, replace(condition, expression=test))
        node = Join(
            JoinKind.ANTI, node, right, tuple(replace(c, expression=_in(c.expression, columns)) for c in conditions)
        )
    return node


def _tested(apply: Apply) -> Node:
    """The subquery; of EXISTS without a LIMIT that leaves a row where there is one."""
    node = apply.subquery
    while not apply.operands and isinstance(node, TopK | Project):
        if isinstance(node, TopK) and (node.limit == 0 or node.offset):
            break
        node = node.input
    return node


def _in(expression: Expression, columns: Mapping[PlanColumn, Expression]) -> Expression:
    return rewrite(expression, lambda part: columns.get(part) if isinstance(part, PlanColumn) else None)


def _rows(node: Node) -> tuple[Node, list[Expression], list[Condition]]:
    """What a subquery reads without the conditions that read the query around it, its columns in terms of that, and these conditions."""
    match node:
        case Distinct(input=below):
            return _rows(below)
        case Project(input=below, items=items):
            inner, values, pulled = _rows(below)
            computed = dict(zip(below.columns, values, strict=True))
            return inner, [_in(e, computed) for _, e in items], pulled
        case Filter(input=below, conditions=conditions):
            inner, values, pulled = _rows(below)
            inside, outer = _apart(conditions, dict(zip(below.columns, values, strict=True)), inner)
            return (Filter(inner, inside) if inside else inner), values, [*pulled, *outer]
        case Join(kind=JoinKind.INNER, left=left, right=right, conditions=conditions):
            one, of_left, from_left = _rows(left)
            two, of_right, from_right = _rows(right)
            joined, values = Join(JoinKind.INNER, one, two, ()), [*of_left, *of_right]
            inside, outer = _apart(conditions, dict(zip(node.columns, values, strict=True)), joined)
            return replace(joined, conditions=inside), values, [*from_left, *from_right, *outer]
        case _:
            return node, list(node.columns), []


def _apart(
    conditions: tuple[Condition, ...], computed: Mapping[PlanColumn, Expression], node: Node
) -> tuple[tuple[Condition, ...], list[Condition]]:
    """The conditions on a node, computed columns put in: those that read it alone, and those that read more."""
    known = set(node.columns)
    changed = [replace(c, expression=_in(c.expression, computed)) for c in conditions]
    inside = tuple(c for c in changed if known.issuperset(columns_read(c.expression)))
    return inside, [c for c in changed if c not in inside]
