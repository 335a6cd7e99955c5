"""Change streams as Parquet files, one directory per table and one file per micro-batch.

``paths``: W1's graph stream at any size. ``revenue``: W3's stream, made like TPC-H's customers, orders and lineitems: customers are loaded
first, orders arrive in random order with one to seven lines each, and leave again after a FIFO window of 20 % of the facts. The last
batch is not special: what is in the window stays.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.generate import DATA, GraphSpec, load

BATCHES = 20

PATHS_SQL = """
SELECT g1.src AS a, g1.dst AS b, g2.dst AS c, g3.dst AS d FROM g g1, g g2, g g3
WHERE g1.dst = g2.src AND g2.dst = g3.src AND g3.dst % 10 = 0
"""
REVENUE_SQL = """
SELECT l_orderkey, o_orderdate, o_shippriority, SUM(l_revenue) AS revenue FROM customer, orders, lineitem
WHERE c_mktsegment = 0 AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < 9204 AND l_shipdate > 9204
GROUP BY l_orderkey, o_orderdate, o_shippriority
"""


@dataclass(frozen=True)
class Workload:
    """A view and the change files of its tables; ``rows``: changes in all files."""

    name: str
    sql: str
    tables: Mapping[str, Path]
    schemas: Mapping[str, str]
    rows: int
    batches: int


def paths(edges: int, vertices: int, window: float, batches: int = BATCHES, seed: int = 1) -> Workload:
    """W1's stream of a size."""
    spec = GraphSpec(edges, vertices, 0.6, seed, window)
    stream = load(spec)
    folder = DATA / "spark" / f"{spec.name}-b{batches}"
    if not (folder / "done").exists():
        table = pa.table({"src": stream.src, "dst": stream.dst, "_change_type": _types(stream.op)})
        _write({"g": table}, {"g": stream.cuts(batches)}, folder)
    schemas = {"g": "src BIGINT, dst BIGINT, _change_type STRING"}
    return Workload(f"w1 ({len(stream):,} events)", PATHS_SQL, {"g": folder / "g"}, schemas, len(stream), batches)


def revenue(orders: int, batches: int = BATCHES, seed: int = 9) -> Workload:
    """W3's stream with so many orders."""
    folder = DATA / "spark" / f"revenue-o{orders}-b{batches}-s{seed}"
    schemas = {
        "customer": "c_custkey BIGINT, c_nationkey BIGINT, c_mktsegment BIGINT, _change_type STRING",
        "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderdate BIGINT, o_shippriority BIGINT, _change_type STRING",
        "lineitem": "l_orderkey BIGINT, l_linenumber BIGINT, l_suppkey BIGINT, l_revenue BIGINT, l_shipdate BIGINT,"
        " l_returnflag BIGINT, _change_type STRING",
    }
    if not (folder / "done").exists():
        tables, cuts = _revenue_tables(orders, batches, np.random.default_rng(seed))
        _write(tables, cuts, folder)
    tables_at = {name: folder / name for name in schemas}
    rows = sum(pq.ParquetFile(f).metadata.num_rows for path in tables_at.values() for f in path.glob("*.parquet"))
    return Workload(f"w3 q3 ({rows:,} events)", REVENUE_SQL, tables_at, schemas, rows, batches)


def _revenue_tables(
    orders: int, batches: int, rng: np.random.Generator
) -> tuple[dict[str, pa.Table], dict[str, list[int]]]:
    customers = orders // 10
    customer = pa.table(
        {
            "c_custkey": np.arange(customers),
            "c_nationkey": rng.integers(0, 25, customers),
            "c_mktsegment": rng.integers(0, 5, customers),
            "_change_type": _types(np.ones(customers)),
        }
    )
    lines = rng.integers(1, 8, orders)
    first = np.concatenate(([0], np.cumsum(lines + 1)))  # where each order's facts begin: the order, then its lines
    facts = int(first[-1])
    is_order = np.zeros(facts, dtype=bool)
    is_order[first[:-1]] = True
    of_order = np.repeat(np.arange(orders), lines + 1)
    number = np.arange(facts) - first[of_order]
    date = 8035 + rng.integers(0, 2406, orders)
    columns = {
        "key": of_order,
        "custkey": rng.integers(0, customers, orders)[of_order],
        "date": date[of_order],
        "number": number,
        "suppkey": rng.integers(0, max(1, orders // 150), facts),
        "revenue": rng.integers(90_000, 10_000_000, facts) * 100,
        "shipdate": date[of_order] + rng.integers(1, 122, facts),
        "flag": rng.integers(0, 3, facts),
    }
    window = facts // 5
    order = np.empty(2 * facts - window, dtype=np.int64)
    op = np.ones(len(order), dtype=np.int64)
    order[:window] = np.arange(window)
    order[window::2] = np.arange(window, facts)
    order[window + 1 :: 2] = np.arange(facts - window)
    op[window + 1 :: 2] = -1
    cuts = [i * len(order) // batches for i in range(batches + 1)]
    of_orders = is_order[order]
    found = {name: values[order] for name, values in columns.items()}
    picked = {name: values[of_orders] for name, values in found.items()}
    rest = {name: values[~of_orders] for name, values in found.items()}
    tables = {
        "customer": customer,
        "orders": pa.table(
            {
                "o_orderkey": picked["key"],
                "o_custkey": picked["custkey"],
                "o_orderdate": picked["date"],
                "o_shippriority": np.zeros(len(picked["key"]), dtype=np.int64),
                "_change_type": _types(op[of_orders]),
            }
        ),
        "lineitem": pa.table(
            {
                "l_orderkey": rest["key"],
                "l_linenumber": rest["number"],
                "l_suppkey": rest["suppkey"],
                "l_revenue": rest["revenue"],
                "l_shipdate": rest["shipdate"],
                "l_returnflag": rest["flag"],
                "_change_type": _types(op[~of_orders]),
            }
        ),
    }
    before = np.concatenate(([0], np.cumsum(of_orders)))
    order_cuts = [int(before[c]) for c in cuts]
    line_cuts = [c - o for c, o in zip(cuts, order_cuts, strict=True)]
    return tables, {"customer": [0] + [customers] * batches, "orders": order_cuts, "lineitem": line_cuts}


def _types(op: np.ndarray) -> pa.Array:
    return pa.array(["delete", "insert"]).take(pa.array((op > 0).astype(np.int8)))


def _write(tables: Mapping[str, pa.Table], cuts: Mapping[str, list[int]], folder: Path) -> None:
    """One file per table and batch, with modification times a second apart: Spark reads files in this order."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        for at, (start, end) in enumerate(zip(cuts[name], cuts[name][1:], strict=False)):
            path = folder / name / f"{at:04d}.parquet"
            pq.write_table(table.slice(start, end - start), path)
            os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))
    (folder / "done").touch()
