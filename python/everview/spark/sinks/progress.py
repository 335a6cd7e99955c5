"""Which batches a target has: each is applied once, and what cannot be right is refused.

A target records the last batch per writer. Spark numbers the batches of a query from 0, leaves none out and repeats at most the last one after
a failure. So the recorded batch is a replay, an older one means that the checkpoint was replaced, and one after a gap that the target was: on
one that was removed, emptied with its record, or set back, a query would go on with a part of the view. A writer is a query (its id lives in its checkpoint)
or, where several queries write to one target, a name the caller gives. A query that the target does not know may only start on an empty
one: on what another query or checkpoint left there, its first batch would add everything a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from everview.errors import SinkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTSIDE_A_QUERY = "everview"


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes a batch; ``named`` if the caller chose the name."""

    app_id: str
    named: bool


def writer_of(changes: DataFrame, app_id: str | None) -> Writer:
    """The writer of a batch: the name given, else the id of the streaming query, else a constant."""
    if app_id is not None:
        return Writer(app_id, named=True)
    try:
        found = changes.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    except PySparkException:  # Spark Connect has no context
        found = None
    return Writer(found or OUTSIDE_A_QUERY, named=False)


def is_replay(target: str, writer: Writer, *, last: int | None, batch_id: int) -> bool:
    """Whether the target has this batch already, ``last`` being the one it recorded for the writer, None if it knows nothing of it."""
    following = 0 if last is None else last + 1
    if batch_id == following:
        return False
    if batch_id == last:
        return True
    if batch_id > following:
        message = (
            f"{target} lacks the batches {following} to {batch_id - 1} of {writer.app_id!r}, and batch {batch_id} came"
        )
        hint = "it was removed or set back while the query went on: restore it, or empty it and start from a new checkpoint"
        raise SinkError("SINK_BATCH_ORDER", message, hint=hint, last=last, batch_id=batch_id)
    message = f"{target} has batch {last} of {writer.app_id!r}, and batch {batch_id} came"
    hint = "the query lost its checkpoint: empty the target, or restore the checkpoint"
    raise SinkError("SINK_BATCH_ORDER", message, hint=hint, last=last, batch_id=batch_id)


def check_first_batch(target: str, writer: Writer, *, last: int | None, empty: bool) -> None:
    """Refuse to start on rows that came from elsewhere."""
    if last is None and not empty and not writer.named:
        message = f"{target} has rows, and none of them came from this query ({writer.app_id})"
        hint = "empty the target; or give app_id to let several queries write to it"
        raise SinkError("SINK_NOT_EMPTY", message, hint=hint, app_id=writer.app_id)


def missing_row(target: str, row: Mapping[str, Any]) -> SinkError:
    """The error for a row to be removed that is not there (often enough)."""
    hint = "something else changed the target; empty it and start from a new checkpoint"
    return SinkError(
        "SINK_ROW_NOT_FOUND", f"{target} lacks a row that left the view: {shown(row)}", hint=hint, row=dict(row)
    )


def repeated_key(target: str, row: Mapping[str, Any]) -> SinkError:
    """The error for a key that several rows would have."""
    hint = "name more columns in key, or leave it out"
    return SinkError(
        "SINK_DUPLICATE_KEY", f"{target} would have several rows with the key {shown(row)}", hint=hint, row=dict(row)
    )


def other_schema(target: str, why: str) -> SinkError:
    """The error for a target that holds something else than the view."""
    return SinkError(
        "SINK_SCHEMA", f"{target} does not fit the view: {why}", hint="write to another target, or drop this one"
    )


def shown(row: Mapping[str, Any]) -> str:
    """A row for people."""
    return ", ".join(f"{name} = {'NULL' if value is None else repr(value)}" for name, value in row.items())
