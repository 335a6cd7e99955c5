"""The directory of Parquet files: what readers see, what a batch rewrites, and commits that are cut short."""

import duckdb
import pyarrow.dataset as ds
import pytest
from sink_changes import DOMAINS, simple
from sink_targets import counted

import everview as ev
from everview.errors import SinkError
from everview.spark.sinks import parquet_store

ROWS = [(k, "a") for k in range(200)]


def visible(target):
    return {p.name for p in target.path.iterdir() if not p.name.startswith("_")}


def test_spark_and_duckdb_read_the_directory(spark, parquet):
    parquet.sink()(simple(spark, (1, "a", 2), (None, None, 1)), 0)
    rows = [(1, "a"), (1, "a"), (None, None)]
    read = spark.read.parquet(str(parquet.path))
    assert counted(map(tuple, read.collect())) == counted(rows)
    assert [f.dataType.simpleString() for f in read.schema] == ["int", "string"]
    assert counted(duckdb.sql(f"SELECT * FROM '{parquet.path}/*.parquet'").fetchall()) == counted(rows)
    assert counted(duckdb.sql(f"SELECT * FROM '{parquet.path}/**/*.parquet'").fetchall()) == counted(rows)
    parquet.sink()(simple(spark, (1, "a", -2), (None, None, -1)), 1)
    read = spark.read.parquet(str(parquet.path))
    assert read.columns == ["k", "v"] and read.count() == 0


def test_spark_reads_every_type_back(spark, parquet):
    types = {name: t for name, (t, _) in DOMAINS.items()}
    changes = simple(
        spark, *((*[values[n % len(values)] for _, values in DOMAINS.values()], 1) for n in range(6)), types=types
    )
    parquet.sink()(changes, 0)
    read = spark.read.parquet(str(parquet.path))
    assert read.dtypes == changes.drop("_multiplicity", "_commit_version", "_commit_timestamp").dtypes
    assert read.exceptAll(changes.select(read.columns)).count() == 0 and read.count() == 6


def test_a_batch_rewrites_the_buckets_it_touches(spark, parquet):
    parquet.sink(key="k", buckets=8)(simple(spark, *((*row, 1) for row in ROWS)), 0)
    before = visible(parquet)
    assert len(before) == 9
    parquet.sink(key="k", buckets=8)(simple(spark, (3, "a", -1), (3, "b", 1)), 1)
    assert len(visible(parquet) - before) == 1
    assert len(visible(parquet)) == 9
    parquet.sink(key="k", buckets=8)(simple(spark, (4, "x", 1), (4, "x", -1)), 2)
    assert parquet.content() == counted([r for r in ROWS if r[0] != 3] + [(3, "b")])


class Crash(BaseException):
    """Not an Exception: nothing may catch it to tidy up, as nothing does when a process dies."""


STEPS = ["write_journal", "publish", "remove", "write_state", "finish", "drop_staged"]


@pytest.mark.parametrize(
    ("step", "when"),
    [(step, "before") for step in STEPS]
    + [("publish", "within"), ("remove", "within"), ("write_journal", "after"), ("finish", "after")],
)
def test_a_commit_cut_short_is_finished_or_undone(spark, parquet, monkeypatch, step, when):
    parquet.sink()(simple(spark, (1, "a", 2), (2, "b", 1), (3, "c", 1), (4, "d", 1)), 0)
    last = simple(spark, (1, "a", -1), (2, "b", -1), (5, "e", 1), (6, "f", 3))
    after = counted([(1, "a"), (3, "c"), (4, "d"), (5, "e"), *[(6, "f")] * 3])
    calls = []
    real = getattr(parquet_store.Store, step)

    def crash(store, *arguments):
        calls.append(step)
        if step == "drop_staged" and len(calls) == 1:  # the recovery at the start, not the end of the commit
            return real(store, *arguments)
        if when == "within":
            real(store, arguments[0][:1])  # one file of several
        elif when == "after":
            real(store, *arguments)
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(parquet_store.Store, step, crash)
        with pytest.raises(Crash):
            parquet.sink()(last, 1)
    decided = not (step == "write_journal" and when != "after")
    assert (parquet.path / "_everview" / "journal.json").exists() == (
        decided and step != "drop_staged" and not (step == "finish" and when == "after")
    )
    parquet.sink()(last, 1)  # what Spark does after a restart
    assert parquet.content() == after
    assert sorted(p.name for p in (parquet.path / "_everview").iterdir()) == ["lock", "staged", "state.json"]
    assert list((parquet.path / "_everview" / "staged").iterdir()) == []
    parquet.sink()(simple(spark, (6, "f", -1)), 2)
    assert parquet.content() == after - counted([(6, "f")])


def test_a_commit_cut_short_is_finished_by_the_next_batch_too(spark, parquet, monkeypatch):
    parquet.sink()(simple(spark, (1, "a", 1)), 0)

    def crash(*_):
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(parquet_store.Store, "remove", crash)
        with pytest.raises(Crash):
            parquet.sink(app_id="other")(simple(spark, (1, "a", 1)), 0)
    parquet.sink()(simple(spark, (1, "a", -1)), 1)
    assert parquet.content() == counted([(1, "a")])


def test_the_first_commit_cut_short(spark, parquet, monkeypatch):
    def crash(*_):
        raise Crash

    for step in ("write_journal", "publish", "write_state"):
        with monkeypatch.context() as patched:
            patched.setattr(parquet_store.Store, step, crash)
            with pytest.raises(Crash):
                parquet.sink()(simple(spark, (1, "a", 1)), 0)
    parquet.sink()(simple(spark, (1, "a", 1)), 0)
    assert parquet.content() == counted([(1, "a")])


def test_files_of_others_are_left_alone(spark, parquet):
    parquet.path.mkdir()
    (parquet.path / "mine.parquet").write_bytes(b"")
    for app_id in (None, "named"):
        with pytest.raises(SinkError, match="SINK_NOT_EMPTY.*mine.parquet"):
            parquet.sink(app_id=app_id)(simple(spark, (1, "a", 1)), 0)


@pytest.mark.parametrize("harm", ["removed", "cut"])
def test_a_damaged_file_is_reported(spark, parquet, harm):
    parquet.sink(buckets=1)(simple(spark, (1, "a", 1)), 0)
    (file,) = visible(parquet) - {"schema.parquet"}
    if harm == "cut":
        (parquet.path / file).write_bytes(b"PAR1")
    else:
        (parquet.path / file).unlink()
    with pytest.raises(SinkError, match=f"SINK_DAMAGED.*{file}"):
        parquet.sink(buckets=1)(simple(spark, (2, "b", 1)), 1)


def test_a_damaged_state_is_reported(spark, parquet):
    parquet.sink()(simple(spark, (1, "a", 1)), 0)
    (parquet.path / "_everview" / "state.json").write_text("{")
    with pytest.raises(SinkError, match="SINK_DAMAGED"):
        parquet.sink()(simple(spark, (2, "b", 1)), 1)


def test_the_options_of_a_table_stay(spark, parquet):
    parquet.sink()(simple(spark, (1, "a", 1)), 0)
    for options in ({"buckets": 4}, {"key": "k"}):
        with pytest.raises(SinkError, match="SINK_SCHEMA"):
            parquet.sink(**options)(simple(spark, (1, "a", 1)), 1)


def test_paths(spark, tmp_path):
    from everview.spark.sinks import parquet_sink

    parquet_sink((tmp_path / "a b").as_uri())(simple(spark, (1, "a", 1)), 0)
    assert ds.dataset(tmp_path / "a b").count_rows() == 1
    for wrong in ("s3://bucket/view", "hdfs://host/view"):
        with pytest.raises(ev.SchemaError, match="INVALID_ARGUMENT"):
            parquet_sink(wrong)
    with pytest.raises(ev.SchemaError, match="INVALID_ARGUMENT"):
        parquet_sink(tmp_path, buckets=0)
