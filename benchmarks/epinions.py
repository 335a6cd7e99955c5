"""The acyclic graph queries of CROWN, appendix D, on soc-Epinions1 with a FIFO window of 20 %.

The paper gives each edge a distinct number as its time without saying which; the file is sorted by source, so file order would make the window a
range of sources. Edges arrive in a seeded random order here. FILTER OVER is ``% 10 = 0``, on the end point of the last edge, in the projected
queries too; V1 and V2 are seeded samples of 10 % of the vertices, loaded first and then left alone.

Every query runs in a process of its own, so that peak memory is its own. Where all the deltas would take too long, a run has two passes: the
stream with deltas until the time is up, and the whole stream without deltas. Either way the final result is
compared with DuckDB (by checksum, or by count where it is large), and, if all deltas were read, with the sum of their multiplicities.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

import everview as ev
from benchmarks.checksum import table_checksum
from benchmarks.contest import Mismatch
from benchmarks.generate import Stream, fifo
from benchmarks.workloads import STAR, TABLE, THREE_HOP, THREE_HOP_PROJECTED

WINDOW = 0.2
SEED = 1
DELTA_SECONDS = 240.0  # for the pass with deltas
MEMORY_LIMIT = 16 * 2**30
LISTED = 5_000_000  # rows up to which the final result is compared row by row

FOUR_HOP = """
SELECT g1.src a, g1.dst b, g2.dst c, g3.dst d, g4.dst e
FROM g g1, g g2, g g3, g g4
WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst = g4.src AND g4.dst % 10 = 0"""

FOUR_HOP_PROJECTED = """
SELECT DISTINCT g1.dst b, g2.dst c, g3.dst d
FROM g g1, g g2, g g3, g g4
WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst = g4.src AND g4.dst % 10 = 0"""

TWO_COMB = """
SELECT g1.src a, g1.dst b, g2.dst c, g3.dst d
FROM g g1, g g2, g g3, v1, v2
WHERE g1.dst = g2.src AND g2.dst = g3.src AND v1.v = g1.src AND v2.v = g3.dst"""


@dataclass(frozen=True)
class Query:
    """``batches``: how many the stream is cut into; more than 100 where the delta of a 1 % batch would be too large.

    ``check``: the same result for DuckDB, where recomputing ``sql`` itself would take hours.
    """

    title: str
    sql: str
    batches: int = 100
    check: str | None = None


QUERIES = {
    "3-hop": Query("3-hop full", THREE_HOP),
    "4-hop": Query("4-hop full", FOUR_HOP, batches=1000),
    "3-hop-projected": Query("3-hop projected", THREE_HOP_PROJECTED),
    "4-hop-projected": Query("4-hop projected", FOUR_HOP_PROJECTED),
    "2-comb": Query("2-comb", TWO_COMB),
    "star": Query("star", STAR, check="SELECT src, count(*) * count(*) * count(*) * count(*) n FROM g GROUP BY src"),
}


@dataclass(frozen=True)
class Figures:
    """Of one query. ``updates`` and ``deltas`` were read in ``seconds``; below ``events`` updates the pass with deltas was cut short.

    ``silent_seconds``: the whole stream without deltas. ``state_bytes``: of the view at the end; ``peak_bytes``: of the process.
    """

    query: str
    batches: int
    events: int
    updates: int
    deltas: int
    largest_delta: int
    seconds: float
    silent_seconds: float
    count: int
    state_bytes: int
    table_bytes: int
    peak_bytes: int

    @property
    def complete(self) -> bool:
        return self.updates == self.events


def data_file() -> Path:
    """Where the graph is: under ``EVERVIEW_DATA``, or beside the repository."""
    root = os.environ.get("EVERVIEW_DATA") or Path(__file__).parents[2] / "shared" / "data"
    return Path(root) / "snap-graphs" / "soc-Epinions1.csv.gz"


def run(name: str, *, seconds: float = DELTA_SECONDS) -> Figures:
    """The figures of one query, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.epinions", name, "--seconds", str(seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Mismatch(f"Epinions {name} failed with exit code {done.returncode}")
    return Figures(**json.loads(done.stdout))


def load_stream() -> Stream:
    table = pyarrow.csv.read_csv(data_file())
    order = np.random.default_rng(SEED).permutation(table.num_rows)
    src, dst = (table.column(name).to_numpy()[order] for name in ("src", "dst"))
    return fifo("epinions", src, dst, int(len(src) * WINDOW))


def _measure(name: str, stream: Stream, seconds: float) -> Figures:
    query = QUERIES[name]
    batches = stream.record_batches(query.batches)
    samples = _samples(stream) if name == "2-comb" else {}

    updates = deltas = largest = balance = 0
    with _session(samples) as db:
        db.create_view("v", query.sql)
        start = perf_counter()
        for batch in batches:
            delta = db.apply({"g": batch})["v"]
            updates += batch.num_rows
            deltas += delta.num_rows
            largest = max(largest, delta.num_rows)
            balance += pc.sum(delta.column("_multiplicity")).as_py() or 0
            del delta
            if perf_counter() - start > seconds:
                break
        took = perf_counter() - start
        complete = updates == len(stream)
    with _session(samples) as db:
        view = db.create_view("v", query.sql)
        start = perf_counter()
        for batch in batches:
            db.apply({"g": batch}, deltas=False)
        silent = perf_counter() - start
        count = view.count()
        state, table = view.metrics().state_bytes, db.table_metrics("g").bytes
        peak = _peak()
        found = _Result(count, table_checksum(view.to_arrow()) if count <= LISTED else None)
        expected = _recompute(query.check or query.sql, db.table_rows("g"), samples, list_rows=count <= LISTED)
    if found != expected:
        raise Mismatch(f"{name}: everview has {found} and DuckDB {expected}")
    if complete and count != balance:
        raise Mismatch(f"{name}: count() is {count} and the deltas sum up to {balance}")
    return Figures(name, query.batches, len(stream), updates, deltas, largest, took, silent, count, state, table, peak)


def _session(samples: dict[str, pa.RecordBatch]) -> ev.Session:
    db = ev.connect()
    db.execute(TABLE)
    for name, vertices in samples.items():
        db.execute(f"CREATE TABLE {name} (v BIGINT NOT NULL)")
        db.insert(name, vertices)
    return db


def _samples(stream: Stream) -> dict[str, pa.RecordBatch]:
    random = np.random.default_rng(SEED)
    vertices = np.unique(np.concatenate((stream.src, stream.dst)))
    return {
        name: pa.RecordBatch.from_pydict({"v": random.choice(vertices, len(vertices) // 10, replace=False)})
        for name in ("v1", "v2")
    }


def _peak() -> int:
    """The largest resident set of this program. Not ``ru_maxrss``, which begins with that of the process that started it."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


@dataclass(frozen=True)
class _Result:
    rows: int
    checksum: int | None


def _recompute(sql: str, g: pa.Table, samples: dict[str, pa.RecordBatch], *, list_rows: bool) -> _Result:
    """The result by DuckDB: listed, or only counted."""
    with duckdb.connect() as db:
        for name, batch in samples.items():
            db.register(name, pa.Table.from_batches([batch]))
        db.register("g", g)
        if list_rows:
            table = db.sql(sql).to_arrow_table()
            return _Result(table.num_rows, table_checksum(table))
        (count,) = db.execute(f"SELECT count(*) FROM ({sql})").fetchone()
        return _Result(count, None)


def main() -> None:
    parser = argparse.ArgumentParser(description="One query on soc-Epinions1; prints its figures as JSON.")
    parser.add_argument("query", choices=QUERIES)
    parser.add_argument("--seconds", type=float, default=DELTA_SECONDS, help="for the pass with deltas")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    print(json.dumps(asdict(_measure(arguments.query, load_stream(), arguments.seconds))))


if __name__ == "__main__":
    main()
