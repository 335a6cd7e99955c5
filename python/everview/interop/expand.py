"""Rows with multiplicities as rows repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator


def expand(batch: pa.RecordBatch, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a batch, each as often as its last column says, in batches of at most ``rows`` rows."""
    counts = batch.column(batch.num_columns - 1)
    columns = batch.columns[:-1]
    if pc.min_max(counts).equals(
        pa.scalar({"min": 1, "max": 1}, type=pa.struct([("min", pa.int64()), ("max", pa.int64())]))
    ):
        yield _batch(columns, schema, batch.num_rows)
        return
    pending: list[int] = []
    for row, count in enumerate(counts.to_pylist()):
        left = count
        while left > 0:
            taken = min(left, rows - len(pending))
            pending.extend([row] * taken)
            left -= taken
            if len(pending) == rows:
                yield _take(columns, schema, pending)
                pending = []
    if pending:
        yield _take(columns, schema, pending)


def _take(columns: list[pa.Array], schema: pa.Schema, rows: list[int]) -> pa.RecordBatch:
    indices = pa.array(rows, type=pa.int64())
    return _batch([column.take(indices) for column in columns], schema, len(rows))


def _batch(columns: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, type=pa.struct([])))
