"""Insert-only streams cost O(1) amortised per update on any free-connex tree (CROWN, Lemma 6.10, Theorem 6.11).

On such a stream every row gains support from every hub below it at most once and becomes live at most once, so the
bounds are the sizes of the tree, for every order of the rows and every size of the batches.
"""

import random

import pytest
from meter import Meter, grid, inserts, random_arrivals

R1_TO_R4 = {"r1": "x1 x2", "r2": "x2 x3", "r3": "x3 x4", "r4": "x4 x5"}
JOIN = "FROM r1, r2, r3, r4 WHERE r1.x2 = r2.x2 AND r2.x3 = r3.x3 AND r3.x4 = r4.x4"
FIGURE_1 = f"SELECT {{}} r1.x1, r1.x2, r2.x3, r3.x4 {JOIN}"


def figure_1(distinct):
    return Meter(R1_TO_R4, FIGURE_1.format("DISTINCT" if distinct else ""))


def example_6_12(n, order):
    """The stream of Example 6.12 with the relations in this order; ``shuffled``: all rows mixed."""
    if order == "shuffled":
        stream = [change for r in ("r1", "r2", "r3", "r4") for change in inserts(r, grid(n))]
        random.Random(n).shuffle(stream)
        return stream
    return [change for r in order for change in inserts(r, grid(n))]


ORDERS = [
    ("r2", "r3", "r4", "r1"),
    ("r1", "r2", "r3", "r4"),
    ("r4", "r3", "r2", "r1"),
    ("r1", "r4", "r2", "r3"),
    "shuffled",
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda o: o if isinstance(o, str) else "".join(o))
@pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "bag"])
def test_example_6_12_costs_a_constant(order, distinct):
    per_update = []
    for n in (4, 8, 16, 32):
        meter = figure_1(distinct)
        work = meter.run(example_6_12(n, order), deltas=False)
        assert work.annotation_changes == 0 and work.live_changes == 0
        # a row of R2 or R3 gains support once; a row of P(x3) too, and so does the top
        assert work.status_changes <= 2 * n * n + n + 1
        assert work.probes <= 4 * work.changes
        per_update.append(work.per_update)
        assert meter.view.count() == (n**4 if distinct else n**5)
    assert max(per_update) <= 3.5
    assert meter.guarantee("update, insert-only stream")[0] == "O(1) amortised"


def test_example_6_12_phase_two_costs_a_constant_per_row():
    """The rows of R1 alone, which cost Dynamic Yannakakis n each: n of the n*n first reach their key, the others stop at once."""
    for n in (4, 8, 16, 32):
        meter = figure_1(distinct=True)
        meter.load(r2=grid(n), r3=grid(n), r4=grid(n))
        work = meter.run(inserts("r1", grid(n)), deltas=False)
        assert work.probes == 2 * n * n + n  # its own row, its key; what every x3 is below, once it has its row
        assert work.status_changes == n * n + n + 1  # every row of R2 once, every x3 once, the top
        one = meter.run(inserts("r1", [(n, 0)]), deltas=False)
        assert one.propagation == 0


@pytest.mark.parametrize("batch", [1, 7, 1000, None])
@pytest.mark.parametrize("order", ["shuffled", ORDERS[0], ORDERS[1]], ids=["shuffled", "r1-last", "r1-first"])
def test_batches_of_any_size_cost_a_constant(batch, order):
    for n in (4, 8, 16):
        meter = figure_1(distinct=True)
        work = meter.run(example_6_12(n, order), batch=batch, deltas=False)
        assert work.status_changes <= 2 * n * n + n + 1
        assert work.per_update <= 3.5
        assert meter.view.count() == n**4


@pytest.mark.parametrize("batch", [1, 7, None])
@pytest.mark.parametrize("distinct", [True, False], ids=["distinct", "bag"])
def test_with_deltas_every_row_becomes_live_once(batch, distinct):
    for n in (2, 4, 8):
        meter = figure_1(distinct)
        work = meter.run(example_6_12(n, "shuffled"), batch=batch)
        assert work.status_changes <= 2 * n * n + n + 1 and work.annotation_changes == 0
        assert work.live_changes == 3 * n * n + 2 * n + 1  # R4 is kept as its n values of x4; P(x3); the top
        assert work.rows_emitted >= n**4
        if distinct:
            assert work.rows_emitted == n**4


TREES = {
    "height 1, star": (
        {"r": "a b", "s": "a c", "t": "a d"},
        "SELECT r.a, r.b, s.c, t.d FROM r, s, t WHERE r.a = s.a AND s.a = t.a",
    ),
    "height 2, 3-hop": (
        {"r": "a b", "s": "b c", "t": "c d"},
        "SELECT r.a, r.b, s.c, t.d FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
    ),
    "height 2, projections": (
        {"r": "a b z", "s": "b c", "t": "a d"},
        "SELECT DISTINCT r.a, r.b, s.c, t.d FROM r, s, t WHERE r.b = s.b AND r.a = t.a",
    ),
    "height 2, not connex": ({"r": "a b", "s": "b"}, "SELECT DISTINCT r.a FROM r, s WHERE r.b = s.b"),
    "height 3, theorem 6.2": (
        {"r": "a", "s": "a b", "t": "b c", "u": "c d", "w": "d"},
        "SELECT r.a, s.b, t.c, u.d FROM r, s, t, u, w WHERE r.a = s.a AND s.b = t.b AND t.c = u.c AND u.d = w.d",
    ),
    "height 3, 5-hop": (
        {"r": "a b", "s": "b c", "t": "c d", "u": "d e", "w": "e f"},
        "SELECT r.a, r.b, s.c, t.d, u.e, w.f FROM r, s, t, u, w WHERE r.b = s.b AND s.c = t.c AND t.d = u.d AND u.e = w.e",
    ),
    "height 4, chain to its end": (
        {"r": "a b", "s": "b c", "t": "c d", "u": "d e"},
        "SELECT DISTINCT r.a FROM r, s, t, u WHERE r.b = s.b AND s.c = t.c AND t.d = u.d",
    ),
    "extended head": ({"r": "a b", "s": "b c"}, "SELECT DISTINCT r.a, s.c FROM r, s WHERE r.b = s.b"),
}


@pytest.mark.parametrize("name", TREES)
def test_any_free_connex_tree(name):
    tables, sql = TREES[name]
    for k in (6, 8, 10, 12):
        for domain in (1 << (k // 2), 1 << (k - 2)):
            meter = Meter(tables, sql)
            widths = {t: len(c.split()) for t, c in tables.items()}
            arrivals = dict.fromkeys(random_arrivals(widths, 1 << k, domain, k))
            work = meter.run([(1, *a) for a in arrivals], batch=64, deltas=False)
            hubs = len(meter.tree.hubs)
            assert work.propagation <= hubs * work.changes
            assert work.per_update <= 2 * hubs
    assert meter.guarantee("update, insert-only stream")[0] == "O(1) amortised"


@pytest.mark.parametrize("name", [n for n in TREES if n != "extended head"])
def test_deleting_only_costs_the_same(name):
    """Deletion-only streams are insertion-only streams backwards."""
    tables, sql = TREES[name]
    for k in (6, 8, 10):
        meter = Meter(tables, sql)
        widths = {t: len(c.split()) for t, c in tables.items()}
        arrivals = list(dict.fromkeys(random_arrivals(widths, 1 << k, 1 << (k // 2), k)))
        meter.run([(1, *a) for a in arrivals], batch=None, deltas=False)
        random.Random(k).shuffle(arrivals)
        work = meter.run([(-1, *a) for a in arrivals], deltas=False)
        assert work.propagation <= len(meter.tree.hubs) * work.changes
        assert meter.view.metrics().state_rows == 0
