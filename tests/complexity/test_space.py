"""State is linear in the current data, whatever the size of the result and the history (CROWN, Lemma 4.1)."""

import pytest
from meter import Meter, fifo, grid, random_arrivals
from test_insert_only import TREES

QUADRATIC = ({"r": "a b", "s": "b c"}, "SELECT r.a, r.b, s.c FROM r, s WHERE r.b = s.b")
CUBIC = ({"r": "a b", "s": "b c", "t": "b d"}, "SELECT r.a, r.b, s.c, t.d FROM r, s, t WHERE r.b = s.b AND s.b = t.b")


@pytest.mark.parametrize(("query", "power"), [(QUADRATIC, 2), (CUBIC, 3)], ids=["quadratic", "cubic"])
def test_rows_and_bytes_are_linear_while_the_result_is_not(query, power):
    tables, sql = query
    bytes_per_row = []
    for n in (64, 256, 1024, 4096):
        meter = Meter(tables, sql)
        rows = {t: [(i, 0) if t == "r" else (0, i) for i in range(n)] for t in tables}
        meter.load(**rows)
        metrics = meter.view.metrics()
        assert metrics.state_rows == power * n + 2  # the rows, one entry, its projection row
        bytes_per_row.append(metrics.state_bytes / metrics.state_rows)
        assert meter.view.count() == n**power
        assert meter.guarantee("space")[0] == "O(|D|)"
    assert max(bytes_per_row) <= 200


@pytest.mark.parametrize("name", TREES)
def test_state_rows_are_bounded_by_the_rows_of_the_tables(name):
    """Each row has at most one entry per hub it meets and one row per projection."""
    tables, sql = TREES[name]
    widths = {t: len(c.split()) for t, c in tables.items()}
    for n in (32, 256):
        meter = Meter(tables, sql)
        arrivals = dict.fromkeys(random_arrivals(widths, n, n // 2, n))
        meter.run([(1, *a) for a in arrivals], batch=None, deltas=False)
        operators = sum(o.rows for o in meter.view.metrics().operators)
        assert meter.view.metrics().state_rows - operators <= (2 + len(meter.tree.hubs) + meter.nodes) * len(arrivals)


@pytest.mark.parametrize("deltas", [True, False], ids=["deltas", "quiet"])
@pytest.mark.parametrize("name", TREES)
def test_deleting_everything_leaves_nothing(name, deltas):
    tables, sql = TREES[name]
    widths = {t: len(c.split()) for t, c in tables.items()}
    for batch in (1, 9, None):
        meter = Meter(tables, sql)
        arrivals = random_arrivals(widths, 120, 4, 1)
        meter.run([(1, *a) for a in arrivals], batch=batch, deltas=deltas)
        meter.run([(-1, *a) for a in arrivals], batch=batch, deltas=deltas)
        assert meter.view.metrics().state_rows == 0
        assert meter.view.count() == 0


def test_bytes_follow_the_window_and_not_the_stream():
    tables, sql = QUADRATIC
    sizes = []
    for length in (500, 1000, 2000):
        meter = Meter(tables, sql)
        arrivals = [(t, (i, i % 7) if t == "r" else (i % 7, i)) for i in range(length) for t in tables]
        stream = list(fifo(arrivals, 200))[: 2 * len(arrivals) - 200]  # the window is still full
        meter.run(stream, batch=50, deltas=False)
        sizes.append(meter.view.metrics().state_bytes)
        assert meter.view.metrics().state_rows == 200 + 2 * 7
    assert len(set(sizes)) == 1


def test_aggregates_hold_no_groups_where_the_tree_has_them():
    """Groups by all head columns: more groups than rows, none of them stored."""
    meter = Meter(QUADRATIC[0], "SELECT r.a, r.b, s.c, COUNT(*) AS n FROM r, s WHERE r.b = s.b GROUP BY r.a, r.b, s.c")
    meter.load(r=grid(16), s=grid(16))
    assert meter.view.count() == 16**3
    assert meter.view.metrics().state_rows <= 2 * 256 + 2 * 16
