"""MIN and MAX over joins: the work of a change does not follow the size of the join, nor how often a value is in it."""

import pytest
from meter import Meter

TABLES = {"r": "x a", "s": "a b", "t": "b y"}
JOIN = "FROM r, s, t WHERE r.a = s.a AND s.b = t.b"
QUERIES = (f"SELECT MIN(r.x) AS low {JOIN}", f"SELECT MIN(r.x) AS low, MAX(t.y) AS high, MIN(s.a) AS a {JOIN}")


@pytest.mark.parametrize("sql", QUERIES)
def test_a_change_costs_the_same_whatever_the_size_of_the_join(sql):
    """n rows on both sides of one row of s: n * n results, and as many pairs of r.x and t.y."""
    work = []
    for n in (8, 32, 128):
        meter = Meter(TABLES, sql)
        meter.load(r=[(i, 0) for i in range(n)], s=[(0, 0)], t=[(0, i) for i in range(n)])
        stream = [
            (1, "r", (n + 1, 0)),
            (1, "t", (0, n + 1)),
            (-1, "r", (0, 0)),
            (-1, "t", (0, n + 1)),
            (1, "s", (0, 0)),
        ]
        found = meter.run(stream)
        work.append((found.propagation, found.rows_emitted))
        assert meter.view.count() == 1
    assert work[0] == work[1] == work[2]
    assert max(work[0]) < 60


def test_values_that_stay_inside_show_nothing():
    meter = Meter(TABLES, "SELECT a, MIN(x) AS low, MAX(x) AS high FROM r GROUP BY a")
    meter.load(r=[(0, 0), (1000, 0)])
    deltas = [meter.db.apply({"r": [(i, 0)]})["v"].num_rows for i in range(1, 100)]
    assert deltas == [0] * 99
