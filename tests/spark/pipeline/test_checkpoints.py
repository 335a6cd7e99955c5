"""Checkpoints: going on, going on with something else, damage, and how much is written."""

import shutil
from collections import Counter

import pyarrow as pa
import pytest
from stream_changes import LONG, TEXT, fill, tables
from stream_runs import Feed, Scenario, bag, collected, start

from everview.errors import CheckpointError
from everview.shards import durable
from everview.shards.blob import pack
from everview.shards.durable import DurableEngine, Holder
from everview.shards.returning import Returning
from everview.spark import full_result, maintain, read_metrics, reason
from everview.testing.memory_store import MemoryStore

PAIRS = "SELECT x.a, y.b FROM edge x JOIN edge y ON x.b = y.a"


@pytest.fixture(scope="module")
def written(spark, streaming, tmp_path_factory):
    """A view after three batches. Tests work on copies of its checkpoint."""
    given = Scenario(spark, streaming, tmp_path_factory.mktemp("checkpoint"), tables("edge"))
    fill(given, [20, 10, 10], seed=3)
    given.run(PAIRS, shards=2)
    fill(given, [10], seed=4)  # the batch that those who go on will find
    return given


@pytest.fixture
def copied(written, tmp_path):
    """A copy of the checkpoint: another place for Spark, which then reads what is in the files."""
    shutil.copytree(written.checkpoint("c"), tmp_path / "c")
    return tmp_path / "c"


def go_on(written, checkpoint, sql=PAIRS, **options):
    return start(written.maintained(sql, **options), checkpoint).wait()


def test_it_goes_on(written, copied, spark, streaming):
    expected = written.recomputed(PAIRS)
    assert collected(full_result(streaming, str(copied))) == expected[2]
    run = go_on(written, copied, shards=2)
    assert list(run.batches) == [3]
    before = Counter(expected[2])
    before.update(run.deltas[3])
    assert {row: n for row, n in before.items() if n} == expected[3]
    assert collected(full_result(streaming, str(copied))) == expected[3]
    nothing = go_on(written, copied, shards=2)
    assert nothing.batches == {}


def with_partitions(streaming, count):
    """A session with another number of partitions."""
    session = streaming.newSession()
    for name in ("providerClass", "rocksdb.changelogCheckpointing.enabled"):
        name = f"spark.sql.streaming.stateStore.{name}"
        session.conf.set(name, streaming.conf.get(name))
    session.conf.set("spark.sql.shuffle.partitions", str(count))
    return session


def test_it_goes_on_with_other_partitions(written, copied, streaming):
    session = with_partitions(streaming, 5)
    run = go_on(written, copied, shards=2, session=session)
    assert list(run.batches) == [3]
    assert collected(full_result(session, str(copied))) == written.recomputed(PAIRS)[3]


@pytest.mark.parametrize(
    ("sql", "options", "said"),
    [
        (f"{PAIRS} WHERE x.a > 1", {"shards": 2}, ["it was written for the SQL", PAIRS, "x.a > 1"]),
        (PAIRS, {"shards": 4}, ["it was written with shards=2 and this is shards=4"]),
    ],
)
def test_another_view_is_refused(written, copied, sql, options, said):
    with pytest.raises(Exception, match="CHECKPOINT_MISMATCH") as caught:
        go_on(written, copied, sql, **options)
    for text in said:
        assert text in str(caught.value)
    assert "start with a new checkpoint directory" in str(caught.value)
    assert collected(full_result(written.streaming, str(copied))) == written.recomputed(PAIRS)[2]


def test_another_number_of_stages_is_refused(written, copied):
    """By Spark, which compares the stateful operators: a table with a key passes one more."""
    with pytest.raises(Exception, match="STREAMING_STATEFUL_OPERATOR|CHECKPOINT_MISMATCH"):
        go_on(written, copied, shards=2, primary_keys={"edge": ["a", "b"]})


def test_other_types_of_columns_are_refused(written, copied):
    stream = written.feeds["edge"].stream(written.streaming)
    frames = {"edge": stream.selectExpr("CAST(a AS INT) AS a", "b", "_change_type")}
    with pytest.raises(Exception, match="CHECKPOINT_MISMATCH") as caught:
        start(maintain(written.streaming, PAIRS, frames, shards=2), copied).wait()
    assert "column `a` of table `edge` was bigint and is int" in str(caught.value)


def test_other_columns_that_are_not_read_are_refused(written, tmp_path):
    """They tell rows apart: the rows held would not be found again. What is new and not read can be left out."""
    streaming = written.streaming
    feed = Feed(tmp_path / "t", {"a": LONG, "c": TEXT, "d": TEXT, "_change_type": TEXT})
    feed.write([(1, "x", "y", "insert"), (2, "x", "y", "insert")])
    view = lambda frame: maintain(streaming, "SELECT a FROM t", {"t": frame}, shards=1)
    start(view(feed.stream(streaming).drop("d")), tmp_path / "c").wait()
    feed.write([(1, "x", "y", "delete")])
    with pytest.raises(Exception, match="CHECKPOINT_MISMATCH") as caught:
        start(view(feed.stream(streaming)), tmp_path / "c").wait()
    found = reason(caught.value)
    assert "table `t` has a new column `d`, which counts although the view does not read it" in found.message
    assert (type(found), found.code, "leave `d` out" in found.hint) == (CheckpointError, "CHECKPOINT_MISMATCH", True)
    assert start(view(feed.stream(streaming).drop("d")), tmp_path / "c").wait().deltas == {1: {(1,): -1}}


def test_another_kind_of_input_is_refused(written, tmp_path):
    from everview.spark import upserts

    streaming = written.streaming
    feed = Feed(tmp_path / "t", {"a": LONG, "c": TEXT})
    feed.write([(1, "x"), (2, "x")])
    view = lambda given: maintain(streaming, "SELECT a, c FROM t", {"t": given}, primary_keys={"t": "a"}, shards=1)
    start(view(feed.stream(streaming)), tmp_path / "c").wait()
    feed.write([(1, "y"), (3, "y")])
    with pytest.raises(Exception, match="CHECKPOINT_MISMATCH.*table `t` was read as inserts and is read as upserts"):
        start(view(upserts(feed.stream(streaming))), tmp_path / "c").wait()


def test_no_view_in_a_checkpoint(streaming, tmp_path):
    feed = Feed(tmp_path / "t", {"a": LONG})
    feed.write([(1,), (1,)])
    counted = feed.stream(streaming).groupBy("a").count()
    query = counted.writeStream.outputMode("update").format("noop").trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    with pytest.raises(CheckpointError, match="NO_RESULT"):
        full_result(streaming, str(tmp_path / "c"))


# ---- damage ----------------------------------------------------------------------------------------------------------


def changelogs(checkpoint):
    return sorted(p for p in checkpoint.rglob("state/*/*/*.changelog") if not p.name.startswith("."))


@pytest.mark.parametrize("damage", ["lost", "changed"])
def test_damaged_state_is_not_used(written, copied, damage):
    paths = [p for p in changelogs(copied) if p.name.startswith(("3.", "3_"))]
    assert paths
    for path in paths:
        content = path.read_bytes()
        if damage == "lost":
            path.unlink()
        else:
            at = len(content) // 2
            path.write_bytes(content[:at] + bytes(255 - b for b in content[at : at + 8]) + content[at + 8 :])
    with pytest.raises(Exception):
        go_on(written, copied, shards=2)
    with pytest.raises(Exception):
        collected(full_result(written.streaming, str(copied)))


@pytest.fixture
def engine(streaming):
    """One engine and a store with a snapshot and a log, and the means to run it."""
    from everview.spark.maintain import plan_pipeline

    plan = plan_pipeline("SELECT a FROM t", {"t": streaming.createDataFrame([(1,)], "a INT")}, shards=1)
    pipeline = plan.pipeline

    def make(holder=None):
        return DurableEngine(pipeline.identity, lambda: pipeline.make(0, 0, lambda: 0), holder or Holder(), 0)

    def blob(count):
        rows = pa.record_batch({"a": pa.array(range(count), pa.int32()), "_multiplicity": pa.array([1] * count)})
        return pack([(0, [rows])])

    return make, blob


@pytest.mark.parametrize("where", ["log", "snapshot"])
@pytest.mark.parametrize("at", [0, 5, -1, None])
def test_damaged_bytes_of_ours_come_with_advice(engine, monkeypatch, where, at):
    make, blob = engine
    monkeypatch.setattr(durable, "_SMALLEST_SNAPSHOT", 2000)
    store = MemoryStore()
    list(make().run(store, [blob(2000)]))
    list(make().run(store, [blob(5)]))
    assert store.snapshots == 1 and len(store.log) == 1
    assert make().read(store).size()[0] == 2000  # equal rows are one
    pieces = getattr(store, where)
    start_of_blob = 24 if where == "log" else 0
    piece = bytearray(pieces[0])
    if at is None:
        piece = piece[: start_of_blob + 4]
    else:
        piece[at if at < 0 else start_of_blob + at] ^= 0xFF
    pieces[0] = bytes(piece)
    for attempt in (lambda: make().read(store), lambda: list(make().run(store, [blob(1)]))):
        with pytest.raises(CheckpointError) as caught:
            attempt()
        assert caught.value.code == "CHECKPOINT_DAMAGED" and "restore this one from a backup" in str(caught.value)


def test_a_log_without_its_end_comes_with_advice(engine):
    make, blob = engine
    store = MemoryStore()
    for _ in range(3):
        list(make().run(store, [blob(2)]))
    store.log.pop()
    with pytest.raises(CheckpointError, match="CHECKPOINT_DAMAGED"):
        make().read(store)
    store.log.clear()
    with pytest.raises(CheckpointError, match="CHECKPOINT_DAMAGED"):
        make().read(store)


def test_bytes_written_stay_proportional_with_snapshots(engine, monkeypatch):
    make, blob = engine
    monkeypatch.setattr(durable, "_SMALLEST_SNAPSHOT", 8000)
    store, holder = MemoryStore(), Holder()
    written = []
    for _ in range(200):
        running = Returning(make(holder).run(store, [blob(200)]))
        list(running)
        written.append(running.returned.written)
    assert store.snapshots > 1
    assert sum(written) <= 4 * sum(len(blob(200)) + 24 for _ in range(200)) + 8000


# ---- what is written, and what is told -------------------------------------------------------------------------------


def test_what_a_batch_writes_does_not_grow_with_the_state(spark, streaming, tmp_path):
    """Fifty batches of the same size over state that grows fifty times."""
    given = Scenario(spark, with_partitions(streaming, 1), tmp_path, tables("edge"))
    for at in range(50):
        given.batch({"edge": [((at * 20 + i, at), "insert") for i in range(20)]})
    run = given.run("SELECT x.a, y.b FROM edge x JOIN edge y ON x.a = y.a", shards=1)
    assert run.result == bag((at * 20 + i, at) for at in range(50) for i in range(20))
    told = [read_metrics(p)["shard"] for p in run.progress]
    assert [m["state_rows"] for m in told] == [20 * (n + 1) for n in range(50)]
    assert [m["rows_in"] for m in told] == [20] * 50
    assert [m["held"] for m in told] == [0] + [1] * 49 and not any(m["rebuilt"] for m in told)
    written = [m["bytes_written"] for m in told]
    assert max(written) < 1.2 * min(written)
    sizes = {}
    for path in changelogs(given.checkpoint("c")):
        number = int(path.name.split(".")[0].split("_")[0])
        sizes[number] = sizes.get(number, 0) + path.stat().st_size
    assert len(sizes) >= 10 and max(sizes) == 50
    late = [size for number, size in sizes.items() if number > 1]
    assert max(late) < 1.5 * min(late), sizes


def test_large_state_is_written_as_a_snapshot_and_read_again(streaming, tmp_path):
    """More than four megabytes in one batch: the engine starts again from a snapshot and the log after it."""
    feed = Feed(tmp_path / "t", {"k": LONG, "s": TEXT, "_change_type": TEXT})
    row = lambda i: (i % 7, f"{i * 2654435761 % 2**61:x}" * 4, "insert")
    feed.write([row(i) for i in range(120_000)])
    feed.write([row(i) for i in range(120_000, 120_050)])
    feed.write([(*row(i)[:2], "delete") for i in range(25)])
    feed.write([(*row(i)[:2], "delete") for i in range(25, 50)])
    make = lambda: maintain(
        streaming, "SELECT k, COUNT(*) AS n FROM t WHERE s <> '' GROUP BY k", {"t": feed.stream(streaming)}, shards=1
    )
    run = start(make(), tmp_path / "c").wait()
    expected = bag(Counter(i % 7 for i in range(50, 120_050)).items())
    assert run.result == expected
    told = [read_metrics(p)["shard"] for p in run.progress]
    assert told[0]["bytes_written"] > 1 << 20 and max(m["bytes_written"] for m in told[1:]) < 1 << 15
    assert collected(full_result(streaming, str(tmp_path / "c"))) == expected
    # the last batch once more, with an engine in memory that is ahead of the state: it must come from the state store
    for path in (tmp_path / "c" / "commits").glob("*3*"):
        path.unlink()
    again = start(make(), tmp_path / "c").wait()
    assert again.deltas == {3: run.deltas[3]}
    assert read_metrics(again.progress[-1])["shard"]["rebuilt"] == 1
    assert collected(full_result(streaming, str(tmp_path / "c"))) == expected
