"""FIFO windows by rows and by time: expiry is part of the commit that causes it."""

import datetime as dt
import random

import pyarrow as pa
import pytest

import everview as ev


@pytest.fixture
def three(db):
    """A table that keeps three rows, and a view of it."""
    db.execute("CREATE TABLE t (a INT) WITH (retain_rows = 3)")
    return db.create_view("v", "SELECT a FROM t")


def at(minute, day=1):
    return dt.datetime(2024, 1, day, tzinfo=dt.UTC) + dt.timedelta(minutes=minute)


@pytest.fixture
def hour(db):
    """A table that keeps an hour, and a view of it."""
    db.execute("CREATE TABLE t (a INT, ts TIMESTAMP) TBLPROPERTIES (retain = INTERVAL 1 HOUR, time_column = ts)")
    return db.create_view("v", "SELECT a FROM t")


def held(view):
    return sorted(row.a for row in view)


def test_the_oldest_rows_leave_in_the_same_commit(db, three, bag):
    db.insert("t", [(1,), (2,), (3,)])
    assert bag(db.insert("t", [(4,), (5,)])["v"]) == [(1, -1), (2, -1), (4, 1), (5, 1)]
    assert db.version == 2
    assert held(three) == [3, 4, 5]
    assert sorted(db.table_rows("t")["a"].to_pylist()) == [3, 4, 5]


def test_of_a_batch_larger_than_the_window_the_last_rows_stay(db, three, bag):
    db.insert("t", [(0,)])
    assert bag(db.insert("t", [(i,) for i in range(1, 10)])["v"]) == [(0, -1), (7, 1), (8, 1), (9, 1)]


def test_duplicates_are_kept_and_expire_one_by_one(db, three, bag):
    db.insert("t", [(1,)])
    db.insert("t", [(2,)])
    db.insert("t", [(1,)])
    assert bag(db.insert("t", [(3,)])["v"]) == [(1, -1), (3, 1)]
    assert held(three) == [1, 2, 3]
    assert bag(db.insert("t", [(3,)])["v"]) == [(2, -1), (3, 1)]
    assert held(three) == [1, 3, 3]


def test_a_row_that_comes_again_as_it_expires_is_the_newest(db, three):
    db.insert("t", [(1,), (2,), (3,)])
    assert db.insert("t", [(1,)])["v"].num_rows == 0
    db.insert("t", [(4,)])
    assert held(three) == [1, 3, 4]


def test_explicit_deletes_make_room(db, three, bag):
    db.insert("t", [(1,), (2,), (3,)])
    db.delete("t", [(2,)])
    assert bag(db.insert("t", [(4,)])["v"]) == [(4, 1)]
    assert bag(db.insert("t", [(5,)])["v"]) == [(1, -1), (5, 1)]


def test_an_expired_row_cannot_be_deleted(db, three):
    db.insert("t", [(1,), (2,), (3,), (4,)])
    with pytest.raises(ev.ChangeError, match="a=1"):
        db.delete("t", [(1,)])


def test_windows_with_a_key(db, bag):
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT) WITH (retain_rows = 2)")
    v = db.create_view("v", "SELECT id, x FROM t")
    db.insert("t", [(1, 1), (2, 2)])
    assert bag(db.insert("t", [(3, 3)])["v"]) == [(1, 1, -1), (3, 3, 1)]
    db.insert("t", [(1, 9)])
    assert bag(v.to_arrow()) == [(1, 9), (3, 3)]
    db.upsert("t", [(3, 4)])
    db.insert("t", [(5, 5)])
    assert bag(v.to_arrow()) == [(3, 4), (5, 5)]


def test_a_refused_batch_expires_nothing(db, three, state):
    db.create_view("ratio", "SELECT 1 / a AS q FROM t")
    db.insert("t", [(1,), (2,), (3,)])
    before = state(db)
    with pytest.raises(ev.ChangeError):
        db.insert("t", [(4,), (0,)])
    assert state(db) == before
    db.insert("t", [(4,)])
    assert held(three) == [2, 3, 4]


def test_an_overflow_undoes_expiry_too(db, three, state):
    db.create_view("sums", "SELECT SUM(CAST(a AS BIGINT) * 4000000000) AS s FROM t")
    db.insert("t", [(1,), (2,), (3,)])
    before = state(db)
    with pytest.raises(ev.ChangeError):
        db.insert("t", [(2**31 - 1,), (2**31 - 1,)])
    assert state(db) == before
    db.insert("t", [(4,)])
    assert held(three) == [2, 3, 4]


def test_time_windows_follow_the_largest_time(db, hour, bag):
    db.insert("t", [(1, at(0)), (2, at(30))])
    assert bag(db.insert("t", [(3, at(60))])["v"]) == [(3, 1)]
    assert bag(db.insert("t", [(4, at(61))])["v"]) == [(1, -1), (4, 1)]
    assert bag(db.insert("t", [(5, at(0, day=2))])["v"]) == [(2, -1), (3, -1), (4, -1), (5, 1)]


def test_late_rows(db, hour, bag):
    db.insert("t", [(1, at(100))])
    assert db.insert("t", [(2, at(10))])["v"].num_rows == 0  # out already
    assert bag(db.insert("t", [(3, at(50))])["v"]) == [(3, 1)]
    assert bag(db.insert("t", [(4, at(120))])["v"]) == [(3, -1), (4, 1)]
    assert held(hour) == [1, 4]


def test_the_largest_time_stays_when_its_row_is_deleted(db, hour):
    db.insert("t", [(1, at(100))])
    db.delete("t", [(1, at(100))])
    assert db.insert("t", [(2, at(10))])["v"].num_rows == 0


def test_rows_without_a_time_stay(db, hour):
    db.insert("t", [(1, None), (2, at(0))])
    db.insert("t", [(3, at(500))])
    assert held(hour) == [1, 3]


def test_duplicates_in_a_time_window(db, hour, bag):
    db.insert("t", [(1, at(0)), (1, at(0)), (1, at(30))])
    assert bag(db.insert("t", [(2, at(61))])["v"]) == [(1, -2), (2, 1)]


def test_windows_by_date(db):
    db.execute("CREATE TABLE d (a INT, day DATE) WITH (retain = INTERVAL 2 DAYS, time_column = day)")
    v = db.create_view("v", "SELECT a FROM d")
    db.insert("d", [(n, dt.date(2024, 1, n)) for n in range(1, 6)])
    assert held(v) == [3, 4, 5]


@pytest.mark.parametrize(
    "options",
    ["WITH (retain_rows = 2)", "TBLPROPERTIES (retain_rows = 2)", "TBLPROPERTIES ('everview.retain_rows' = '2')"],
)
def test_ways_to_declare_it(db, options):
    db.execute(f"CREATE TABLE t (a INT) {options}")
    assert db.tables["t"].retention.rows == 2


@pytest.mark.parametrize(
    "options",
    [
        "retain_rows = 0",
        "retain_rows = -1",
        "retain = INTERVAL 1 HOUR",
        "time_column = ts",
        "retain = INTERVAL 1 HOUR, time_column = a",
        "retain = INTERVAL 1 MONTH, time_column = ts",
        "keep = 5",
    ],
)
def test_declarations_of_no_meaning_are_refused(db, options):
    with pytest.raises(ev.EverviewError):
        db.execute(f"CREATE TABLE t (a INT, ts TIMESTAMP) WITH ({options})")


def test_views_over_several_windows_follow(db, bag):
    db.execute(
        "CREATE TABLE r (a INT, b INT) WITH (retain_rows = 2); CREATE TABLE s (b INT, c INT) WITH (retain_rows = 2)"
    )
    v = db.create_view("v", "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b")
    n = db.create_view("n", "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b")
    db.apply({"r": [(1, 1), (2, 1)], "s": [(1, 5)]})
    assert bag(db.apply({"r": [(3, 1)], "s": [(2, 6)]})["v"]) == [(1, 5, -1), (3, 5, 1)]
    assert n.to_arrow().to_pylist() == [{"n": 2}]
    assert bag(db.insert("s", [(2, 7)])["v"]) == [(2, 5, -1), (3, 5, -1)]
    assert v.count() == 0


def model_step(window, rows, deletes, size):
    """A FIFO window as a list; a batch nets by row, deletes take the oldest copies."""
    for row in deletes:
        window.remove(row)
    window.extend(rows)
    del window[: max(0, len(window) - size)]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.seeds(5)
def test_random_streams_match_a_list(tmp_path, seed, restarts):
    random.seed(seed)
    db = ev.connect()
    db.execute("CREATE TABLE t (a INT) WITH (retain_rows = 6)")
    db.create_view("v", "SELECT a FROM t")
    window = []
    for step in range(120):
        rows = [random.randrange(5) for _ in range(random.randrange(3))]
        rows = sorted(set(rows), key=rows.index)  # in one batch equal rows arrive together
        deletes = [random.choice(window)] if window and random.random() < 0.3 else []
        deletes = [d for d in deletes if d not in rows]  # else they would net
        if set(rows) & set(window[: max(0, len(window) + len(rows) - 6)]):
            rows = []  # a row that expires as it comes again: see the test above
        db.apply({"t": [{"a": a, "_multiplicity": 1} for a in rows] + [{"a": a, "_multiplicity": -1} for a in deletes]})
        model_step(window, rows, deletes, 6)
        if restarts and step % 10 == 0:
            db.save(tmp_path / "s")
            db.close()
            db = ev.restore(tmp_path / "s")
        assert held(db.view("v")) == sorted(window), step
        assert db.table_rows("t")["a"].to_pylist() == window
    db.close()


def test_restoring_keeps_the_order_of_arrival_of_interleaved_duplicates(db, three, tmp_path):
    for a in (1, 2, 1):
        db.insert("t", [(a,)])
    db.save(tmp_path / "s")
    with ev.restore(tmp_path / "s") as again:
        again.insert("t", [(3,), (4,)])
        assert held(again.view("v")) == [1, 3, 4]


def test_restoring_a_time_window(db, hour, tmp_path, bag):
    db.insert("t", [(1, at(50)), (2, at(0)), (3, at(20)), (4, None)])
    db.save(tmp_path / "s")
    with ev.restore(tmp_path / "s") as again:
        assert bag(again.insert("t", [(5, at(70))])["v"]) == [(2, -1), (5, 1)]


def test_restoring_remembers_the_largest_time_seen(db, hour, tmp_path):
    db.insert("t", [(1, at(100))])
    db.delete("t", [(1, at(100))])
    db.save(tmp_path / "s")
    with ev.restore(tmp_path / "s") as again:
        assert again.insert("t", [(2, at(10))])["v"].num_rows == 0


def test_a_late_view_of_a_window(db, three, bag):
    for a in (1, 2, 3, 4, 4):
        db.insert("t", [(a,)])
    late = db.create_view("late", "SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    assert bag(late.to_arrow()) == [(3, 1), (4, 2)]
    assert bag(db.insert("t", [(5,)])["late"]) == [(3, 1, -1), (5, 1, 1)]


def test_arrow_batches_too(db, three):
    db.apply({"t": pa.table({"a": pa.array(range(100), pa.int32())})})
    assert held(three) == [97, 98, 99]
