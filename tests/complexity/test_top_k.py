"""LIMIT: a change costs O(log n) and what enters or leaves; what is outside and stays there costs no more than finding its place."""

import pytest
from meter import Meter, deletes, inserts

SIZES = (64, 1024, 4096)


def loaded(sql, n):
    meter = Meter({"r": "a b"}, sql)
    meter.load(r=[(2 * i, i) for i in range(n)])
    return meter


@pytest.mark.parametrize("n", SIZES)
def test_rows_outside_meet_no_others(n):
    meter = loaded("SELECT a, b FROM r ORDER BY a LIMIT 10", n)
    before = meter.counters()
    assert meter.commit(inserts("r", [(2 * n + 1, 0)])).num_rows == 0
    assert meter.commit(deletes("r", [(2 * n - 2, n - 1)])).num_rows == 0
    work = [b - a for a, b in zip(before, meter.counters(), strict=True)]
    assert sum(work) <= 40  # two changes, whatever n is


@pytest.mark.parametrize("n", SIZES)
def test_work_follows_what_enters_and_leaves(n):
    meter = loaded("SELECT a, b FROM r ORDER BY a LIMIT 10 OFFSET 5", n)
    alone = meter.run(inserts("r", [(1, 0)]))
    assert alone.steps <= 6 and alone.per_update <= 10
    changed = meter.commit(deletes("r", [(2 * i, i) for i in range(20)]))
    assert changed.num_rows == 10 + 10
    many = meter.run(inserts("r", [(2 * i, i) for i in range(20)]), batch=None)
    assert many.steps <= 4 * 20


def test_only_what_it_keeps_grows_with_the_rows():
    sizes = [loaded("SELECT a, b FROM r ORDER BY b DESC LIMIT 3", n).view.metrics() for n in SIZES]
    kept = [next(o.rows for o in metrics.operators if o.name == "topk") for metrics in sizes]
    assert kept == list(SIZES)


FIRST = "SELECT a, b FROM r QUALIFY row_number() OVER (PARTITION BY a % 16 ORDER BY b) <= 3"


@pytest.mark.parametrize("n", SIZES)
def test_a_partition_costs_what_enters_and_leaves_in_it(n):
    meter = loaded(FIRST, n)
    before = meter.counters()
    assert meter.commit(inserts("r", [(0, 2 * n)])).num_rows == 0
    assert meter.commit(deletes("r", [(0, 0)])).num_rows == (2 if n > 8 * 3 else 1)
    work = [b - a for a, b in zip(before, meter.counters(), strict=True)]
    assert sum(work) <= 60  # two changes, whatever n is


@pytest.mark.parametrize("n", SIZES)
def test_numbers_up_to_a_limit_do_not_depend_on_the_rows_behind(n):
    meter = loaded("SELECT * FROM (SELECT a, b, row_number() OVER (ORDER BY b) AS i FROM r) WHERE i <= 5", n)
    before = meter.counters()
    assert meter.commit(inserts("r", [(0, 2 * n)])).num_rows == 0
    assert meter.commit(inserts("r", [(0, -1)])).num_rows == 10
    work = [b - a for a, b in zip(before, meter.counters(), strict=True)]
    assert sum(work) <= 80


@pytest.mark.parametrize("n", SIZES)
def test_a_number_at_an_end_is_found_from_there(n):
    meter = loaded("SELECT a, b, row_number() OVER (ORDER BY b) AS i FROM r", n)
    before = meter.counters()
    assert meter.commit(inserts("r", [(0, 2 * n)])).num_rows == 1
    assert meter.commit([*deletes("r", [(0, 0)]), *inserts("r", [(1, 0)])]).num_rows == 2
    work = [b - a for a, b in zip(before, meter.counters(), strict=True)]
    assert sum(work) <= 60
