"""Which rows go to which engine.

``TableRouter`` sends the changes of one table to the shards of a layout: for each of its copies the rows are hashed on the dimensions that
spread it and replicated along the others. ``KeyRouter`` sends rows to buckets by a hash of some columns. Both give (destination, section).

Cost: one hash per row and dimension, one stable counting sort and one gather per copy, whatever the number of shards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.engine import ExpressionError, compute, hash_rows
from everview.interop.batch import MULTIPLICITY
from everview.plan.distribute import REST, Copy, Layout
from everview.plan.shares import Dimension
from everview.shards.carried import apart, only_where, together

Routed = tuple[tuple[int, ...], int, pa.RecordBatch]
"""The destinations of some rows, the section they are for, and the rows."""


@dataclass(frozen=True, slots=True)
class CopyRoute:
    """How one copy of a table is spread: its section number, and per dimension of the grid share, stride and hashed expressions.

    Rows for which ``condition`` is not true are of no use to the copy; with ``drops`` they stay behind.
    """

    table: str
    section: int
    columns: tuple[int, ...]
    rest: tuple[int, ...]
    has_rest: bool
    condition: Mapping[str, Any] | None
    drops: bool
    spread: tuple[tuple[int, int, tuple[Mapping[str, Any], ...]], ...]
    offsets: tuple[int, ...]
    """What to add to the place given by the hashes to get all shards with a replica."""


class TableRouter:
    """Routes the changes of one table. Rows come in the table's column order with ``_multiplicity`` last, and may carry their input rows.

    Shards refuse only deletes, only of tables whose changes are not known to be valid, and report those of the first copy: no other rows
    carry anything further.
    """

    def __init__(self, routes: Sequence[CopyRoute]) -> None:
        self._routes = routes

    def route(self, rows: pa.RecordBatch) -> Iterator[Routed]:
        """The parts of a batch."""
        plain, carried = apart(rows)
        if carried is not None:
            carried = only_where(pc.less(plain.column(plain.num_columns - 1), 0), carried)
        for route in self._routes:
            yield from _route(route, plain, None if route.drops else carried)
            carried = None


def table_routes(layout: Layout, source: str) -> tuple[CopyRoute, ...]:
    """How the copies of a table are spread."""
    return tuple(
        _copy_route(layout.sources[source].name, number, copy, layout.shares.dimensions)
        for number, copy in enumerate(layout.copies)
        if copy.source == source
    )


def _copy_route(shown: str, number: int, copy: Copy, dimensions: tuple[Dimension, ...]) -> CopyRoute:
    strides = [prod(d.share for d in dimensions[at + 1 :]) for at in range(len(dimensions))]
    hashed = dict(copy.routes)
    spread = tuple((dimensions[at].share, strides[at], expressions) for at, expressions in copy.routes)
    free = [[i * strides[at] for i in range(d.share)] for at, d in enumerate(dimensions) if at not in hashed]
    offsets = tuple(sorted(sum(choice) for choice in product(*free)))
    has_rest = any(c.name == REST for c in copy.table.columns)
    rest = (copy.rest, has_rest)
    return CopyRoute(shown, number, copy.columns, *rest, copy.filter, copy.drops, spread, offsets)


def _route(route: CopyRoute, rows: pa.RecordBatch, carried: pa.Array | None) -> Iterator[Routed]:
    if route.condition is not None and route.drops:
        rows = rows.filter(_wanted(route, rows))
    if not rows.num_rows:
        return
    kept = together(_kept(route, rows), carried)
    if not route.spread:
        yield route.offsets, route.section, kept
        return
    place = np.zeros(rows.num_rows, dtype=np.uint64)
    for share, stride, expressions in route.spread:
        place += _dimension(route, expressions, rows) % np.uint64(share) * np.uint64(stride)
    for at, part in split_by(place, kept):
        yield tuple(at + offset for offset in route.offsets), route.section, part


def _dimension(
    route: CopyRoute, expressions: Sequence[Mapping[str, Any]], rows: pa.RecordBatch
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The hashes of a dimension. Rows that no atom wants may have no value there: they go by all of their columns."""
    if route.condition is None or route.drops or all(e["op"] == "column" for e in expressions):
        return _hashes([_value(route, e, rows) for e in expressions])
    wanted = _wanted(route, rows)
    hashes = _hashes(rows.columns[:-1]).copy()
    some = rows.filter(wanted)
    if some.num_rows:
        hashes[wanted.to_numpy(zero_copy_only=False)] = _hashes([_value(route, e, some) for e in expressions])
    return hashes


def _wanted(route: CopyRoute, rows: pa.RecordBatch) -> pa.Array:
    assert route.condition is not None
    return pc.fill_null(_value(route, route.condition, rows), fill_value=False)


def _value(route: CopyRoute, expression: Mapping[str, Any], rows: pa.RecordBatch) -> pa.Array:
    if expression["op"] == "column":
        return rows.column(expression["index"])
    try:
        return compute(json.dumps(expression), rows)
    except ExpressionError as failure:
        raise failure.as_change_error(route.table) from None


def _kept(route: CopyRoute, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The columns that a copy keeps."""
    columns = [rows.column(i) for i in route.columns]
    names = [rows.schema.names[i] for i in route.columns]
    if route.has_rest:
        rest = [rows.column(i) for i in route.rest]
        hashes = _hashes(rest).view(np.int64) if rest else np.zeros(rows.num_rows, dtype=np.int64)
        columns, names = [*columns, pa.array(hashes)], [*names, REST]
    columns.append(rows.column(rows.num_columns - 1))
    return pa.RecordBatch.from_arrays(columns, names=[*names, MULTIPLICITY])


def _hashes(columns: list[pa.Array]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    batch = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
    hashes: np.ndarray[Any, np.dtype[np.uint64]] = hash_rows(batch).to_numpy()
    return hashes


def split_by(place: np.ndarray[Any, Any], rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows by place, in their order."""
    if len(place) == 0:
        return
    small = place.astype(np.uint16)
    if (small == small[0]).all():
        yield int(small[0]), rows
        return
    order = np.argsort(small, kind="stable")
    sorted_rows = rows.take(pa.array(order))
    counts = np.bincount(small)
    start = 0
    for at, count in enumerate(counts.tolist()):
        if count:
            yield at, sorted_rows.slice(start, count)
        start += count


class KeyRouter:
    """Routes rows to buckets by a hash of the columns at some positions; without positions all go to the first."""

    def __init__(self, positions: Sequence[int], buckets: int) -> None:
        self._positions = list(positions)
        self._buckets = buckets

    def route(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows by bucket."""
        if self._buckets == 1 or not self._positions:
            yield 0, rows
            return
        hashes = _hashes([rows.column(i) for i in self._positions])
        yield from split_by(hashes % np.uint64(self._buckets), rows)
