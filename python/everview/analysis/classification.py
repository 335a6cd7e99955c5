"""Which classes a query is in, with a witness for each it is not in.

What: acyclic, free-connex, hierarchical, q-hierarchical; the smallest head with which the query is free-connex.
Representation: ``Classification`` holds one ``Answer`` per class, the hypergraph and the trace of the reduction.
Invariants: C1, q-hierarchical implies hierarchical and free-connex, and each of the latter two implies acyclic; C2,
``maintained_head`` starts with the query's head in its order and equals it iff the query is free-connex.
Cost: that of ``gyo`` and ``hierarchical``.
Source: CROWN, section 3.2; GDYN, Theorems 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from everview.analysis.gyo import Reduction, reduce_query
from everview.analysis.hierarchical import check_head_upward_closed, check_hierarchical
from everview.analysis.hypergraph import Hypergraph, hypergraph_of
from everview.analysis.witness import (
    Witness,
    cyclic_witness,
    free_connex_witness,
    head_witness,
    hierarchical_witness,
)
from everview.errors import UnsupportedQueryError
from everview.query.conjunctive import ConjunctiveQuery


class QueryClass(StrEnum):
    """The classes, each named as in the papers."""

    ACYCLIC = "acyclic"
    FREE_CONNEX = "free-connex"
    HIERARCHICAL = "hierarchical"
    Q_HIERARCHICAL = "q-hierarchical"


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the query is in the class; where it is not, why."""

    query_class: QueryClass
    witness: Witness | None = None

    @property
    def holds(self) -> bool:
        return self.witness is None


@dataclass(frozen=True, slots=True)
class Classification:
    """All answers about one query."""

    hypergraph: Hypergraph
    answers: tuple[Answer, ...]
    reduction: Reduction
    head: tuple[str, ...]
    maintained_head: tuple[str, ...]

    def answer(self, query_class: QueryClass) -> Answer:
        """The answer for one class."""
        return next(a for a in self.answers if a.query_class == query_class)

    def holds(self, query_class: QueryClass) -> bool:
        """Whether the query is in the class."""
        return self.answer(query_class).holds

    @property
    def is_extended(self) -> bool:
        """Whether more variables are maintained than the head has (acyclic but not free-connex)."""
        return len(self.maintained_head) > len(self.head)


def classify(query: ConjunctiveQuery) -> Classification:
    """Test every class. A cyclic query is classified too; ``require_acyclic`` refuses it."""
    hypergraph = hypergraph_of(query)
    head = tuple(dict.fromkeys(query.head))
    free = frozenset(head) | query.exposing_keys
    reduction = reduce_query(hypergraph, free)

    cyclic = None if reduction.is_acyclic else cyclic_witness(hypergraph, reduction)
    not_connex = cyclic
    if cyclic is None and not reduction.is_free_connex:
        not_connex = free_connex_witness(hypergraph, free, reduction)
    overlap = check_hierarchical(hypergraph)
    not_hierarchical = None if overlap is None else hierarchical_witness(hypergraph, overlap)
    not_q = not_hierarchical
    if not_q is None:
        escape = check_head_upward_closed(hypergraph, free)
        not_q = None if escape is None else head_witness(hypergraph, escape)

    return Classification(
        hypergraph=hypergraph,
        answers=(
            Answer(QueryClass.ACYCLIC, cyclic),
            Answer(QueryClass.FREE_CONNEX, not_connex),
            Answer(QueryClass.HIERARCHICAL, not_hierarchical),
            Answer(QueryClass.Q_HIERARCHICAL, not_q),
        ),
        reduction=reduction,
        head=head,
        maintained_head=head + tuple(v for v in reduction.smallest_head if v not in head),
    )


def require_acyclic(query: ConjunctiveQuery, classification: Classification) -> None:
    """Raise CYCLIC_JOIN if the query is cyclic."""
    witness = classification.answer(QueryClass.ACYCLIC).witness
    if witness is None:
        return
    raise UnsupportedQueryError(
        "CYCLIC_JOIN",
        f"cyclic joins are not supported: {witness}",
        hint="drop one of these join conditions, or split the query into acyclic views",
        query=str(query),
        variables=witness.variables,
        atoms=witness.atoms,
    )
