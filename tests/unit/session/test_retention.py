"""FIFO windows by rows and by time: expiry is part of the commit that causes it."""

import datetime as dt
import random
from collections import Counter
from dataclasses import replace

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


@pytest.mark.parametrize(("sql_type", "zone"), [("TIMESTAMP", dt.UTC), ("TIMESTAMP_NTZ", None)])
def test_a_window_is_over_any_type_of_time(db, sql_type, zone):
    db.execute(f"CREATE TABLE t (a INT, ts {sql_type}) WITH (retain = INTERVAL 1 HOUR, time_column = ts)")
    v = db.create_view("v", "SELECT a FROM t")
    for minute in (0, 30, 61):
        db.insert("t", [(minute, at(minute).replace(tzinfo=zone))])
    assert held(v) == [30, 61]


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


def test_what_may_have_expired_can_be_deleted(db, three, state):
    """A window by rows does not remember what it held: a row that is not there may have been."""
    db.insert("t", [(1,), (2,), (3,)])
    with pytest.raises(ev.ChangeError, match="a=9"):  # nothing has expired yet
        db.delete("t", [(9,)])
    db.insert("t", [(4,)])
    assert db.delete("t", [(1,), (4,)])["v"].to_pylist() == [{"a": 4, "_multiplicity": -1}]
    assert held(three) == [2, 3]
    assert db.table_metrics("t").missed_deletes == 1


def test_a_row_that_has_left_a_time_window_can_be_deleted_and_one_that_never_was_there_cannot(db, hour):
    db.insert("t", [(1, at(0)), (2, at(50))])
    db.insert("t", [(3, at(100))])
    assert db.delete("t", [(1, at(0)), (7, at(39))])["v"].num_rows == 0
    for row in [(2, at(40)), (7, at(50)), (7, None)]:
        with pytest.raises(ev.ChangeError) as refusal:
            db.delete("t", [row])
        assert refusal.value.code == "ROW_NOT_FOUND"
    assert held(hour) == [2, 3]
    assert db.table_metrics("t").missed_deletes == 2


@pytest.mark.parametrize(
    "options", ["retain_rows = 2", "retain = INTERVAL 1 HOUR, time_column = ts"], ids=["rows", "time"]
)
def test_keys_of_expired_rows_can_be_deleted(db, options):
    db.execute(f"CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP) WITH ({options})")
    db.insert("t", [(1, at(0)), (2, at(1))])
    with pytest.raises(ev.ChangeError):
        db.delete("t", [(9,)])
    db.insert("t", [(3, at(90))])
    db.delete("t", [(1,), (3,)])
    assert 1 not in db.table_rows("t")["id"].to_pylist()
    assert db.table_metrics("t").missed_deletes == 1


def test_a_refused_batch_counts_nothing(db, hour, state):
    db.create_view("ratio", "SELECT 1 / a AS q FROM t")
    db.insert("t", [(1, at(100))])
    before, metrics = state(db), db.table_metrics("t")
    with pytest.raises(ev.ChangeError):
        db.apply({"t": [{"a": a, "ts": at(m), "_multiplicity": n} for a, m, n in [(5, 0, 1), (6, 1, -1), (0, 101, 1)]]})
    assert (state(db), replace(db.table_metrics("t"), bytes=0)) == (before, replace(metrics, bytes=0))


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


def test_late_rows_are_counted(db, hour):
    db.insert("t", [(1, at(0)), (2, at(100)), (3, at(10)), (4, at(39)), (5, at(40))])
    metrics = db.table_metrics("t")
    assert (metrics.rows, metrics.late_rows, metrics.expired_rows) == (2, 2, 1)
    db.apply({"t": [{"a": 1, "ts": at(0), "_multiplicity": 7}]})
    assert db.table_metrics("t").late_rows == 9


@pytest.mark.parametrize("far", [dt.datetime(9999, 12, 31, tzinfo=dt.UTC), at(0) + dt.timedelta(days=31, hours=2)])
def test_a_time_in_the_far_future_is_refused(db, hour, state, far):
    db.insert("t", [(1, at(0)), (2, at(60))])
    before = state(db)
    with pytest.raises(ev.ChangeError, match="`ts` jumps from 2024-01-01 01:01:00 to") as refusal:
        db.insert("t", [(3, at(61)), (4, far)])
    assert (refusal.value.code, refusal.value.parameters["row"]) == ("TIME_JUMP", 1)
    assert "max_jump" in refusal.value.hint and "30 days" in str(refusal.value)
    assert state(db) == before
    db.insert("t", [(3, at(61))])
    assert held(hour) == [2, 3]


def test_a_time_in_the_far_future_that_nets_to_nothing_is_none(db, hour):
    db.insert("t", [(1, at(0))])
    far = {"a": 1, "ts": dt.datetime(9999, 1, 1, tzinfo=dt.UTC)}
    db.apply({"t": [far | {"_multiplicity": 1}, far | {"_multiplicity": -1}]})
    db.insert("t", [(2, at(1))])
    assert held(hour) == [1, 2]


def test_a_history_that_comes_at_once_is_no_jump(db, hour):
    days = [(day, at(0) + dt.timedelta(days=day)) for day in range(0, 3000, 30)]
    random.Random(1).shuffle(days)
    db.insert("t", days)
    assert held(hour) == [2970]


def test_how_far_time_may_jump_can_be_declared(db, tmp_path):
    db.execute(
        "CREATE TABLE far (a INT, ts TIMESTAMP) WITH (retain = INTERVAL 1 DAY, time_column = ts, max_jump = INTERVAL 400 DAYS);"
        "CREATE TABLE near (a INT, ts DATE) WITH (retain = INTERVAL 10 DAYS, time_column = ts, max_jump = INTERVAL 2 DAYS)"
    )
    db.insert("far", [(1, at(0)), (2, at(0) + dt.timedelta(days=400))])
    with pytest.raises(ev.ChangeError, match="2 days"):
        db.insert("near", [(1, dt.date(2024, 1, 1)), (2, dt.date(2024, 1, 4))])
    db.insert("near", [(day, dt.date(2024, 1, day)) for day in range(1, 10)])
    db.delete("near", [(day, dt.date(2024, 1, day)) for day in range(2, 9)])
    db.save(tmp_path / "s")
    with ev.restore(tmp_path / "s") as again:  # though its rows are further apart
        assert again.table_rows("near")["a"].to_pylist() == [1, 9]
        assert again.tables == db.tables
        with pytest.raises(ev.ChangeError):
            again.insert("near", [(2, dt.date(2024, 1, 12))])


@pytest.mark.parametrize("amount", [2**40, 2**61])
def test_a_great_number_of_copies(db, hour, three_beside, amount):
    for name in ("t", "three"):
        for minute in (0, 30, 61):
            db.apply({name: [{"a": 1, "ts": at(minute), "_multiplicity": amount // 2}]})
    assert db.table_metrics("t").rows == amount // 2 * 2
    assert db.table_metrics("three").rows == 3
    assert db.table_rows("three").to_pylist() == [{"a": 1, "ts": at(61), "_multiplicity": 3}]
    db.apply({"t": [{"a": 1, "ts": at(30), "_multiplicity": -amount // 2}]})
    assert db.table_rows("t").to_pylist() == [{"a": 1, "ts": at(61), "_multiplicity": amount // 2}]


@pytest.fixture
def three_beside(db):
    db.execute("CREATE TABLE three (a INT, ts TIMESTAMP) WITH (retain_rows = 3)")


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
        "max_jump = INTERVAL 1 DAY",
        "retain_rows = 2, max_jump = INTERVAL 1 DAY",
        "retain = INTERVAL 1 HOUR, time_column = ts, max_jump = INTERVAL 1 MONTH",
        "retain = INTERVAL 1 HOUR, time_column = ts, max_jump = 5",
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


class RowWindow:
    """A window as a list of single copies."""

    def __init__(self, size):
        self.size, self.held = size, []

    def step(self, changes):
        """The copies of a batch arrive one by one, deletes take the oldest copies, then the front expires."""
        self.held += [row for row, n in changes for _ in range(n)]
        for row, n in changes:
            for _ in range(-n):
                self.held.remove(row)
        del self.held[: max(0, len(self.held) - self.size)]


class TimeWindow:
    """The same by time: a row is (a, minute)."""

    def __init__(self, size):
        self.size, self.held, self.latest = size, [], None

    def step(self, changes):
        held = self.held + [row for row, n in changes for _ in range(n)]
        for row, n in changes:
            for _ in range(-n):
                held.remove(row)
        came = Counter(held) - Counter(self.held)
        times = [m for _, m in came if m is not None] + ([] if self.latest is None else [self.latest])
        self.latest = max(times, default=None)
        self.held = [(a, m) for a, m in held if m is None or self.latest is None or m >= self.latest - self.size]


def copies(table):
    return [tuple(row.values())[:-1] for row in table.to_pylist() for _ in range(row["_multiplicity"])]


@pytest.mark.parametrize("by", ["rows", "time"])
@pytest.mark.seeds(6)
def test_random_streams_match_single_copies(tmp_path, seed, by):
    rng = random.Random(f"{seed} {by}")
    size = rng.choice([1, 3, 6, 40])
    option = f"retain_rows = {size}" if by == "rows" else f"retain = INTERVAL {size} MINUTES, time_column = ts"
    model = RowWindow(size) if by == "rows" else TimeWindow(size)
    db = ev.connect()
    db.execute(f"CREATE TABLE t (a INT, ts TIMESTAMP) WITH ({option})")
    db.create_view("v", "SELECT a, ts FROM t")
    db.create_view("g", "SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    clock, totals = 0, Counter()
    for step in range(80):
        clock += rng.randrange(4)
        minute = lambda: None if rng.random() < 0.1 else max(0, clock - rng.randrange(2 * size + 2))
        changes = [((rng.randrange(3), minute()), rng.choice([1, 1, 2, 5])) for _ in range(rng.randrange(5))]
        if model.held and rng.random() < 0.5:
            row = rng.choice(model.held)
            changes.insert(rng.randrange(len(changes) + 1), (row, -rng.randint(1, model.held.count(row))))
        model.step(changes)
        batch = [{"a": a, "ts": m if m is None else at(m), "_multiplicity": n} for (a, m), n in changes]
        for row in db.apply({"t": batch})["v"].to_pylist():
            totals[row["a"], row["ts"]] += row["_multiplicity"]
        if step % 10 == 9:
            db.save(tmp_path / "s")
            metrics = db.table_metrics("t")
            db.close()
            db = ev.restore(tmp_path / "s")
            assert (db.table_metrics("t").late_rows, db.table_metrics("t").expired_rows) == (
                metrics.late_rows,
                metrics.expired_rows,
            )
        expected = [(a, m if m is None else at(m)) for a, m in model.held]
        found = copies(db.table_rows("t"))
        if by == "rows":
            assert found == expected, step
        else:
            assert sorted(found, key=repr) == sorted(expected, key=repr), step
            times = [m for _, m in found if m is not None]
            assert times == sorted(times)
        assert +totals == Counter(expected)
        assert {row.a: row.n for row in db.view("g")} == Counter(a for a, _ in expected)
    db.close()


@pytest.mark.parametrize("by", ["rows", "time"])
@pytest.mark.seeds(6)
def test_what_stays_does_not_depend_on_how_a_stream_is_cut(seed, by):
    rng = random.Random(f"{seed} {by}")
    size = rng.choice([2, 5, 9])
    option = f"retain_rows = {size}" if by == "rows" else f"retain = INTERVAL {size} MINUTES, time_column = ts"
    stream = [(rng.randrange(3), at(max(0, i // 3 - rng.randrange(2 * size)))) for i in range(60)]

    def run(cuts):
        with ev.connect() as db:
            db.execute(f"CREATE TABLE t (a INT, ts TIMESTAMP) WITH ({option})")
            for start, end in zip([0, *cuts], [*cuts, len(stream)]):
                db.insert("t", stream[start:end])
            metrics = db.table_metrics("t")
            return copies(db.table_rows("t")), metrics.late_rows, metrics.expired_rows

    expected = run(range(1, 60))
    for _ in range(10):
        assert run(sorted(rng.sample(range(1, 60), rng.randrange(20)))) == expected


def test_the_newest_copies_stay_also_when_a_row_comes_twice_in_a_batch(db, bag):
    db.execute("CREATE TABLE t (a INT, b INT) WITH (retain_rows = 3)")
    db.insert("t", [(2, 0), (1, 2), (2, 0)])
    db.insert("t", [(2, 0), (0, 1)])
    assert copies(db.table_rows("t")) == [(2, 0), (2, 0), (0, 1)]


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
