"""Which equalities to leave out of a join so that it is acyclic.

What: a tree holds acyclic joins only. Of the equalities between terms of atoms some are left out, as few as a greedy
search finds, and are checked on the results.
Representation: a term is an atom and an expression over it; the classes of equal terms are the hyperedges' variables.
Invariants: A1, what is left is acyclic; A2, nothing is left out of an acyclic join; A3, equal input gives equal output.
Among equals the last equality goes: it is the one that closes the cycle as the query is read.
Cost: one reduction per equality and round; queries are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.analysis.gyo import reduce_query
from everview.analysis.hypergraph import Hyperedge, Hypergraph

Term = tuple[str, Any]


def closing(equalities: Sequence[tuple[Term, Term]]) -> frozenset[int]:
    """The positions of the equalities to be left out."""
    out: set[int] = set()
    size = _cyclic_part(equalities, out)
    while size:
        candidates = [i for i in range(len(equalities)) if i not in out]
        sizes = {i: _cyclic_part(equalities, out | {i}) for i in candidates}
        best = min(candidates, key=lambda i: (sizes[i], -i))
        out.add(best)
        size = sizes[best]
    return frozenset(out)


def _cyclic_part(equalities: Sequence[tuple[Term, Term]], without: set[int]) -> int:
    """How many variables are in the part of the join that no reduction removes."""
    class_of: dict[Term, int] = {}
    for number, (one, two) in enumerate(e for i, e in enumerate(equalities) if i not in without):
        first, second = class_of.get(one), class_of.get(two)
        united = next((c for c in (first, second) if c is not None), number)
        class_of[one] = class_of[two] = united
        if first is not None and second is not None and first != second:
            class_of = {term: united if c in (first, second) else c for term, c in class_of.items()}
    variables: dict[str, dict[str, None]] = {}
    for (atom, _), found in class_of.items():
        variables.setdefault(atom, {})[f"v{found}"] = None
    edges = tuple(Hyperedge(atom, tuple(members)) for atom, members in variables.items())
    vertices = tuple(dict.fromkeys(v for e in edges for v in e.members))
    reduction = reduce_query(Hypergraph(vertices, edges), frozenset())
    return 0 if reduction.is_acyclic else sum(len(e.members) for e in reduction.core)
