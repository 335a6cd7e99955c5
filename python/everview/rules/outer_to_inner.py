"""Outer joins whose NULL rows no condition lets through become inner ones.

    filter[p](R left join[q] S)   =  filter[p](R join[q] S)              where p is not true if all columns of S are NULL
    filter[p](R full join[q] S)   =  filter[p](R left join[q] S)         where p is not true if all columns of R are NULL
    filter[p](R full join[q] S)   =  filter[p](S left join[q] R)         where p is not true if all columns of S are NULL

p is any condition that rows must pass further up: of filters, inner joins and semi-joins, and of a left join for its right side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from everview.query.expression import Expression, Literal, PlanColumn, calls_of, ignores_nulls
from everview.relational.columns import exactly, over
from everview.relational.plan import Condition, Distinct, Filter, Join, JoinKind, Node, Project, inputs_of, with_inputs


def outer_to_inner(node: Node) -> Node:
    """The plan with as few outer joins as its conditions need."""
    return _simplified(node, ())


def _simplified(node: Node, required: Sequence[Expression]) -> Node:
    """A node of which rows are read for which all expressions are true."""
    match node:
        case Filter(input=below, conditions=conditions):
            return replace(node, input=_simplified(below, (*required, *_expressions(conditions))))
        case Project(input=below, items=items):
            computed = dict(items)
            return replace(node, input=_simplified(below, tuple(over(e, computed) for e in required)))
        case Distinct(input=below):
            return replace(node, input=_simplified(below, required))
        case Join():
            return _joined(node, required)
        case _:
            return with_inputs(node, tuple(_simplified(below, ()) for below in inputs_of(node)))


def _joined(node: Join, required: Sequence[Expression]) -> Node:
    on = _expressions(node.conditions)
    if node.kind in (JoinKind.LEFT, JoinKind.FULL):
        needs_right = any(_is_untrue(e, node.right.columns) for e in required)
        needs_left = node.kind is JoinKind.FULL and any(_is_untrue(e, node.left.columns) for e in required)
        if needs_right and node.kind is JoinKind.FULL and not needs_left:
            swapped = replace(node, kind=JoinKind.LEFT, left=node.right, right=node.left)
            return exactly(_joined(swapped, required), Join(JoinKind.INNER, node.left, node.right, ()).columns)
        if needs_right:
            node = replace(node, kind=JoinKind.INNER)
        elif needs_left:
            node = replace(node, kind=JoinKind.LEFT)
    match node.kind:
        case JoinKind.INNER:
            left = right = (*required, *on)
        case JoinKind.SEMI:
            left, right = (*required, *on), on
        case JoinKind.FULL:
            left = right = ()
        case _:
            left, right = tuple(required), on
    return replace(node, left=_simplified(node.left, left), right=_simplified(node.right, right))


def _expressions(conditions: Iterable[Condition]) -> tuple[Expression, ...]:
    return tuple(c.expression for c in conditions)


def _is_untrue(condition: Expression, columns: Iterable[PlanColumn]) -> bool:
    """Whether a condition is FALSE or NULL where these columns are NULL. Says no in doubt."""
    nulls: set[Expression] = set(columns)
    untrue: set[Expression] = set()  # and not NULL for sure
    for call in calls_of(condition):
        missing = [a in nulls or (isinstance(a, Literal) and a.value is None) for a in call.args]
        if ignores_nulls(call.op):
            holds = [
                m or a in untrue or (isinstance(a, Literal) and not a.value)
                for a, m in zip(call.args, missing, strict=True)
            ]
            if (
                (call.op == "and" and any(holds))
                or (call.op == "or" and all(holds))
                or (call.op == "is_not_null" and missing[0])
                or (call.op == "eq_null_safe" and sum(missing) == 1 and any(isinstance(a, Literal) for a in call.args))
            ):
                untrue.add(call)
        elif any(missing):
            nulls.add(call)
    return condition in nulls or condition in untrue
