"""Enumeration visits a bounded number of rows per row emitted, whatever the data (CROWN, Lemma 5.4 and 5.9)."""

import random

import pytest
from meter import Meter, grid, random_arrivals
from test_insert_only import TREES


def with_dead_ends(tables, n):
    """Few results among many dead rows: key 0 joins everywhere, all other keys miss a partner somewhere."""
    rng = random.Random(n)
    rows = {}
    for at, (table, columns) in enumerate(tables.items()):
        width = len(columns.split())
        dead = {tuple(rng.randrange(1, n) * 2 + (at % 2) for _ in range(width)) for _ in range(4 * n)}
        rows[table] = [*dead, (0,) * width, *((0,) * (width - 1) + (i,) for i in range(2, 5))]
    return rows


@pytest.mark.parametrize("name", [*TREES])
def test_full_enumeration(name):
    tables, sql = TREES[name]
    for n in (8, 64, 512):
        for data in ("random", "dead"):
            meter = Meter(tables, sql)
            if data == "random":
                widths = {t: len(c.split()) for t, c in tables.items()}
                rows = {t: [] for t in tables}
                for table, row in dict.fromkeys(random_arrivals(widths, 4 * n, max(2, n // 2), n)):
                    rows[table].append(row)
            else:
                rows = with_dead_ends(tables, n)
            meter.load(**rows)
            work = meter.read()
            assert work.steps <= meter.nodes * work.rows_emitted
            assert work.probes == 0 and work.propagation == 0
    assert meter.guarantee("delay, full result")[0] == (
        "O(1)" if name != "extended head" else "unbounded between distinct rows"
    )


def test_an_empty_result_among_many_rows_costs_nothing():
    for n in (64, 1024):
        meter = Meter(
            {"r": "a b", "s": "b c", "t": "c d"}, "SELECT r.a, r.b, s.c, t.d FROM r, s, t WHERE r.b = s.b AND s.c = t.c"
        )
        meter.load(r=[(i, i) for i in range(n)], s=[(i, i) for i in range(n)], t=[(-1 - i, i) for i in range(n)])
        work = meter.read()
        assert work.steps == 0 and work.rows_emitted == 0


@pytest.mark.parametrize("name", ["height 1, star", "height 2, 3-hop", "height 3, theorem 6.2", "height 3, 5-hop"])
def test_delta_enumeration(name):
    """Full joins of sets, one row per batch: visits by emitted row are at most the nodes, for every single delta."""
    tables, sql = TREES[name]
    widths = {t: len(c.split()) for t, c in tables.items()}
    for k in (5, 7, 9):
        meter = Meter(tables, sql)
        rng = random.Random(k)
        held = []
        for arrival in dict.fromkeys(random_arrivals(widths, 1 << k, max(2, 1 << (k // 2)), k)):
            change = (1, *arrival)
            if held and rng.randrange(3) == 0:
                change = (-1, *held.pop(rng.randrange(len(held))))
            else:
                held.append(arrival)
            work = meter.run([change])
            assert work.steps <= meter.nodes * work.rows_emitted
            assert work.live_changes <= (meter.nodes + 1) * work.rows_emitted
    assert meter.guarantee("delay, delta")[0] == "O(1)"


def test_deltas_among_many_dead_rows():
    """Rows that join on one side only are never visited by an enumeration."""
    for n in (16, 256):
        meter = Meter(
            {"r": "a b", "s": "b c", "t": "c d"}, "SELECT r.a, r.b, s.c, t.d FROM r, s, t WHERE r.b = s.b AND s.c = t.c"
        )
        meter.load(r=[(0, 0)], s=[(0, i) for i in range(n)] + [(i, 0) for i in range(1, n)], t=[(0, 0)])
        meter.run([(1, "r", (1, 0)), (-1, "r", (1, 0))])
        work = meter.run([(1, "r", (1, 0)), (1, "t", (0, 1)), (-1, "r", (1, 0)), (-1, "t", (0, 1))])
        assert work.rows_emitted == 1 + 2 + 2 + 1
        assert work.steps <= meter.nodes * work.rows_emitted
        assert work.propagation <= 4


@pytest.mark.parametrize(
    "select",
    [
        "SELECT r.a, r.b, s.c FROM r, s WHERE r.b = s.b",
        "SELECT DISTINCT r.a, r.b FROM r, s WHERE r.b = s.b",
        "SELECT r.b, COUNT(*) AS n FROM r, s WHERE r.b = s.b GROUP BY r.b",
        "SELECT r.a, r.b, SUM(s.c) AS n FROM r, s WHERE r.b = s.b GROUP BY r.a, r.b",
        "SELECT COUNT(*) AS n FROM r, s WHERE r.b = s.b",
        "SELECT DISTINCT r.a, s.c FROM r, s WHERE r.b = s.b",
    ],
)
def test_count_does_not_enumerate(select):
    for n in (4, 32):
        meter = Meter({"r": "a b", "s": "b c"}, select)
        meter.load(r=grid(n), s=grid(n))
        before = meter.counters()
        count = meter.view.count()
        assert meter.counters() == before
        assert count == meter.view.to_arrow().num_rows


def test_lookups_touch_what_they_return():
    for n in (16, 256):
        meter = Meter({"r": "a b", "s": "b c"}, "SELECT r.a, r.b, s.c FROM r, s WHERE r.b = s.b")
        meter.load(r=[(i, i // 4) for i in range(n)], s=[(i // 4, i) for i in range(n)])
        meter.view.lookup(b=0)  # marks live rows once
        before = meter.counters()
        found = meter.view.lookup(b=1)
        assert found.num_rows == 16
        assert meter.counters()[5] - before[5] <= meter.nodes * 16 and meter.counters()[4] == before[4]
