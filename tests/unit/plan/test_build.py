"""Enumerated trees: the rules of the plan format, completeness against exhaustive search, and the named trees."""

import random
from collections import Counter
from itertools import islice

import checker
import pytest
from everview.analysis.classification import QueryClass, classify
from everview.errors import UnsupportedQueryError
from everview.trees.build import MOST_NODES, all_candidates, build_trees, greedy_candidates, tree_of
from everview.trees.choose import choose_tree, rank_of
from hypothesis import given, settings
from textbook import TEXTBOOK, parse, queries

CYCLIC = {"triangle", "dumbbell"}


def outline(tree):
    """The tree as nested text: node[guard or first hub: children; ...]."""

    def node(n):
        hubs = "; ".join(
            f"{','.join(tree.hubs[h].key)}: {' '.join(map(node, tree.hubs[h].children))}" for h in tree.nodes[n].down
        )
        name = tree.nodes[n].atom or "P(" + ",".join(tree.nodes[n].columns) + ")"
        return name + (f"[{hubs}]" if hubs else "")

    return " ".join(map(node, tree.hubs[0].children))


def trees_of(text, distinct=False):
    query = parse(text, distinct)
    return list(build_trees(query, classify(query)))


def chosen(text, rates=None, distinct=False):
    query = parse(text, distinct)
    return choose_tree(query, classify(query), rates)


@pytest.mark.parametrize("name", sorted(set(TEXTBOOK) - CYCLIC))
def test_textbook_trees_keep_the_rules(name):
    query = parse(TEXTBOOK[name])
    trees = list(build_trees(query, classify(query)))
    assert all_candidates(query, classify(query)) is not None
    assert len({outline(t) for t in trees}) == len(trees)
    for tree in trees:
        checker.check_tree(tree, query)


@pytest.mark.parametrize("name", sorted(CYCLIC))
def test_cyclic_queries_have_no_tree(name):
    with pytest.raises(UnsupportedQueryError):
        trees_of(TEXTBOOK[name])


def test_all_trees_of_the_three_hop():
    assert [outline(t) for t in trees_of(TEXTBOOK["three_hop"])] == [
        "P(b)[b: G1 G2[c: G3]]",
        "P(c)[c: G2[b: G1] G3]",
        "G1[b: G2[c: G3]]",
        "G2[b: G1; c: G3]",
        "G3[c: G2[b: G1]]",
    ]


def test_figure_1_gets_its_height_2_tree():
    tree = chosen(TEXTBOOK["figure_1"]).tree
    assert outline(tree) == "P(x3)[x3: R2[x2: R1] R3[x4: R4]]"
    assert tree.height == 2
    assert [n.atom for n in tree.nodes if not n.connex] == ["R4"]


def test_connex_guard_exposes_head_variables():
    assert "P(a,b)[a,b: R1; a: R3; b: R2]" in [outline(t) for t in trees_of(TEXTBOOK["guarded"])]
    assert {t.height for t in trees_of(TEXTBOOK["guarded"])} == {2, 3}


def test_projection_beside_its_guard_counts_in_the_height():
    (tree,) = [t for t in trees_of(TEXTBOOK["guarded"]) if outline(t).startswith("P(a,b)[")]
    assert tree.height == 2  # R2 below P(a, b) below the root: as if below R1


def test_projection_that_joins_below_a_relation_counts_in_the_height():
    text = "Q(a, b, x, y, p, q, r, s) :- T(a, b), C1(b, x, p), C2(b, x, q), D1(a, y, r), D2(a, y, s)"
    (tree,) = [t for t in trees_of(text) if outline(t).startswith("T[a: P(a,y)[a,y: D1 D2]; b: P(b,x)")]
    assert tree.height == 3
    assert [tree.depth(i) for i in tree.relations] == [0, 1, 1, 1, 1]


def test_star_and_global_aggregate():
    assert outline(chosen(TEXTBOOK["star"]).tree) == "P(a)[a: G1 G2 G3 G4]"
    tree = chosen(TEXTBOOK["global"]).tree
    assert outline(tree) == "P(b)[b: R S]"
    assert not any(n.connex for n in tree.nodes)


def test_products_hang_below_the_root_hub():
    assert outline(chosen("Q(a, c) :- R(a, b), S(c), T()").tree) == "P(a)[a: R] S T"


def test_no_projection_for_a_plain_scan():
    assert outline(chosen(TEXTBOOK["scan"]).tree) == "R"
    assert outline(chosen(TEXTBOOK["projected_scan"]).tree) == "P(a)[a: R]"


def test_relation_with_the_columns_of_the_key_is_a_sibling():
    assert outline(chosen("Q(a, b) :- R(a, b), S(a)").tree) == "P(a)[a: R S]"
    assert outline(chosen("Q(a, b) :- R(a, b), S(a, b)").tree) == "P(a,b)[a,b: R S]"


@settings(max_examples=300)
@given(queries(max_atoms=6, max_variables=7))
def test_random_trees_keep_the_rules(query):
    classification = classify(query)
    if not classification.holds(QueryClass.ACYCLIC):
        return
    trees = list(islice(build_trees(query, classification), 200))
    assert trees
    for tree in trees:
        checker.check_tree(tree, query)
        assert tree.head == classification.maintained_head
    assert list(islice(build_trees(query, classification), 200)) == trees
    checker.check_tree(choose_tree(query, classification).tree, query)


@settings(max_examples=300)
@given(queries(max_atoms=5, max_variables=6))
def test_q_hierarchical_iff_a_tree_of_height_1(query):
    classification = classify(query)
    if not classification.holds(QueryClass.FREE_CONNEX):
        return
    choice = choose_tree(query, classification)
    assert (choice.tree.height == 1) == classification.holds(QueryClass.Q_HIERARCHICAL)
    if choice.tree.height == 1:
        assert not choice.tree.shape.fan_outs


@settings(max_examples=40)
@given(queries(max_atoms=4, max_variables=5))
def test_no_tree_of_the_paper_is_lower(query):
    classification = classify(query)
    if not classification.holds(QueryClass.FREE_CONNEX):
        return
    lowest = min(t.height for t in build_trees(query, classification))
    assert lowest == checker.smallest_height(query, query.head)


def rank_for(query, head):
    return lambda branch: rank_of(tree_of((branch,), query, head), query, {})


def test_too_many_candidates_are_none():
    query = parse(TEXTBOOK["four_hop"])
    assert all_candidates(query, classify(query), most=6) is None
    assert [len(part) for part in all_candidates(query, classify(query), most=7)] == [7]


@settings(max_examples=300, deadline=None)
@given(queries(max_atoms=8, max_variables=8))
def test_the_greedy_search_finds_trees_that_keep_the_rules(query):
    classification = classify(query)
    if not classification.holds(QueryClass.ACYCLIC):
        return
    head = classification.maintained_head
    rank = rank_for(query, head)
    parts = greedy_candidates(query, classification, rank)
    assert all(parts)
    every = all_candidates(query, classification)
    for part, complete in zip(parts, every, strict=True):
        assert set(part) <= set(complete)
        best = min(map(rank, part))
        assert best.height <= 1 + min(map(rank, complete)).height
    tree = tree_of(tuple(min(part, key=rank) for part in parts), query, head)
    checker.check_tree(tree, query)


def random_join(atoms, seed, head):
    """Atoms that share one to four of five columns with an earlier one."""
    draw = random.Random(seed)
    columns = [[f"x0_{i}" for i in range(5)]]
    for n in range(1, atoms):
        partner = draw.choice(columns)
        shared = draw.sample(sorted(set(partner)), draw.randint(1, 4))
        columns.append(shared + [f"x{n}_{i}" for i in range(5 - len(shared))])
    variables = [v for c in columns for v in c]
    free = {"all": variables, "none": [], "one": columns[0][:1], "some": variables[::7]}[head]
    body = ", ".join(f"T{n}({', '.join(c)})" for n, c in enumerate(columns))
    return parse(f"Q({', '.join(dict.fromkeys(free))}) :- {body}")


@pytest.mark.seeds(2)
@pytest.mark.parametrize("head", ["all", "none", "one", "some"])
@pytest.mark.parametrize("atoms", [40, 60, 100])
def test_joins_of_many_tables(atoms, head, seed, monkeypatch):
    """The work is counted in nodes of trees that are built to be ranked, whatever the keys."""
    query = random_join(atoms, seed, head)
    classification = classify(query)
    work = Counter()

    def counted(forest, query, head, **options):
        tree = tree_of(forest, query, head, **options)
        work["nodes"] += len(tree.nodes)
        return tree

    monkeypatch.setattr("everview.trees.choose.tree_of", counted)
    choice = choose_tree(query, classification)
    checker.check_tree(choice.tree, query)
    assert choice.complete == ("too many trees to look at all" not in choice.reason)
    assert work["nodes"] < (2 * MOST_NODES if choice.complete else 20 * atoms**2)
    assert choice == choose_tree(query, classification)


@pytest.mark.parametrize("atoms", [2, 10, 100])
def test_chains_are_complete(atoms):
    body = ", ".join(f"T{n}(x{n}, x{n + 1})" for n in range(atoms))
    query = parse(f"Q({', '.join(f'x{n}' for n in range(atoms + 1))}) :- {body}")
    choice = choose_tree(query, classify(query))
    assert (choice.considered, choice.complete) == (2 * atoms - 1, True)
