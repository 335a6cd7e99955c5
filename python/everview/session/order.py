"""ORDER BY of a view: the order in which reads give its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everview.query.logical_view import SortKey


def ordered(table: pa.Table, order: Sequence[SortKey]) -> pa.Table:
    """The rows in order. NaN is larger than all other numbers, as in Spark; equal rows stay as they are."""
    if not order or table.num_rows < 2:
        return table
    for key in reversed(order):  # Arrow's sort is stable: the last key first
        way = "descending" if key.descending else "ascending"
        column = table.column(key.position)
        if pa.types.is_floating(column.type):
            table = _by(table, pc.if_else(pc.is_nan(column), 0.0, column), way)
            table = _by(table, pc.is_nan(table.column(key.position)), way)
        else:
            table = _by(table, column, way)
        if column.null_count:
            present = pc.is_valid(table.column(key.position))
            table = _by(table, present, "ascending" if key.nulls_first else "descending")
    return table


def _by(table: pa.Table, values: pa.ChunkedArray, way: str) -> pa.Table:
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.int8())
    return table.take(pc.sort_indices(pa.table({"key": values}), sort_keys=[("key", way)]))
