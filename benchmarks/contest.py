"""What a contestant of a benchmark is: something that runs a stream and can prove what it computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Run:
    """One timed run; ``delta_rows`` are net per batch or per event, as the contestant works."""

    seconds: float
    delta_rows: int


@dataclass(frozen=True)
class Evidence:
    """The final result: its rows (duplicates counted) and their checksum; net delta rows where deltas are per batch."""

    rows: int
    checksum: int
    net_delta_rows: int | None = None


class Contestant(Protocol):
    name: str

    def run(self) -> Run:
        """Run the whole stream from an empty state; loading the input is not timed."""

    def evidence(self) -> Evidence:
        """What the runs computed; may run the stream once more, untimed. Raises ``Mismatch`` if it contradicts itself."""


class Mismatch(Exception):
    """Two computations of one thing differ."""
