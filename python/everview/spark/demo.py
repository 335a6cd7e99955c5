"""What ``everview demo`` runs on Spark: a join on which Spark's own state explodes, and a revenue view over a stream of changes."""

from __future__ import annotations

import datetime as dt
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from everview.interop.batch import CHANGE_TYPE
from everview.spark.maintain import explain, maintain
from everview.spark.metrics import read_metrics
from everview.spark.quiet import errors_into
from everview.spark.result import full_result
from everview.spark.settings import configure
from everview.spark.sinks import net_changes, parquet_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Row = tuple[Any, ...]

HOT_ROWS = 1_000
HOT_SQL = "SELECT r.a, s.b, t.c FROM r JOIN s ON r.k = s.k JOIN t ON s.j = t.j"
HOT_SCHEMAS = {"r": "a BIGINT, k BIGINT", "s": "k BIGINT, j BIGINT, b BIGINT", "t": "j BIGINT, c BIGINT"}

REVENUE_SQL = """
SELECT l_orderkey, o_orderdate, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS items
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate
"""
REVENUE_SCHEMAS = {
    "customer": "c_custkey BIGINT, c_mktsegment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderdate DATE",
    "lineitem": "l_orderkey BIGINT, l_linenumber INT, l_extendedprice DECIMAL(12,2), l_discount DECIMAL(12,2)",
}
REVENUE_KEYS = {"customer": ["c_custkey"], "orders": ["o_orderkey"], "lineitem": ["l_orderkey", "l_linenumber"]}
REVENUE_BATCHES = 12
_CUSTOMERS = 1_000
_ORDERS_PER_BATCH = 1_500
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")


def start(folder: Path, cores: int = 2) -> SparkSession:
    """A local session that writes its log to the folder."""
    builder = SparkSession.builder.master(f"local[{cores}]").appName("everview demo")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    with errors_into(folder / "spark.log"):
        return configure(builder, shards=1).getOrCreate()


# ---- (a) the hot key -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HotKey:
    """Rows that each side holds as state and has in its result, after the inserts and after the deletes."""

    everview_state: int
    everview_result: int
    everview_seconds: float
    everview_state_after: int
    everview_result_after: int
    spark_state: int
    spark_seconds: float
    spark_state_after: int
    rows: int


def hot_key(spark: SparkSession, folder: Path, tell: Callable[[str], None]) -> HotKey:
    """Three tables joined over one hot key, first filled and then emptied; the third matches nothing, so the result is empty."""
    rows: dict[str, list[Row]] = {
        "r": [(i, 0) for i in range(HOT_ROWS)],
        "s": [(0, i, i) for i in range(HOT_ROWS)],
        "t": [(-1, 0)],
    }
    for name, found in rows.items():
        _write(folder / "hot" / name, 0, _table(HOT_SCHEMAS[name], found, "insert"))
    total = sum(len(found) for found in rows.values())
    tell(f"everview maintains it over {total:,} inserted rows")
    streams = {n: _stream(spark, folder / "hot" / n, f"{s}, {CHANGE_TYPE} STRING") for n, s in HOT_SCHEMAS.items()}
    checkpoint = str(folder / "hot-everview")

    def ours() -> tuple[int, float, int]:
        started = time.perf_counter()
        query = maintain(spark, HOT_SQL, streams, shards=1).writeStream.format("noop")
        done = _finished(query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start())
        held = read_metrics(done[-1])["shard"]["state_rows"]
        return int(held), time.perf_counter() - started, full_result(spark, checkpoint).count()

    state, seconds, result = ours()
    tell("Spark joins the same three streams itself")
    bare = {n: _stream(spark, folder / "hot" / n, s) for n, s in HOT_SCHEMAS.items()}
    started = time.perf_counter()
    joined = bare["r"].join(bare["s"], "k").join(bare["t"], "j")
    query = joined.writeStream.format("noop").option("checkpointLocation", str(folder / "hot-spark"))
    spark_state = _state_rows(_finished(query.trigger(availableNow=True).start()))
    spark_seconds = time.perf_counter() - started
    tell("all rows are deleted")
    for name, found in rows.items():
        _write(folder / "hot" / name, 1, _table(HOT_SCHEMAS[name], found, "delete"))
    state_after, _, result_after = ours()
    return HotKey(
        everview_state=state,
        everview_result=result,
        everview_seconds=seconds,
        everview_state_after=state_after,
        everview_result_after=result_after,
        spark_state=spark_state,
        spark_seconds=spark_seconds,
        spark_state_after=spark_state,  # a stream-stream join has no way to take a row back
        rows=total,
    )


def _state_rows(progress: Sequence[Mapping[str, Any]]) -> int:
    return sum(operator["numRowsTotal"] for operator in progress[-1]["stateOperators"])


# ---- (b) the revenue view --------------------------------------------------------------------------------------------


@dataclass
class Revenue:
    """The live view: what went in and out so far, and what it holds."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    state_rows: int = 0
    seconds: float = 0.0
    explained: str = ""
    largest: list[Row] = field(default_factory=list)
    result_rows: int = 0
    only_maintained: int = 0
    only_recomputed: int = 0
    summed_equal: bool = False


def revenue(spark: SparkSession, folder: Path, tell: Callable[[Revenue], None]) -> Revenue:
    """Maintains the view over a stream of changes into a Parquet table, and recomputes it at the end."""
    current = write_revenue_stream(folder / "revenue")
    streams = {
        name: _stream(spark, folder / "revenue" / name, f"{schema}, {CHANGE_TYPE} STRING")
        for name, schema in REVENUE_SCHEMAS.items()
    }
    live = Revenue(explained=explain(REVENUE_SQL, streams, primary_keys=REVENUE_KEYS, shards=1))
    changes = maintain(spark, REVENUE_SQL, streams, primary_keys=REVENUE_KEYS, shards=1)
    target, summed = parquet_sink(str(folder / "out")), Counter[Row]()

    def write(batch: DataFrame, number: int) -> None:
        kept = batch.persist()
        try:
            target(kept, number)
            for row in net_changes(kept).collect():
                summed[tuple(row)[:-1]] += row[-1]
        finally:
            kept.unpersist()

    writer = changes.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "revenue-checkpoint"))
    query = writer.trigger(availableNow=True).start()
    seen = -1
    while True:
        ended = query.awaitTermination(1)
        for progress in query.recentProgress:
            if progress["batchId"] > seen and progress["numInputRows"]:
                seen = progress["batchId"]
                _count(live, progress)
                tell(live)
        if ended:
            break
    for name, schema in REVENUE_SCHEMAS.items():
        spark.createDataFrame(current[name], schema).createOrReplaceTempView(name)
    recomputed = spark.sql(REVENUE_SQL).cache()
    result = spark.read.parquet(str(folder / "out")).cache()
    live.result_rows = result.count()
    live.only_maintained = result.exceptAll(recomputed).count()
    live.only_recomputed = recomputed.exceptAll(result).count()
    live.summed_equal = Counter(tuple(r) for r in result.collect()) == +summed and not -summed
    live.largest = [tuple(r) for r in result.orderBy(result.revenue.desc(), "l_orderkey").limit(10).collect()]
    return live


def _count(live: Revenue, progress: Mapping[str, Any]) -> None:
    stages = read_metrics(progress)
    live.batches += 1
    live.rows_in += progress["numInputRows"]
    live.rows_out += int(stages["shard"]["rows_out"])
    live.state_rows = int(stages["shard"]["state_rows"])
    live.seconds += progress["batchDuration"] / 1000


def write_revenue_stream(folder: Path) -> dict[str, list[Row]]:
    """Writes the stream's files, one per table and batch; returns the tables' final rows.

    New orders with their lines, orders taken back, prices corrected, customers moved to another segment.
    """
    rng = random.Random(3)  # noqa: S311 a reproducible stream, not a secret
    current: dict[str, dict[Any, Row]] = {name: {} for name in REVENUE_SCHEMAS}
    lines: dict[int, list[tuple[int, int]]] = {}
    for batch in range(REVENUE_BATCHES):
        before = {name: dict(rows) for name, rows in current.items()}
        if batch == 0:
            current["customer"] = {k: (k, rng.choice(_SEGMENTS)) for k in range(_CUSTOMERS)}
        for order in range(batch * _ORDERS_PER_BATCH, (batch + 1) * _ORDERS_PER_BATCH):
            day = dt.date(1994, 9, 1) + dt.timedelta(days=rng.randrange(300))
            current["orders"][order] = (order, rng.randrange(_CUSTOMERS), day)
            lines[order] = [(order, number) for number in range(rng.randint(1, 6))]
            current["lineitem"] |= {key: _line(key, rng) for key in lines[order]}
        for order in rng.sample(sorted(current["orders"]), len(current["orders"]) // 20):
            del current["orders"][order]
            for key in lines.pop(order):
                del current["lineitem"][key]
        for order in rng.sample(sorted(current["orders"]), len(current["orders"]) // 50):
            key = lines[order][-1]
            current["lineitem"][key] = _line(key, rng)
        for customer in rng.sample(range(_CUSTOMERS), 10):
            current["customer"][customer] = (customer, rng.choice(_SEGMENTS))
        for name, schema in REVENUE_SCHEMAS.items():
            _write(folder / name, batch, pa.concat_tables(_images(schema, before[name], current[name])))
    return {name: list(rows.values()) for name, rows in current.items()}


def _line(key: tuple[int, int], rng: random.Random) -> Row:
    price = Decimal(rng.randrange(100_000, 10_000_000)).scaleb(-2)
    return (*key, price, Decimal(rng.randrange(11)).scaleb(-2))


def _images(schema: str, before: Mapping[Any, Row], after: Mapping[Any, Row]) -> Iterator[pa.Table]:
    """What leads from one content of a table to another, in Spark's change types."""
    changed = [key for key in after if key in before and before[key] != after[key]]
    yield _table(schema, [row for key, row in after.items() if key not in before], "insert")
    yield _table(schema, [row for key, row in before.items() if key not in after], "delete")
    yield _table(schema, [before[key] for key in changed], "update_preimage")
    yield _table(schema, [after[key] for key in changed], "update_postimage")


# ---- files -----------------------------------------------------------------------------------------------------------

_ARROW = {"BIGINT": pa.int64(), "INT": pa.int32(), "STRING": pa.string(), "DATE": pa.date32()}


def _table(schema: str, rows: Sequence[Row], change_type: str) -> pa.Table:
    columns = [column.split(" ") for column in schema.split(", ")]
    types = [(name, _ARROW.get(kind) or pa.decimal128(12, 2)) for name, kind in columns]
    arrays = [pa.array([row[i] for row in rows], type=kind) for i, (_, kind) in enumerate(types)]
    table = pa.Table.from_arrays(arrays, names=[name for name, _ in types])
    return table.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(change_type), len(rows)))


def _write(folder: Path, batch: int, table: pa.Table) -> None:
    """A file for a batch; files are read in the order of their times."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{batch:04d}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


def _stream(spark: SparkSession, folder: Path, schema: str) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def _finished(query: StreamingQuery) -> list[Any]:
    query.awaitTermination()
    return [p for p in query.recentProgress if p["numInputRows"]]
