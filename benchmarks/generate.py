"""Seeded change streams: a skewed random graph whose edges arrive one by one and leave again after a FIFO window.

A vertex of rank i is drawn with probability proportional to 1 / i**skew, as source and as target alike: a hub is a hub on both sides, so
paths through hubs dominate. Edges are distinct and no edge is a loop. Once ``window`` edges are in, every insertion is followed by the
deletion of the oldest edge.

The streams are cached as Parquet under ``benchmarks/data``; the seed and all parameters are in the file name.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class GraphSpec:
    """Parameters of a stream; ``window`` is the fraction of the edges that are in at a time."""

    edges: int
    vertices: int
    skew: float
    seed: int
    window: float = 0.2

    @property
    def name(self) -> str:
        return f"graph-e{self.edges}-v{self.vertices}-k{self.skew:g}-w{self.window:g}-s{self.seed}"

    def __str__(self) -> str:
        return f"{self.edges:,} edges, {self.vertices:,} vertices, skew {self.skew:g}, seed {self.seed}"


@dataclass(frozen=True)
class Stream:
    """Changes in order: ``op`` is 1 for an insertion and -1 for a deletion of the edge (src, dst)."""

    name: str
    op: np.ndarray
    src: np.ndarray
    dst: np.ndarray

    def __len__(self) -> int:
        return len(self.op)

    def first(self, events: int) -> Stream:
        return Stream(f"{self.name}-first{events}", self.op[:events], self.src[:events], self.dst[:events])

    def last(self, events: int) -> Stream:
        return Stream(f"{self.name}-last{events}", self.op[-events:], self.src[-events:], self.dst[-events:])

    def events(self) -> list[tuple[int, int, int]]:
        """The changes as Python tuples (op, src, dst)."""
        return list(zip(self.op.tolist(), self.src.tolist(), self.dst.tolist(), strict=True))

    def record_batches(self, count: int) -> list[pa.RecordBatch]:
        """The changes as ``count`` record batches in the form that ``Session.apply`` takes."""
        columns = {"src": self.src, "dst": self.dst, "_multiplicity": self.op}
        return [
            pa.RecordBatch.from_pydict({name: pa.array(values[start:end]) for name, values in columns.items()})
            for start, end in pairwise(self.cuts(count))
        ]

    def cuts(self, count: int) -> list[int]:
        """Where ``count`` batches of equal size begin and end."""
        return cuts(len(self), count)

    def raw_file(self) -> Path:
        """A file of int64 triples (op, src, dst), for the native peers."""
        path = DATA / f"{self.name}.i64"
        if not path.exists():
            DATA.mkdir(parents=True, exist_ok=True)
            np.column_stack((self.op, self.src, self.dst)).astype("<i8").tofile(path)
        return path


def load(spec: GraphSpec) -> Stream:
    """The stream of ``spec``, generated on first use."""
    path = DATA / f"{spec.name}.parquet"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        stream = generate(spec)
        pq.write_table(pa.table({"op": stream.op, "src": stream.src, "dst": stream.dst}), path)
    table = pq.read_table(path)
    return Stream(spec.name, *(table.column(name).to_numpy() for name in ("op", "src", "dst")))


def generate(spec: GraphSpec) -> Stream:
    src, dst = _edges(spec)
    return fifo(spec.name, src, dst, int(spec.edges * spec.window))


def fifo(name: str, src: np.ndarray, dst: np.ndarray, window: int) -> Stream:
    """Insert the edges in order; from edge ``window`` on, delete the oldest after each insertion."""
    op, order = fifo_order(len(src), window)
    return Stream(name, op, src[order], dst[order])


def fifo_order(rows: int, window: int) -> tuple[np.ndarray, np.ndarray]:
    """The changes of a FIFO window over ``rows`` rows: 1 or -1, and the number of the row."""
    sliding = rows - window
    op = np.concatenate((np.ones(window, np.int64), np.tile(np.array([1, -1], np.int64), sliding)))
    order = np.empty(window + 2 * sliding, np.int64)
    order[:window] = np.arange(window)
    order[window::2] = np.arange(window, rows)
    order[window + 1 :: 2] = np.arange(sliding)
    return op, order


def cuts(events: int, count: int) -> list[int]:
    """Where ``count`` batches of equal size begin and end."""
    return [i * events // count for i in range(count + 1)]


def _edges(spec: GraphSpec) -> tuple[np.ndarray, np.ndarray]:
    """Distinct edges in the order in which they are first drawn."""
    random = np.random.default_rng(spec.seed)
    weight = 1 / np.arange(1, spec.vertices + 1) ** spec.skew
    weight /= weight.sum()
    vertex_of_rank = random.permutation(spec.vertices)
    drawn = np.empty(0, np.int64)
    while len(drawn) < spec.edges:
        src, dst = (vertex_of_rank[random.choice(spec.vertices, spec.edges, p=weight)] for _ in range(2))
        packed = np.concatenate((drawn, (src * spec.vertices + dst)[src != dst]))
        drawn = packed[np.sort(np.unique(packed, return_index=True)[1])]
    drawn = drawn[: spec.edges]
    return drawn // spec.vertices, drawn % spec.vertices
