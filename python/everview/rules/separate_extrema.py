"""MIN and MAX over a join are computed apart where their arguments are of different tables.

    aggregate[k; MIN(x), MIN(y), f](R join S)  =  aggregate[k; MIN(x)](R join S)  join[k <=> k]  aggregate[k; MIN(y)](R join S)  join[k <=> k]  ...
                                                  x of R, y of S

Together they would need the pairs of x and y that the join has; apart each needs its own values, and a tree over them: a MIN over ten joined tables
never enumerates the join. So it is for every function that keeps values. With arguments of one table nothing is gained, and nothing is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from everview.aggregates import FUNCTIONS
from everview.query.expression import PlanColumn
from everview.relational.columns import new_ids
from everview.relational.plan import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    JoinKind,
    Node,
    columns_read,
    inputs_of,
    with_inputs,
)
from everview.rules.inline_projections import inline_projections
from everview.rules.split_aggregates import Calls, joined, split


def separate_extrema(node: Node) -> Node:
    """The plan with aggregates that keep values of different tables apart."""
    changed = _separated(node, new_ids(node))
    return node if changed == node else inline_projections(changed)


def _separated(node: Node, ids: Iterator[int]) -> Node:
    node = with_inputs(node, tuple(_separated(below, ids) for below in inputs_of(node)))
    if not isinstance(node, Aggregate):
        return node
    leaf = _leaves(node.input)
    kinds: dict[frozenset[int], Calls] = {}
    for column, call in node.calls:
        kind = _kind(call, leaf)
        kinds[kind] = (*kinds.get(kind, ()), (column, call))
    if len(kinds.keys() - {frozenset()}) < 2:
        return node
    return joined(node, split(node, list(kinds.values())), ids)


def _kind(call: AggregateCall, leaf: Mapping[PlanColumn, int]) -> frozenset[int]:
    """The tables whose values are kept for a call; none if none are."""
    if not FUNCTIONS[call.function].keeps_values:
        return frozenset()
    return frozenset(leaf[column] for e in call.expressions for column in columns_read(e) if column in leaf)


def _leaves(node: Node) -> dict[PlanColumn, int]:
    """Which of the inputs of a join each column is of."""
    found: dict[PlanColumn, int] = {}
    open_nodes = [node]
    number = 0
    while open_nodes:
        below = open_nodes.pop()
        match below:
            case Filter(input=inner):
                open_nodes.append(inner)
            case Join(kind=JoinKind.SEMI | JoinKind.ANTI, left=left):
                open_nodes.append(left)
            case Join(kind=JoinKind.INNER, left=left, right=right):
                open_nodes += [left, right]
            case Join(left=left):
                found.update(dict.fromkeys(below.columns[len(left.columns) :], number))
                open_nodes.append(left)
            case _:
                found.update(dict.fromkeys(below.columns, number))
        number += 1
    return found
