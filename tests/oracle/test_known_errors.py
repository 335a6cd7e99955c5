"""The errors known from the authors' own prototypes (see the list of papers), each as a test."""

from decimal import Decimal
from itertools import permutations

import everview as ev
import pytest
from everview.testing.asserts import DeltaSum, assert_view_equals, assert_view_is_recomputed

PATH = {"r": [(1, 2), (3, 2), (1, 9)], "s": [(2, 4), (2, 5), (8, 8)], "t": [(4, 6), (5, 6), (4, 7)]}
QUERIES = {
    "full": "SELECT r.a, r.b, s.c, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c",
    "bag": "SELECT r.a, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c",
    "distinct": "SELECT DISTINCT r.a, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c",
    "group": "SELECT r.a, COUNT(*) AS n, SUM(t.d) AS d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c GROUP BY r.a",
    "global": "SELECT COUNT(*) AS n, SUM(r.a * t.d) AS d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c",
}
DDL = "CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT); CREATE TABLE t (c BIGINT, d BIGINT)"


def commit(db, totals, changes):
    for name, delta in db.apply(changes).items():
        totals[name].add(delta)
    for name, view in db.views.items():
        totals[name].check(view)


def signed(names, rows, sign):
    return [dict(zip(names, row, strict=True)) | {"_multiplicity": sign} for row in rows]


@pytest.mark.parametrize("order", list(permutations("rst")), ids="".join)
@pytest.mark.parametrize("name", QUERIES)
def test_a_delete_is_a_delete_in_every_relation(oracle, order, name):
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", QUERIES[name])
        totals = {"v": DeltaSum.of(view)}
        commit(db, totals, PATH)
        empty = view.count()
        for table in order:
            names = [c.name for c in db.tables[table].columns]
            for row in PATH[table]:
                commit(db, totals, {table: signed(names, [row], -1)})
                assert_view_is_recomputed(db, view, oracle)
                commit(db, totals, {table: [row]})
                assert_view_is_recomputed(db, view, oracle)
            assert view.count() == empty
        for table in order:
            names = [c.name for c in db.tables[table].columns]
            for row in PATH[table]:
                commit(db, totals, {table: signed(names, [row], -1)})
                assert_view_is_recomputed(db, view, oracle)
        assert view.count() == (1 if name == "global" else 0)
        assert view.metrics().state_rows <= (1 if name == "global" else 0)


@pytest.mark.parametrize("join", ["full", "bag"])
def test_an_inequality_holds_in_results_and_in_deltas(oracle, join):
    head = "r.a, r.b, s.c" if join == "full" else "r.a, s.c"
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view(
            "v", f"SELECT {head} FROM r JOIN s ON r.b = s.b WHERE r.a <> r.b AND s.c <> 5 AND NOT s.b = s.c"
        )
        totals = {"v": DeltaSum.of(view)}
        for changes in (
            {"r": [(1, 1), (1, 2), (2, 2), (None, 2), (3, 1)]},
            {"s": [(2, 5), (2, 4), (1, 1), (1, 7), (2, None)]},
            {"r": signed("ab", [(1, 2), (1, 1)], -1), "s": signed("bc", [(2, 5)], -1)},
            {"s": signed("bc", [(2, 4), (1, 7)], -1), "r": [(4, 1)]},
        ):
            commit(db, totals, changes)
            assert_view_is_recomputed(db, view, oracle)


def test_an_inequality_between_tables_is_not_ignored(oracle):
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b WHERE r.a <> s.c")
        totals = {"v": DeltaSum.of(view)}
        for changes in ({"r": [(1, 2), (3, 2)], "s": [(2, 1), (2, 3)]}, {"s": signed("bc", [(2, 1)], -1)}):
            commit(db, totals, changes)
            assert_view_is_recomputed(db, view, oracle)
        assert view.plan.view.warnings


@pytest.mark.parametrize("name", QUERIES)
def test_duplicates_do_not_corrupt_counters(oracle, name):
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", QUERIES[name])
        totals = {"v": DeltaSum.of(view)}
        commit(db, totals, {"r": [(1, 2)] * 3, "s": [(2, 4)] * 2, "t": [(4, 6)]})
        assert_view_is_recomputed(db, view, oracle)
        # one copy less each time: rows stay as long as one copy of each is left
        for table, names, row, left in (("r", "ab", (1, 2), 2), ("s", "bc", (2, 4), 1), ("r", "ab", (1, 2), 1)):
            commit(db, totals, {table: signed(names, [row], -1)})
            assert_view_is_recomputed(db, view, oracle)
            assert dict(db.table_rows(table).to_pylist()[0])["_multiplicity"] == left
        commit(db, totals, {"r": [(1, 2)] * 2, "t": [(4, 6)] * 2})
        assert_view_is_recomputed(db, view, oracle)
        commit(
            db,
            totals,
            {"r": signed("ab", [(1, 2)], -3), "s": signed("bc", [(2, 4)], -1), "t": signed("cd", [(4, 6)], -3)},
        )
        assert view.count() == (name == "global")
        assert view.metrics().state_rows <= (name == "global")


def test_a_batch_that_moves_duplicates_has_an_empty_delta():
    """r twice, s once; the batch deletes one r and inserts one s: 2 x 1 rows become 1 x 2."""
    with ev.connect() as db:
        db.execute("CREATE TABLE r (x BIGINT); CREATE TABLE s (x BIGINT)")
        db.create_view("v", "SELECT r.x FROM r JOIN s ON r.x = s.x")
        db.apply({"r": [(1,), (1,)], "s": [(1,)]})
        delta = db.apply({"r": [{"x": 1, "_multiplicity": -1}], "s": [{"x": 1, "_multiplicity": 1}]})["v"]
        assert delta.num_rows == 0


@pytest.mark.parametrize("function", ["MIN", "MAX"])
def test_an_extremum_that_is_deleted(oracle, function):
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", f"SELECT r.a, {function}(s.c) AS x FROM r JOIN s ON r.b = s.b GROUP BY r.a")
        totals = {"v": DeltaSum.of(view)}
        commit(db, totals, {"r": [(1, 1)], "s": [(1, 1), (1, 2), (1, 3), (1, 3)]})
        for gone in (3, 1, 3, 2):
            commit(db, totals, {"s": signed("bc", [(1, gone)], -1)})
            assert_view_is_recomputed(db, view, oracle)


@pytest.mark.parametrize("children", [3, 5, 8])
@pytest.mark.parametrize("head", ["full", "hub", "distinct", "count"])
def test_nodes_with_many_children(oracle, children, head):
    names = [f"c{i}" for i in range(children)]
    select = {
        "full": "SELECT h.x, " + ", ".join(f"{n}.y AS {n}y" for n in names),
        "hub": "SELECT h.x",
        "distinct": "SELECT DISTINCT h.x, c0.y",
        "count": "SELECT h.x, COUNT(*) AS n, SUM(c1.y) AS s",
    }[head]
    sql = f"{select} FROM h {' '.join(f'JOIN {n} ON {n}.x = h.x' for n in names)}{' GROUP BY h.x' if head == 'count' else ''}"
    with ev.connect() as db:
        db.execute("CREATE TABLE h (x BIGINT);" + ";".join(f"CREATE TABLE {n} (x BIGINT, y BIGINT)" for n in names))
        view = db.create_view("v", sql)
        totals = {"v": DeltaSum.of(view)}
        commit(db, totals, {"h": [(1,), (2,)]})
        for i, name in enumerate(names):
            commit(db, totals, {name: [(1, i), (2, i), (1, i)] if i == 1 else [(1, i), (2, i)]})
        assert_view_is_recomputed(db, view, oracle)
        for name in names:  # without any one child there is nothing
            rows = [{"x": 1, "y": names.index(name), "_multiplicity": -(2 if name == "c1" else 1)}]
            commit(db, totals, {name: rows})
            assert_view_is_recomputed(db, view, oracle)
            assert all(row.x == 2 for row in view)
            commit(db, totals, {name: [row | {"_multiplicity": -row["_multiplicity"]} for row in rows]})
            assert_view_is_recomputed(db, view, oracle)


def test_aggregates_other_than_count(oracle):
    with ev.connect() as db:
        db.execute(
            "CREATE TABLE r (a BIGINT, b BIGINT, p DECIMAL(6,2), f DOUBLE); CREATE TABLE s (b BIGINT, q DECIMAL(6,2), n INT)"
        )
        view = db.create_view(
            "v",
            "SELECT r.a, SUM(s.n) AS i, COUNT(s.n) AS c, AVG(s.n) AS m, SUM(r.p) AS p, SUM(r.p * s.q) AS pq, SUM(r.f) AS f "
            "FROM r JOIN s ON r.b = s.b GROUP BY r.a",
        )
        totals = {"v": DeltaSum.of(view)}
        d = Decimal
        steps = (
            {"r": [(1, 1, d("1.25"), 0.5), (1, 2, d("-3.00"), 0.25), (2, 2, None, None)]},
            {"s": [(1, d("2.00"), 3), (2, None, None), (2, d("0.10"), -4), (2, d("0.10"), -4)]},
            {"s": signed(("b", "q", "n"), [(2, d("0.10"), -4)], -2)},
            {"r": signed(("a", "b", "p", "f"), [(1, 1, d("1.25"), 0.5)], -1)},
        )
        for changes in steps:
            commit(db, totals, changes)
            assert_view_is_recomputed(db, view, oracle)
        assert_view_equals(view, [(1, None, 0, None, d("-3.00"), None, 0.25), (2, None, 0, None, None, None, None)])
