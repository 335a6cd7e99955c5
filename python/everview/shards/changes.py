"""The changes of a view as they leave: netted over the shards, paired by key, with change types or multiplicities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.engine import group_rows, net_rows
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY

CHANGE_TYPES = pa.array(["delete", "insert", "update_preimage", "update_postimage"])


def net(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Equal rows added up, without those that cancel out. ``_multiplicity`` is the last column."""
    positions, sums = net_rows(rows)
    if len(positions) == rows.num_rows:
        return rows  # no two rows are equal: order and sums are as given
    kept = rows.take(positions)
    return kept.set_column(kept.num_columns - 1, MULTIPLICITY, sums)


def with_change_types(rows: pa.RecordBatch, key: Sequence[int] | None) -> pa.RecordBatch:
    """Net rows with ``_change_type`` instead of ``_multiplicity``, copies repeated.

    With ``key`` (positions of the key's columns), a row that leaves and one that comes with the same key are the preimage and the
    postimage of an update, one after the other.
    """
    multiplicity = rows.column(rows.num_columns - 1).to_numpy()
    comes = (multiplicity > 0).astype(np.int8)
    if key is None:
        if len(comes) < _MOST_SIX_BYTES and (np.abs(multiplicity) == 1).all():
            return rows.set_column(rows.num_columns - 1, CHANGE_TYPE, _inserts_and_deletes(comes))
        order = np.repeat(np.arange(len(comes)), np.abs(multiplicity))
        return _typed(rows, order, comes[order])
    if key:
        columns = [rows.column(i) for i in key]
        batch = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
        group = group_rows(batch).to_numpy()
    else:
        group = np.zeros(rows.num_rows, dtype=np.uint32)
    order = np.lexsort((comes, group))
    sorted_group = group[order]
    same = sorted_group[1:] == sorted_group[:-1]
    paired = np.zeros(len(order), dtype=bool)
    paired[1:] |= same
    paired[:-1] |= same
    return _typed(rows, order, comes[order] + 2 * paired)


def _typed(rows: pa.RecordBatch, order: np.ndarray[Any, Any], kinds: np.ndarray[Any, Any]) -> pa.RecordBatch:
    picked = rows
    if len(order) != rows.num_rows or not np.array_equal(order, np.arange(len(order))):
        picked = rows.take(pa.array(order))
    types = pc.take(CHANGE_TYPES, pa.array(kinds.astype(np.int8)))
    return picked.set_column(picked.num_columns - 1, CHANGE_TYPE, types)


_MOST_SIX_BYTES = (1 << 31) // 6
_SIX_BYTES = np.array([b"delete", b"insert"], dtype="S6")


def _inserts_and_deletes(comes: np.ndarray[Any, np.dtype[np.int8]]) -> pa.Array:
    """``insert`` where a row comes, else ``delete``. Both have six bytes, so the column is written without looking at lengths."""
    offsets = np.arange(0, 6 * len(comes) + 1, 6, dtype=np.int32)
    return pa.StringArray.from_buffers(len(comes), pa.py_buffer(offsets), pa.py_buffer(_SIX_BYTES[comes]))
