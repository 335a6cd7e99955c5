"""The time of a whole ``Session.apply`` of one row with deltas, in W1's steady state.

The last events of W1 are applied one by one. What an event emits is not the call's doing, so the rows are part of the figure only in "all calls".
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np

import everview as ev
from benchmarks.generate import load
from benchmarks.workloads import BATCHES, TABLE, THREE_HOP, W1_GRAPH

TARGET = 60  # microseconds, median, beyond the rows emitted
EVENTS = 20_000
FEW = 8


@dataclass(frozen=True)
class Latency:
    """Microseconds per call, of the calls that emit at most ``most`` rows."""

    most: int | None
    calls: int
    median: float
    p99: float


def measure() -> list[Latency]:
    """Calls that emit nothing; few rows; all."""
    stream = load(W1_GRAPH)
    rows = stream.last(EVENTS).record_batches(EVENTS)
    nanoseconds = np.empty(EVENTS)
    emitted = np.empty(EVENTS, np.int64)
    with ev.connect() as db:
        db.execute(TABLE)
        db.create_view("v", THREE_HOP)
        for batch in stream.first(len(stream) - EVENTS).record_batches(BATCHES):
            db.apply({"g": batch})
        for i, row in enumerate(rows):
            start = perf_counter_ns()
            deltas = db.apply({"g": row})
            nanoseconds[i] = perf_counter_ns() - start
            emitted[i] = deltas["v"].num_rows
    return [_latency(nanoseconds, emitted, most) for most in (0, FEW, None)]


def _latency(nanoseconds: np.ndarray, emitted: np.ndarray, most: int | None) -> Latency:
    chosen = nanoseconds if most is None else nanoseconds[emitted <= most]
    return Latency(most, len(chosen), float(np.median(chosen)) / 1e3, float(np.percentile(chosen, 99)) / 1e3)
