"""The rules that rewrite relational plans. Their order is part of what they mean: each may rely on those before it."""

from __future__ import annotations

from collections.abc import Callable

from everview.relational.plan import Node
from everview.rules.decorrelate import decorrelate
from everview.rules.distinct_aggregates import distinct_aggregates
from everview.rules.full_joins import full_joins
from everview.rules.inline_projections import inline_projections
from everview.rules.number_limits import number_limits
from everview.rules.outer_to_inner import outer_to_inner
from everview.rules.separate_extrema import separate_extrema
from everview.rules.unit_joins import unit_joins

Rule = Callable[[Node], Node]

RULES: tuple[Rule, ...] = (
    decorrelate,
    outer_to_inner,
    full_joins,
    distinct_aggregates,
    inline_projections,
    separate_extrema,
    unit_joins,
    number_limits,
)


def rewrite_plan(node: Node) -> Node:
    """The plan after all rules."""
    for rule in RULES:
        node = rule(node)
    return node
