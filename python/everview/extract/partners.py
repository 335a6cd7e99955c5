"""Outer, semi- and anti-joins whose conditions no edge takes: their pairs of partners become a stage, which an edge takes.

    R left join[p] S   =  R left join[D <=> D'] (D' join[p] S)             D: what p reads of R; D': its values in R, each combination once
    R semi join[p] S   =  R semi join[D <=> D'] distinct(project[D'](D' join[p] S)), and an anti-join likewise

Cost: the stage holds one row for each pair of a value in D' and a partner, or for a semi-join one for each value that has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from everview.relational.columns import conditions_over, domain_of, exactly, reads, same
from everview.relational.plan import (
    Distinct,
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    columns_read,
    inputs_of,
    with_inputs,
)


def with_partners(node: Node, join: Join, ids: Iterator[int]) -> Node:
    """The plan with the conditions of one join, which is no inner one, checked below it."""
    if node is not join:
        return with_inputs(node, tuple(with_partners(below, join, ids) for below in inputs_of(node)))
    ours = tuple(c for c in join.conditions if not reads(c.expression, join.left.columns))
    between = tuple(c for c in join.conditions if c not in ours)
    right = Filter(join.right, ours) if ours else join.right
    read = {column for c in between for column in columns_read(c.expression)}
    columns = tuple(c for c in join.left.columns if c in read)
    if not columns:
        return replace(join, right=_as_leaf(right), conditions=())
    values, given = domain_of(join.left, columns, ids)
    partners: Node = Join(JoinKind.INNER, values, right, conditions_over(between, given))
    if join.kind is JoinKind.LEFT:
        partners = _as_leaf(partners)
    else:
        partners = Distinct(exactly(partners, tuple(given.values())), ("partners",))
    return replace(join, right=partners, conditions=same({c: c for c in columns}, given, between[0].span))


def _as_leaf(node: Node) -> Node:
    """A node that no block around it takes apart."""
    return Project(node, tuple((c, c) for c in node.columns))
