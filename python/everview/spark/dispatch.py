"""The ends of the pipeline in Spark workers: rows to blobs for the first stage, blobs to the rows that leave."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from everview.engine import evaluate
from everview.errors import ChangeError
from everview.interop.batch import MULTIPLICITY
from everview.schema.arrow import arrow_type
from everview.shards.bad_rows import BadRow, DeadLetterFile
from everview.shards.blob import concat, unpack
from everview.shards.normaliser import LIVE, SEQUENCE
from everview.spark.inputs import BAD
from everview.spark.placement import GUARD
from everview.spark.processor import current_batch

if TYPE_CHECKING:
    from everview.schema.table import Table
    from everview.shards.pipeline import Pipeline

_PACKED = pa.schema([pa.field("destination", pa.int32(), False), pa.field("blob", pa.binary(), False)])
_LEAVING_ROWS = 1 << 16
_CONTROL = {MULTIPLICITY: pa.int64(), SEQUENCE: pa.int64(), LIVE: pa.bool_(), BAD: pa.string()}


@dataclass(frozen=True)
class Dispatch:
    """Sends the rows of a source on. ``scans``: per atom its filter and other expressions, to be tried where bad rows are set aside."""

    pipeline: Pipeline
    source: int
    keys: Sequence[int]
    scans: Sequence[tuple[str | None, Sequence[str]]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bad: list[BadRow] = []
        for destination, blob in self.pipeline.dispatch(self.source, self._good(batches, bad)):
            yield _packed(self.keys[destination], blob)
        self._report(bad)
        yield _packed(GUARD, b"")

    @property
    def _table(self) -> Table:
        found = self.pipeline.sources[self.source]
        return found.table if found.keyed is None else self.pipeline.inputs[found.keyed].table

    def _good(self, batches: Iterator[pa.RecordBatch], bad: list[BadRow]) -> Iterator[pa.RecordBatch]:
        types = {c.name: arrow_type(c.type) for c in self._table.columns} | _CONTROL
        for batch in batches:
            rows = batch
            columns = [
                c if c.type == types[name] else c.cast(types[name])
                for name, c in zip(rows.schema.names, rows.columns, strict=True)
            ]
            rows = pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
            if BAD in rows.schema.names:
                reasons = rows.column(rows.schema.names.index(BAD))
                rows = rows.drop_columns([BAD])
                if reasons.null_count < len(reasons):
                    wrong = pc.is_valid(reasons)
                    self._set_aside(rows.filter(wrong), "INVALID_CHANGE", reasons.filter(wrong).to_pylist(), bad)
                    rows = rows.filter(pc.invert(wrong))
            if self.pipeline.dead_letters is not None:
                rows = self._that_evaluate(rows, bad)
            if rows.num_rows:
                yield rows

    def _that_evaluate(self, rows: pa.RecordBatch, bad: list[BadRow]) -> pa.RecordBatch:
        """The rows on which no expression of any atom fails."""
        for condition, expressions in self.scans:
            passing = rows
            if condition is not None:
                rows, keep = self._try(condition, rows, rows, bad)
                passing = rows.filter(pc.fill_null(keep, fill_value=False))
            for expression in expressions:
                before = passing.num_rows
                passing, _ = self._try(expression, passing, passing, bad)
                if passing.num_rows < before:
                    rows = self._without_failing(rows, condition, expression)
        return rows

    def _try(
        self, expression: str, rows: pa.RecordBatch, shown: pa.RecordBatch, bad: list[BadRow]
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """The rows on which an expression does not fail, and its values there."""
        while True:
            try:
                return rows, evaluate(expression, rows)
            except ValueError as error:
                found = re.fullmatch(r"\[(\w+)\] (.*) \(row (\d+)\)", str(error), re.DOTALL)
                if found is None:
                    raise
                at = int(found[3])
                self._set_aside(rows.slice(at, 1), found[1], [found[2]], bad)
                rows = concat([rows.slice(0, at), rows.slice(at + 1)])

    def _without_failing(self, rows: pa.RecordBatch, condition: str | None, expression: str) -> pa.RecordBatch:
        ignored: list[BadRow] = []
        if condition is None:
            return self._try(expression, rows, rows, ignored)[0]
        keep = pc.fill_null(evaluate(condition, rows), fill_value=False)
        passing = self._try(expression, rows.filter(keep), rows, ignored)[0]
        return concat([passing, rows.filter(pc.invert(keep))])

    def _set_aside(self, rows: pa.RecordBatch, code: str, reasons: Sequence[str], bad: list[BadRow]) -> None:
        names = [c.name for c in self._table.columns if not c.name.startswith("_")]
        values = rows.select(names).to_pylist()
        name = self._table.name
        if self.pipeline.dead_letters is None:
            hint = "correct the input, or let such rows be set aside with on_bad_rows='quarantine'"
            row = ", ".join(f"{k}={v!r}" for k, v in values[0].items())
            raise ChangeError(code, f"table `{name}`: {reasons[0]}, in the row ({row})", hint=hint, table=name)
        bad += [BadRow(name, code, reason, row) for reason, row in zip(reasons, values, strict=True)]

    def _report(self, bad: list[BadRow]) -> None:
        if self.pipeline.dead_letters is None:
            return
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        DeadLetterFile(self.pipeline.dead_letters, f"input-{self._table.name}-{part:05d}", current_batch).write(bad)


def _packed(destination: int, blob: bytes) -> pa.RecordBatch:
    arrays = [pa.array([destination], pa.int32()), pa.array([blob], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=_PACKED)


@dataclass(frozen=True)
class Exit:
    """The rows that leave. Where changes of one key must stand together, all that a partition gets is taken at once."""

    pipeline: Pipeline
    change_types: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        version = current_batch()
        blobs = (b for batch in batches for b in batch.column(batch.schema.names.index("blob")).to_pylist() if b)
        together = self.pipeline.key is not None or not self.pipeline.disjoint
        groups = [[s for blob in blobs for s in unpack(blob)]] if together else (unpack(blob) for blob in blobs)
        for sections in groups:
            rows = self.pipeline.finish(sections, change_types=self.change_types)
            if rows is None:
                continue
            for at in range(0, rows.num_rows, _LEAVING_ROWS):
                part = rows.slice(at, _LEAVING_ROWS)
                yield part.append_column("_commit_version", pa.repeat(pa.scalar(version, pa.int64()), part.num_rows))
