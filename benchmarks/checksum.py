"""An order-independent checksum of a bag of integer rows: the sum, mod 2**64, of a mixing hash of each row times its multiplicity.

Linear in the multiplicities, so the checksums of deltas add up to that of the result. The same function is written in ``floor.cpp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

MASK = 2**64 - 1
_START = 0x243F6A8885A308D3
_FACTOR = 0x9E3779B97F4A7C15


def row_checksum(row: Iterable[int]) -> int:
    """The hash of one row."""
    h = _START
    for value in row:
        h = ((h ^ (value & MASK)) * _FACTOR) & MASK
        h ^= h >> 32
    return h


def columns_checksum(columns: Sequence[np.ndarray], multiplicity: np.ndarray | None = None) -> int:
    """The checksum of rows given by columns; without ``multiplicity`` each counts once."""
    h = np.full(len(columns[0]), _START, np.uint64)
    for column in columns:
        h = (h ^ column.astype(np.int64).view(np.uint64)) * np.uint64(_FACTOR)
        h ^= h >> np.uint64(32)
    if multiplicity is not None:
        h = h * multiplicity.astype(np.int64).view(np.uint64)
    return int(h.sum(dtype=np.uint64))


def table_checksum(table: pa.Table) -> int:
    """The checksum of an Arrow table; a last column ``_multiplicity`` weighs its rows."""
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    multiplicity = columns.pop("_multiplicity", None)
    return columns_checksum(list(columns.values()), multiplicity)
