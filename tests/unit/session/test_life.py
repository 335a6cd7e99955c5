"""Closing, pickling, threads."""

import pickle
import threading

import polars as pl
import pyarrow as pa
import pytest

import everview as ev


def test_close_twice_and_use_after(db):
    db.execute("CREATE TABLE t (a INT)")
    v = db.create_view("v", "SELECT a FROM t")
    db.insert("t", [(1,)])
    batches = v.batches()
    db.close()
    db.close()
    uses = [
        lambda: db.insert("t", [(1,)]),
        lambda: db.delete("t", [(1,)]),
        lambda: db.apply({}),
        lambda: db.execute("CREATE TABLE u (a INT)"),
        lambda: db.create_view("w", "SELECT a FROM t"),
        lambda: db.view("v"),
        lambda: db.views,
        lambda: db.tables,
        lambda: db.table_rows("t"),
        lambda: db.save("nowhere"),
        v.to_arrow,
        v.count,
        v.metrics,
        v.drop,
        lambda: iter(v),
        lambda: v.lookup(a=1),
        lambda: v.subscribe(print),
        lambda: next(batches),
    ]
    for use in uses:
        with pytest.raises(ev.SessionError) as refusal:
            use()
        assert refusal.value.code == "SESSION_CLOSED"
    assert repr(db) == "<Session: closed>"
    assert v.sql and v.schema.names == ["a"]


def test_the_context_closes_also_after_an_error():
    with pytest.raises(ZeroDivisionError), ev.connect() as db:
        raise ZeroDivisionError
    with pytest.raises(ev.SessionError):
        db.apply({})


def test_reprs(db):
    db.execute("CREATE TABLE t (a INT)")
    v = db.create_view("v", "SELECT a FROM t")
    assert repr(db) == "<Session: 1 tables, 1 views, version 0>"
    assert repr(v) == "<View v(a int32): q-hierarchical>"


def test_pickling_is_refused(db):
    db.execute("CREATE TABLE t (a INT)")
    v = db.create_view("v", "SELECT a FROM t")
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(db)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(v)


def in_threads(*functions):
    failures = []

    def run(function):
        try:
            function()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_commits_of_several_threads_are_serialised(db):
    db.execute("CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT)")
    v = db.create_view("v", "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b")
    totals = [0] * 4
    rounds = 200

    def writer(number):
        table = "rs"[number % 2]
        for i in range(rounds):
            delta = db.insert(table, [(number * rounds + i, i % 7) if table == "r" else (i % 7, number * rounds + i)])[
                "v"
            ]
            totals[number] += sum(delta["_multiplicity"].to_pylist())

    in_threads(*(lambda n=n: writer(n) for n in range(4)))
    assert db.version == 4 * rounds
    assert sum(totals) == v.count() == v.to_arrow().num_rows


def test_a_reader_beside_sees_whole_commits(db):
    """Every commit moves ten rows; a reader of any kind sees ten, or is told that its iterator is stale."""
    db.execute("CREATE TABLE t (a INT, b INT)")
    v = db.create_view("v", "SELECT a, b FROM t")
    c = db.create_view("c", "SELECT COUNT(*) AS n FROM t")
    db.insert("t", [(0, b) for b in range(10)])
    done = threading.Event()

    def writer():
        try:
            for a in range(300):
                rows = [{"a": a, "b": b, "_multiplicity": -1} for b in range(10)]
                db.apply({"t": rows + [{"a": a + 1, "b": b, "_multiplicity": 1} for b in range(10)]}, deltas=a % 2 == 0)
        finally:
            done.set()

    def reader():
        while not done.is_set():
            assert v.count() == 10
            for table in (v.to_arrow(), pa.table(v), pl.DataFrame(v).to_arrow()):
                assert table.num_rows == 10
                assert len(set(table["a"].to_pylist())) == 1
            assert c.to_arrow()["n"].to_pylist() == [10]
            try:
                assert len({row.a for row in v}) == 1
            except ev.StaleIteratorError:
                pass

    in_threads(writer, reader, reader)


def test_views_come_and_go_beside_readers(db):
    db.execute("CREATE TABLE t (a INT)")
    db.insert("t", [(1,), (2,)])
    done = threading.Event()

    def owner():
        try:
            for _ in range(200):
                db.create_view("v", "SELECT a FROM t").drop()
        finally:
            done.set()

    def reader():
        while not done.is_set():
            try:
                view = db.view("v")
                assert view.count() == view.to_arrow().num_rows == 2
                view.metrics()
            except (ev.SchemaError, ev.SessionError, ev.StaleIteratorError):
                pass

    in_threads(owner, reader, reader)


def test_closing_beside_readers():
    for _ in range(20):
        db = ev.connect()
        db.execute("CREATE TABLE t (a INT)")
        v = db.create_view("v", "SELECT a FROM t")
        db.insert("t", [(i,) for i in range(1000)])

        def reader(v=v):
            try:
                while True:
                    assert v.to_arrow().num_rows == 1000
            except ev.SessionError as error:
                assert error.code == "SESSION_CLOSED"

        in_threads(reader, reader, db.close)


def test_apply_lets_other_threads_run(db):
    """A long commit does not hold the interpreter."""
    db.execute("CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT)")
    db.create_view("v", "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b")
    n = 1500
    batch = {"r": pa.table({"a": pa.array(range(n), pa.int32()), "b": pa.array([1] * n, pa.int32())})}
    batch["s"] = pa.table({"b": batch["r"]["b"], "c": batch["r"]["a"]})
    ticks = []
    running = threading.Event()

    def ticker():
        running.wait()
        while running.is_set():
            ticks.append(1)

    def committer():
        running.set()
        try:
            db.apply(batch)
        finally:
            before = len(ticks)
            running.clear()
            assert before > 1000

    in_threads(ticker, committer)
