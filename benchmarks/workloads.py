"""The workloads: their SQL, streams and targets, and everview as a contestant."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

import everview as ev
from benchmarks.checksum import MASK, table_checksum
from benchmarks.contest import Evidence, Mismatch, Run
from benchmarks.generate import GraphSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from benchmarks.generate import Stream

TABLE = "CREATE TABLE g (src BIGINT NOT NULL, dst BIGINT NOT NULL)"
BATCHES = 100  # of 1 % of the stream each

THREE_HOP = """
SELECT g1.src a, g1.dst b, g2.dst c, g3.dst d
FROM g g1, g g2, g g3
WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst % 10 = 0"""

THREE_HOP_PROJECTED = """
SELECT DISTINCT g1.dst b, g2.dst c
FROM g g1, g g2, g g3
WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst % 10 = 0"""

STAR = """
SELECT g1.src, COUNT(*) n
FROM g g1, g g2, g g3, g g4
WHERE g1.src = g2.src AND g1.src = g3.src AND g1.src = g4.src
GROUP BY g1.src"""


@dataclass(frozen=True)
class Workload:
    """A query over a stream; ``query`` names it for the hand-written peers.

    ``faster_than``: by what factor everview has to be faster than a peer; ``floor_factor``: how many times the floor's time it may take.
    """

    name: str
    title: str
    query: str
    sql: str
    stream: GraphSpec
    faster_than: dict[str, float] = field(default_factory=dict)
    floor_factor: float | None = None


W1_GRAPH = GraphSpec(edges=100_000, vertices=10_000, skew=0.6, seed=1)
HEAVY_GRAPH = GraphSpec(edges=100_000, vertices=10_000, skew=0.8, seed=7)
STAR_GRAPH = GraphSpec(edges=50_000, vertices=20_000, skew=0.35, seed=3)

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("w1", "3-hop", "three_hop", THREE_HOP, W1_GRAPH, {"python CROWN": 4, "DuckDB diff": 20}, 3),
        Workload(
            "w1-heavy",
            "3-hop, heavy hubs",
            "three_hop",
            THREE_HOP,
            HEAVY_GRAPH,
            {"python CROWN": 5, "DuckDB diff": 100},
            5,
        ),
        Workload(
            "w2a",
            "3-hop, DISTINCT b, c",
            "three_hop_projected",
            THREE_HOP_PROJECTED,
            W1_GRAPH,
            {"python CROWN": 3, "DuckDB diff": 8},
        ),
        Workload("w2b", "4-way star count", "star", STAR, STAR_GRAPH, {"python CROWN": 5}),
    )
}


class Everview:
    """Record batches in, Arrow deltas out; each delta is dropped before the next batch."""

    def __init__(
        self, sql: str, tables: str, batches: Sequence[Mapping[str, pa.RecordBatch]], name: str = "everview"
    ) -> None:
        self.name = name
        self._sql = sql
        self._tables = tables
        self._batches = batches

    @classmethod
    def on_graph(cls, sql: str, stream: Stream, batches: int) -> Everview:
        return cls(sql, TABLE, [{"g": batch} for batch in stream.record_batches(batches)])

    def run(self) -> Run:
        with ev.connect() as db:
            db.execute(self._tables)
            db.create_view("v", self._sql)
            rows = 0
            start = perf_counter()
            for batch in self._batches:
                delta = db.apply(batch)["v"]
                rows += delta.num_rows
                del delta
            return Run(perf_counter() - start, rows)

    def evidence(self) -> Evidence:
        """The final result, after a check that the deltas sum up to it."""
        with ev.connect() as db:
            db.execute(self._tables)
            view = db.create_view("v", self._sql)
            rows = net = summed = 0
            for batch in self._batches:
                delta = db.apply(batch)["v"]
                multiplicity = delta.column("_multiplicity").to_numpy()
                net += int(np.abs(multiplicity).sum())
                rows += int(multiplicity.sum())
                summed = (summed + table_checksum(delta)) & MASK
            result = view.to_arrow()
            listed = Evidence(result.num_rows, table_checksum(result), net)
            counted = view.count()
        if listed != (of_deltas := Evidence(rows, summed, net)):
            raise Mismatch(f"the result is {listed} and the deltas sum up to {of_deltas}")
        if counted != listed.rows:
            raise Mismatch(f"count() is {counted} and the result has {listed.rows} rows")
        return listed
