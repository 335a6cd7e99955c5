"""EXISTS, IN, NOT EXISTS, NOT IN and LEFT JOIN, from SQL: what changes below such an edge cost.

A row below an edge concerns the rows above only if it is the first with its key or the last; then it concerns exactly those with
its key. So insert-only streams cost O(1) amortised per update at the edge: every row above is concerned once. Above a forbids
edge that ends, and explain says so.
"""

import random

import pytest
from meter import Meter, deletes, inserts

SIZES = (16, 64, 256)
TABLES = {"r": "a k", "s": "k x"}
FLIPPING = {  # whether a row above is there while nothing is below
    "EXISTS": ("SELECT a, k FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k)", False),
    "IN": ("SELECT a, k FROM r WHERE k IN (SELECT k FROM s)", False),
    "SEMI JOIN": ("SELECT a, k FROM r LEFT SEMI JOIN s USING (k)", False),
    "NOT EXISTS": ("SELECT a, k FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = r.k)", True),
    "NOT IN": ("SELECT a, k FROM r WHERE k NOT IN (SELECT k FROM s)", True),
    "ANTI JOIN": ("SELECT a, k FROM r LEFT ANTI JOIN s USING (k)", True),
}
LEFT_JOIN = "SELECT r.a, r.k, s.x FROM r LEFT JOIN s ON r.k = s.k"
TOP = 1  # whether there is a result at all is one status more


def loaded(sql, n):
    """n rows of r with key 0, which are not the only ones, and a row of s that matches none."""
    meter = Meter(TABLES, sql)
    meter.load(r=[*((i, 0) for i in range(n)), *((i, 1) for i in range(3))])
    meter.run(inserts("s", [(9, 9)]))
    return meter


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", FLIPPING)
def test_the_first_and_the_last_row_flip_exactly_those_above(name, n):
    sql, alone = FLIPPING[name]
    meter = loaded(sql, n)
    assert meter.view.count() == (n + 3 if alone else 0)
    first = meter.run(inserts("s", [(0, 1)]))
    assert n <= first.status_changes <= n + TOP and first.rows_emitted == first.steps == n
    assert meter.view.count() == (3 if alone else n)
    for change in (inserts("s", [(0, 2)]), deletes("s", [(0, 1)])):  # neither the first nor the last
        between = meter.run(change)
        assert between.propagation == between.live_changes == between.rows_emitted == 0
    replaced = meter.run([*deletes("s", [(0, 2)]), *inserts("s", [(0, 3)])], batch=None)
    assert replaced.propagation == replaced.live_changes == replaced.rows_emitted == 0
    last = meter.run(deletes("s", [(0, 3)]))
    assert n <= last.status_changes <= n + TOP and last.rows_emitted == last.steps == n
    assert first.probes <= 2 and last.probes <= 2


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", FLIPPING)
def test_without_deltas_nothing_is_enumerated(name, n):
    meter = loaded(FLIPPING[name][0], n)
    for change in (inserts("s", [(0, 1)]), deletes("s", [(0, 1)])):
        work = meter.run(change, deltas=False)
        assert n <= work.status_changes <= n + TOP and work.rows_emitted == work.steps == work.live_changes == 0


@pytest.mark.parametrize("batch", [1, 7, None])
@pytest.mark.parametrize("name", FLIPPING)
def test_insert_only_streams_cost_a_constant(name, batch):
    for n in SIZES:
        meter = Meter(TABLES, FLIPPING[name][0])
        rng = random.Random(n)
        stream = [*inserts("r", [(i, i % 9) for i in range(n)]), *inserts("s", [(i % 9, i) for i in range(n)])]
        rng.shuffle(stream)
        work = meter.run(stream, batch=batch)
        assert work.status_changes <= n + 2 * TOP  # every row above is concerned at most once
        assert work.probes <= 3 * work.changes
        assert work.rows_emitted <= 2 * n and work.live_changes <= 2 * n + 2 * TOP
        bound, _ = meter.guarantee("update, insert-only stream")
        assert bound == "O(1) amortised"


@pytest.mark.parametrize("n", SIZES)
def test_phantoms_flip_with_the_first_row_and_the_last(n):
    meter = loaded(LEFT_JOIN, n)
    assert meter.view.count() == n + 3
    first = meter.run(inserts("s", [(0, 1)]))
    assert first.status_changes == 0 and first.annotation_changes == n  # an edge that stops propagation
    assert first.rows_emitted == 2 * n  # rows with NULLs go, rows with a partner come
    second = meter.run(inserts("s", [(0, 2)]))
    assert second.propagation == 0 and second.rows_emitted == n
    assert meter.run(deletes("s", [(0, 1)])).propagation == 0
    last = meter.run(deletes("s", [(0, 2)]))
    assert last.status_changes == 0 and last.annotation_changes == n and last.rows_emitted == 2 * n
    quiet = [meter.run(change, deltas=False) for change in (inserts("s", [(0, 1)]), deletes("s", [(0, 1)]))]
    assert all(work.status_changes == work.rows_emitted == work.steps == 0 for work in quiet)


@pytest.mark.parametrize("n", SIZES)
def test_a_left_join_below_groups_touches_one_group(n):
    meter = Meter(TABLES, "SELECT r.k, COUNT(*) AS n, COUNT(s.x) AS m FROM r LEFT JOIN s ON r.k = s.k GROUP BY r.k")
    meter.load(r=[(i, i % 2) for i in range(n)])
    meter.run(inserts("s", [(0, 1)]))
    for change in (inserts("s", [(0, 2)]), deletes("s", [(0, 1)]), deletes("s", [(0, 2)])):
        work = meter.run(change)
        assert work.rows_emitted <= 2 and work.propagation <= 1 and work.probes <= 4


@pytest.mark.parametrize("n", SIZES)
def test_above_a_forbids_edge_rows_flip_again_and_again(n):
    """Rows of s come and are forbidden one after another, so those of r flip with each: no amortised bound, insert-only or not."""
    sql = """
    SELECT a, k FROM r
    WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND NOT EXISTS (SELECT 1 FROM t WHERE t.x = s.x))
    """
    meter = Meter({**TABLES, "t": "x"}, sql)
    meter.load(r=[(i, 0) for i in range(n)])
    stream = [change for i in range(10) for change in (*inserts("s", [(0, i)]), *inserts("t", [(i,)]))]
    work = meter.run(stream, deltas=False)
    assert work.status_changes >= work.changes * n
    for name in ("update, arbitrary stream", "update, FIFO stream", "update, insert-only stream"):
        bound, note = meter.guarantee(name)
        assert bound == "not bounded" and "the amortised bounds end there" in note
