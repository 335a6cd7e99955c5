"""Hierarchical and q-hierarchical queries, with the pair of variables that violates the definition.

What: let E(x) be the atoms of x. A query is hierarchical if for any two variables E(x) and E(y) are disjoint or one
contains the other. It is q-hierarchical if moreover E(x) strictly inside E(y) and x in the head put y in the head.
Representation: ``Pair`` is the violating pair with the atoms that show it.
Invariants: the first pair in the order of the query's variables is reported; both are the first of their kind (``first_of_kind``).
Cost: O(variables * atoms + kinds^2 * atoms).
Source: CROWN, section 3.2 (after Berkholz, Keppeler, Schweikardt).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, permutations

from everview.analysis.hypergraph import Hypergraph, atoms_of, first_of_kind


@dataclass(frozen=True, slots=True)
class Pair:
    """Two variables: atoms that hold both, the first alone, the second alone (names, possibly empty)."""

    first: str
    second: str
    both: tuple[str, ...]
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]


def check_hierarchical(hypergraph: Hypergraph) -> Pair | None:
    """The first pair whose atoms overlap without inclusion; None if the query is hierarchical."""
    atoms = atoms_of(hypergraph)
    for x, y in combinations(first_of_kind(hypergraph), 2):
        pair = _pair(atoms, x, y)
        if pair.both and pair.first_only and pair.second_only:
            return pair
    return None


def check_head_upward_closed(hypergraph: Hypergraph, head: frozenset[str]) -> Pair | None:
    """The first x in the head whose atoms are strictly inside those of a y outside the head; None if there is none.

    A hierarchical query for which this returns None is q-hierarchical.
    """
    atoms = atoms_of(hypergraph)
    for x, y in permutations(first_of_kind(hypergraph, head), 2):
        pair = _pair(atoms, x, y)
        if x in head and y not in head and pair.both and not pair.first_only and pair.second_only:
            return pair
    return None


def _pair(atoms: Mapping[str, tuple[str, ...]], x: str, y: str) -> Pair:
    return Pair(
        x,
        y,
        both=tuple(a for a in atoms[x] if a in atoms[y]),
        first_only=tuple(a for a in atoms[x] if a not in atoms[y]),
        second_only=tuple(a for a in atoms[y] if a not in atoms[x]),
    )
