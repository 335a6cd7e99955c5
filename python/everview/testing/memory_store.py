"""A state store of one engine in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class MemoryStore:
    """Keeps head, log and snapshot; counts the bytes written and the snapshots. Copy it to be able to roll back."""

    def __init__(self) -> None:
        self.head: str | None = None
        self.log: list[bytes] = []
        self.snapshot: list[bytes] = []
        self.written = 0
        self.snapshots = 0

    def read_head(self) -> str | None:
        return self.head

    def write_head(self, text: str) -> None:
        self.head = text

    def read_log(self) -> list[bytes]:
        return list(self.log)

    def append_log(self, entries: Sequence[bytes], at: int) -> None:
        assert at == len(self.log)
        self.log.extend(entries)
        self.written += sum(map(len, entries))

    def clear_log(self) -> None:
        self.log.clear()

    def read_snapshot(self) -> list[bytes]:
        return list(self.snapshot)

    def write_snapshot(self, blobs: Iterator[bytes]) -> None:
        self.snapshot = list(blobs)
        self.written += sum(map(len, self.snapshot))
        self.snapshots += 1
