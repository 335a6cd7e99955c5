"""The peers that are Rust libraries: programs of ``benchmarks/rust-peers``, which ``make bench-peers`` builds, as contestants."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contest import Evidence, Mismatch, Run

if TYPE_CHECKING:
    from benchmarks.generate import Stream
    from benchmarks.orders import OrdersStream

PROGRAMS = Path(__file__).parents[1] / "rust-peers" / "target" / "release"
DIFFERENTIAL, DBSP = "differential-dataflow", "dbsp"
PROGRAM_OF = {DIFFERENTIAL: PROGRAMS / "differential", DBSP: PROGRAMS / "dbsp-peer"}


def missing() -> list[str]:
    """The peers whose programs are not built."""
    return [name for name, program in PROGRAM_OF.items() if not program.exists()]


class RustPeer:
    """One of the programs on one of its queries; every run is a fresh process that times itself, and reads and sums up all deltas."""

    def __init__(self, peer: str, query: str, stream: Stream | OrdersStream, batches: int, variant: str = "") -> None:
        self.name = peer + variant
        self._command = [str(PROGRAM_OF[peer]), query, str(stream.raw_file()), str(batches)]
        self._runs: set[Evidence] = set()

    def run(self) -> Run:
        done = subprocess.run(self._command, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        self._runs.add(Evidence(found["rows"], found["checksum"], found["deltas"]))
        return Run(found["seconds"], found["deltas"])

    def evidence(self) -> Evidence:
        if len(self._runs) != 1:
            raise Mismatch(f"the runs of {self.name} differ: {self._runs}")
        return next(iter(self._runs))
