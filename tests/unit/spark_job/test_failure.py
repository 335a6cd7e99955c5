"""Texts of Spark's failures to short errors."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from everview.errors import ChangeError, CheckpointError, JobError, SinkError
from everview.spark import reason
from everview.spark.failure import spark_message, why
from everview.spark.job import Job, View
from everview.spark.sinks.parquet import ParquetSink

VIEW = View("revenue", "SELECT 1", ParquetSink(path="/out"))
JOB = Job(Path("/j/job.toml"), "j", None, 2, "available-now", "/cp", "fail", None, {}, {}, {"revenue": VIEW})

WORKER = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
    process()
everview.errors.ChangeError: [DUPLICATE_KEY] an outer one

During handling of the above exception, another exception occurred:

everview.errors.ChangeError: [INVALID_CHANGE] table `orders`: `_change_type` is 'x', in the row (id=1)
Hint: correct the input

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:600)
=== Streaming Query ===
Logical Plan:
[NOT_THE_CAUSE] of it
"""


def test_the_error_of_a_worker_is_found():
    error = why(JOB, VIEW, RuntimeError(WORKER))
    assert type(error) is ChangeError
    assert error.code == "INVALID_CHANGE"
    assert error.message == "view `revenue`: table `orders`: `_change_type` is 'x', in the row (id=1)"
    assert error.hint == "correct the input"


def test_what_a_sink_raised_counts_first():
    raised = SinkError("SINK_VALUE", "no", hint="yes", row={"a": 1})
    error = why(JOB, VIEW, RuntimeError(WORKER), raised)
    assert (type(error), error.code, error.hint, error.parameters) == (
        SinkError,
        "SINK_VALUE",
        "yes",
        {"row": {"a": 1}},
    )


@pytest.mark.parametrize(
    "text",
    [
        "everview.errors.CheckpointError: [CHECKPOINT_MISMATCH] the checkpoint belongs to another view\nHint: other",
        "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match.\nPlan",
    ],
)
def test_checkpoints_come_with_advice(text):
    error = why(JOB, VIEW, RuntimeError(text))
    assert (type(error), error.code) == (CheckpointError, "CHECKPOINT_MISMATCH")
    assert "remove /cp/revenue and empty /out" in error.hint
    assert "Plan" not in str(error)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Traceback\npsycopg.OperationalError: connection refused\n\tat org.x", "connection refused"),
        ("long\n[FAILED_READ_FILE.NO_HINT] Encountered error while reading file a.json.\n\tat x", "FAILED_READ_FILE"),
        ("just this\nand a plan", "just this"),
    ],
)
def test_other_causes_are_one_line(text, told):
    error = why(JOB, VIEW, RuntimeError(text))
    assert (type(error), error.code) == (JobError, "JOB_FAILED")
    assert told in error.message
    assert "\n" not in error.message


def test_messages_of_spark_are_cut():
    assert len(spark_message(RuntimeError("x" * 10_000))) < 1000


def test_the_reason_of_any_failure():
    error = reason(RuntimeError(WORKER))
    assert (type(error), error.code, error.hint) == (ChangeError, "INVALID_CHANGE", "correct the input")
    assert str(error).startswith("[INVALID_CHANGE] table `orders`: `_change_type` is 'x'")
    ours = SinkError("SINK_VALUE", "no")
    assert reason(ours) is ours
    try:
        try:
            raise ours
        except SinkError as inner:
            raise RuntimeError("outer") from inner
    except RuntimeError as outer:
        assert reason(outer) is ours
    error = reason(RuntimeError("[STATE_STORE_X] does not fit\nPlan"))
    assert (error.code, "new checkpoint directory" in error.hint) == ("CHECKPOINT_MISMATCH", True)
    error = reason(RuntimeError("Traceback\npsycopg.OperationalError: connection refused\n\tat org.x"))
    assert (error.code, error.message) == ("QUERY_FAILED", "psycopg.OperationalError: connection refused")
