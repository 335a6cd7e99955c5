"""State is linear in the current data, whatever the size of the result and the history (CROWN, Lemma 4.1)."""

import everview as ev
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


TEXTS = "CREATE TABLE a (k STRING, x BIGINT); CREATE TABLE b (k STRING PRIMARY KEY, y STRING)"
HOLDING = {
    "join": "SELECT a.k, a.x, b.y FROM a JOIN b ON a.k = b.k",
    "groups in the tree": "SELECT a.k, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    "groups above": "SELECT b.y, SUM(a.x * LENGTH(b.y)) AS s FROM a JOIN b ON a.k = b.k GROUP BY b.y",
    "sums of doubles": "SELECT a.k, SUM(CAST(a.x AS DOUBLE)) AS s FROM a GROUP BY a.k",
    "distinct above": "SELECT DISTINCT CONCAT(a.k, b.y) AS t FROM a JOIN b ON a.k = b.k",
    "computed texts": "SELECT CONCAT(k, '!') AS t, x FROM a",
}


@pytest.mark.parametrize("deltas", [True, False], ids=["deltas", "quiet"])
@pytest.mark.parametrize("name", HOLDING)
def test_memory_of_what_was_deleted_is_given_back(name, deltas):
    with ev.connect() as db:
        db.execute(TEXTS)
        view = db.create_view("v", HOLDING[name])
        kernel = db._state.kernel

        def held():
            tables = sum(kernel.table_size(base.handle)[2] for base in db._state.tables.values())
            return view.metrics().state_bytes + tables + kernel.texts_size()[1]

        rows = {"a": [(f"k{i}", i) for i in range(20_000)], "b": [(f"k{i}", f"y{i % 5000}") for i in range(20_000)]}
        for _ in range(2):
            db.apply(rows, deltas=deltas)
            full = held()
            assert full > 2_000_000
            for table, gone in rows.items():
                db.delete(table, gone, deltas=deltas)
            assert held() < full / 100
            assert view.count() == 0


def test_dropped_tables_and_views_leave_their_places():
    with ev.connect() as db:
        db.execute("CREATE TABLE t (x INT)")
        kept = db.create_view("kept", "SELECT x FROM t")
        places = set()
        for i in range(100):
            db.execute(f"CREATE TABLE u{i} (x INT)")
            view = db.create_view(f"v{i}", f"SELECT t.x FROM t JOIN u{i} ON t.x = u{i}.x")
            places.add((view._view.handle, db._state.table(f"u{i}").handle))
            db.insert(f"u{i}", [(i,)])
            db.insert("t", [(i,)])
            assert [row.x for row in view] == [i]
            view.drop()
            db.execute(f"DROP TABLE u{i}")
        assert len(places) == 1
        assert kept.count() == 100


def test_lookups_keep_no_texts():
    with ev.connect() as db:
        db.execute(TEXTS)
        view = db.create_view("v", HOLDING["join"])
        db.apply({"a": [("k", 1)], "b": [("k", "y")]})
        texts = db._state.kernel.texts_size()[0]
        assert all(view.lookup(k=f"absent {i}").num_rows == 0 for i in range(50))
        assert view.lookup(k="k").num_rows == 1
        assert db._state.kernel.texts_size()[0] == texts
