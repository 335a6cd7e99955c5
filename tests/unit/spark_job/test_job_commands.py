"""``everview run`` and ``everview check`` without Spark: what keeps a job from starting, and what is shown."""

import importlib.util
import io
import json
import os
import signal
from dataclasses import asdict, replace

import pytest

pytest.importorskip("pyspark")

from rich.console import Console
from typer.testing import CliRunner

from everview.cli.job_display import Lines, LiveTable, difference_table, size
from everview.cli.main import app
from everview.errors import ChangeError, SchemaError
from everview.spark import check_job as checking
from everview.spark import run_job as running
from everview.spark.check_job import ViewCheck
from everview.spark.compare import Difference
from everview.spark.run_job import Progress, ViewRun

JOB = """
checkpoint = "cp"
on_bad_rows = "quarantine"
dead_letters = "letters"
[tables.t]
format = "parquet"
path = "t"
schema = "a INT"
[views.v]
sql = "SELECT a FROM t"
sink = { kind = "parquet", path = "out" }
"""
BATCH = Progress("v", 3, 1500, 750.5, 2.0, 7, 12_345, 3 << 20, 2, 1, 0, 1.25)


@pytest.fixture
def command(tmp_path):
    (tmp_path / "job.toml").write_text(JOB)

    def call(*words, job="job.toml"):
        return CliRunner().invoke(app, [*words, str(tmp_path / job)], env={"COLUMNS": "200"})

    return call


@pytest.mark.parametrize("name", ["run", "check"])
def test_spark_is_missing(command, monkeypatch, name):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: None if n == "pyspark" else find(n, *a))
    result = command(name)
    assert result.exit_code == 2
    assert "[MISSING_SPARK]" in result.stderr
    assert "pip install 'everview[spark]'" in result.stderr


@pytest.mark.parametrize("name", ["run", "check"])
def test_java_is_missing(command, monkeypatch, name):
    monkeypatch.setattr(running.shutil, "which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = command(name)
    assert result.exit_code == 2
    assert "[MISSING_SPARK] Spark needs Java" in result.stderr


def test_a_mistake_in_the_file_needs_no_spark(command, tmp_path):
    (tmp_path / "wrong.toml").write_text(JOB.replace("SELECT a", "SELECT b"))
    result = command("run", job="wrong.toml")
    assert result.exit_code == 2
    assert "[UNKNOWN_COLUMN] wrong.toml: the SQL of `views.v`: " in result.stderr
    assert "Traceback" not in result.stderr


def told(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_run_is_told(command, monkeypatch, tmp_path):
    def run_job(job, *, log, on_start, on_progress, on_rows):
        assert log is not None
        on_start("v")
        on_progress(BATCH)
        on_progress(replace(BATCH, batch=4, stale_rows=3, warnings=("table `t`: look",)))
        on_rows("a [line]")
        return [ViewRun("v", 1, 1500, 7, 2)]

    monkeypatch.setattr(running, "run_job", run_job)
    result = command("run")
    assert result.exit_code == 0
    start, first, warning, stale, second, third, fourth = result.stdout.splitlines()
    assert start == "v: started, its first batch runs"
    assert first.startswith("v batch 3: 1,500 rows in, 7 changes out, 2.0 s, state 12,345 rows (3.0 MiB), skew 1.25")
    assert warning == "warning: v batch 4: table `t`: look"
    assert stale.startswith("v batch 4: 1,500 rows in, 3 stale, 7 changes out")
    assert second == "a [line]"
    assert third == f"v: 1,500 rows in 1 batches, 7 changes to {tmp_path / 'out'}"
    assert fourth.strip() == f"2 rows are set aside in {tmp_path / 'letters' / 'v'}"
    result = command("run", "--json")
    assert told(result) == [
        {"event": "started", "view": "v"},
        {"event": "batch"} | asdict(BATCH) | {"warnings": []},
        {"event": "batch"} | asdict(BATCH) | {"batch": 4, "stale_rows": 3, "warnings": ["table `t`: look"]},
        {"event": "done", "view": "v", "batches": 1, "rows_in": 1500, "rows_out": 7, "set_aside": 2},
    ]
    assert result.stderr == "a [line]\n"


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (
            ChangeError("DIVIDE_BY_ZERO", "view `v`: no", hint="yes"),
            1,
            "everview: [DIVIDE_BY_ZERO] view `v`: no\nHint: yes\n",
        ),
        (SchemaError("UNKNOWN_COLUMN", "no"), 2, "everview: [UNKNOWN_COLUMN] no\n"),
        (KeyboardInterrupt(), 130, "everview: stopped; the next run goes on from here\n"),
    ],
)
def test_the_end_of_a_run_is_its_exit_code(command, monkeypatch, raised, code, message):
    def run_job(*_, **__):
        raise raised

    monkeypatch.setattr(running, "run_job", run_job)
    result = command("run")
    assert (result.exit_code, result.stderr) == (code, message)


@pytest.mark.parametrize("broken", [None, ConnectionRefusedError("gone"), ChangeError("DIVIDE_BY_ZERO", "no")])
def test_a_run_that_is_terminated_ends_so_whatever_else_breaks(command, monkeypatch, broken):
    """A signal to the process group ends Spark, too: what is asked of it on the way out fails."""

    def run_job(*_, **__):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            if broken is not None:
                raise broken

    monkeypatch.setattr(running, "run_job", run_job)
    result = command("run")
    assert (result.exit_code, result.stderr) == (143, "")


EQUAL = ViewCheck("v", 3, Difference(0, []), Difference(0, []))
OTHER = ViewCheck("w", 3, Difference(1, [{"a": 1, "b[x]": None}]), Difference(12, [{"a": 2, "b[x]": "[/y]"}] * 10))


def test_a_check_is_told(command, monkeypatch):
    monkeypatch.setattr(checking, "check_job", lambda job, log: iter([EQUAL]))
    result = command("check")
    assert (result.exit_code, result.stdout) == (0, "v: 3 rows, equal to recomputation\n")
    monkeypatch.setattr(checking, "check_job", lambda job, log: iter([OTHER, EQUAL]))
    result = command("check")
    assert result.exit_code == 1
    assert "w: 3 rows, 1 missing and 12 too many\n" in result.stdout
    assert "and 2 more" in result.stdout
    assert "[/y]" in result.stdout
    assert "b[x]" in result.stdout
    assert result.stdout.endswith("v: 3 rows, equal to recomputation\n")
    result = command("check", "--json")
    assert result.exit_code == 1
    assert [(line["view"], line["equal"]) for line in told(result)] == [("w", False), ("v", True)]


def test_the_live_table():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=150, highlight=False)
    with LiveTable(console, "job") as display:
        display.start("v")
        display.show(BATCH)
        display.show(BATCH)
        display.say("a [line]")
    text = out.getvalue()
    for part in ("3,000", "12,345", "3.0 MiB", "1.25", "2 held, 1 rebuilt", "a [line]", "job: 3,000 rows in"):
        assert part in text


def test_sizes():
    assert [size(n) for n in (0, 1023, 1536, 5 << 30, 9 << 50)] == [
        "0 B",
        "1,023 B",
        "1.5 KiB",
        "5.0 GiB",
        "9,216.0 TiB",
    ]
