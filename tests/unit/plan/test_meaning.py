"""What a tree means: its alive rows and connex part, evaluated naively, give exactly the result of the query.

The evaluation below follows section 3 of ARCHITECTURE.md and nothing else: a row is alive if every child below finds a
match; its value is its multiplicity times the sums of its non-connex children; results are enumerated over the connex
part without ever meeting a dead end, and each head tuple once.
"""

from collections import Counter
from itertools import islice, product

from everview.analysis.classification import QueryClass, classify
from everview.trees.build import build_trees
from hypothesis import given, settings
from hypothesis import strategies as st
from textbook import queries


def brute_force(query, head, data):
    result = Counter()
    for rows in product(*(data[a.name].items() for a in query.atoms)):
        binding, weight = {}, 1
        for atom, (row, m) in zip(query.atoms, rows):
            weight *= m
            for v, value in zip(atom.variables, row):
                if binding.setdefault(v, value) != value:
                    weight = 0
        if weight:
            result[tuple(binding[v] for v in head)] += weight
    return result


def evaluate(tree, data):
    alive = {}

    def project(node, row, key):
        return tuple(row[tree.nodes[node].columns.index(v)] for v in key)

    def matches(child, key):
        hub = tree.hubs[tree.nodes[child].up]
        return [r for r in alive[child] if project(child, r, hub.key) == key]

    def visit(n):
        node = tree.nodes[n]
        for h in node.down:
            for c in tree.hubs[h].children:
                visit(c)
        if node.atom is not None:
            rows = dict(data[node.atom])
        else:
            guard = tree.hubs[node.down[0]]
            rows = {project(c, r, guard.key): 1 for c in guard.children for r in alive[c]}
        alive[n] = {}
        for row, value in rows.items():
            supported = True
            for h in node.down:
                for c in tree.hubs[h].children:
                    found = matches(c, project(n, row, tree.hubs[h].key))
                    supported &= bool(found)
                    if not tree.nodes[c].connex:
                        value *= sum(alive[c][r] for r in found)
            if supported:
                alive[n][row] = value

    def results(n, row):
        below = []
        for h in tree.nodes[n].down:
            for c in tree.hubs[h].children:
                if tree.nodes[c].connex:
                    key = project(n, row, tree.hubs[h].key)
                    below.append([x for r in matches(c, key) for x in results(c, r)])
        assert all(below), "a dead end in the connex part"
        for combination in product(*below):
            binding, weight = dict(zip(tree.nodes[n].columns, row)), alive[n][row]
            for found, w in combination:
                assert all(binding.get(v, x) == x for v, x in found.items())
                binding |= found
                weight *= w
            yield binding, weight

    for n in tree.hubs[0].children:
        visit(n)
    if not all(alive[n] for n in tree.hubs[0].children):
        return Counter()
    factor, parts = 1, []
    for n in tree.hubs[0].children:
        if tree.nodes[n].connex:
            parts.append([x for row in alive[n] for x in results(n, row)])
        else:
            factor *= sum(alive[n].values())
    result = Counter()
    for combination in product(*parts):
        binding, weight = {}, factor
        for found, w in combination:
            binding |= found
            weight *= w
        row = tuple(binding[v] for v in tree.head)
        assert row not in result, "a result enumerated twice"
        result[row] = weight
    return result


@settings(max_examples=150)
@given(st.data())
def test_every_tree_means_the_query(data):
    query = data.draw(queries(max_atoms=4, max_variables=5))
    classification = classify(query)
    if not classification.holds(QueryClass.ACYCLIC):
        return
    small = st.integers(0, 2)
    contents = {
        a.name: data.draw(st.dictionaries(st.tuples(*[small] * len(a.variables)), st.integers(1, 2), max_size=6))
        for a in query.atoms
    }
    expected = brute_force(query, classification.maintained_head, contents)
    for tree in islice(build_trees(query, classification), 12):
        found = evaluate(tree, contents)
        assert set(found) == set(expected)
        assert query.distinct or found == expected
