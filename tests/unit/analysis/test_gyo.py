"""The two-stage reduction, with and without predicates; the examples of GDYN, section 6."""

from everview.analysis.gyo import (
    Predicate,
    Rule,
    Triplet,
    equijoin_variables,
    extended_variables,
    is_conditional_subset,
    reduce_query,
)
from everview.analysis.hypergraph import Hyperedge, hypergraph_of
from textbook import TEXTBOOK, parse

EXAMPLE_6 = hypergraph_of(parse(TEXTBOOK["example_6"]))
LESS_TV = Predicate("t < v", frozenset("tv"))
LESS_XY = Predicate("x < y", frozenset("xy"))


def test_example_6_definitions():
    triplet = Triplet(EXAMPLE_6.edges, frozenset("tuzw"), (LESS_TV, LESS_XY))
    r1, r2, _, r4, _ = EXAMPLE_6.edges
    assert equijoin_variables(triplet) == frozenset("stuwz")
    assert extended_variables(triplet, frozenset("v")) == frozenset("t")
    assert is_conditional_subset(triplet, r4, r1)
    assert is_conditional_subset(triplet, r2, r1)
    assert not is_conditional_subset(triplet, r1, r2)


def test_example_8_with_predicates_is_acyclic_and_not_free_connex():
    reduction = reduce_query(EXAMPLE_6, frozenset("tuzw"), (LESS_TV, LESS_XY))
    assert reduction.is_acyclic
    assert not reduction.is_free_connex
    assert set(reduction.smallest_head) > set("tuzw")


def test_example_8_without_predicates_is_free_connex():
    reduction = reduce_query(EXAMPLE_6, frozenset("tuzw"))
    assert reduction.is_acyclic
    assert reduction.is_free_connex
    assert set(reduction.smallest_head) == set("tuzw")


def test_predicates_can_make_a_query_cyclic():
    graph = hypergraph_of(parse("Q(a) :- R(a, x), S(a, y), T(a, z)"))
    pairs = [Predicate("p", frozenset("xy")), Predicate("q", frozenset("yz")), Predicate("r", frozenset("xz"))]
    assert reduce_query(graph, frozenset("a"), tuple(pairs[:2])).is_acyclic
    assert not reduce_query(graph, frozenset("a"), tuple(pairs)).is_acyclic


def test_trace_of_the_two_hop():
    reduction = reduce_query(hypergraph_of(parse(TEXTBOOK["two_hop"])), frozenset("abc"))
    assert [(s.stage, str(s)) for s in reduction.steps] == [
        (2, "G1 loses a"),
        (2, "G2 loses c"),
        (2, "G1 goes into G2"),
        (2, "G2 loses b"),
    ]


def test_filters_are_covered_first():
    graph = hypergraph_of(parse("Q(a) :- R(a, b)"))
    reduction = reduce_query(graph, frozenset("a"), (Predicate("a < b", frozenset("ab")),))
    assert [s.rule for s in reduction.steps] == [Rule.FILTER, Rule.ISOLATED, Rule.ISOLATED]
    assert reduction.is_free_connex


def test_core_of_the_dumbbell_is_cyclic():
    reduction = reduce_query(hypergraph_of(parse(TEXTBOOK["dumbbell"])), frozenset())
    assert not reduction.is_acyclic
    assert len(reduction.core) == 7
    assert Hyperedge("R7", ("c", "d")) in reduction.core
