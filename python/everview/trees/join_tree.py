"""Join trees: relations, projections and hubs.

What: the tree an engine maintains for one core, and the quantities by which trees are compared.
Representation: nodes and hubs are numbered by position, in preorder. Hub 0 is the root hub with the empty key; below
hubs are nodes, below nodes hubs. The children of a node that share a key share one hub.
Invariants, those of docs/reference/maintenance-plan.md and of join trees:
T1, every hub's key is the intersection of its parent's columns with those of each child; hub 0's is empty.
T2, each atom has exactly one relation node, with the atom's columns.
T3, a projection's columns are the key of its first hub below, the guard; it has one row per entry of the guard.
T4, for each variable the nodes that hold it are connected, across at most one hub at a time.
T5, a node is connex iff its columns are in the head, its parent is connex (or it hangs below hub 0), and the head is
not empty; every head variable is in a connex node. Where results are grouped, a branch below a guard that binds no head
variable of its own is left out of the connex part.
Height: the most relations on a path from a leaf to the root, projections not counted (CROWN, section 3.2). The
paper's generalized relations stand above all relations and all their children hold their columns; ours may do
neither, and then they count like the relations that would take their place:
- On a path through a hub other than its guard, a projection counts as a relation: a change below concerns several of
  its rows, as with its guard in its place.
- Below something that counts, a projection with several guard children counts as a relation for all of them but the
  highest: its rows live while several atoms agree, and Lemma 6.9 needs lifespans of single rows below a relation.
So every tree here has a tree of the paper with the same height, and the theorems apply to this height.
Cost: linear in the tree.
Source: CROWN, Definitions 3.1 and 3.2, section 6.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from everview.analysis.guarantee import ForbidsEdge, TreeShape, ValueCost, ValueEdge
from everview.query.conjunctive import HubKind


class NodeKind(StrEnum):
    """Relations hold the rows of an atom, projections distinct rows of what is below their guard."""

    RELATION = "relation"
    PROJECTION = "projection"


class EdgeKind(StrEnum):
    """Support edges pass existence upward, value edges also sums of annotations."""

    SUPPORT = "support"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Node:
    """A relation (with the name of its atom) or a projection (without).

    ``unit``: keys force the sum of annotations that reaches one entry of the hub above to be 0 or 1.
    """

    kind: NodeKind
    columns: tuple[str, ...]
    atom: str | None
    connex: bool
    unit: bool
    up: int
    down: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.atom or 'P'}({', '.join(self.columns)})"


@dataclass(frozen=True, slots=True)
class Hub:
    """The hub of one key below ``parent`` (None: the root hub). One that is not required has one child."""

    key: tuple[str, ...]
    parent: int | None
    children: tuple[int, ...]
    kind: HubKind = HubKind.REQUIRED


@dataclass(frozen=True, slots=True)
class JoinTree:
    """A join tree for the variables ``head``. ``distinct``: only existence matters, so all edges are support edges."""

    head: tuple[str, ...]
    distinct: bool
    nodes: tuple[Node, ...]
    hubs: tuple[Hub, ...]

    def parent(self, node: int) -> int | None:
        """The node above a node; None below hub 0."""
        return self.hubs[self.nodes[node].up].parent

    def is_guard(self, hub: int) -> bool:
        """Whether a hub is the guard of a projection."""
        above = self.hubs[hub].parent
        if above is None:
            return False
        node = self.nodes[above]
        return node.kind is NodeKind.PROJECTION and node.down[0] == hub

    def edge_kind(self, node: int) -> EdgeKind:
        """The kind of the edge from a node to the hub above it."""
        if self.distinct or self.nodes[node].connex or self.is_support_only(node):
            return EdgeKind.SUPPORT
        return EdgeKind.VALUE

    def is_support_only(self, node: int) -> bool:
        """Whether a node is part of what rows above only need to have, or not to have."""
        hub = self.hubs[self.nodes[node].up]
        if hub.kind in (HubKind.EXISTS, HubKind.FORBIDS):
            return True
        return hub.parent is not None and self.is_support_only(hub.parent)

    def atoms_below(self, hub: int) -> frozenset[str]:
        """The atoms below a hub."""
        found: set[str] = set()
        for child in self.hubs[hub].children:
            node = self.nodes[child]
            found.update([] if node.atom is None else [node.atom])
            found.update(*(self.atoms_below(h) for h in node.down))
        return frozenset(found)

    def value_cost(self, node: int) -> ValueCost:
        """What a changed value costs on the value edge above a node."""
        hub = self.nodes[node].up
        above = self.hubs[hub].parent
        if above is None:
            return ValueCost.ROOT
        if self.is_guard(hub):
            return ValueCost.GUARD
        if self.nodes[node].unit:
            return ValueCost.UNIT
        return ValueCost.CONNEX if self.nodes[above].connex else ValueCost.FAN_OUT

    @property
    def height(self) -> int:
        """The height, as defined in the module header."""
        return max((self._height(n, below=False) for n in self.hubs[0].children), default=0)

    def depth(self, node: int) -> int:
        """The number of relations above a node; projections count on paths through hubs other than their guard."""
        hub = self.nodes[node].up
        above = self.hubs[hub].parent
        if above is None:
            return 0
        return self.depth(above) + (0 if self.is_guard(hub) else 1)

    @property
    def relations(self) -> tuple[int, ...]:
        return tuple(i for i, n in enumerate(self.nodes) if n.kind is NodeKind.RELATION)

    @property
    def projections(self) -> tuple[int, ...]:
        return tuple(i for i, n in enumerate(self.nodes) if n.kind is NodeKind.PROJECTION)

    @property
    def shape(self) -> TreeShape:
        """What the theorems need to know."""
        edges = [
            ValueEdge(str(node), self._parent_name(i), self.hubs[node.up].key, self.value_cost(i))
            for i, node in enumerate(self.nodes)
            if self.edge_kind(i) is EdgeKind.VALUE
        ]
        forbids = [
            ForbidsEdge(str(self.nodes[h.children[0]]), str(self.nodes[h.parent]), inner=self.depth(h.parent) > 0)
            for h in self.hubs
            if h.kind is HubKind.FORBIDS and h.parent is not None
        ]
        has_optional = any(h.kind is HubKind.OPTIONAL for h in self.hubs)
        return TreeShape(self.height, tuple(edges), tuple(forbids), has_optional)

    def _parent_name(self, node: int) -> str:
        above = self.parent(node)
        return "root" if above is None else str(self.nodes[above])

    def _height(self, index: int, *, below: bool) -> int:
        node = self.nodes[index]
        if node.kind is NodeKind.RELATION:
            return 1 + max((self._height(c, below=True) for h in node.down for c in self.hubs[h].children), default=0)
        guard, *others = node.down
        guarded = sorted((self._height(c, below=below) for c in self.hubs[guard].children), reverse=True)
        beside = [1 + self._height(c, below=True) for h in others for c in self.hubs[h].children]
        joined = [1 + guarded[1]] if below and len(guarded) > 1 else []
        return max(*guarded, *joined, *beside, 0)


def lookups(tree: JoinTree, columns: tuple[str, ...] | None = None) -> tuple[tuple[str, ...], ...]:
    """The sets of variables by which the tree can be looked up, smallest first.

    These are the columns of each connex node and the keys of the hubs below connex nodes. With ``columns`` only the
    sets within them (those of a query whose head was extended).
    """
    found = [n.columns for n in tree.nodes if n.connex]
    found += [h.key for h in tree.hubs if h.parent is not None and tree.nodes[h.parent].connex]
    allowed = set(tree.head if columns is None else columns)
    position = {v: i for i, v in enumerate(tree.head)}
    sets = {tuple(sorted(set(f), key=position.__getitem__)) for f in found if f and set(f) <= allowed}
    return tuple(sorted(sets, key=lambda s: (len(s), [position[v] for v in s])))
