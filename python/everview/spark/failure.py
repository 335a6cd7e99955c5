"""Why a streaming query failed, in a few lines.

Spark reports a failure as the text of all exceptions on its way with their stack traces and the whole plan. What a user can act on is innermost:
the error that a Python worker or a sink raised, or the condition that Spark itself names. An everview error is made again with its class, code
and hint, so that it reads as if it had been raised here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from everview import errors
from everview.errors import CheckpointError, EverviewError, JobError
from everview.shards.identity import GO_BACK

if TYPE_CHECKING:
    from everview.spark.job import Job, View

_OURS = re.compile(
    r"everview\.errors\.(\w+Error): \[([A-Z][A-Z0-9_]*)\] (.*?)(?=\n\s*\n|\n\s*at |\n\s*File |\n\t|\Z)", re.DOTALL
)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]*\] [^\n]+")
_PYTHON = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Za-z_]\w*(?:Error|Exception|Warning)): (.+)$", re.MULTILINE)
_OF_CHECKPOINT = re.compile(
    r"\[(?:STATE_|CANNOT_LOAD_STATE|CANNOT_READ_STATE|STREAMING_STATEFUL_OPERATOR|UNABLE_TO_FETCH_HDFS_BATCH|"
    r"INVALID_CHECKPOINT|CHECKPOINT_|STREAMING_CHECKPOINT|STDS_|TRANSFORM_WITH_STATE_SCHEMA|"
    r"MISMATCHED_TOPIC|BATCH_METADATA|MALFORMED_LOG|MISSING_LOG|STATEFUL_PROCESSOR_CANNOT)\w*"
)
_LONGEST = 600

SPARK_ERRORS = (PySparkException, Py4JError)
"""What Spark raises: some errors of the JVM come as they are, without a class of PySpark's."""


def reason(error: BaseException) -> EverviewError:
    """Why a query failed, of what Spark raised for it: the error of everview within, or the innermost one as ``QUERY_FAILED``.

    Spark buries it between the stack traces of several processes and a dump of the plan.
    """
    chain = list(_causes(error))
    ours = next((e for e in chain if isinstance(e, EverviewError)), None)
    if ours is not None:
        return ours
    text = "\n".join(map(str, chain))
    found = found_in(text)
    if found is None and (state := _OF_CHECKPOINT.search(text)) is not None:
        message = f"the checkpoint does not fit the view: {_condition_at(text, state.start())}"
        found = CheckpointError("CHECKPOINT_MISMATCH", message, hint=GO_BACK)
    again = "when the cause is gone, start the query again: it goes on where it stopped"
    return found or JobError("QUERY_FAILED", _innermost(text), hint=again)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came from, the innermost last."""
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen:
        seen.append(following)
        yield following
        following = following.__cause__ or following.__context__


def spark_message(error: BaseException) -> str:
    """The first line of an error of Spark that says something, without plan and stack."""
    text = str(error)
    found = _CONDITION.search(text)
    return _shortened(found[0] if found is not None else text.strip().split("\n")[0])


def found_in(text: str) -> EverviewError | None:
    """The innermost everview error that a text of stack traces tells of."""
    found = list(_OURS.finditer(text))
    if not found:
        return None
    kind = getattr(errors, found[-1][1], None)
    message, _, hint = found[-1][3].rstrip().partition("\nHint: ")
    if not (isinstance(kind, type) and issubclass(kind, EverviewError)):
        return None
    return kind(found[-1][2], message.rstrip(), hint=hint.strip() or None)


def why(job: Job, view: View, error: BaseException, raised: BaseException | None = None) -> EverviewError:
    """The error to show for the failure of a view. ``raised``: what its sink raised, if it was that which failed."""
    cause = raised if isinstance(raised, EverviewError) else reason(error)
    if cause.code == "QUERY_FAILED":
        message = cause.message if raised is None else reason(raised).message
        again = f"when the cause is gone, run the job again: the view goes on where it stopped ({job.checkpoint_of(view.name)})"
        return JobError("JOB_FAILED", f"view `{view.name}`: {message}", hint=again, view=view.name)
    about_checkpoint = isinstance(cause, CheckpointError) or cause.code in ("SINK_NOT_EMPTY", "SINK_SCHEMA")
    hint = _checkpoint_advice(job, view) if about_checkpoint else cause.hint
    message = f"view `{view.name}`: {cause.message}"
    return type(cause)(cause.code, message, hint=hint, sql=cause.sql, span=cause.span, **cause.parameters)


def _checkpoint_advice(job: Job, view: View) -> str:
    start = f"remove {job.checkpoint_of(view.name)}"
    if view.sink.place is not None:
        start += f" and empty {view.sink.target}"
    return f"undo the change to the job to go on; or {start}, to compute the view anew from its sources"


def _innermost(text: str) -> str:
    """The last Python error of a text, or the last condition that Spark names, or its first line."""
    for pattern in (_PYTHON, _CONDITION):
        found = [m[0] for m in pattern.finditer(text) if "StreamingQueryException" not in m[0]]
        if found:
            return _shortened(found[-1])
    return _shortened(text.strip().split("\n")[0])


def _condition_at(text: str, start: int) -> str:
    return _shortened(text[start:].split("\n", maxsplit=1)[0])


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
