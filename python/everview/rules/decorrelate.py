"""EXISTS and IN as conditions of their own become semi-joins and anti-joins.

    filter[c](apply[c = EXISTS S](R))          =  semi join[p](R, S without p)         p: the conditions of S that read R
    filter[NOT c](apply[c = EXISTS S](R))      =  anti join[p](R, S without p)
    filter[c](apply[c = x IN S](R))            =  semi join[p AND x = s](R, S without p)
    filter[NOT c](apply[c = x IN S](R))        =  anti join[p AND x = s] and, where NULLs can be met:
                                                  anti join[p AND s IS NULL], anti join[p AND (x IS NULL) = TRUE]

x NOT IN S is not true if some s equals x, if some s is NULL, or if x is NULL and there is an s at all. What S projects, orders or makes
distinct does not matter to whether it has a row. A condition of S that reads R can be pulled out of S where only filters, projections and
inner joins stand above it.
"""

from __future__ import annotations

from dataclasses import replace

from everview.query.expression import Call, Expression, Literal, PlanColumn
from everview.relational.plan import (
    Apply,
    Condition,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    columns_read,
    inputs_of,
    outer_columns,
    with_inputs,
)
from everview.schema.datatype import BOOLEAN
from everview.sql.coercion import compare
from everview.sql.functions import is_null


def decorrelate(node: Node) -> Node:
    """The plan with subqueries as joins where they are conditions of their own."""
    node = with_inputs(node, tuple(decorrelate(below) for below in inputs_of(node)))
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
            joined = _join(below, apply, negated=condition.expression != apply.column, span=condition)
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


def _join(node: Node, apply: Apply, *, negated: bool, span: Condition) -> Node | None:
    rows, values, pulled = _rows(apply.subquery)
    if outer_columns(rows):
        return None  # a condition that stands where it cannot be pulled out
    if not apply.operands:
        return Join(JoinKind.ANTI if negated else JoinKind.SEMI, node, rows, tuple(pulled))

    def condition(expression: Expression) -> Condition:
        return replace(span, expression=expression)

    pairs = list(zip(apply.operands, values, strict=True))
    equal = [condition(compare("eq", one, two)) for one, two in pairs]
    if not negated:
        return Join(JoinKind.SEMI, node, rows, (*pulled, *equal))
    if len(pairs) > 1:
        return None  # which of several NULLs matter depends on the other columns
    ((operand, value),) = pairs
    node = Join(JoinKind.ANTI, node, rows, (*pulled, *equal))
    if value.nullable:
        node = Join(JoinKind.ANTI, node, rows, (*pulled, condition(is_null(value, negated=False))))
    if operand.nullable:
        missing = compare("eq", is_null(operand, negated=False), Literal(True, BOOLEAN))
        node = Join(JoinKind.ANTI, node, rows, (*pulled, condition(missing)))
    return node


def _rows(node: Node) -> tuple[Node, list[Expression], list[Condition]]:
    """What a subquery reads without the conditions that read the query around it, its columns in terms of that, and these conditions."""
    match node:
        case Distinct(input=below):
            return _rows(below)
        case Project(input=below, items=items):
            inner, _, pulled = _rows(below)
            return inner, [e for _, e in items], pulled
        case Filter(input=below, conditions=conditions):
            inner, values, pulled = _rows(below)
            outer = [c for c in conditions if not set(columns_read(c.expression)) <= set(inner.columns)]
            inside = tuple(c for c in conditions if c not in outer)
            return (Filter(inner, inside) if inside else inner), values, [*pulled, *outer]
        case Join(kind=JoinKind.INNER, left=left, right=right, conditions=conditions):
            one, _, from_left = _rows(left)
            two, _, from_right = _rows(right)
            joined = Join(JoinKind.INNER, one, two, ())
            outer = [c for c in conditions if not set(columns_read(c.expression)) <= set(joined.columns)]
            inside = tuple(c for c in conditions if c not in outer)
            return replace(joined, conditions=inside), list(joined.columns), [*from_left, *from_right, *outer]
        case _:
            return node, list(node.columns), []
