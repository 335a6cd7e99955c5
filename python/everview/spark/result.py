"""The full result of a view from its checkpoint, while its query runs or when it does not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from everview.errors import CheckpointError
from everview.interop.expand import expand
from everview.schema.datatype import parse_type
from everview.shards.durable import DurableEngine, Holder
from everview.shards.identity import Identity
from everview.shards.view_engine import EngineSpec
from everview.shards.view_stage import ViewStage
from everview.spark.metrics import only_view
from everview.spark.placement import GUARD, engine_keys
from everview.spark.processor import HEAD, LOG, SNAPSHOT
from everview.spark.types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 1 << 16
_KIND = {HEAD: 0, LOG: 1, SNAPSHOT: 2}


def full_result(spark: SparkSession, checkpoint: str, view: str | None = None) -> DataFrame:
    """The rows of a view as of the last batch that its query has committed, duplicates repeated.

    ``checkpoint``: the query's checkpoint location. ``view``: the name that ``maintain`` was given, where the query has several views.
    The engines are rebuilt from their state, each in a task of its own.
    """
    metadata = spark.read.format("state-metadata").load(checkpoint).collect()
    operators = sorted({row["operatorId"] for row in metadata if row["operatorName"].startswith("transformWithState")})
    batch = max((row["maxBatchId"] for row in metadata), default=-1)
    found = {}
    for operator in operators:
        heads = _state(spark, checkpoint, operator, batch, HEAD)
        guard = heads.filter(f.col("key.destination") == GUARD).select("value.text").head()
        about = {} if guard is None else json.loads(guard[0])
        if "result" in about:
            found[about["result"]["view"]] = (operator, about)
    wanted = view or only_view(list(found))
    if wanted in found:
        operator, about = found[wanted]
        return _rebuilt(spark, checkpoint, operator, batch, about)
    raise CheckpointError(
        "NO_RESULT",
        f"there is no view{'' if view is None else f' {view}'} in the checkpoint {checkpoint}",
        hint="pass the checkpointLocation of a query that writes what maintain() returned, after its first batch",
    )


def _rebuilt(spark: SparkSession, checkpoint: str, operator: int, batch: int, about: dict[str, Any]) -> DataFrame:
    columns = about["result"]["columns"]
    schema = StructType([StructField(n, to_spark(parse_type(kind)), nullable) for n, kind, nullable in columns])
    identity = Identity.from_json(about)
    none = f.lit(None).cast("binary")
    parts = []
    for name, kind in _KIND.items():
        rows = _state(spark, checkpoint, operator, batch, name).filter(f.col("key.destination") != GUARD)
        number, value = ("user_map_key.number", "user_map_value.bytes")
        picked = (
            (f.lit(0).cast("long"), f.encode("value.text", "utf-8")) if name == HEAD else (f.col(number), f.col(value))
        )
        parts.append(
            rows.select(
                "key.destination",
                f.lit(kind).alias("kind"),
                picked[0].alias("number"),
                f.coalesce(picked[1], none).alias("bytes"),
            )
        )
    state = parts[0].union(parts[1]).union(parts[2])
    found = about["result"]
    rebuild = Rebuild(EngineSpec.from_json(found["engine"]), found["export"], identity)
    engines = max(1, about["shards"])
    if found["one_place"]:
        state = state.filter(f.col("destination") == engine_keys(found["shards"])[0])
    return state.repartition(engines, "destination").mapInArrow(rebuild, schema)


def _state(spark: SparkSession, checkpoint: str, operator: int, batch: int, variable: str) -> DataFrame:
    reader = spark.read.format("statestore").option("operatorId", operator).option("batchId", batch)
    return reader.option("stateVarName", variable).load(checkpoint)


class _ReadStore:
    """The state of one engine, read."""

    def __init__(self) -> None:
        self.head: str | None = None
        self.blobs: dict[int, list[tuple[int, bytes]]] = {_KIND[LOG]: [], _KIND[SNAPSHOT]: []}

    def read_head(self) -> str | None:
        return self.head

    def read_log(self) -> Iterable[bytes]:
        return [blob for _, blob in sorted(self.blobs[_KIND[LOG]])]

    def read_snapshot(self) -> Iterable[bytes]:
        return [blob for _, blob in sorted(self.blobs[_KIND[SNAPSHOT]])]


@dataclass(frozen=True)
class Rebuild:
    """Rebuilds the engines whose state a task gets, and yields their results."""

    spec: EngineSpec
    export: int
    identity: Identity

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stores: dict[int, _ReadStore] = {}
        for batch in batches:
            for row in batch.to_pylist():
                store = stores.setdefault(row["destination"], _ReadStore())
                if row["kind"] == _KIND[HEAD]:
                    store.head = row["bytes"].decode()
                else:
                    store.blobs[row["kind"]].append((row["number"], row["bytes"]))
        for destination, store in sorted(stores.items()):
            engine = DurableEngine(self.identity, lambda: ViewStage(self.spec), Holder(), destination)
            stage = engine.read(store)
            if isinstance(stage, ViewStage):
                for rows in stage.result(self.export):
                    plain = pa.schema([rows.schema.field(i) for i in range(rows.num_columns - 1)])
                    yield from expand(rows, plain, _ROWS)
