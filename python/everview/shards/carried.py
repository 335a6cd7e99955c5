"""The input row that travels with what a view reads of it, so that a row that is set aside can be shown whole.

What: where bad rows are set aside, batches on their way to an engine have one more column, the last: the input row as JSON.
Invariants: C1, it is for reports only: hashes, netting, kernels, logs and what engines emit are without it, so that state is the same
whether rows carry it or not; C2, it is NULL where no engine on the way can refuse the row.
Cost: its bytes on the way; looking up the input rows of netted ones groups the batch, and only where there are bad rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.engine import group_rows
from everview.shards.blob import concat

ROW = "_everview_row"
"""The column's name; it is found by being the last one."""


def apart(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
    """Rows without what they carry, and that, None if they carry nothing."""
    last = rows.num_columns - 1
    if rows.schema.field(last).name != ROW:
        return rows, None
    return rows.remove_column(last), rows.column(last)


def together(rows: pa.RecordBatch, carried: pa.Array | None) -> pa.RecordBatch:
    """The inverse of ``apart``."""
    return rows if carried is None else rows.append_column(ROW, carried)


def only_where(mask: pa.Array, carried: pa.Array) -> pa.Array:
    """What is carried, NULL where the mask is not true."""
    return pc.if_else(mask, carried, pa.scalar(None, carried.type))


def shown(rows: pa.RecordBatch, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Rows as they are reported: the input rows that they carry, else the columns of these names."""
    plain, carried = apart(rows)
    texts = [None] * rows.num_rows if carried is None else carried.to_pylist()
    return [_columns(plain, at, names) if text is None else json.loads(text) for at, text in enumerate(texts)]


def _columns(rows: pa.RecordBatch, at: int, names: Sequence[str]) -> dict[str, Any]:
    return {name: rows.column(name)[at].as_py() for name in names}


def shown_netted(
    netted: pa.RecordBatch, refused: np.ndarray[Any, Any], given: pa.RecordBatch, names: Sequence[str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Netted rows that are all inserted or all deleted, as they are reported, with their positions; ``given``: what was netted.

    Input rows that differ only in what the view does not read may be netted into one: then as many of them are shown as are refused, the
    last ones by their texts, whatever order they came in.
    """
    plain, carried = apart(given)
    texts = [[] for _ in range(netted.num_rows)] if carried is None else _texts(netted, plain, carried)
    for at, here in enumerate(texts):
        if not here:
            yield at, _columns(netted, at, names)
        for text in here[-int(refused[at]) :]:
            yield at, json.loads(text)


def _texts(netted: pa.RecordBatch, given: pa.RecordBatch, carried: pa.Array) -> list[list[str]]:
    """For each netted row the different texts that rows equal to it, and of the same sign, carry. Multiplicities are the last column."""
    last, count = netted.num_columns - 1, netted.num_rows
    found: list[dict[str, None]] = [{} for _ in range(count)]
    if count:
        sign, signs = (np.sign(rows.column(last).to_numpy()) for rows in (netted, given))
        alike = pc.and_(pa.array(signs == sign[0]), pc.is_valid(carried))
        rows = concat([batch.remove_column(last) for batch in (netted, given.filter(alike))])
        group = group_rows(rows).to_numpy()
        wanted = np.isin(group[count:], group[:count])
        position = {number: at for at, number in enumerate(group[:count].tolist())}
        texts = carried.filter(alike).filter(pa.array(wanted)).to_pylist()
        for number, text in zip(group[count:][wanted].tolist(), texts, strict=True):
            found[position[number]].setdefault(text)
    return [sorted(texts_here) for texts_here in found]
