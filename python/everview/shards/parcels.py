"""Parcels: rows collected per destination until they are worth a blob."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from everview.shards.blob import LARGEST, assemble, concat, pack_section

if TYPE_CHECKING:
    import pyarrow as pa


Address = tuple[int, int]
"""A fragment and the number of one of its engines."""


class Parcels:
    """Collects sections for destinations. Rows for several destinations are serialised once.

    Each of those given to the constructor gets at least one blob, if only an empty one: an engine that hears of every batch keeps step
    with the others, notices if its layout is not theirs, and tells what it holds.
    """

    def __init__(self, destinations: Iterable[Address]) -> None:
        self._waiting: dict[tuple[tuple[Address, ...], int], list[pa.RecordBatch]] = {}
        self._size = 0
        self._destinations = tuple(destinations)

    def add(self, destinations: Sequence[Address], section: int, rows: pa.RecordBatch) -> None:
        """Rows for some destinations."""
        self._waiting.setdefault((tuple(destinations), section), []).append(rows)
        self._size += rows.nbytes

    @property
    def is_full(self) -> bool:
        """Whether it is time to flush."""
        return self._size >= LARGEST

    def flush(self, *, last: bool) -> Iterator[tuple[Address, bytes]]:
        """The blobs by destination; the last time also for destinations that nothing is for."""
        bodies: dict[Address, list[tuple[int, pa.Buffer]]] = {at: [] for at in (self._destinations if last else ())}
        for (destinations, section), batches in self._waiting.items():
            body = pack_section([concat(batches)])
            for at in destinations:
                bodies.setdefault(at, []).append((section, body))
        self._waiting.clear()
        self._size = 0
        for at, sections in bodies.items():
            yield at, assemble(sections)
