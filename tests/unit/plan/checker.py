"""Slow and obvious: the rules of docs/reference/maintenance-plan.md, and the definitions of the papers, by exhaustion."""

from itertools import combinations, permutations, product


# ---- rules of a tree ------------------------------------------------------------------------------------------------
def check_tree(tree, query):
    """Assert every rule of the plan format and the connectedness condition."""
    nodes, hubs = tree.nodes, tree.hubs
    assert hubs[0].parent is None and hubs[0].key == ()
    seen_nodes, seen_hubs = [], []

    def visit_hub(h):
        seen_hubs.append(h)
        for n in hubs[h].children:
            assert nodes[n].up == h
            visit_node(n)

    def visit_node(n):
        seen_nodes.append(n)
        for h in nodes[n].down:
            assert hubs[h].parent == n
            visit_hub(h)

    visit_hub(0)
    assert sorted(seen_nodes) == list(range(len(nodes))), "one tree over all nodes"
    assert sorted(seen_hubs) == list(range(len(hubs))), "one tree over all hubs"

    atoms = {a.name: a.variables for a in query.atoms}
    relations = [n for n in nodes if n.kind == "relation"]
    assert sorted(n.atom for n in relations) == sorted(atoms)
    assert all(n.columns == atoms[n.atom] for n in relations)

    for i, hub in enumerate(hubs):
        assert hub.children
        if i:
            assert set(hub.key) <= set(nodes[hub.parent].columns)
            assert all(set(hub.key) == set(nodes[hub.parent].columns) & set(nodes[c].columns) for c in hub.children)
    for node in nodes:
        keys = [frozenset(hubs[h].key) for h in node.down]
        assert len(set(keys)) == len(keys), "children with the same key share one hub"
        if node.kind == "projection":
            guard = hubs[node.down[0]]
            assert guard.key == node.columns
            if len(guard.children) == 1:
                child = nodes[guard.children[0]]
                assert set(child.columns) != set(node.columns), "useless projection"
                assert node.connex and not child.connex, "a projection above one child exposes head variables"
        above = hubs[node.up].parent
        inside = bool(tree.head) and set(node.columns) <= set(tree.head) and (above is None or nodes[above].connex)
        assert node.connex == inside
    assert {v for n in nodes if n.connex for v in n.columns} >= set(tree.head)
    assert {v for n in nodes if n.connex for v in n.columns} <= set(tree.head)

    # connectedness: the nodes holding a variable have exactly one top, and hubs between them carry it
    for v in query.variables:
        tops = 0
        for n in nodes:
            if v in n.columns:
                above = hubs[n.up].parent
                tops += not (above is not None and v in nodes[above].columns and v in hubs[n.up].key)
        assert tops <= 1, f"{v} is not connected"


# ---- definitions by exhaustion --------------------------------------------------------------------------------------
def has_join_tree(edges):
    """Acyclic: some tree over the hyperedges satisfies connectedness. ``edges``: list of sets."""
    n = len(edges)
    if n == 0:
        return True
    for parents in product(*(range(i) for i in range(1, n))):  # every tree, up to the order of nodes
        for order in permutations(range(n)):
            tree = [(order[i + 1], order[p]) for i, p in enumerate(parents)]
            if all(_connected(v, edges, tree) for v in set().union(*edges)):
                return True
    return False


def _connected(v, edges, tree):
    holders = {i for i, e in enumerate(edges) if v in e}
    inner = [(a, b) for a, b in tree if a in holders and b in holders]
    return len(inner) == len(holders) - 1


def is_acyclic(query):
    return has_join_tree([set(a.variables) for a in query.atoms])


def is_free_connex(query, head=None):
    edges = [set(a.variables) for a in query.atoms]
    return has_join_tree(edges) and has_join_tree([*edges, set(query.head if head is None else head)])


def is_hierarchical(query):
    e = {v: set(query.occurrences[v]) for v in query.variables}
    return all(e[x] <= e[y] or e[y] <= e[x] or not e[x] & e[y] for x, y in combinations(e, 2))


def is_q_hierarchical(query):
    e = {v: set(query.occurrences[v]) for v in query.variables}
    return is_hierarchical(query) and all(y in query.head for x in query.head for y in e if e[x] < e[y])


def smallest_height(query, head, projections=3):
    """The least height of a free-connex join tree per Definition 3.2 of CROWN, trying all of them.

    Generalized relations are drawn from the intersections of two atoms (with fewer than two children below they are of
    no use). The root is always the empty generalized relation: it changes no height and joins disconnected parts.
    """
    edges = [frozenset(a.variables) for a in query.atoms]
    shared = sorted({a & b for a, b in combinations(edges, 2)} - {frozenset()}, key=sorted)
    best = None
    for k in range(projections + 1):
        for general in combinations(shared, k):
            nodes = [*edges, *general, frozenset()]
            for parent in _rooted_trees(nodes, len(edges)):
                if _is_free_connex_tree(nodes, parent, len(edges), frozenset(head)):
                    height = max(_relations_above(i, parent, len(edges)) for i in range(len(edges)))
                    best = height if best is None else min(best, height)
    return best


def _rooted_trees(nodes, relations):
    """Parent arrays; -1 for the root, the last node. Generalized relations have only generalized parents (above)."""
    n = len(nodes)
    options = []
    for i in range(n - 1):
        allowed = range(relations, n) if i >= relations else range(n)
        options.append([p for p in allowed if p != i and (p < relations or nodes[p] <= nodes[i])])  # guard property
    for some in product(*options):
        parent = (*some, -1)
        if all(_reaches_root(i, parent) for i in range(n)):
            yield parent


def _reaches_root(i, parent):
    for _ in parent:
        if parent[i] == -1:
            return True
        i = parent[i]
    return False


def _is_free_connex_tree(nodes, parent, relations, head):
    if any(p not in parent for p in range(relations, len(nodes))):
        return False  # a leaf must be an input relation
    for v in set().union(*nodes):
        if sum(v in nodes[i] and (p == -1 or v not in nodes[p]) for i, p in enumerate(parent)) > 1:
            return False

    # the largest candidate for the connex subtree: nodes whose whole path of keys lies in the head
    def connex(i):
        return parent[i] == -1 or (nodes[i] & nodes[parent[i]] <= head and connex(parent[i]))

    return head <= set().union(*(nodes[i] for i in range(len(nodes)) if connex(i)), frozenset())


def _relations_above(i, parent, relations):
    count = 0
    while i != -1:
        count += i < relations
        i = parent[i]
    return count
