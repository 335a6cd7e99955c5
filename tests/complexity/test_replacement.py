"""Replacing a supporting row by another with the same key, in one batch, touches nothing above it.

Each hub entry is settled once per atom and batch; processing deletes before inserts would flip every row above twice.
"""

import pytest
from meter import Meter

DIMENSION = {"fact": "id k", "dim": "k! name region", "region": "region! title"}
JOIN = "FROM fact, dim, region WHERE fact.k = dim.k AND dim.region = region.region"
SELECTS = {
    "full": f"SELECT fact.id, fact.k, dim.name, dim.region, region.title {JOIN}",
    "distinct": f"SELECT DISTINCT fact.id, fact.k {JOIN}",
    "bag": f"SELECT fact.id, fact.k {JOIN}",
    "count": f"SELECT fact.id, COUNT(*) AS n {JOIN} GROUP BY fact.id",
    "sum": f"SELECT fact.id, SUM(fact.k) AS n {JOIN} GROUP BY fact.id",
    "group above": f"SELECT region.title, COUNT(*) AS n {JOIN} GROUP BY region.title",
}


@pytest.mark.parametrize("deltas", [False, True], ids=["quiet", "deltas"])
@pytest.mark.parametrize("name", SELECTS)
@pytest.mark.parametrize("how", ["batch", "upsert", "update"])
def test_replacing_a_dimension_row(name, deltas, how):
    for n in (16, 64, 256):
        meter = Meter(DIMENSION, SELECTS[name])
        meter.load(fact=[(i, 0) for i in range(n)], dim=[(0, 1, 7)], region=[(7, 70)])
        before = meter.counters()
        if how == "batch":
            meter.commit([(-1, "dim", (0, 1, 7)), (1, "dim", (0, 2, 7))], deltas=deltas)
        else:
            getattr(meter.db, how)("dim", [(0, 2, 7)], deltas=deltas)
        after = dict(
            zip(("updates", "probes", "status", "annotation"), map(int.__sub__, meter.counters(), before), strict=False)
        )
        assert after["status"] == 0 and after["annotation"] == 0
        assert after["probes"] <= 8


@pytest.mark.parametrize("select", ["SELECT", "SELECT DISTINCT"])
@pytest.mark.parametrize("n", [16, 256])
def test_replacing_rows_below_rows_that_are_not_connex(select, n):
    """r(a, b), s(b, c), t(c) onto a: nothing is connex but P(a). s changes its partner in t: same key b, same support."""
    meter = Meter({"r": "a b", "s": "b c", "t": "c"}, f"{select} r.a FROM r, s, t WHERE r.b = s.b AND s.c = t.c")
    meter.load(r=[(i, 0) for i in range(n)], s=[(0, 0)], t=[(0,), (1,)])
    before = meter.counters()
    meter.commit([(-1, "s", (0, 0)), (1, "s", (0, 1))])
    delta = [b - a for a, b in zip(before, meter.counters(), strict=True)]
    assert delta[2] == 0 and delta[3] == 0 and delta[6] == 0


def test_one_by_one_the_same_change_flips_every_row_twice():
    """The control: in two batches the support is lost and found again."""
    for n in (16, 256):
        meter = Meter({"r": "a b", "s": "b c"}, "SELECT DISTINCT r.a FROM r, s WHERE r.b = s.b")
        meter.load(r=[(i, 0) for i in range(n)], s=[(0, 0)])
        work = meter.run([(-1, "s", (0, 0)), (1, "s", (0, 1))], deltas=False)
        assert work.status_changes >= 2 * n
        assert meter.run([(-1, "s", (0, 1)), (1, "s", (0, 2))], batch=2, deltas=False).propagation == 0


def test_many_replacements_in_one_batch():
    for n in (16, 128):
        meter = Meter(DIMENSION, SELECTS["bag"])
        meter.load(fact=[(i, i % n) for i in range(4 * n)], dim=[(i, 0, 7) for i in range(n)], region=[(7, 70)])
        work = meter.run([c for i in range(n) for c in ((-1, "dim", (i, 0, 7)), (1, "dim", (i, 1, 7)))], batch=None)
        assert work.propagation == 0 and work.rows_emitted == 0
