"""The rules that rewrite relational plans. Their order is part of what they mean: each may rely on those before it."""

from __future__ import annotations

from collections.abc import Callable

from everview.relational.plan import Node
from everview.rules.decorrelate import decorrelate
from everview.rules.distinct_aggregates import distinct_aggregates
from everview.rules.inline_projections import inline_projections
from everview.rules.separate_extrema import separate_extrema

Rule = Callable[[Node], Node]

RULES: tuple[Rule, ...] = (inline_projections, decorrelate, distinct_aggregates, separate_extrema)


def rewrite_plan(node: Node) -> Node:
    """The plan after all rules."""
    for rule in RULES:
        node = rule(node)
    return node
