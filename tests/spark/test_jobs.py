"""Jobs on Spark: run, run again, check; what fails, and how it is told."""

import json
import os
import shutil
import sys
from collections import Counter
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers import everview; read when the session starts

EXAMPLE = Path(__file__).parents[2] / "examples" / "files"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture
def session(spark):
    """A session of its own on the shared JVM, with what jobs need."""
    found = spark.newSession()
    found.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    found.conf.set("spark.sql.shuffle.partitions", "2")
    found.conf.set("spark.sql.session.timeZone", "UTC")
    return found


@pytest.fixture
def job_of(tmp_path):
    def write(text):
        from everview.spark.job import load_job

        (tmp_path / "job.toml").write_text(text)
        return load_job(tmp_path / "job.toml")

    return write


def run(job, session):
    from everview.spark.run_job import run_job

    progress, lines = [], []
    done = run_job(job, spark=session, on_progress=progress.append, on_rows=lines.append)
    assert session.streams.active == []
    return {d.view: d for d in done}, progress, lines


def check(job, session):
    from everview.spark.check_job import check_job

    return {found.view: found for found in check_job(job, spark=session)}


def write_json(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def revenue(directory):
    rows = pq.read_table(directory / "state" / "revenue").to_pylist()
    return {row["country"]: (row["orders"], row["total"]) for row in rows}


def test_the_example_runs_goes_on_and_is_checked(session, tmp_path, monkeypatch):
    """The whole life of a job, through the command line where that is not slower."""
    from everview.cli.main import app
    from everview.spark import check_job, run_job

    def command(*words):
        session.stop = lambda: None  # the JVM is that of all tests
        monkeypatch.setattr(run_job, "start_session", lambda job, log: session)
        monkeypatch.setattr(check_job, "start_session", lambda job, log: session)
        return CliRunner().invoke(app, [*words, str(tmp_path / "files" / "job.toml")])

    directory = tmp_path / "files"
    shutil.copytree(EXAMPLE, directory, ignore=shutil.ignore_patterns("state"))

    never_run = command("check")
    assert never_run.exit_code == 2
    assert "[NO_RESULT]" in never_run.stderr
    assert "everview run job.toml" in never_run.stderr

    first = command("run", "--json")
    assert first.exit_code == 0, first.output
    told = [json.loads(line) for line in first.stdout.splitlines()]
    assert [t["event"] for t in told] == ["started", "batch", "batch", "done"]
    assert told[-1]["rows_in"] == 10
    assert told[-2]["state_rows"] > 0
    assert told[-2]["held"] + told[-2]["rebuilt"] > 0
    assert revenue(directory) == {"UK": (3, Decimal("67.90")), "NL": (1, Decimal("7.50"))}

    checked = command("check")
    assert (checked.exit_code, checked.stdout) == (0, "revenue: 2 rows, equal to recomputation\n"), checked.output

    # what is new is taken in, and nothing a second time
    order = {"id": 15, "customer": 3, "total": "1.00", "status": "open", "updated_at": "2026-01-07T08:00:00Z"}
    stale = {"id": 12, "customer": 3, "total": "9.99", "status": "open", "updated_at": "2026-01-01T08:00:00Z"}
    write_json(directory / "data" / "orders" / "2026-01-07.json", order, stale)
    again = command("run")
    assert again.exit_code == 0, again.output
    assert "revenue: 2 rows in 1 batches, 1 changes to" in again.stdout
    assert revenue(directory) == {
        "UK": (3, Decimal("67.90")),
        "NL": (1, Decimal("7.50")),
        "US": (1, Decimal("1.00")),
    }
    assert command("check", "--json").exit_code == 0
    assert "0 rows in 0 batches" in command("run").stdout

    # somebody else writes to the sink
    file = next(
        f for f in (directory / "state" / "revenue").glob("bucket-*") if "NL" in str(pq.read_table(f)["country"])
    )
    rows = pq.read_table(file)
    changed = [row | {"orders": 7} if row["country"] == "NL" else row for row in rows.to_pylist()]
    pq.write_table(pa.Table.from_pylist(changed + changed[:1], schema=rows.schema), file)
    tampered = command("check")
    assert tampered.exit_code == 1
    assert "revenue: 4 rows, 1 missing and 2 too many" in tampered.stdout
    assert tampered.stdout.count("too many") == 3
    told = json.loads(command("check", "--json").stdout)
    assert (told["equal"], told["missing"]["count"], told["extra"]["count"]) == (False, 1, 2)

    # another view for the same checkpoint
    file = directory / "job.toml"
    file.write_text(file.read_text().replace("SUM(o.total) AS total", "SUM(o.total + 1) AS total"))
    other = command("run")
    assert other.exit_code == 1
    assert "[CHECKPOINT_MISMATCH] view `revenue`" in other.stderr
    assert (
        f"remove {directory / 'state' / 'checkpoints' / 'revenue'} and empty {directory / 'state' / 'revenue'}"
        in other.stderr
    )


TWO_VIEWS = """
checkpoint = "checkpoints"
{top}
[tables.t]
format = "json"
path = "t"
schema = "id BIGINT, k INT, v DOUBLE"
[views.good]
sql = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
sink = {{ kind = "parquet", path = "out/good", key = "k" }}
[views.ratio]
sql = "SELECT id, k FROM t WHERE 10 / k > 1"
sink = {{ kind = "parquet", path = "out/ratio" }}
"""


def test_a_bad_row_fails_with_a_short_message_and_stops_all(session, job_of, tmp_path):
    from everview.errors import ChangeError

    write_json(tmp_path / "t" / "a.json", {"id": 1, "k": 1, "v": 1.0}, {"id": 2, "k": 0, "v": 1.0})
    with pytest.raises(ChangeError) as caught:
        run(job_of(TWO_VIEWS.format(top="")), session)
    assert caught.value.code == "DIVIDE_BY_ZERO"
    assert "view `ratio`" in str(caught.value)
    assert len(str(caught.value)) < 500
    assert "NULLIF" in caught.value.hint
    assert session.streams.active == []


def test_bad_rows_are_set_aside(session, job_of, tmp_path):
    write_json(tmp_path / "t" / "a.json", {"id": 1, "k": 4, "v": 1.0}, {"id": 2, "k": 0, "v": 1.5}, {"id": 3, "k": 4})
    job = job_of(TWO_VIEWS.format(top='on_bad_rows = "quarantine"\ndead_letters = "letters"'))
    done, *_ = run(job, session)
    assert (done["good"].set_aside, done["ratio"].set_aside) == (0, 1)
    (letter,) = (tmp_path / "letters" / "ratio").rglob("*.jsonl")
    assert json.loads(letter.read_text())["row"] == {"id": 2, "k": 0, "v": 1.5}
    assert pq.read_table(tmp_path / "out" / "ratio").num_rows == 2
    found = check(job, session)
    assert found["ratio"].equal, found
    assert found["good"].equal, found
    assert found["ratio"].rows == 2


def test_interrupted_jobs_go_on(session, job_of, tmp_path):
    from everview.spark.run_job import run_job

    def interrupt(progress):
        raise KeyboardInterrupt

    text = TWO_VIEWS.format(top='trigger = "1 second"')
    write_json(tmp_path / "t" / "a.json", {"id": 1, "k": 1, "v": 1.0}, {"id": 2, "k": 2, "v": 1.0})
    with pytest.raises(KeyboardInterrupt):
        run_job(job_of(text), spark=session, on_progress=interrupt)
    assert session.streams.active == []
    write_json(tmp_path / "t" / "b.json", {"id": 3, "k": 1, "v": 1.0})
    job = job_of(text.replace("1 second", "available-now"))
    run(job, session)
    assert sorted(pq.read_table(tmp_path / "out" / "good").to_pylist(), key=str) == [{"k": 1, "n": 2}, {"k": 2, "n": 1}]
    assert all(found.equal for found in check(job, session).values())


ALL_KINDS = """
checkpoint = "checkpoints"
[tables.measured]
format = "json"
path = "measured"
schema = "place STRING, value DOUBLE, note STRING, _change_type STRING"
[tables.places]
format = "text"
path = "places"
changes = "debezium"
row_schema = "id STRING, region STRING, opened TIMESTAMP"
primary_key = "id"
[views.by_region]
sql = "SELECT p.region, COUNT(*) AS n, SUM(m.value) AS total FROM measured m JOIN places p ON m.place = p.id GROUP BY p.region"
sink = { kind = "console" }
[views.pairs]
sql = "SELECT m.place, m.value, p.opened FROM measured m JOIN places p ON m.place = p.id"
sink = { kind = "delta", path = "out/pairs" }
"""


def event(op, lsn, before=None, after=None):
    return {"before": before, "after": after, "op": op, "source": {"lsn": lsn}}


def test_changes_and_events_are_checked(session, job_of, tmp_path):
    pytest.importorskip("deltalake")

    def change(kind, place, value, note=None):
        return {"place": place, "value": value, "note": note, "_change_type": kind}

    write_json(
        tmp_path / "measured" / "a.json",
        *(change("insert", "a", n / 10) for n in range(10)),
        change("insert", "b", 0.1),
        change("insert", "b", 0.1),
        change("insert", "b", 0.1, "another"),
    )
    write_json(
        tmp_path / "measured" / "b.json",
        change("delete", "b", 0.1),
        change("insert", "a", 1e9),
        change("insert", "c", None),
    )
    millis = 1_767_225_600_000
    place = {"id": "a", "region": "north", "opened": millis}
    write_json(
        tmp_path / "places" / "a.json",
        event("c", 1, after=place | {"region": "south"}),
        event("u", 5, after=place),
        event("u", 4, after=place | {"region": "late"}),
        event("c", 2, after={"id": "b", "region": "north", "opened": millis}),
        event("c", 3, after={"id": "c", "region": "gone", "opened": None}),
        event("d", 6, before={"id": "c", "region": None, "opened": None}),
    )
    job = job_of(ALL_KINDS)
    _, _, lines = run(job, session)
    assert lines[0] == "view by_region, batch 0: 1 changes"
    assert "region=north, n=13" in lines[1]
    found = check(job, session)
    assert all(view.equal for view in found.values()), found
    assert {name: view.rows for name, view in found.items()} == {"by_region": 1, "pairs": 13}

    from deltalake import DeltaTable

    content = pa.table(DeltaTable(tmp_path / "out" / "pairs").to_pyarrow_table())
    assert content["opened"][0].as_py() == datetime(2026, 1, 1, tzinfo=timezone.utc)
    DeltaTable(tmp_path / "out" / "pairs").delete("value = 1000000000.0")
    found = check(job, session)
    assert found["by_region"].equal
    assert (found["pairs"].missing.count, found["pairs"].extra.count) == (1, 0)
    assert found["pairs"].missing.rows[0]["value"] == 1e9


def test_sources_that_are_not_there(session, job_of):
    from everview.errors import JobError

    with pytest.raises(
        JobError, match=r"\[JOB_SOURCE\] `tables.t` cannot be read as a stream: \[PATH_NOT_FOUND\]"
    ) as caught:
        run(job_of(TWO_VIEWS.format(top="")), session)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ('format = "json"', 'format = "txt"', "JOB_SOURCE", ["`tables.t` cannot be read as a stream", "txt"]),
        (
            'format = "json"',
            'format = "json"\noptions = { maxFilesPerTrigger = "x" }',
            "JOB_FAILED",
            ["maxFilesPerTrigger"],
        ),
        (
            'path = "t"',
            'path = "t"\nchanges = "upserts"\nprimary_key = "id"\ndelete_when = "kk = 0"',
            "JOB_INVALID_VALUE",
            ["job.toml: `tables.t.delete_when` is 'kk = 0', which is no condition", "UNRESOLVED_COLUMN", "`kk`"],
        ),
        (
            'path = "t"',
            'path = "t"\nchanges = "upserts"\nprimary_key = "id"\ndelete_when = "k = "',
            "JOB_INVALID_VALUE",
            ["job.toml: `tables.t.delete_when`", "PARSE_SYNTAX_ERROR"],
        ),
        (
            'path = "t"',
            'path = "t"\nchanges = "upserts"\nprimary_key = "id"\ndelete_when = "k"',
            "JOB_INVALID_VALUE",
            ["job.toml: `tables.t.delete_when`", "it is of type int"],
        ),
        (
            'path = "t"',
            'path = "t"\nchanges = "upserts"\nprimary_key = "id"\nsequence = "v"',
            "JOB_INVALID_VALUE",
            ["job.toml: `tables.t.sequence` names `v`, which is double"],
        ),
    ],
)
def test_mistakes_that_only_spark_finds_name_file_table_and_option(session, job_of, tmp_path, old, new, code, told):
    """Whatever class the error has in Spark."""
    from everview.errors import EverviewError

    write_json(tmp_path / "t" / "a.json", {"id": 1, "k": 1, "v": 1.0})
    with pytest.raises(EverviewError) as caught:
        run(job_of(TWO_VIEWS.format(top="").replace(old, new)), session)
    assert caught.value.code == code
    assert len(str(caught.value)) < 900
    for part in told:
        assert part in str(caught.value)


UPSERTS = """
checkpoint = "checkpoints"
[tables.t]
format = "json"
path = "t"
schema = "id BIGINT, at INT, a STRING, b DOUBLE, unread STRING, other INT"
options = { maxFilesPerTrigger = 1 }
changes = "upserts"
primary_key = "id"
sequence = "at"
delete_when = "other = 0"
[tables.unused]
format = "nothing of the kind"
[views.both]
sql = "SELECT id, a, b FROM t"
sink = { kind = "parquet", path = "out/both", key = "id" }
[views.one]
sql = "SELECT b, COUNT(*) AS n FROM t GROUP BY b"
sink = { kind = "parquet", path = "out/one", key = "b" }
"""


def test_ties_are_checked_as_they_are_broken(session, job_of, tmp_path):
    """Rows of one key and sequence, in several files: by what the view reads, whatever else they have; a row before a deletion."""
    rows = [
        {"id": 1, "at": 5, "a": "x", "b": 9.0, "unread": "a"},
        {"id": 1, "at": 5, "a": "y", "b": 1.0, "unread": "b"},
        {"id": 2, "at": 5, "a": None, "b": 1.0},
        {"id": 2, "at": 5, "a": "", "b": None},
        {"id": 2, "at": 5, "a": "zzz", "b": 7.0, "other": 0},
        {"id": 3, "at": 1, "a": "\u00e9", "b": -0.0},
        {"id": 3, "at": 1, "a": "z", "b": 0.0},
        {"id": 4, "at": 1, "a": "q", "b": 2.0},
        {"id": 4, "at": 2, "other": 0},
    ]
    write_json(tmp_path / "t" / "a.json", *rows[::2])
    write_json(tmp_path / "t" / "b.json", *rows[1::2])
    job = job_of(UPSERTS)
    run(job, session)
    content = {r["id"]: (r["a"], r["b"]) for r in pq.read_table(tmp_path / "out" / "both").to_pylist()}
    assert content == {1: ("y", 1.0), 2: ("", None), 3: ("\u00e9", 0.0)}
    assert {r["b"]: r["n"] for r in pq.read_table(tmp_path / "out" / "one").to_pylist()} == {9.0: 1, 1.0: 1, 0.0: 1}
    assert all(found.equal for found in check(job, session).values())


def test_upserts_without_a_sequence_cannot_be_checked(session, job_of):
    from everview.errors import PipelineError

    text = TWO_VIEWS.format(top="").replace('path = "t"', 'path = "t"\nchanges = "upserts"\nprimary_key = "id"')
    with pytest.raises(PipelineError, match=r"\[CHECK_UNSUPPORTED\] `tables.t`"):
        check(job_of(text), session)


NAN = float("nan")


@pytest.mark.parametrize(
    ("expected", "found", "missing", "extra"),
    [
        ([("a", 1.0), ("a", 1.0)], [("a", 1.0)], [("a", 1.0)], []),
        ([("a", 1.0), ("b", 2.0)], [("b", 2.0 + 1e-12), ("a", 1.0 - 1e-12)], [], []),
        ([("a", 1.0)], [("a", 1.0 + 1e-6)], [("a", 1.0)], [("a", 1.0 + 1e-6)]),
        ([("a", None), (None, NAN), ("z", 0.0)], [("z", -0.0), (None, NAN), ("a", None)], [], []),
        ([("a", 1.0), ("a", 2.0), ("a", 3.0)], [("a", 1.0 + 1e-12), ("a", 3.0)], None, []),
        ([("a", 1e300)], [("b", 1e300)], [("a", 1e300)], [("b", 1e300)]),
    ],
)
def test_bags_are_compared_with_tolerance(session, expected, found, missing, extra):
    from everview.spark.compare import compare

    schema = "name STRING, `a value` DOUBLE"
    sides = [session.createDataFrame(rows, schema) for rows in (expected, found)]
    count, left, right = compare(*sides, shown=10)
    assert count == len(found)
    for side, rows in ((left, missing), (right, extra)):
        if rows is None:
            assert side.count == 1
        else:
            assert Counter(tuple(row.values()) for row in side.rows) == Counter(rows)
            assert side.count == len(rows)
