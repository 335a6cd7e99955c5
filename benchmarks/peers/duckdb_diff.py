"""Recomputation by DuckDB after every batch, and the difference to the result before it by EXCEPT ALL both ways.

The best case for DuckDB: the edges lie in one table, sorted, with the sequence numbers of their insertion and deletion, so that the window of a
batch is a range filter and nothing is ever deleted; the difference is counted, not fetched; the old result is replaced by renaming.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.checksum import table_checksum
from benchmarks.contest import Evidence, Mismatch, Run

if TYPE_CHECKING:
    from benchmarks.generate import Stream

NEVER = 2**60


class DuckdbDiff:
    """The peer, for any query over ``g``."""

    name = "DuckDB diff"

    def __init__(self, sql: str, stream: Stream, batches: int, *, threads: int = 2) -> None:
        self._sql = sql
        self._lives = lives(stream)
        self._cuts = stream.cuts(batches)[1:]
        self._threads = threads
        self._runs: set[Evidence] = set()

    def run(self) -> Run:
        with duckdb.connect() as db:
            db.execute(f"SET threads = {self._threads}")
            given = self._lives
            db.execute("CREATE TABLE lives AS SELECT * FROM given ORDER BY inserted")
            del given
            db.execute(f"CREATE TEMP TABLE previous AS WITH g AS (FROM lives WHERE false) {self._sql}")
            net = 0
            start = perf_counter()
            for cut in self._cuts:
                window = f"FROM lives WHERE inserted < {cut} AND deleted >= {cut}"
                db.execute(f"CREATE TEMP TABLE current AS WITH g AS MATERIALIZED ({window}) {self._sql}")
                (rows,) = db.execute(
                    "SELECT count(*) FROM ((FROM current EXCEPT ALL FROM previous) UNION ALL (FROM previous EXCEPT ALL FROM current))"
                ).fetchone()
                net += rows
                db.execute("DROP TABLE previous")
                db.execute("ALTER TABLE current RENAME TO previous")
            seconds = perf_counter() - start
            final = db.sql("FROM previous").to_arrow_table()
            self._runs.add(Evidence(final.num_rows, table_checksum(final), net))
        return Run(seconds, net)

    def evidence(self) -> Evidence:
        if len(self._runs) != 1:
            raise Mismatch(f"the runs of {self.name} differ: {self._runs}")
        return next(iter(self._runs))


def lives(stream: Stream) -> pa.Table:
    """Each edge with the positions in the stream of its insertion and of its deletion. Every edge lives once."""
    key = stream.src * (int(stream.dst.max()) + 1) + stream.dst
    inserted = np.flatnonzero(stream.op > 0)
    removed = np.flatnonzero(stream.op < 0)
    order = np.argsort(key[inserted])
    which = order[np.searchsorted(key[inserted], key[removed], sorter=order)]
    deleted = np.full(len(inserted), NEVER, np.int64)
    deleted[which] = removed
    if not np.array_equal(key[inserted][which], key[removed]) or len(np.unique(key[inserted])) != len(inserted):
        raise ValueError("the stream deletes an edge that is not there, or inserts one twice")
    return pa.table(
        {
            "src": stream.src[inserted],
            "dst": stream.dst[inserted],
            "inserted": inserted.astype(np.int64),
            "deleted": deleted,
        }
    )
