"""Aggregates of distinct values are aggregates of distinct rows, of which each group of a kind of its own is joined to the others.

    aggregate[k; f(DISTINCT x)](R)         =  aggregate[k; f(x)](distinct(project[k, x](R)))
    aggregate[k; f(x), g(DISTINCT y)](R)   =  aggregate[k; f(x)](R)  join[k <=> k]  aggregate[k; g(y)](distinct(project[k, y](R)))

One aggregate per list of arguments that are made distinct, and one for the calls without DISTINCT. All have the same groups, since rows stay
where an argument is NULL; without keys each has one row. So every part is maintained as if it stood alone, over shards too: distinct rows are
counts in a tree where the head allows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from everview.query.expression import Expression, PlanColumn, rewrite
from everview.relational.columns import new_ids
from everview.relational.plan import Aggregate, Distinct, Node, Project, inputs_of, nodes_of, with_inputs
from everview.rules.split_aggregates import Calls, joined, split


def distinct_aggregates(node: Node) -> Node:
    """The plan without DISTINCT in aggregates."""
    found = [n for n in nodes_of(node) if isinstance(n, Aggregate) and any(c.distinct for _, c in n.calls)]
    if not found:
        return node
    return _rewritten(node, new_ids(node))


def _rewritten(node: Node, ids: Iterator[int]) -> Node:
    node = with_inputs(node, tuple(_rewritten(below, ids) for below in inputs_of(node)))
    if not isinstance(node, Aggregate) or not any(call.distinct for _, call in node.calls):
        return node
    kinds: dict[frozenset[Expression], Calls] = {}
    for column, call in node.calls:
        kind = frozenset(call.distinct)
        kinds[kind] = (*kinds.get(kind, ()), (column, call))
    return joined(node, [_distinct(part, ids) for part in split(node, list(kinds.values()))], ids)


def _distinct(node: Aggregate, ids: Iterator[int]) -> Aggregate:
    """An Aggregate whose calls all have the same distinct values, over rows that are distinct."""
    kept = dict.fromkeys(node.calls[0][1].distinct)
    if not kept:
        return node
    wanted = dict.fromkeys((*(key for _, key in node.keys), *kept))
    columns: dict[Expression, PlanColumn] = {
        e: PlanColumn(next(ids), e.type, e.nullable, e.name if isinstance(e, PlanColumn) else "") for e in wanted
    }

    def over(expression: Expression) -> Expression:
        return rewrite(expression, columns.get)

    rows = Distinct(Project(node.input, tuple((column, e) for e, column in columns.items())), node.path)
    keys = tuple((column, columns[key]) for column, key in node.keys)
    calls = tuple((column, replace(call, distinct=()).changed(over)) for column, call in node.calls)
    return Aggregate(rows, keys, calls, node.path)
