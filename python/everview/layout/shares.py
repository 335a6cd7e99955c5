"""HyperCube shares: how the rows of a join are spread over shards so that each result is found on exactly one.

What: the shards form a grid with one dimension per share. A row of an atom is hashed on the variables it binds and goes to every shard
that agrees with these hashes; on dimensions it does not bind it is replicated. All rows of one result agree on every dimension, so
exactly one shard sees them together.
Representation: a dimension is a variable of the joined atoms that occurs in two or more, or, for an atom without one, that atom's own
variables together (the head variables where it has any, so that groups stay together). Shards are numbered in mixed radix, the last
dimension fastest. Atoms of attached blocks are hashed on what their key shares with the joined ones, and replicated otherwise: so the block
of a row is where the row is.
Invariants: S1, the product of the shares is at most the number of shards wanted; S2, a variable of every atom takes all of them: then
nothing is replicated.
Cost: the search goes through all integer vectors with a product within the bound.
Source: CROWN, section 8; HyperCube (Afrati and Ullman; Beame, Koutris and Suciu).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from everview.query.conjunctive import Atom, ConjunctiveQuery

_UNKNOWN_SIZE = 1000


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of the grid. ``variables`` are hashed together, whole rows if there are none; ``atom`` is set if only that atom is spread by it."""

    variables: tuple[str, ...]
    share: int
    atom: str | None = None

    def spreads(self, atom: Atom) -> bool:
        """Whether rows of an atom are hashed on this dimension."""
        return self.atom == atom.name if self.atom is not None else set(self.variables) <= set(atom.variables)

    def __str__(self) -> str:
        return ", ".join(self.variables) or "whole rows"


@dataclass(frozen=True, slots=True)
class Shares:
    """The grid: dimensions with a share above 1, and what it means for each atom.

    ``sizes`` and ``heaviest``: what they were chosen for. ``load``: rows expected on the fullest shard; ``total``: on all together.
    """

    dimensions: tuple[Dimension, ...]
    replication: Mapping[str, int]
    sizes: Mapping[str, float]
    heaviest: Mapping[tuple[str, str], float]
    load: float
    total: float

    @property
    def shards(self) -> int:
        return prod(d.share for d in self.dimensions)

    @property
    def strides(self) -> tuple[int, ...]:
        """Per dimension by how much the number of a shard grows with its coordinate."""
        return tuple(prod(d.share for d in self.dimensions[at + 1 :]) for at in range(len(self.dimensions)))

    @property
    def variables(self) -> frozenset[str]:
        """The variables by which rows are spread."""
        return frozenset(v for d in self.dimensions for v in d.variables)

    def are_told_by(self, head: tuple[str, ...]) -> bool:
        """Whether these variables of a result tell its shard."""
        return all(d.variables and set(d.variables) <= set(head) for d in self.dimensions)

    def coordinates(self, shard: int) -> tuple[int, ...]:
        """The place of a shard in the grid."""
        found = []
        for dimension in reversed(self.dimensions):
            shard, at = divmod(shard, dimension.share)
            found.append(at)
        return tuple(reversed(found))


def choose_shares(
    query: ConjunctiveQuery,
    shards: int,
    sizes: Mapping[str, float] | None = None,
    heaviest: Mapping[tuple[str, str], float] | None = None,
    everywhere: frozenset[str] = frozenset(),
) -> Shares:
    """The shares with the smallest expected load of the fullest shard.

    ``sizes``: rows per table (lower-case name), all equal if unknown. ``heaviest``: the fraction of an atom's rows that have
    the most frequent value of a variable, by (atom, variable): no share divides these. ``everywhere``: atoms whose rows are all on every
    shard: others must tell where a result is found.
    """
    telling = [a for a in query.joined_atoms if a.name not in everywhere]
    grids = (g for g in _grids(query, shards) if all(any(d.spreads(a) for a in telling) for d in g))
    judged = (judge(query, dimensions, sizes, heaviest) for dimensions in grids)
    return min(judged, key=lambda shares: _rank(query, shares))


def judge(
    query: ConjunctiveQuery,
    dimensions: tuple[Dimension, ...],
    sizes: Mapping[str, float] | None = None,
    heaviest: Mapping[tuple[str, str], float] | None = None,
) -> Shares:
    """What a grid means for the atoms of a query; the options as in ``choose_shares``."""
    size = {a.name: float((sizes or {}).get(a.table.lower(), _UNKNOWN_SIZE)) for a in query.atoms}
    fraction = {(a.name, v): (heaviest or {}).get((a.name, v), 0.0) for a in query.atoms for v in a.variables}
    shards = prod(d.share for d in dimensions)
    replication = {}
    load = 0.0
    for atom in query.atoms:
        spread = [d for d in dimensions if d.spreads(atom)]
        replication[atom.name] = shards // prod(d.share for d in spread)
        fractions = (max([1 / d.share] + [fraction[atom.name, v] for v in d.variables[:1]]) for d in spread)
        load += size[atom.name] * prod(fractions)
    total = sum(size[name] * copies for name, copies in replication.items())
    return Shares(dimensions, replication, size, fraction, load, total)


def _rank(query: ConjunctiveQuery, shares: Shares) -> tuple[float, float, int, int]:
    """The order among grids: smallest load, then least replication, then results that tell their shard."""
    hidden = sum(not (d.variables and set(d.variables) <= set(query.head)) for d in shares.dimensions)
    return round(shares.load, 9), shares.total, hidden, shares.shards


def spreading_variables(query: ConjunctiveQuery) -> tuple[str, ...]:
    """The variables by which several atoms can be spread: of joined atoms, and in another atom, too."""
    joined = {v for a in query.joined_atoms for v in a.variables}
    return tuple(v for v in query.variables if v in joined and v in query.join_variables)


def _grids(query: ConjunctiveQuery, shards: int) -> Iterator[tuple[Dimension, ...]]:
    shared = spreading_variables(query)
    everywhere = [v for v in shared if len(query.occurrences[v]) == len(query.atoms)]
    if everywhere:
        for v in everywhere:
            yield (Dimension((v,), shards),) if shards > 1 else ()
        return
    candidates = [Dimension((v,), 1) for v in shared]
    for atom in query.joined_atoms:
        if not set(shared) & set(atom.variables):
            own = tuple(v for v in atom.variables if v in query.head) or atom.variables
            candidates.append(Dimension(own, 1, atom.name))
    for vector in _vectors(len(candidates), shards):
        pairs = zip(candidates, vector, strict=True)
        yield tuple(Dimension(c.variables, share, c.atom) for c, share in pairs if share > 1)


def _vectors(length: int, bound: int) -> Iterator[tuple[int, ...]]:
    """All vectors of positive integers with a product within the bound."""
    if length == 0:
        yield ()
        return
    for first in range(1, bound + 1):
        for rest in _vectors(length - 1, bound // first):
            yield (first, *rest)
