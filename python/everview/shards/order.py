"""Which of several rows comes last: by some columns, and where these tie by content, never by the order in which rows arrive.

What: rows cross shuffles whose order changes from one attempt to the next, and a batch is cut into other batches when it is read anew. So
that the same input gives the same view, rows that nothing else orders are ordered by their values, column by column: NULL first, texts by
their bytes, FALSE before TRUE, NaN after all numbers, zeros of either sign alike. That is Spark's order, too.
Invariants: O1, the order is total up to equal rows; O2, it depends on the rows alone.
Cost: a sort by the columns given; content is looked at only where these tie at the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.shards.blob import concat

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def last_of(group: np.ndarray[Any, Any], by: Sequence[Numbers], content: pa.RecordBatch) -> Numbers:
    """The position of the last row of each group, ascending. Of equal rows it is the one given last."""
    if not len(group):
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort((*reversed(by), group))
    ends = _ends([group[order]])
    run = _runs([group[order], *(column[order] for column in by)])
    top = np.isin(run, run[ends])  # rows that tie with the last of their group, and that row
    if top.sum() > ends.sum():
        tied = order[top]
        inner = np.lexsort((*reversed(_ranks(content.take(pa.array(tied)))), run[top]))
        found = tied[inner][_ends([run[top][inner]])]
    else:
        found = order[ends]
    return np.sort(found)


def comes_after(
    by: Sequence[Numbers], content: pa.RecordBatch, others_by: Sequence[Numbers], others: pa.RecordBatch
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row whether it comes after the other row at its position; a row does not come after its equal."""
    after, tied = compared(by, others_by)
    at = np.flatnonzero(tied)
    if len(at):
        pairs = concat([rows.take(pa.array(at)) for rows in (content, others)])
        winners = last_of(np.tile(np.arange(len(at)), 2), (), pairs)
        after[at[winners[winners < len(at)]]] = True
    return after


def compared(
    by: Sequence[Numbers], others_by: Sequence[Numbers]
) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], np.ndarray[Any, np.dtype[np.bool_]]]:
    """For each row whether it comes after the other row at its position by these columns, and whether they tie."""
    after = np.zeros(len(by[0]), dtype=bool)
    tied = np.ones(len(by[0]), dtype=bool)
    for mine, theirs in zip(by, others_by, strict=True):
        after |= tied & (mine > theirs)
        tied &= mine == theirs
    return after, tied


def _ends(columns: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each of sorted rows whether the next one differs."""
    ends = np.ones(len(columns[0]), dtype=bool)
    ends[:-1] = False
    for column in columns:
        ends[:-1] |= column[1:] != column[:-1]
    return ends


def _runs(columns: Sequence[np.ndarray[Any, Any]]) -> Numbers:
    """A number for each of sorted rows that rows equal to it share."""
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    numbers[1:] = np.cumsum(_ends(columns)[:-1])
    return numbers


def _ranks(rows: pa.RecordBatch) -> list[Numbers]:
    """Each column as numbers in the order of its values."""
    return [_rank(column) for column in rows.columns] or [np.zeros(rows.num_rows, dtype=np.int64)]


def _rank(column: pa.Array) -> Numbers:
    ranks: Numbers = pc.rank(column, tiebreaker="dense").to_numpy().astype(np.int64)
    if pa.types.is_floating(column.type):
        ranks[pc.is_nan(column).to_numpy(zero_copy_only=False) == True] = len(ranks) + 1  # noqa: E712 - None where NULL
    ranks[pc.is_null(column).to_numpy(zero_copy_only=False)] = 0
    return ranks
