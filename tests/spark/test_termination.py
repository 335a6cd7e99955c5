"""A job in processes of its own, as a shell or a container starts it, that is told to end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

JOB = """
checkpoint = "cp"
master = "local[1]"
shards = 1
trigger = "1 second"
[tables.t]
format = "json"
path = "t"
schema = "a INT"
[views.v]
sql = "SELECT a FROM t"
sink = { kind = "parquet", path = "out" }
"""


def started(directory):
    """The command in a process group of its own, after its first batch."""
    (directory / "t").mkdir(exist_ok=True)
    (directory / "t" / "1.json").write_text('{"a": 1}\n')
    (directory / "job.toml").write_text(JOB)
    command = [sys.executable, "-c", "from everview.cli.main import app; app()", "run", str(directory / "job.toml")]
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=directory
    )
    for line in run.stdout:
        if line.startswith("v batch 0:"):
            return run
    pytest.fail(f"no batch: {run.communicate(timeout=60)}")


def java_of(run):
    """The JVM that a process started."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            name = path.with_name("comm").read_text().strip()
        except OSError:
            continue
        if name == "java" and int(fields[2]) == run.pid:  # the process group
            return int(path.parent.name)
    raise AssertionError("there is no JVM")


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        (lambda run: os.killpg(run.pid, signal.SIGTERM), 143, ""),
        (lambda run: [os.kill(run.pid, signal.SIGTERM), os.kill(java_of(run), signal.SIGKILL)], 143, ""),
        (
            lambda run: os.kill(java_of(run), signal.SIGKILL),
            1,
            "everview: [SPARK_LOST] Spark has ended while the job ran",
        ),
    ],
    ids=["process group", "JVM lost on the way", "JVM lost"],
)
def test_the_end_of_a_run(spark, tmp_path, end, code, told):  # noqa: ARG001 - skipped where there is no Spark
    run = started(tmp_path)
    try:
        end(run)
        _, errors = run.communicate(timeout=120)
        assert run.returncode == code, errors
        assert errors.startswith(told)
        assert errors.count("\n") <= (2 if told else 0), errors
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
