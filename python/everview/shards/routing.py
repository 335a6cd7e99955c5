"""Which rows go to which engine.

``FeedRouter`` sends the changes of a table or a stage to the feeds that want them: for each of these the rows are hashed on the dimensions
that spread it and replicated along the others. ``KeyRouter`` sends rows to buckets by a hash of some columns.

Cost: one hash per row and dimension, one stable counting sort and one gather per feed, whatever the number of shards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.engine import ExpressionError, compute, hash_rows
from everview.interop.batch import MULTIPLICITY
from everview.layout.feeds import REST, Feed
from everview.shards.carried import apart, only_where, together
from everview.shards.parcels import Address

Routed = tuple[tuple[Address, ...], int, pa.RecordBatch]
"""The destinations of some rows, the section they are for, and the rows."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A feed as a table of its fragment's engines: the section with this number. ``shown``: how users know where its rows are from."""

    feed: Feed
    section: int
    shown: str


class FeedRouter:
    """Routes the changes of one origin. Rows come in its column order with ``_multiplicity`` last, and may carry their input rows.

    Shards refuse only deletes, only of tables whose changes are not known to be valid, and report those of the first feed: no other rows
    carry anything further.
    """

    def __init__(self, destinations: Sequence[Destination]) -> None:
        self._destinations = destinations

    def route(self, rows: pa.RecordBatch) -> Iterator[Routed]:
        """The parts of a batch."""
        plain, carried = apart(rows)
        if carried is not None:
            carried = only_where(pc.less(plain.column(plain.num_columns - 1), 0), carried)
        for destination in self._destinations:
            yield from _route(destination, plain, None if destination.feed.drops else carried)
            carried = None


def _route(to: Destination, rows: pa.RecordBatch, carried: pa.Array | None) -> Iterator[Routed]:
    feed = to.feed
    if feed.filter is not None and feed.drops:
        rows = rows.filter(_wanted(to, rows))
    if not rows.num_rows:
        return
    kept = together(_kept(feed, rows), carried)

    def addresses(at: int) -> tuple[Address, ...]:
        return tuple((feed.fragment, at + replica) for replica in feed.replicas)

    if not feed.routes:
        yield addresses(0), to.section, kept
        return
    place = np.zeros(rows.num_rows, dtype=np.uint64)
    for route in feed.routes:
        place += _dimension(to, route.hashed, rows) % np.uint64(route.share) * np.uint64(route.stride)
    for at, part in split_by(place, kept):
        yield addresses(at), to.section, part


def _dimension(
    to: Destination, expressions: Sequence[Mapping[str, Any]], rows: pa.RecordBatch
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The hashes of a dimension. Rows that no atom wants may have no value there: they go by all of their columns."""
    if to.feed.filter is None or to.feed.drops or all(e["op"] == "column" for e in expressions):
        return _hashes([_value(to, e, rows) for e in expressions])
    wanted = _wanted(to, rows)
    hashes = _hashes(rows.columns[:-1]).copy()
    some = rows.filter(wanted)
    if some.num_rows:
        hashes[wanted.to_numpy(zero_copy_only=False)] = _hashes([_value(to, e, some) for e in expressions])
    return hashes


def _wanted(to: Destination, rows: pa.RecordBatch) -> pa.Array:
    assert to.feed.filter is not None
    return pc.fill_null(_value(to, to.feed.filter, rows), fill_value=False)


def _value(to: Destination, expression: Mapping[str, Any], rows: pa.RecordBatch) -> pa.Array:
    if expression["op"] == "column":
        return rows.column(expression["index"])
    try:
        return compute(json.dumps(expression), rows)
    except ExpressionError as failure:
        raise failure.as_change_error(to.shown) from None


def _kept(feed: Feed, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The columns that a feed keeps."""
    columns = [rows.column(i) for i in feed.columns]
    names = [rows.schema.names[i] for i in feed.columns]
    if feed.has_rest:
        rest = [rows.column(i) for i in feed.rest]
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
