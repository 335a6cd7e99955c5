"""Random queries: every class against its definition, by exhaustion."""

from itertools import combinations

import checker
from everview.analysis.classification import QueryClass, classify
from everview.analysis.hypergraph import hypergraph_of
from everview.analysis.witness import find_cycle, find_free_path
from hypothesis import given, settings
from textbook import queries

FEW = settings(max_examples=150)


@FEW
@given(queries())
def test_acyclic_iff_some_join_tree_exists(query):
    assert classify(query).holds(QueryClass.ACYCLIC) == checker.is_acyclic(query)


@FEW
@given(queries())
def test_free_connex_iff_query_and_query_with_head_are_acyclic(query):
    assert classify(query).holds(QueryClass.FREE_CONNEX) == checker.is_free_connex(query)


@FEW
@given(queries(max_atoms=6, max_variables=7))
def test_hierarchical_classes_by_definition(query):
    classification = classify(query)
    assert classification.holds(QueryClass.HIERARCHICAL) == checker.is_hierarchical(query)
    assert classification.holds(QueryClass.Q_HIERARCHICAL) == checker.is_q_hierarchical(query)


@settings(max_examples=60)
@given(queries(max_atoms=3))
def test_maintained_head_is_the_smallest_free_connex_one(query):
    classification = classify(query)
    if not classification.holds(QueryClass.ACYCLIC):
        return
    kept = set(classification.maintained_head)
    assert classification.maintained_head[: len(query.head)] == query.head
    assert checker.is_free_connex(query, kept)
    others = [v for v in query.variables if v not in query.head]
    for k in range(len(others) + 1):
        for extra in combinations(others, k):
            if checker.is_free_connex(query, {*query.head, *extra}):
                assert kept <= {*query.head, *extra}


@FEW
@given(queries(max_atoms=6, max_variables=7))
def test_witnesses_are_true(query):
    classification = classify(query)
    graph = hypergraph_of(query)
    sets = [e.vertices for e in graph.edges]
    assert all(a.witness.sentence for a in classification.answers if not a.holds)
    if classification.holds(QueryClass.ACYCLIC):
        assert find_cycle(graph.vertices, graph.edges) is None
        path = find_free_path(graph, frozenset(query.head))
        assert (path is None) == classification.holds(QueryClass.FREE_CONNEX)
        if path is not None:
            assert {path[0], path[-1]} <= set(query.head)
            assert not set(path[1:-1]) & set(query.head)
            assert not any({path[0], path[-1]} <= s for s in sets)
            assert all(any({x, y} <= s for s in sets) for x, y in zip(path, path[1:]))
    else:
        witness = classification.answer(QueryClass.ACYCLIC).witness
        assert set(witness.atoms) <= {a.name for a in query.atoms}
        assert len(witness.atoms) >= 3


@FEW
@given(queries(max_atoms=6, max_variables=7))
def test_classes_are_nested(query):
    c = classify(query)
    if c.holds(QueryClass.Q_HIERARCHICAL):
        assert c.holds(QueryClass.HIERARCHICAL)
        assert c.holds(QueryClass.FREE_CONNEX)
    if c.holds(QueryClass.HIERARCHICAL) or c.holds(QueryClass.FREE_CONNEX):
        assert c.holds(QueryClass.ACYCLIC)
