"""Enumerates the join trees of an acyclic query for a free-connex head.

What: every rooted join tree with projection nodes that is not dominated in the sense below; where these are too many, those
that a greedy search finds.
Representation: a ``Branch`` is a node with the branches below it; hubs are implied (key: the common columns). The
search builds the branches for a group of atoms S and a key K, the variables S shares with the node above:
- a relation of S that holds K becomes the top; the rest falls apart into components when its variables are removed,
  and each component is a group of its own, keyed by what it shares with the top;
- or a projection P(X) with X strictly more than K becomes the top and S falls apart by removing X. The components
  that hold X are below the guard, the others below hubs with smaller keys. There must be two or more below the guard
  (the generalized relations of the paper), or one that is not connex while P(X) is (it exposes the head variables of
  a relation with other variables).
If S has head variables outside K, the top must be connex: all its columns in the head.
Invariants: B1, every tree satisfies T1-T5 of ``join_tree``; B2, no projection has a single child of its own columns;
B3, the result depends only on the query's order of atoms and variables.
Left out, because moving a component up never makes a tree higher, a relation deeper, or a value edge worse: trees that
hang two components of a node as one branch. Left out too: X that is neither the intersection of two atoms nor that of
an atom with the head, since no projection of the above kinds has such columns.
Cost: a path of n atoms has 2n - 1 trees, a star n + 1. The search for all gives up where a group of atoms has more than
``MOST_BRANCHES`` branches, all trees together more than ``MOST_NODES`` nodes, or more than ``MOST_BUILT`` branches were
built for all groups; it takes some ten atoms with nested sets of variables to meet these limits. The greedy search keeps
one branch per group and key, the best by itself, and tries every top for the whole: the groups are few (parts of the
query that hang on one node), so it takes polynomial time, well below a second for a hundred atoms. Limits count and do not
look at a clock, so that a plan does not depend on the machine.
Source: CROWN, Definition 3.2 and Appendix A (Lemma A.1); GDYN, section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from typing import Any

from everview.analysis.classification import Classification, require_acyclic
from everview.analysis.hypergraph import Hyperedge, components, hyperedges, vertices_of
from everview.errors import InternalError
from everview.query.conjunctive import Attachment, ConjunctiveQuery, HubKind
from everview.trees.join_tree import Hub, JoinTree, Node, NodeKind

MOST_BRANCHES = 5_000
MOST_NODES = 50_000
MOST_BUILT = 20_000


@dataclass(frozen=True, slots=True)
class Branch:
    """A relation (``atom``) or a projection, and the branches below it; ``kind`` and ``key`` of the hub above, where it is not required."""

    columns: frozenset[str]
    atom: Hyperedge | None
    below: tuple[Branch, ...]
    kind: HubKind = HubKind.REQUIRED
    key: frozenset[str] = frozenset()


Candidates = tuple[tuple[Branch, ...], ...]
"""For each connected part of the query the branches that may stand below the root hub, in a fixed order."""


def all_candidates(
    query: ConjunctiveQuery, classification: Classification, most: int = MOST_BRANCHES
) -> Candidates | None:
    """All candidates for the query with its maintained head, or None if they are too many; CYCLIC_JOIN for a cyclic query."""
    require_acyclic(query, classification)
    most = min(most, MOST_NODES // max(1, len(query.atoms)))
    built = 0

    def keep(branches: Iterator[Branch]) -> tuple[Branch, ...]:
        nonlocal built
        found = tuple(islice(branches, most + 1))
        built += len(found)
        if len(found) > most or built > MOST_BUILT:
            raise _TooManyError
        return found

    search = _Search(frozenset(classification.maintained_head), keep)
    try:
        return tuple(search.branches(part, frozenset()) for part in _parts(query))
    except _TooManyError:
        return None


def greedy_candidates(
    query: ConjunctiveQuery, classification: Classification, rank: Callable[[Branch], Any]
) -> Candidates:
    """One candidate for each top a tree may have, what is below it chosen group by group: the branch of the least ``rank``."""
    require_acyclic(query, classification)

    def keep(branches: Iterator[Branch]) -> tuple[Branch, ...]:
        best = min(branches, key=rank, default=None)
        return () if best is None else (best,)

    search = _Search(frozenset(classification.maintained_head), keep)
    return tuple(tuple(search.generate(part, frozenset())) for part in _parts(query))


def build_trees(query: ConjunctiveQuery, classification: Classification) -> Iterator[JoinTree]:
    """All candidate trees: every combination of the parts' branches. None if there are too many candidates."""
    for forest in product(*(all_candidates(query, classification) or ((),))):
        yield tree_of(forest, query, classification.maintained_head)


def _parts(query: ConjunctiveQuery) -> tuple[tuple[Hyperedge, ...], ...]:
    return components(hyperedges(query.joined_atoms), frozenset())


def with_attached(forest: tuple[Branch, ...], query: ConjunctiveQuery, head: frozenset[str]) -> tuple[Branch, ...]:
    """The forest with the query's attached blocks, each below the first node that has its key.

    A block that holds head variables hangs below a connex node, so that results are found through it.
    """
    for block in query.attached:
        forest = _hung(forest, block, query, head)
    return forest


def _hung(
    forest: tuple[Branch, ...], block: Attachment, query: ConjunctiveQuery, head: frozenset[str]
) -> tuple[Branch, ...]:
    atoms = hyperedges(query.atoms_by_name[name] for name in block.atoms)
    key = frozenset(block.key)
    exposed = head if block.kind is HubKind.OPTIONAL else frozenset[str]()
    search = _Search(exposed | (key if block.kind is HubKind.OPTIONAL else frozenset()), lambda b: tuple(islice(b, 1)))
    found = search.branches(atoms, key)
    if not found:
        raise InternalError("NO_JOIN_TREE", f"no branch for the atoms {', '.join(block.atoms)} of {query}")
    (branch,) = _inner(found, block, query, head)
    shows = block.kind is HubKind.OPTIONAL and bool((_variables(branch) - key) & head)
    branch = replace(branch, kind=block.kind, key=key)
    hung = [_hang_on(b, branch, head if shows else None) for b in forest]
    place = next((i for i, b in enumerate(hung) if b is not None), None)
    if place is None:
        raise InternalError("NO_JOIN_TREE", f"no node has the key {', '.join(block.key)} in {query}")
    return tuple(b if i != place else hung[i] or b for i, b in enumerate(forest))


def _inner(
    branches: tuple[Branch, ...], block: Attachment, query: ConjunctiveQuery, head: frozenset[str]
) -> tuple[Branch, ...]:
    for below in block.attached:
        branches = _hung(branches, below, query, head)
    return branches


def _hang_on(branch: Branch, child: Branch, head: frozenset[str] | None) -> Branch | None:
    """The branch with another below its first node that has the key, and is connex where ``head`` is given."""
    if head is not None and not branch.columns <= head:
        return None
    if child.key <= branch.columns:
        return replace(branch, below=(*branch.below, child))
    for i, below in enumerate(branch.below):
        if below.kind is HubKind.REQUIRED:
            found = _hang_on(below, child, head)
            if found is not None:
                return replace(branch, below=(*branch.below[:i], found, *branch.below[i + 1 :]))
    return None


class _TooManyError(Exception):
    """There are more branches than are looked at."""


class _Search:
    """The recursive search; of the branches of a group and key it remembers those that ``keep`` takes."""

    def __init__(self, head: frozenset[str], keep: Callable[[Iterator[Branch]], tuple[Branch, ...]]) -> None:
        self.head = head
        self.keep = keep
        self.known: dict[tuple[tuple[str, ...], frozenset[str]], tuple[Branch, ...]] = {}

    def branches(self, atoms: tuple[Hyperedge, ...], key: frozenset[str]) -> tuple[Branch, ...]:
        """The branches that are kept for these atoms, whose top holds ``key``."""
        group = tuple(a.name for a in atoms), key
        if group not in self.known:
            self.known[group] = self.keep(self.generate(atoms, key))
        return self.known[group]

    def generate(self, atoms: tuple[Hyperedge, ...], key: frozenset[str]) -> Iterator[Branch]:
        """The branches for these atoms whose top holds ``key``, over kept ones."""
        exposes = bool(vertices_of(atoms) & self.head - key)
        for columns in self._projections(atoms, key):
            if not exposes or columns <= self.head:
                yield from self._below_projection(atoms, columns, exposes=exposes)
        for atom in atoms:
            if key <= atom.vertices and (not exposes or atom.vertices <= self.head):
                rest = tuple(a for a in atoms if a is not atom)
                yield from self._hang(atom.vertices, atom, components(rest, atom.vertices))

    def _projections(self, atoms: tuple[Hyperedge, ...], key: frozenset[str]) -> list[frozenset[str]]:
        pairs = [a.vertices & b.vertices for a, b in combinations(atoms, 2)]
        exposed = [a.vertices & self.head for a in atoms]
        return list(dict.fromkeys(x for x in pairs + exposed if x > key))

    def _below_projection(
        self, atoms: tuple[Hyperedge, ...], columns: frozenset[str], *, exposes: bool
    ) -> Iterator[Branch]:
        groups = components(atoms, columns)
        guarded = [g for g in groups if columns <= vertices_of(g)]
        if len(guarded) >= 2:
            yield from self._hang(columns, None, groups)
        elif len(guarded) == 1 and exposes and vertices_of(guarded[0]) & self.head <= columns:
            for branch in self._hang(columns, None, groups):
                if all(b.columns != columns for b in branch.below):
                    yield branch

    def _hang(
        self, columns: frozenset[str], atom: Hyperedge | None, groups: tuple[tuple[Hyperedge, ...], ...]
    ) -> Iterator[Branch]:
        alternatives = [self.branches(g, vertices_of(g) & columns) for g in groups]
        for below in product(*alternatives):
            yield Branch(columns, atom, below)


def tree_of(
    forest: tuple[Branch, ...], query: ConjunctiveQuery, head: tuple[str, ...], *, grouped: bool = False
) -> JoinTree:
    """The tree with these branches below the root hub: hubs made explicit, the connex part marked (T5).

    ``grouped``: results are only added up by head tuple. A branch below a guard that binds no head variable of its own
    then stays out of the connex part and passes one value per entry, which costs less than binding its rows.
    """
    position, atoms = query.positions, query.atoms_by_name
    free = frozenset(head)
    nodes: list[Node] = []
    hubs: list[Hub] = []

    def ordered(columns: frozenset[str]) -> tuple[str, ...]:
        return tuple(sorted(columns, key=position.__getitem__))

    def add_hub(
        key: frozenset[str],
        parent: int | None,
        branches: list[Branch],
        *,
        connex: bool,
        kind: HubKind = HubKind.REQUIRED,
    ) -> int:
        index = len(hubs)
        hubs.append(Hub(ordered(key), parent, (), kind))
        connex = connex and kind not in (HubKind.EXISTS, HubKind.FORBIDS)
        children = tuple(add_node(b, index, key, connex=connex) for b in branches)
        hubs[index] = Hub(ordered(key), parent, children, kind)
        return index

    def is_unit(branch: Branch, key: frozenset[str]) -> bool:
        if branch.atom is None:
            return False
        atom = atoms[branch.atom.name]
        alone = any(k <= key for k in atom.keys) and all(f is None for f in atom.factors)
        return alone and all(is_unit(b, b.columns & branch.columns) for b in branch.below)

    def passes_value(branch: Branch, up: int, key: frozenset[str]) -> bool:
        above = hubs[up].parent
        guarded = (
            above is not None and nodes[above].kind is NodeKind.PROJECTION and frozenset(nodes[above].columns) == key
        )
        return grouped and guarded and _variables(branch) & free <= key

    def add_node(branch: Branch, up: int, key: frozenset[str], *, connex: bool) -> int:
        index = len(nodes)
        connex = connex and branch.columns <= free and not passes_value(branch, up, key)
        atom = branch.atom
        kind = NodeKind.PROJECTION if atom is None else NodeKind.RELATION
        columns = ordered(branch.columns) if atom is None else atom.members
        name, unit = None if atom is None else atom.name, is_unit(branch, key)
        nodes.append(Node(kind, columns, name, connex, unit, up, ()))
        keyed: dict[frozenset[str], list[Branch]] = {}
        attached = [b for b in branch.below if b.kind is not HubKind.REQUIRED]
        for b in branch.below:
            if b.kind is HubKind.REQUIRED:
                keyed.setdefault(b.columns & branch.columns, []).append(b)
        guard_first = sorted(keyed, key=lambda k: (-len(k), [position[v] for v in ordered(k)]))
        down = tuple(add_hub(k, index, keyed[k], connex=connex) for k in guard_first)
        down += tuple(add_hub(b.key, index, [b], connex=connex, kind=b.kind) for b in attached)
        nodes[index] = Node(kind, columns, name, connex, unit, up, down)
        return index

    add_hub(frozenset(), None, list(forest), connex=bool(head))
    return JoinTree(head, query.distinct, tuple(nodes), tuple(hubs))


def _variables(branch: Branch) -> frozenset[str]:
    return branch.columns.union(*(_variables(b) for b in branch.below))
