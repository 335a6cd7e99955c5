"""Value edges have bounds of their own, stated by explain (ARCHITECTURE.md, section 3).

A changed value costs O(1) at a guard and at the root. Below a connex parent it costs O(1) without deltas and a visit of the
live parents with deltas. Below a parent that is not connex every parent row with the key is visited. Where keys force the
factor 1, a value edge behaves as a support edge.
"""

import everview as ev
import pytest
from meter import Meter, inserts

TABLES = {"r": "a b k", "s": "b c", "t": "c", "u": "a d", "w": "d"}
JOIN = "FROM r, s, t, u, w WHERE r.b = s.b AND s.c = t.c AND r.a = u.a AND u.d = w.d"
SIZES = (16, 64, 256)
CONNEX = ("u(a, d)", "r(a, b)")


def loaded(select, n, live=True):
    """n rows of r above one key of u; all part of results, or none because t is empty."""
    meter = Meter(TABLES, select)
    rows = {
        "r": [(0, j, 5) for j in range(n)],
        "s": [(j, 0) for j in range(n)],
        "u": [(0, 0)],
        "w": [(i,) for i in range(9)],
    }
    meter.load(**rows, **({"t": [(0,)]} if live else {}))
    return meter


SELECTS = {
    "bag": f"SELECT r.a, r.b {JOIN}",
    "count": f"SELECT r.a, r.b, COUNT(*) AS n {JOIN} GROUP BY r.a, r.b",
    "sum": f"SELECT r.a, r.b, SUM(r.k) AS n {JOIN} GROUP BY r.a, r.b",
}


@pytest.mark.parametrize("name", ["bag", "count"])
def test_connex_parents_are_not_visited_without_deltas(name):
    for n in SIZES:
        meter = loaded(SELECTS[name], n)
        cost, bound = meter.value_edges()[CONNEX]
        assert cost == "connex" and bound.startswith("O(1) without deltas")
        work = meter.run(inserts("u", [(0, 1), (0, 2), (0, 3)]), deltas=False)
        assert work.propagation == 0 and work.rows_emitted == 0


@pytest.mark.parametrize("name", SELECTS)
def test_live_connex_parents_are_visited_with_deltas(name):
    for n in SIZES:
        meter = loaded(SELECTS[name], n)
        meter.run(inserts("u", [(0, 1)]))
        work = meter.run(inserts("u", [(0, 2)]))
        assert work.annotation_changes == n  # as stated: O(live rows of the parent with the key)
        assert work.status_changes == 0 and work.live_changes == 0
        assert work.rows_emitted == n  # each visit changes a result
        assert "O(live rows of the parent with the key)" in meter.value_edges()[CONNEX][1]


def test_sums_that_may_overflow_visit_live_parents_in_any_case():
    """A batch must not be accepted that could not be read, so it is checked without deltas too, and explain says so."""
    for n in SIZES:
        meter = loaded(SELECTS["sum"], n)
        assert meter.value_edges()[CONNEX] == ("connex", "O(live rows of the parent with the key)")
        work = meter.run(inserts("u", [(0, 1)]), deltas=False)
        assert work.annotation_changes == n


@pytest.mark.parametrize("name", SELECTS)
def test_dead_connex_parents_are_not_visited_with_deltas(name):
    for n in SIZES:
        meter = loaded(SELECTS[name], n, live=False)
        meter.run(inserts("u", [(0, 1)]))
        work = meter.run(inserts("u", [(0, 2)]))
        assert work.propagation == 0 and work.rows_emitted == 0


def test_other_parents_are_all_visited():
    """w -> u: u is not connex, so a changed multiplicity of w concerns every row of u with the key, deltas or not."""
    for n in SIZES:
        meter = Meter(TABLES, SELECTS["bag"])
        meter.load(r=[(j, 0, 0) for j in range(n)], s=[(0, 0)], t=[(0,)], u=[(j, 0) for j in range(n)], w=[(0,)])
        cost, bound = meter.value_edges()["w(d)", "u(a, d)"]
        assert cost == "fan-out" and bound == "O(rows of the parent with the key), at most |D|"
        assert meter.run(inserts("w", [(0,)]), deltas=False).annotation_changes == n
        for stream in ("arbitrary", "FIFO", "insert-only"):
            bound, note = meter.guarantee(f"update, {stream} stream")
            assert bound.endswith(" + f)") and "w(d) -> u(a, d)" in note


def test_the_same_query_with_distinct_has_no_value_edges():
    for n in SIZES:
        meter = Meter(TABLES, SELECTS["bag"].replace("SELECT", "SELECT DISTINCT"))
        meter.load(r=[(j, 0, 0) for j in range(n)], s=[(0, 0)], t=[(0,)], u=[(j, 0) for j in range(n)], w=[(0,)])
        assert meter.value_edges() == {}
        assert meter.run(inserts("w", [(0,)])).propagation == 0
        assert meter.run(inserts("u", [(0, 0)])).propagation == 0
        assert meter.guarantee("update, insert-only stream")[0] == "O(1) amortised"


def test_keys_force_the_value_1():
    """With t.c a primary key, the edge t -> s changes only with existence, and explain says so."""
    tables = TABLES | {"t": "c!", "w": "d!"}
    for n in SIZES:
        meter = Meter(tables, SELECTS["bag"])
        edges = meter.value_edges()
        assert edges["t(c)", "s(b, c)"] == ("unit", "as a support edge")
        assert meter.guarantee("update, insert-only stream")[0] == "O(1) amortised"
        meter.load(r=[(j, 0, 0) for j in range(n)], s=[(0, 0)], u=[(j, 0) for j in range(n)], w=[(0,)])
        work = meter.run(inserts("t", [(0,)]), deltas=False)
        assert work.propagation <= 4


def test_global_aggregates_keep_one_total():
    """COUNT(*) of a two-way join: a guard and the root, O(1) each, also with deltas."""
    for n in SIZES:
        meter = Meter({"r": "a b", "s": "b c"}, "SELECT COUNT(*) FROM r, s WHERE r.b = s.b")
        meter.load(r=[(i, 0) for i in range(n)], s=[(0, i) for i in range(n)])
        assert {cost for cost, _ in meter.value_edges().values()} <= {"guard", "root"}
        meter.run(inserts("r", [(n, 0)]))
        work = meter.run(inserts("r", [(n + 1, 0)]) + inserts("s", [(0, n)]))
        assert work.propagation <= 6 and work.steps <= 4 and work.live_changes == 0


def test_views_with_groups_of_their_own_keep_the_bound_without_deltas():
    select = f"SELECT r.a, r.b, SUM(CAST(r.k AS DOUBLE)) AS n {JOIN} GROUP BY r.a, r.b"
    for n in SIZES:
        meter = loaded(select, n)
        _, bound = meter.value_edges()["u(a, d)", "r(a, b, k)"]
        work = meter.run(inserts("u", [(0, 1)]), deltas=False)
        assert work.propagation == 0 or not bound.startswith("O(1) without deltas")


def test_explain_tells_the_cost_of_aggregates_above_an_extended_head():
    for n in SIZES:
        meter = Meter({"r": "a b", "s": "b c"}, "SELECT r.b, SUM(r.a * s.c) FROM r, s WHERE r.b = s.b GROUP BY r.b")
        meter.load(r=[(i, 0) for i in range(n)], s=[(0, i) for i in range(n)])
        work = meter.run(inserts("r", [(n, 0)]), deltas=False)
        text = meter.view.explain()
        assert work.rows_emitted <= 4 or "work above it follows its delta" in text.replace("\n", " ")


def repeated(meter, table, row, times):
    return meter.db.apply({table: meter.rows(table, [(*row, times)])}, deltas=False)


def test_a_multiplicity_out_of_range_is_an_error_also_without_deltas():
    """Nothing multiplies the factors of a result while such a batch is applied: the error may come with the reading."""
    meter = Meter({"r": "a b", "s": "b c"}, "SELECT r.a, r.b, s.c FROM r, s WHERE r.b = s.b")
    with pytest.raises(ev.EverviewError):
        repeated(meter, "r", (1, 1), 2**40)
        repeated(meter, "s", (1, 1), 2**40)
        meter.view.to_arrow(multiplicity=True)


def test_a_sum_out_of_range_is_an_arithmetic_error_also_without_deltas():
    total = "SUM(CAST(r.a AS DECIMAL(18, 0)) * CAST(s.c AS DECIMAL(18, 0)))"
    meter = Meter({"r": "a b", "s": "b c"}, f"SELECT r.b, {total} AS x FROM r, s WHERE r.b = s.b GROUP BY r.b")
    with pytest.raises(ev.EverviewError, match="ARITHMETIC_OVERFLOW"):
        repeated(meter, "r", (10**17, 1), 2**60)
        repeated(meter, "s", (1, 10**17), 2**60)
        meter.view.to_arrow()
