"""Chooses one join tree among the candidates and says why.

What: the tree with the best guarantee; among those the one with the least expected propagation.
Representation: trees are compared by ``Rank``, a tuple of numbers, smaller is better:
1. whether some value edge fans out (then no update bound holds without it, however low the tree);
2. height (1: O(1) on any stream, 2: O(1) on FIFO streams, then the lower the better);
3. the number of value edges that fan out;
4. the sum over relations of depth times update rate of their table;
5. the number of projections;
and finally the order of enumeration. The unconnected parts of a query do not concern each other and are chosen for one
by one; ``considered`` counts all combinations. Where there are too many trees to look at all, ``complete`` is False and the
candidates are those of a greedy search by the same rank (``build``).
Invariants: R1, a q-hierarchical query gets a tree of height 1 without fan-out; R2, equal input gives the same tree.
Cost: linear in the candidates.
Source: CROWN, section 6.3, "Query plan optimization"; points 1 and 3 are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from everview.analysis.classification import Classification
from everview.analysis.guarantee import Guarantee, ValueCost, guarantee_of
from everview.errors import InternalError
from everview.query.conjunctive import ConjunctiveQuery
from everview.trees.build import Branch, all_candidates, greedy_candidates, tree_of, with_attached
from everview.trees.join_tree import EdgeKind, JoinTree


@dataclass(frozen=True, slots=True, order=True)
class Rank:
    """How good a tree is; smaller is better."""

    fans_out: bool
    height: int
    fan_outs: int
    depth_by_rate: int
    projections: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen tree, what it guarantees, among how many it was chosen, and why."""

    tree: JoinTree
    guarantee: Guarantee
    classification: Classification
    rank: Rank
    considered: int
    complete: bool
    reason: str


def choose_tree(
    query: ConjunctiveQuery,
    classification: Classification,
    update_rates: Mapping[str, int] | None = None,
    *,
    grouped: bool = False,
    always_deltas: bool = False,
) -> Choice:
    """The best tree.

    ``update_rates``: expected changes per table, in any unit; 1 for tables not named. ``grouped``: see ``tree_of``;
    ``always_deltas``: see ``guarantee_of``.
    """
    rates = {table.lower(): rate for table, rate in (update_rates or {}).items()}
    head = classification.maintained_head

    def rank(branch: Branch) -> Rank:
        return rank_of(tree_of((branch,), query, head, grouped=grouped), query, rates)

    found = all_candidates(query, classification)
    complete = found is not None
    parts = found if found is not None else greedy_candidates(query, classification, rank)
    if not all(parts):
        raise InternalError("NO_JOIN_TREE", f"no join tree found for {query}")
    forest: list[Branch] = []
    reasons: list[str] = []
    for part in parts:
        ranks = [rank(branch) for branch in part]
        best = min(range(len(ranks)), key=lambda i: (ranks[i], i))
        forest.append(part[best])
        reasons.append(_reason(ranks, ranks[best], rated=bool(rates)))
    tree = tree_of(with_attached(tuple(forest), query, frozenset(head)), query, head, grouped=grouped)
    return Choice(
        tree=tree,
        guarantee=guarantee_of(classification, tree.shape, always_deltas=always_deltas),
        classification=classification,
        rank=rank_of(tree, query, rates),
        considered=prod(len(part) for part in parts),
        complete=complete,
        reason=_joined(reasons, complete=complete),
    )


def rank_of(tree: JoinTree, query: ConjunctiveQuery, rates: Mapping[str, int]) -> Rank:
    """The rank of a tree; ``rates`` by lower-case table name."""
    tables = {a.name: a.table.lower() for a in query.atoms}
    depths: list[int] = []  # as JoinTree.depth; nodes are in preorder
    weighted = 0
    for node in tree.nodes:
        above = tree.hubs[node.up].parent
        depths.append(0 if above is None else depths[above] + (not tree.is_guard(node.up)))
        if node.atom is not None:
            weighted += depths[-1] * rates.get(tables[node.atom], 1)
    fan_outs = sum(
        tree.edge_kind(i) is EdgeKind.VALUE and tree.value_cost(i) is ValueCost.FAN_OUT for i in range(len(tree.nodes))
    )
    return Rank(fan_outs > 0, tree.height, fan_outs, weighted, len(tree.projections))


_ONLY = "it is the only candidate"


def _reason(ranks: list[Rank], best: Rank, *, rated: bool) -> str:
    if len(ranks) == 1:
        return _ONLY
    level = [r for r in ranks if (r.fans_out, r.height, r.fan_outs) == (best.fans_out, best.height, best.fan_outs)]
    cheap = [r for r in level if r.depth_by_rate == best.depth_by_rate]
    few = [r for r in cheap if r == best]
    rates = "update rates given or seen so far" if rated else "all update rates taken as 1"
    fan = f" and {best.fan_outs} value edge(s) that fan out" if best.fan_outs else ""
    parts = [f"of {len(ranks)} candidates, {len(level)} with the best guarantee (height {best.height}{fan})"]
    if len(level) > 1:
        parts.append(f"{len(cheap)} with the least depth times update rate ({best.depth_by_rate}; {rates})")
    if len(cheap) > 1:
        parts.append(f"{len(few)} with the fewest projections ({best.projections})")
    if len(few) > 1:
        parts.append("the first in order")
    return "; of these ".join(parts)


def _joined(reasons: list[str], *, complete: bool) -> str:
    limit = (
        ""
        if complete
        else " (there are too many trees to look at all: below each top the best branches were chosen one by one)"
    )
    if len(set(reasons)) == 1 and (len(reasons) == 1 or reasons[0] == _ONLY):
        return reasons[0] + limit
    each = ". ".join(f"Part {i}: {reason}" for i, reason in enumerate(reasons, 1))
    return f"each of the {len(reasons)} unconnected parts by itself{limit}. {each}"
