"""Classes and witnesses of the textbook queries."""

import pytest
from everview.analysis.classification import QueryClass, classify, require_acyclic
from everview.errors import UnsupportedQueryError
from textbook import TEXTBOOK, parse

A, F, H, Q = QueryClass.ACYCLIC, QueryClass.FREE_CONNEX, QueryClass.HIERARCHICAL, QueryClass.Q_HIERARCHICAL
CLASSES = {
    "scan": {A, F, H, Q},
    "projected_scan": {A, F, H, Q},
    "two_hop": {A, F, H, Q},
    "two_hop_ends": {A, H},
    "three_hop": {A, F},
    "three_hop_projected": {A, F},
    "four_hop": {A, F},
    "four_hop_projected": {A, F},
    "figure_1": {A, F},
    "two_comb": {A, F},
    "star": {A, F, H, Q},
    "guarded": {A, F},
    "theorem_6_7": {A, F, H},
    "theorem_6_2": {A, F},
    "example_6": {A, F},
    "global": {A, F, H, Q},
    "product": {A, F, H, Q},
    "triangle": set(),
    "dumbbell": set(),
}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_classes(name):
    classification = classify(parse(TEXTBOOK[name]))
    assert {a.query_class for a in classification.answers if a.holds} == CLASSES[name]


def sentence(text, query_class):
    return str(classify(parse(text)).answer(query_class).witness)


def test_free_connex_witness_is_a_path():
    assert sentence("Q(a, c) :- R(a, b), S(b, c)", F) == (
        "a and c are in the head but joined only through b, which is projected out: R(a, b) and S(b, c)"
    )
    assert sentence("Q(a, d) :- R(a, b), S(b, c), T(c, d)", F) == (
        "a and d are in the head but joined only through b and c, which are projected out: R(a, b), S(b, c) and T(c, d)"
    )


def test_smallest_free_connex_head():
    assert classify(parse("Q(c, a) :- R(a, b), S(b, c), T(c, d)")).maintained_head == ("c", "a", "b")
    assert classify(parse("Q(a, d) :- R(a, b), S(b, c), T(c, d)")).maintained_head == ("a", "d", "b", "c")
    assert not classify(parse("Q(a, b) :- R(a, b), S(b, c)")).is_extended


def test_cyclic_witness_names_a_cycle():
    assert sentence(TEXTBOOK["triangle"], A) == "G1(a, b), G2(b, c) and G3(c, a) join in a cycle: a - b - c - a"
    square = "Q(a) :- R(a, b, x), S(b, c), T(c, d), U(d, a), V(a, y)"
    assert sentence(square, A).endswith("join in a cycle: a - b - c - d - a")


def test_cyclic_without_chordless_cycle_names_the_core():
    faces = "Q(a) :- R(a, b, c), S(a, b, d), T(a, c, d), U(b, c, d)"
    assert sentence(faces, A) == (
        "R(a, b, c), S(a, b, d), T(a, c, d) and U(b, c, d) join in a cycle: none of them is an ear of the others"
    )


def test_cyclic_query_is_refused_with_its_witness():
    query = parse(TEXTBOOK["triangle"])
    with pytest.raises(UnsupportedQueryError, match="a - b - c - a") as caught:
        require_acyclic(query, classify(query))
    assert caught.value.code == "CYCLIC_JOIN"
    assert caught.value.hint
    assert caught.value.parameters["atoms"] == ("G1", "G2", "G3")


def test_hierarchical_witnesses():
    assert sentence("Q(b, c) :- R(a, b), S(b, c), T(c)", H) == (
        "b and c meet in S(b, c), but R(a, b) has only b and T(c) only c"
    )
    assert sentence(TEXTBOOK["theorem_6_7"], Q) == (
        "x1 is in the head and x2 is not, though x2 is in every atom of x1 (R1(x1, x2)) and in R2(x2) too"
    )
