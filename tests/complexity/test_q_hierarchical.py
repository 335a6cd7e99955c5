"""q-hierarchical queries cost O(1) per update on any stream (CROWN, Lemma 6.8, Theorem 6.6): a tree of height 1.

Every parent row above a changed row is then a projection's only row of its entry, so a change visits at most one row per
projection on its path and the top: not only amortised but for every single change.
"""

import random

import pytest
from meter import Meter, deletes, inserts, random_arrivals

TWO = {"r": "a b", "s": "b c"}
STAR = {"r": "a b", "s": "a c", "t": "a d"}
NESTED = {"r": "a b c", "s": "a b d", "t": "a e"}
JOIN_TWO = "FROM r, s WHERE r.b = s.b"
JOIN_STAR = "FROM r, s, t WHERE r.a = s.a AND s.a = t.a"
JOIN_NESTED = "FROM r, s, t WHERE r.a = s.a AND r.b = s.b AND r.a = t.a"
QUERIES = {
    "two, full": (TWO, f"SELECT r.a, r.b, s.c {JOIN_TWO}"),
    "two, full distinct": (TWO, f"SELECT DISTINCT r.a, r.b, s.c {JOIN_TWO}"),
    "two, key distinct": (TWO, f"SELECT DISTINCT r.b {JOIN_TWO}"),
    "two, key bag": (TWO, f"SELECT r.b {JOIN_TWO}"),
    "two, half bag": (TWO, f"SELECT r.a, r.b {JOIN_TWO}"),
    "two, count": (TWO, f"SELECT r.b, COUNT(*) {JOIN_TWO} GROUP BY r.b"),
    "two, sum of products": (
        TWO,
        f"SELECT r.b, SUM(CAST(r.a AS DECIMAL(9, 0)) * CAST(s.c AS DECIMAL(9, 0))) {JOIN_TWO} GROUP BY r.b",
    ),
    "two, global": (TWO, f"SELECT COUNT(*), SUM(s.c) {JOIN_TWO}"),
    "star, full": (STAR, f"SELECT r.a, r.b, s.c, t.d {JOIN_STAR}"),
    "star, half distinct": (STAR, f"SELECT DISTINCT r.a, r.b {JOIN_STAR}"),
    "star, count": (STAR, f"SELECT r.a, COUNT(*), AVG(t.d) {JOIN_STAR} GROUP BY r.a"),
    "nested, full": (NESTED, f"SELECT r.a, r.b, r.c, s.d, t.e {JOIN_NESTED}"),
    "nested, distinct": (NESTED, f"SELECT DISTINCT r.a, r.b {JOIN_NESTED}"),
    "nested, count": (NESTED, f"SELECT r.a, r.b, COUNT(*) {JOIN_NESTED} GROUP BY r.a, r.b"),
}


def meter_of(name):
    meter = Meter(*QUERIES[name])
    assert meter.height == 1
    assert meter.view.classification.holds("q-hierarchical")
    assert meter.guarantee("update, arbitrary stream")[0] == "O(1) amortised"
    assert all(bound == "O(1)" for _, bound in meter.value_edges().values())
    return meter


def partners(table, width, n):
    """n rows that share the key 0 and differ in their last (or, for r of ``two``, first) column."""
    return [(i, *[0] * (width - 1)) if table == "r" and width == 2 else (*[0] * (width - 1), i) for i in range(n)]


@pytest.mark.parametrize("deltas", [False, True], ids=["quiet", "deltas"])
@pytest.mark.parametrize("name", QUERIES)
def test_flip_flops_of_a_supporting_row_with_many_partners(name, deltas):
    tables = QUERIES[name][0]
    for n in (16, 64, 256):
        for flipped in tables:
            meter = meter_of(name)
            widths = {t: len(c.split()) for t, c in tables.items()}
            if flipped == "r" and tables is STAR:
                widths["r"] = 2
            rows = {
                t: [(0,) * w] if t == flipped else partners(t if tables is TWO else "", w, n) for t, w in widths.items()
            }
            small = 4 if deltas and len(tables) == 3 and "full" in name else n  # the delta itself has n * n rows
            rows = {t: found[:small] for t, found in rows.items()}
            meter.load(**rows)
            if deltas:
                meter.run([(1, flipped, rows[flipped][0])])  # marks the live rows after the load
                meter.run([(-1, flipped, rows[flipped][0])])
            for change in (deletes(flipped, rows[flipped]) + inserts(flipped, rows[flipped])) * 3:
                work = meter.run([change], deltas=deltas)
                assert work.propagation <= meter.nodes + 1
                assert work.probes <= 2 * meter.nodes + 2
                if not deltas:
                    assert work.rows_emitted <= 1 and work.live_changes <= meter.nodes + 1  # groups are kept by deltas


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("domain", [1, 2, 16])
def test_random_streams(name, domain):
    """Any stream: every single change costs a constant."""
    tables = QUERIES[name][0]
    meter = meter_of(name)
    widths = {t: len(c.split()) for t, c in tables.items()}
    rng = random.Random(domain)
    held = []
    for arrival in random_arrivals(widths, 250, domain, domain):
        change = (1, *arrival)
        if held and rng.randrange(2):
            change = (-1, *held.pop(rng.randrange(len(held))))
        else:
            held.append(arrival)
        work = meter.run([change], deltas=False)
        assert work.propagation <= meter.nodes + 1
    meter.run([(-1, *arrival) for arrival in held], batch=None, deltas=False)
    assert meter.view.metrics().state_rows == sum(o.rows for o in meter.view.metrics().operators)


@pytest.mark.parametrize("name", [n for n in QUERIES if "count" in n or "sum" in n or "global" in n])
def test_aggregates_with_deltas_cost_a_constant_in_everything(name):
    """One group changes, whatever stands below it: also live marks and enumeration are constant."""
    tables = QUERIES[name][0]
    for n in (16, 256, 1024):
        meter = meter_of(name)
        widths = {t: len(c.split()) for t, c in tables.items()}
        meter.load(**{t: partners(t if tables is TWO else "", w, n) for t, w in widths.items()})
        flipped = "s"
        row = partners("", widths[flipped], n)[-1]
        meter.run([(-1, flipped, row), (1, flipped, row)])
        work = meter.run([(-1, flipped, row), (1, flipped, row)] * 4)
        assert work.propagation <= 8 * (meter.nodes + 1)
        assert work.live_changes <= 8 * (meter.nodes + 1)
        assert work.rows_emitted <= 16 and work.steps <= 16 * meter.nodes
