"""The choice among trees, its reason, the guarantees that follow, and the lookups."""

import pytest
import views
from everview.analysis.classification import classify
from everview.trees.choose import choose_tree
from everview.trees.join_tree import EdgeKind, lookups
from textbook import TEXTBOOK, parse


def chosen(text, rates=None, distinct=False):
    query = parse(text, distinct)
    return choose_tree(query, classify(query), rates)


def top(choice):
    return str(choice.tree.nodes[0])


def test_update_rates_pull_a_relation_up():
    text = "Q(a, b, c, d) :- R(a, b), S(b, c), T(c, d)"
    assert top(chosen(text)) == "P(b)"
    assert top(chosen(text, {"T": 100})) == "P(c)"
    assert top(chosen(text, {"t": 100, "R": 1000})) == "P(b)"
    assert "update rates given or seen so far" in chosen(text, {"T": 100}).reason


def test_height_comes_before_rates():
    assert chosen(TEXTBOOK["figure_1"], {"R1": 10**6}).tree.height == 2


def test_choice_is_deterministic_and_counts_candidates():
    first, second = chosen(TEXTBOOK["four_hop"]), chosen(TEXTBOOK["four_hop"])
    assert first == second
    assert (first.considered, first.complete) == (7, True)
    assert first.reason == "of 7 candidates, 1 with the best guarantee (height 2)"
    assert chosen(TEXTBOOK["scan"]).reason == "it is the only candidate"


HEIGHTS = {"star": 1, "two_hop": 1, "three_hop": 2, "four_hop": 2, "figure_1": 2, "two_comb": 3, "theorem_6_2": 3}


@pytest.mark.parametrize("name", HEIGHTS)
def test_heights_of_the_papers_queries(name):
    assert chosen(TEXTBOOK[name]).tree.height == HEIGHTS[name]


@pytest.mark.parametrize(
    ("name", "arbitrary", "fifo", "insert_only"),
    [
        ("two_hop", "O(1) amortised", "O(1) amortised", "O(1) amortised"),
        ("four_hop", "O(lambda_T) amortised", "O(1) amortised", "O(1) amortised"),
        ("theorem_6_2", "O(lambda_T) amortised", "O(lambda_T) amortised", "O(1) amortised"),
        ("theorem_6_7", "O(lambda_T + f)", "O(1 + f)", "O(1 + f)"),
    ],
)
def test_update_bounds(name, arbitrary, fifo, insert_only):
    g = chosen(TEXTBOOK[name]).guarantee
    assert (g.arbitrary.bound, g.fifo.bound, g.insert_only.bound) == (arbitrary, fifo, insert_only)
    assert "Theorem 6.6" in g.arbitrary.source
    assert "Lemma 6.10" in g.insert_only.source


def test_fifo_sources_follow_the_height():
    assert "Lemma 6.9" in chosen(TEXTBOOK["four_hop"]).guarantee.fifo.source
    assert "Theorem 6.2" in chosen(TEXTBOOK["theorem_6_2"]).guarantee.fifo.note


def test_distinct_has_support_edges_only():
    choice = chosen(TEXTBOOK["theorem_6_7"], distinct=True)
    assert {choice.tree.edge_kind(i) for i in range(len(choice.tree.nodes))} == {EdgeKind.SUPPORT}
    assert choice.guarantee.insert_only.bound == "O(1) amortised"
    assert not choice.guarantee.value_edges


def test_value_edges_have_their_own_bounds():
    edges = {e.child: e.cost for e, _ in chosen(TEXTBOOK["theorem_6_7"]).guarantee.value_edges}
    assert edges == {"R1(x1, x2)": "guard", "R2(x2)": "fan-out"}
    edges = {e.child: e.cost for e, _ in chosen(TEXTBOOK["figure_1"]).guarantee.value_edges}
    assert edges == {"R4(x4, x5)": "connex"}
    edges = {e.child: e.cost for e, _ in chosen(TEXTBOOK["global"]).guarantee.value_edges}
    assert edges == {"P(b)": "root", "R(a, b)": "guard", "S(b, c)": "guard"}


def test_extended_head_promises_no_delay():
    g = chosen(TEXTBOOK["two_hop_ends"]).guarantee
    assert g.full_delay.bound.startswith("unbounded")
    assert g.delta_delay.bound == "unbounded"
    assert g.full_delay.source == "CROWN section 7.1"


def test_constant_delay_of_free_connex_queries():
    g = chosen(TEXTBOOK["figure_1"]).guarantee
    assert (g.full_delay.source, g.delta_delay.source, g.space.source) == (
        "CROWN Lemma 5.4",
        "CROWN Lemma 5.9",
        "CROWN Lemma 4.1",
    )


def test_lookups_are_connex_nodes_and_keys_below_them():
    tree = chosen(TEXTBOOK["figure_1"]).tree
    assert lookups(tree) == (("x2",), ("x3",), ("x4",), ("x1", "x2"), ("x2", "x3"), ("x3", "x4"))
    assert lookups(tree, ("x3", "x4")) == (("x3",), ("x4",), ("x3", "x4"))
    assert lookups(chosen(TEXTBOOK["global"]).tree) == ()


def test_keys_make_a_value_edge_as_cheap_as_support():
    for keyed, cost, bound in [(True, "unit", "O(lambda_T) amortised"), (False, "fan-out", "O(lambda_T + f)")]:
        view, _ = views.tpch_q3(keyed)
        query = view.stages[0].query
        choice = choose_tree(query, classify(query))
        costs = {e.child: e.cost for e, _ in choice.guarantee.value_edges}
        assert costs["customer(c_custkey)"] == cost
        assert choice.guarantee.arbitrary.bound == bound


def test_unconnected_parts_are_chosen_one_by_one():
    choice = chosen("Q(a, b, c, x, y) :- R(a, b), S(b, c), T(x, y), U(y)")
    assert choice.considered == 9
    assert [str(choice.tree.nodes[n]) for n in choice.tree.hubs[0].children] == ["P(b)", "P(y)"]
    assert choice.reason.startswith("each of the 2 unconnected parts by itself. Part 1: of 3 candidates")
