"""The two-stage GYO reduction: is a query acyclic, is it free-connex, and what is the smallest free-connex head?

What: stage one removes ears while the head is protected, giving a normal form I; stage two forgets the head and goes
on, giving J. The query is acyclic iff J is empty, and free-connex iff moreover var(I) is the head. In any case var(I)
is the smallest head with which the acyclic query is free-connex.
Representation: a ``Triplet`` of hyperedges, protected variables and predicates; every step is recorded in a trace.
Predicates are sets of variables with a name; today's queries have none, and the rules already respect them.
Invariants: G1, each step removes a variable, a hyperedge or a predicate, so the reduction ends; G2, the normal form
does not depend on the order of steps (Proposition 7), the trace does and is fixed by trying rules and hyperedges in
order.
Cost: O(steps * edges^2 * variables), queries are small.
Source: GDYN, section 6: Definitions 10-12, Theorem 3 (classes), Theorem 4 (smallest head).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from everview.analysis.hypergraph import Hyperedge, Hypergraph, vertices_of


class Rule(StrEnum):
    """The reduction operations of GDYN, section 6.2."""

    ISOLATED = "remove isolated variables"
    SUBSET = "remove a conditional subset"
    FILTER = "remove covered predicates"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition over the variables of several atoms, seen only as the set of its variables."""

    name: str
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Triplet:
    """Hyperedges, the protected (output) variables, and the predicates still to be placed."""

    edges: tuple[Hyperedge, ...]
    protected: frozenset[str]
    predicates: tuple[Predicate, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.edges or self.protected or self.predicates)


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: ``edge`` loses ``variables``, or goes as a subset of ``into``, or covers ``predicates``."""

    stage: int
    rule: Rule
    edge: str
    variables: tuple[str, ...] = ()
    into: str | None = None
    predicates: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.rule is Rule.ISOLATED:
            return f"{self.edge} loses {', '.join(self.variables)}"
        if self.rule is Rule.SUBSET:
            return f"{self.edge} goes into {self.into}"
        return f"{self.edge} covers {', '.join(self.predicates)}"


@dataclass(frozen=True, slots=True)
class Reduction:
    """Both normal forms and the trace. ``smallest_head`` is var(hyp(I)), in the order of the query's variables."""

    steps: tuple[Step, ...]
    connex_form: tuple[Hyperedge, ...]
    core: tuple[Hyperedge, ...]
    left_predicates: tuple[Predicate, ...]
    smallest_head: tuple[str, ...]
    is_acyclic: bool
    is_free_connex: bool


def reduce_query(hypergraph: Hypergraph, head: frozenset[str], predicates: tuple[Predicate, ...] = ()) -> Reduction:
    """Run both stages.

    >>> r, s = Hyperedge("R", ("a", "b")), Hyperedge("S", ("b", "c"))
    >>> reduction = reduce_query(Hypergraph(("a", "b", "c"), (r, s)), frozenset("ac"))
    >>> reduction.is_acyclic, reduction.is_free_connex, reduction.smallest_head
    (True, False, ('a', 'b', 'c'))
    """
    edges = tuple(e for e in hypergraph.edges if e.members)
    steps: list[Step] = []
    first = _normal_form(Triplet(edges, head, predicates), 1, steps)
    second = _normal_form(replace(first, protected=frozenset()), 2, steps)
    kept = vertices_of(first.edges)
    return Reduction(
        steps=tuple(steps),
        connex_form=first.edges,
        core=second.edges,
        left_predicates=second.predicates,
        smallest_head=tuple(v for v in hypergraph.vertices if v in kept),
        is_acyclic=second.is_empty,
        is_free_connex=second.is_empty and kept == head,
    )


def equijoin_variables(triplet: Triplet) -> frozenset[str]:
    """The protected variables and those of two or more hyperedges."""
    seen: set[str] = set()
    shared: set[str] = set(triplet.protected)
    for edge in triplet.edges:
        shared |= edge.vertices & seen
        seen |= edge.vertices
    return frozenset(shared)


def extended_variables(triplet: Triplet, variables: frozenset[str]) -> frozenset[str]:
    """The partners of ``variables`` in the predicates that mention one of them."""
    found = (p.variables for p in triplet.predicates if p.variables & variables)
    return frozenset().union(*found) - variables


def is_conditional_subset(
    triplet: Triplet, edge: Hyperedge, other: Hyperedge, joined: frozenset[str] | None = None
) -> bool:
    """Whether ``other`` holds the join variables of ``edge`` and the predicate partners of the rest of it.

    ``joined``: ``equijoin_variables(triplet)``, if it is known.
    """
    joined = equijoin_variables(triplet) if joined is None else joined
    return (
        edge.vertices & joined <= other.vertices
        and extended_variables(triplet, edge.vertices - other.vertices) <= other.vertices
    )


def _normal_form(triplet: Triplet, stage: int, steps: list[Step]) -> Triplet:
    while True:
        reduced = (
            _remove_filters(triplet, stage, steps)
            or _remove_isolated(triplet, stage, steps)
            or _remove_subset(triplet, stage, steps)
        )
        if reduced is None:
            return triplet
        triplet = reduced


def _remove_filters(triplet: Triplet, stage: int, steps: list[Step]) -> Triplet | None:
    for edge in triplet.edges:
        covered = tuple(p for p in triplet.predicates if p.variables <= edge.vertices)
        if covered:
            steps.append(Step(stage, Rule.FILTER, edge.name, predicates=tuple(p.name for p in covered)))
            return replace(triplet, predicates=tuple(p for p in triplet.predicates if p not in covered))
    return None


def _remove_isolated(triplet: Triplet, stage: int, steps: list[Step]) -> Triplet | None:
    busy = equijoin_variables(triplet).union(*(p.variables for p in triplet.predicates))
    for i, edge in enumerate(triplet.edges):
        isolated = tuple(v for v in edge.members if v not in busy)
        if isolated:
            steps.append(Step(stage, Rule.ISOLATED, edge.name, variables=isolated))
            left = tuple(v for v in edge.members if v in busy)
            smaller = (Hyperedge(edge.name, left),) if left else ()
            return replace(triplet, edges=triplet.edges[:i] + smaller + triplet.edges[i + 1 :])
    return None


def _remove_subset(triplet: Triplet, stage: int, steps: list[Step]) -> Triplet | None:
    joined = equijoin_variables(triplet)
    for i, edge in enumerate(triplet.edges):
        for other in triplet.edges:
            if other is not edge and is_conditional_subset(triplet, edge, other, joined):
                steps.append(Step(stage, Rule.SUBSET, edge.name, into=other.name))
                gone = edge.vertices - other.vertices
                return replace(
                    triplet,
                    edges=triplet.edges[:i] + triplet.edges[i + 1 :],
                    predicates=tuple(p for p in triplet.predicates if not p.variables & gone),
                )
    return None
