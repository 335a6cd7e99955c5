"""Why a query is not in a class, in terms of its own variables and atoms.

What: for each class a sentence a user can check by looking at the query.
Representation: a ``Witness`` is the sentence with the variables and atoms it names.
Invariants: W1, a cyclic query's witness names the core left by the reduction, and a cycle of variables where the core
holds a chordless one; W2, an acyclic query that is not free-connex has a free path (two head variables in no common
atom, joined only through variables outside the head): a shortest one is reported.
Cost: exponential in the length of the shortest cycle at worst; queries are small.
Source: free paths: Bagan, Durand, Grandjean (CSL 2007), cited as [5] in CROWN; core: GDYN, Theorem 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

from everview.analysis.gyo import Reduction
from everview.analysis.hierarchical import Pair
from everview.analysis.hypergraph import Hyperedge, Hypergraph, first_of_kind, vertices_of


@dataclass(frozen=True, slots=True)
class Witness:
    """A sentence, and the variables and atoms (names) it is about."""

    sentence: str
    variables: tuple[str, ...] = ()
    atoms: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.sentence


def listed(items: tuple[str, ...] | list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def cyclic_witness(hypergraph: Hypergraph, reduction: Reduction) -> Witness:
    """The core that no reduction step shrinks, and a cycle through it."""
    full = {e.name: e for e in hypergraph.edges}
    vertices = tuple(v for v in hypergraph.vertices if v in vertices_of(reduction.core))
    cycle = find_cycle(vertices, reduction.core)
    if cycle is None:
        core = tuple(e.name for e in reduction.core)
        atoms = [str(full[name]) for name in core]
        return Witness(f"{listed(atoms)} join in a cycle: none of them is an ear of the others", vertices, core)
    around = list(zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    core = tuple(next(e.name for e in reduction.core if {x, y} <= e.vertices) for x, y in around)
    atoms = [str(full[name]) for name in core]
    round_trip = " - ".join((*cycle, cycle[0]))
    return Witness(f"{listed(atoms)} join in a cycle: {round_trip}", cycle, core)


def find_cycle(vertices: tuple[str, ...], edges: tuple[Hyperedge, ...]) -> tuple[str, ...] | None:
    """A shortest chordless cycle of variables no hyperedge of which holds three; None where there is none."""
    sets = [e.vertices for e in edges]
    linked = {(x, y) for x, y in permutations(vertices, 2) if any(x in s and y in s for s in sets)}
    for x, y, z in combinations(vertices, 3):
        joined = (x, y) in linked and (y, z) in linked and (x, z) in linked
        if joined and not any({x, y, z} <= s for s in sets):
            return (x, y, z)
    for length in range(4, len(vertices) + 1):
        for start in vertices:
            found = _chordless(vertices, linked, [start], length)
            if found is not None:
                return tuple(found)
    return None


def _chordless(
    vertices: tuple[str, ...], linked: set[tuple[str, str]], path: list[str], length: int
) -> list[str] | None:
    last = len(path) == length - 1
    for v in vertices:
        if v in path or (path[-1], v) not in linked:
            continue
        touched = [i for i, u in enumerate(path[:-1]) if (u, v) in linked]
        if last and touched == [0]:
            return [*path, v]
        if not last and not touched:
            found = _chordless(vertices, linked, [*path, v], length)
            if found is not None:
                return found
    return None


def free_connex_witness(hypergraph: Hypergraph, head: frozenset[str], reduction: Reduction) -> Witness:
    """A shortest free path; the query must be acyclic and not free-connex."""
    path = find_free_path(hypergraph, head)
    if path is None:  # cannot happen for acyclic queries (W2); the sentence is right in any case
        extra = tuple(v for v in reduction.smallest_head if v not in head)
        return Witness(f"the head holds no join through {listed(extra)} together", extra)
    first, last, through = path[0], path[-1], path[1:-1]
    atoms = tuple(next(e for e in hypergraph.edges if {x, y} <= e.vertices) for x, y in pairwise(path))
    which = "which is" if len(through) == 1 else "which are"
    sentence = (
        f"{first} and {last} are in the head but joined only through {listed(through)}, "
        f"{which} projected out: {listed([str(a) for a in atoms])}"
    )
    return Witness(sentence, path, tuple(a.name for a in atoms))


def find_free_path(hypergraph: Hypergraph, head: frozenset[str]) -> tuple[str, ...] | None:
    """A shortest path from head variable to head variable, in no common atom, through variables outside the head.

    No two of its variables are of one kind: between two that are, the path could be cut short.
    """
    variables = first_of_kind(hypergraph, head)
    near = {
        v: tuple(u for u in variables if u != v and any({u, v} <= e.vertices for e in hypergraph.edges))
        for v in variables
    }
    best: tuple[str, ...] | None = None
    for start in (v for v in variables if v in head):
        paths: list[tuple[str, ...]] = [(start,)]
        seen = {start}
        while paths and (best is None or len(paths[0]) + 1 < len(best)):
            longer = []
            for path, v in ((p, v) for p in paths for v in near[p[-1]]):
                if v in head and len(path) > 1 and v != start and v not in near[start]:
                    if best is None or len(path) + 1 < len(best):
                        best = (*path, v)
                elif v not in head and v not in seen:
                    seen.add(v)
                    longer.append((*path, v))
            paths = longer
    return best


def hierarchical_witness(hypergraph: Hypergraph, pair: Pair) -> Witness:
    """Two variables whose atoms overlap without inclusion."""
    full = {e.name: str(e) for e in hypergraph.edges}
    both, first, second = pair.both[0], pair.first_only[0], pair.second_only[0]
    sentence = (
        f"{pair.first} and {pair.second} meet in {full[both]}, but {full[first]} has only {pair.first} "
        f"and {full[second]} only {pair.second}"
    )
    return Witness(sentence, (pair.first, pair.second), (both, first, second))


def head_witness(hypergraph: Hypergraph, pair: Pair) -> Witness:
    """A head variable whose atoms are strictly among those of a variable outside the head."""
    full = {e.name: str(e) for e in hypergraph.edges}
    both, second = pair.both[0], pair.second_only[0]
    sentence = (
        f"{pair.first} is in the head and {pair.second} is not, though {pair.second} is in every atom of "
        f"{pair.first} ({listed([full[a] for a in pair.both])}) and in {full[second]} too"
    )
    return Witness(sentence, (pair.first, pair.second), (both, second))
