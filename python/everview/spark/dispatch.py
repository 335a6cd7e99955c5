"""The ends of the pipeline in Spark workers: rows to blobs for the first stage, blobs to the rows that leave."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from everview.engine import ExpressionError, compute
from everview.interop.batch import MULTIPLICITY
from everview.schema.arrow import arrow_type
from everview.shards.bad_rows import BadRow, DeadLetterFile, input_place, refused_row
from everview.shards.blob import unpack
from everview.shards.carried import ROW, apart, shown
from everview.shards.normaliser import LIVE, SEQUENCE, WITHIN
from everview.spark.inputs.table_input import BAD, FIELDS, UNREAD
from everview.spark.placement import GUARD
from everview.spark.processor import current_batch
from everview.spark.told import Told

if TYPE_CHECKING:
    from everview.schema.table import Table
    from everview.shards.pipeline import Pipeline

_PACKED = pa.schema(
    [
        pa.field("destination", pa.int32(), False),
        pa.field("hop", pa.int32(), False),
        pa.field("blob", pa.binary(), False),
    ]
)
_LEAVING_ROWS = 1 << 16
VERSION = "_commit_version"
TIMESTAMP = "_commit_timestamp"
_CONTROL = {
    **dict.fromkeys((MULTIPLICITY, SEQUENCE, WITHIN), pa.int64()),
    LIVE: pa.bool_(),
    **dict.fromkeys((BAD, FIELDS, ROW), pa.string()),
}


@dataclass(frozen=True)
class Dispatch:
    """Sends the rows of a source on. ``names``: of the columns, which come under others. ``scans``: per atom its filter and other expressions, to be tried where bad rows are set aside.

    The last blob is for the guard: what there is to tell of the task.
    """

    pipeline: Pipeline
    source: int
    keys: Sequence[int]
    names: Sequence[str]
    scans: Sequence[tuple[str | None, Sequence[str]]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bad: list[BadRow] = []
        events = _Events()
        for (hop, destination), blob in self.pipeline.dispatch(self.source, self._good(batches, bad, events)):
            yield _packed(self.keys[destination], hop, blob)
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        if self.pipeline.dead_letters is not None:
            place = input_place(self._table.name, part)
            DeadLetterFile(self.pipeline.dead_letters, place, current_batch).write(bad)
        told = Told(self._table.name, part, len(bad), events.absent, tuple(sorted(events.names)))
        yield _packed(GUARD, 0, told.to_blob())

    @property
    def _table(self) -> Table:
        found = self.pipeline.sources[self.source]
        return found.table if found.keyed is None else self.pipeline.inputs[found.keyed].table

    def _good(self, batches: Iterator[pa.RecordBatch], bad: list[BadRow], events: _Events) -> Iterator[pa.RecordBatch]:
        types = {c.name: arrow_type(c.type) for c in self._table.columns} | _CONTROL
        for batch in batches:
            columns = [
                c if c.type == types[name] else c.cast(types[name])
                for name, c in zip(self.names, batch.columns, strict=True)
            ]
            rows = pa.RecordBatch.from_arrays(columns, names=self.names)
            if BAD in rows.schema.names:
                reasons = rows.column(rows.schema.names.index(BAD))
                rows = rows.drop_columns([BAD])
                if reasons.null_count < len(reasons):
                    wrong = pc.is_valid(reasons)
                    self._set_aside(rows.filter(wrong), "INVALID_CHANGE", reasons.filter(wrong).to_pylist(), bad)
                    rows = rows.filter(pc.invert(wrong))
            if FIELDS in rows.schema.names:
                fields = rows.column(rows.schema.names.index(FIELDS))
                rows = rows.drop_columns([FIELDS])
                events.see(rows.select([c.name for c in self._table.columns]), _that_come(rows), fields)
            if self.pipeline.dead_letters is not None:
                rows = self._that_evaluate(rows, bad)
            if rows.num_rows:
                yield rows

    def _that_evaluate(self, rows: pa.RecordBatch, bad: list[BadRow]) -> pa.RecordBatch:
        """The rows on which no expression of any atom fails."""
        failures: dict[int, tuple[str, str]] = {}
        plain, _ = apart(rows)
        judged = np.arange(plain.num_rows)
        if LIVE in plain.schema.names:  # of a deletion by key only the key counts
            judged = np.flatnonzero(plain.column(plain.schema.names.index(LIVE)).to_numpy(zero_copy_only=False))
        for condition, expressions in self.scans:
            at = judged
            if condition is not None:
                failures |= _failures(condition, plain, at)
                at = np.setdiff1d(at, list(failures))  # in order
                keep = pc.fill_null(compute(condition, plain.take(pa.array(at))), fill_value=False)
                at = at[keep.to_numpy(zero_copy_only=False)]
            for expression in expressions:
                failures |= _failures(expression, plain, at)
        if not failures:
            return rows
        for position, (code, reason) in sorted(failures.items()):
            self._set_aside(rows.slice(position, 1), code, [reason], bad)
        return rows.take(pa.array(np.setdiff1d(np.arange(rows.num_rows), list(failures))))

    def _set_aside(self, rows: pa.RecordBatch, code: str, reasons: Sequence[str], bad: list[BadRow]) -> None:
        names = [c.name for c in self._table.columns if not c.name.startswith(UNREAD)]
        values = shown(rows, names)
        name = self._table.name
        if self.pipeline.dead_letters is None:
            raise refused_row(name, code, reasons[0], values[0])
        bad += [BadRow(name, code, reason, row) for reason, row in zip(reasons, values, strict=True)]


def _that_come(rows: pa.RecordBatch) -> pa.Array:
    """Which rows of a batch are rows from now on, rather than the end of some."""
    if LIVE in rows.schema.names:
        return rows.column(rows.schema.names.index(LIVE))
    return pc.greater(rows.column(rows.schema.names.index(MULTIPLICITY)), 0)


class _Events:
    """Which columns of a table the events of a task have. A column with a value is there; of the others their names tell."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._absent: set[str] | None = None

    @property
    def absent(self) -> tuple[str, ...] | None:
        return None if self._absent is None else tuple(sorted(self._absent - self.names))

    def see(self, rows: pa.RecordBatch, come: pa.Array, fields: pa.Array) -> None:
        """Take in the events that bring rows, with the names of those that lack a value."""
        rows, fields = rows.filter(come), fields.filter(come)
        if not rows.num_rows:
            return
        valueless = {name for name, c in zip(rows.schema.names, rows.columns, strict=True) if c.null_count == len(c)}
        self._absent = valueless if self._absent is None else self._absent & valueless
        for text in pc.unique(fields).to_pylist():
            self.names.update(() if text is None else json.loads(text))


def _failures(expression: str, rows: pa.RecordBatch, at: np.ndarray[Any, Any]) -> dict[int, tuple[str, str]]:
    """Of the rows at some positions those on which an expression fails, with code and reason."""
    try:
        compute(expression, rows.take(pa.array(at)))
    except ExpressionError as failure:
        here = failure.row
        others = _failures(expression, rows, at[:here]) | _failures(expression, rows, at[here + 1 :])
        return {int(at[here]): (failure.code, failure.reason)} | others
    return {}


def _packed(destination: int, hop: int, blob: bytes) -> pa.RecordBatch:
    arrays = [pa.array([destination], pa.int32()), pa.array([hop], pa.int32()), pa.array([blob], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=_PACKED)


@dataclass(frozen=True)
class Exit:
    """The rows that leave, from blobs and the time of the commit. Where changes of one key must stand together, all that a partition gets is taken at once."""

    pipeline: Pipeline
    change_types: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arriving = (found for batch in batches for found in zip(*batch.columns, strict=True))
        first = next(arriving, None)
        if first is None:
            return
        version, timestamp = pa.scalar(current_batch(), pa.int64()), first[1]  # one time for all rows of a batch
        blobs = (b for b in (blob.as_py() for blob, _ in chain([first], arriving)) if b)
        together = self.pipeline.key is not None or not self.pipeline.disjoint
        groups = [[s for blob in blobs for s in unpack(blob)]] if together else (unpack(blob) for blob in blobs)
        for sections in groups:
            rows = self.pipeline.finish(sections, change_types=self.change_types)
            if rows is None:
                continue
            for at in range(0, rows.num_rows, _LEAVING_ROWS):
                part = rows.slice(at, _LEAVING_ROWS)
                stamps = [pa.repeat(stamp, part.num_rows) for stamp in (version, timestamp)]
                names = [*part.schema.names, VERSION, TIMESTAMP]
                yield pa.RecordBatch.from_arrays([*part.columns, *stamps], names=names)
