"""The hypergraph of a conjunctive query.

What: one hyperedge per atom, over the atom's variables; connected components after removing variables.
Representation: a ``Hyperedge`` is named after its atom, so two atoms over the same variables stay two hyperedges
(papers merge them; every reduction here merges them by subset elimination).
Invariants: H1, names of hyperedges are unique; H2, ``members`` keeps the order of the atom and has no repetition.
Cost: linear in the size of the query, except ``components``: quadratic in the number of hyperedges.
Source: GDYN, Definition 9.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from everview.query.conjunctive import Atom, ConjunctiveQuery


@dataclass(frozen=True, slots=True)
class Hyperedge:
    """The variables of one atom."""

    name: str
    members: tuple[str, ...]
    vertices: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "vertices", frozenset(self.members))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.members)})"


@dataclass(frozen=True, slots=True)
class Hypergraph:
    """The hyperedges of a query; ``vertices`` in the order of the query's variables."""

    vertices: tuple[str, ...]
    edges: tuple[Hyperedge, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(str(e) for e in self.edges) + "}"


def hypergraph_of(query: ConjunctiveQuery) -> Hypergraph:
    """The hypergraph of a query: of the atoms that its results are made of."""
    return Hypergraph(tuple(query.variables), hyperedges(query.result_atoms))


def hyperedges(atoms: Iterable[Atom]) -> tuple[Hyperedge, ...]:
    """The hyperedges of atoms."""
    return tuple(Hyperedge(a.name, tuple(dict.fromkeys(a.variables))) for a in atoms)


def first_of_kind(hypergraph: Hypergraph, head: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Variables with the same atoms, all in the head or all not, are alike: the first of each kind.

    Tables have many columns, but columns of few kinds.

    >>> edges = (Hyperedge("R", ("a", "b", "c")), Hyperedge("S", ("c", "d")))
    >>> first_of_kind(Hypergraph(("a", "b", "c", "d"), edges))
    ('a', 'c', 'd')
    """
    atoms = atoms_of(hypergraph)
    found: dict[tuple[tuple[str, ...], bool], str] = {}
    for v in hypergraph.vertices:
        found.setdefault((atoms[v], v in head), v)
    return tuple(found.values())


def atoms_of(hypergraph: Hypergraph) -> dict[str, tuple[str, ...]]:
    """For each variable the names of the atoms that hold it."""
    return {v: tuple(e.name for e in hypergraph.edges if v in e.vertices) for v in hypergraph.vertices}


def vertices_of(edges: Iterable[Hyperedge]) -> frozenset[str]:
    """All variables of some hyperedges.

    >>> sorted(vertices_of([Hyperedge("R", ("a", "b")), Hyperedge("S", ("b", "c"))]))
    ['a', 'b', 'c']
    """
    return frozenset(v for e in edges for v in e.members)


def components(edges: tuple[Hyperedge, ...], without: frozenset[str]) -> tuple[tuple[Hyperedge, ...], ...]:
    """The groups of hyperedges that hang together through variables other than ``without``, in order of appearance.

    A hyperedge with no other variables is a component of its own.

    >>> r, s, t = Hyperedge("R", ("a", "b")), Hyperedge("S", ("b", "c")), Hyperedge("T", ("a", "d"))
    >>> [[e.name for e in group] for group in components((r, s, t), frozenset("b"))]
    [['R', 'T'], ['S']]
    """
    groups: list[tuple[set[str], list[Hyperedge]]] = []
    for edge in edges:
        free = edge.vertices - without
        touching = [g for g in groups if g[0] & free]
        merged = (set(free), [edge])
        for group in touching:
            merged[0].update(group[0])
            merged[1].extend(group[1])
            groups.remove(group)
        groups.append(merged)
    position = {edge: i for i, edge in enumerate(edges)}
    ordered = [tuple(sorted(members, key=position.__getitem__)) for _, members in groups]
    return tuple(sorted(ordered, key=lambda group: position[group[0]]))
