"""Bytes of kernel state per row, and whether the process grows by what the kernel reports.

A process of its own loads a large window without deltas: W1's query on a graph of W1's density and skew, large enough that buffers of a commit
and the allocator's slack do not matter. Growth is that of the resident set, after freed memory was given back to the system.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import asdict, dataclass

import everview as ev
from benchmarks.generate import GraphSpec, load
from benchmarks.workloads import BATCHES, TABLE, THREE_HOP, W1_GRAPH

TARGET = 150  # bytes per node row of two integers
TOLERANCE = 1.1  # by how much the process may grow beyond what is reported
LARGE = GraphSpec(edges=2_000_000, vertices=1_000_000, skew=0.6, seed=1, window=1)


@dataclass(frozen=True)
class Memory:
    """State of W1's view over a window: ``rows`` are those of g1, g2 and g3; ``held`` counts hub entries and projections too."""

    edges: int
    rows: int
    held: int
    state_bytes: int
    table_bytes: int
    growth: int | None = None

    @property
    def per_row(self) -> float:
        return self.state_bytes / self.rows

    @property
    def growth_per_row(self) -> float | None:
        """By the growth of the process, less the base store as the session reports it."""
        return None if self.growth is None else (self.growth - self.table_bytes) / self.rows


def steady_state() -> Memory:
    """At the end of W1."""
    return _measure(W1_GRAPH)


def large_window() -> Memory:
    """On the large window, measured in a fresh process."""
    load(LARGE)
    done = subprocess.run([sys.executable, "-m", "benchmarks.memory"], check=True, stdout=subprocess.PIPE, text=True)
    return Memory(**json.loads(done.stdout))


def _measure(spec: GraphSpec) -> Memory:
    stream = load(spec)
    batches = stream.record_batches(BATCHES)
    with ev.connect() as db:
        db.execute(TABLE)
        view = db.create_view("v", THREE_HOP)
        before = _resident()
        for batch in batches:
            db.apply({"g": batch}, deltas=False)
        growth = _resident() - before
        metrics = view.metrics()
        rows = sum(node.rows for node in metrics.nodes if node.name in {"g1", "g2", "g3"})
        return Memory(
            int(stream.op.sum()),
            rows,
            metrics.state_rows,
            metrics.state_bytes,
            db.table_metrics("g").bytes,
            growth if spec is LARGE else None,
        )


def _resident() -> int:
    """Bytes of the resident set, with freed memory given back first."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(LARGE))))
