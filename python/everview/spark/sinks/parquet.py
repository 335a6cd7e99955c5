"""A view as a directory of Parquet files, of which a batch rewrites only the buckets it touches.

Rows are spread over buckets by Spark's hash of the key (or of all columns). Executors read the old file of a bucket, add the net change and
stage the new one; the driver commits (``parquet_store``). The table holds the view's rows as they are, so anything that reads a directory of
Parquet files reads it.

A batch costs one shuffle of its changes, and reading and writing the buckets touched. One bucket with its changes must fit into the memory of
a Python worker: choose ``buckets`` by the size of the view. The directory is on a file system that driver and executors share and that renames
atomically; object stores do not.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from everview.errors import SchemaError, SinkError
from everview.spark.inputs.table_input import quoted
from everview.spark.sinks.changes import (
    MULTIPLICITY,
    above_one,
    added_up,
    arrow_schema,
    check_key,
    checked_key,
    column,
    counted,
    drain,
    first_row,
    repeated,
    run,
    signed_changes,
    view_schema,
)
from everview.spark.sinks.job_sink import DirectorySink, SinkFunction, or_none
from everview.spark.sinks.parquet_store import SCHEMA_FILE, State, Store
from everview.spark.sinks.progress import (
    check_first_batch,
    is_replay,
    missing_row,
    other_schema,
    repeated_key,
    writer_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.spark.job_keys import Section

BUCKET = "bucket"


def parquet_sink(
    path: str | os.PathLike[str],
    *,
    key: str | Sequence[str] | None = None,
    buckets: int = 8,
    app_id: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that keeps the directory ``path`` equal to the view.

    ``key`` names columns that identify a row; without it the view is a bag. ``buckets`` and ``key`` stay as they are for the life of a table.
    ``app_id`` names the writer where several queries write to one table.
    """
    directory, names = _local_directory(path), checked_key(key)
    if buckets < 1:
        raise SchemaError("INVALID_ARGUMENT", f"buckets={buckets!r} is not a positive number", hint="pass 1 or more")
    store = Store(directory)

    def write(changes: DataFrame, batch_id: int) -> None:
        schema = view_schema(changes)
        check_key(names, schema)
        writer = writer_of(changes, app_id)
        if not store.is_there():
            is_replay(str(directory), writer, last=None, batch_id=batch_id)  # a first batch, or refused
        with store.locked():
            state = store.recover()
            new = state is None
            if state is None:
                if store.visible():
                    message = f"{directory} has files that everview did not write, such as {store.visible()[0]}"
                    raise SinkError("SINK_NOT_EMPTY", message, hint="write to a new directory", app_id=writer.app_id)
                state = State(_columns(schema), _listed(names), buckets)
            _check_options(directory, state, schema, names, buckets)
            last = state.batches.get(writer.app_id)
            if is_replay(str(directory), writer, last=last, batch_id=batch_id):
                drain(changes)
                return
            check_first_batch(str(directory), writer, last=last, empty=not state.files)
            rewritten = _rewrite(
                changes, Rewrite(directory, store.staged, arrow_schema(schema), names, state.files), buckets
            )
            publish = [r.file for r in rewritten if r.file is not None]
            if new:
                _write_file(store.staged / SCHEMA_FILE, arrow_schema(schema).empty_table())
                publish.append(SCHEMA_FILE)
            remove = [state.files[str(r.bucket)] for r in rewritten if str(r.bucket) in state.files]
            files = state.files | {str(r.bucket): r.file for r in rewritten}
            after = replace(
                state,
                files={bucket: file for bucket, file in files.items() if file is not None},
                batches=state.batches | {writer.app_id: batch_id},
            )
            store.commit(publish, remove, after)
            store.drop_staged()

    return write


# ---- on the driver ---------------------------------------------------------------------------------------------------


def _local_directory(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    parsed = urlparse(text)
    if parsed.scheme == "file":
        return Path(unquote(parsed.path))
    if "://" in text:
        message = f"{text!r} is not a directory of a file system that renames atomically"
        raise SchemaError(
            "INVALID_ARGUMENT", message, hint="use a mounted directory, or delta_sink for an object store"
        )
    return Path(text).absolute()


def _columns(schema: st.StructType) -> list[list[str]]:
    return [[f.name, f.dataType.simpleString()] for f in schema.fields]


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


def _check_options(
    directory: Path, state: State, schema: st.StructType, key: tuple[str, ...] | None, buckets: int
) -> None:
    for what, there, here in (
        ("columns", state.columns, _columns(schema)),
        ("key", state.key, _listed(key)),
        ("buckets", state.buckets, buckets),
    ):
        if there != here:
            raise other_schema(str(directory), f"its {what} are {there}, and {here} came")


def _rewrite(changes: DataFrame, plan: Rewrite, buckets: int) -> list[Row]:
    """Stage the buckets that a batch touches, in one action; a row per bucket: its number and its new file, if it has rows."""
    hashed = [column(name) for name in plan.key or plan.schema.names]
    bucket = sf.pmod(sf.xxhash64(*hashed), sf.lit(buckets)).cast("int")
    # mapInArrow does not take every name: columns go by their position.
    values = [column(name).alias(f"c{n}") for n, name in enumerate(plan.schema.names)]
    signed = signed_changes(changes).select(*values, column(MULTIPLICITY), bucket.alias(BUCKET))
    spread = signed.repartitionById(buckets, column(BUCKET))
    rewritten: list[Row] = run(spread.mapInArrow(partial(rewrite_buckets, plan), OUTCOME).collect)
    for outcome in rewritten:
        if outcome.missing is not None:
            raise missing_row(str(plan.directory), _unpacked(outcome.missing))
        if outcome.repeated is not None:
            raise repeated_key(str(plan.directory), _unpacked(outcome.repeated))
        if outcome.damaged is not None:
            message = f"a file of {plan.directory} cannot be read: {outcome.damaged}"
            raise SinkError("SINK_DAMAGED", message, hint="start a new table from a new checkpoint")
    return rewritten


def _unpacked(row: bytes) -> dict[str, Any]:
    with pa.ipc.open_stream(row) as stream:
        return first_row(stream.read_all())


# ---- on the executors ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a task must know to rewrite buckets."""

    directory: Path
    staged: Path
    schema: pa.Schema
    key: tuple[str, ...] | None
    files: dict[str, str]


# A row per bucket touched: its new file (none if it is empty now), or what is wrong, a row being an Arrow stream.
OUTCOME = "bucket int, file string, missing binary, repeated binary, damaged string"


def rewrite_buckets(plan: Rewrite, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stage the new files of all buckets in a partition. A task may run twice: names are unique, and the driver takes one of them."""
    arrived = list(batches)
    if not arrived:
        return
    changes = pa.Table.from_batches(arrived)
    for bucket in pc.unique(changes[BUCKET]).to_pylist():
        part = changes.filter(pc.equal(changes[BUCKET], bucket)).drop_columns([BUCKET])
        schema = plan.schema.append(pa.field(MULTIPLICITY, pa.int64()))
        outcome = _rewrite_bucket(plan, bucket, part.rename_columns(schema.names).cast(schema))
        row = {"file": None, "missing": None, "repeated": None, "damaged": None} | outcome
        fields = [("bucket", pa.int32()), ("file", pa.string())]
        fields += [("missing", pa.binary()), ("repeated", pa.binary()), ("damaged", pa.string())]
        yield pa.RecordBatch.from_pylist([{"bucket": bucket} | row], schema=pa.schema(fields))


def _rewrite_bucket(plan: Rewrite, bucket: int, changes: pa.Table) -> dict[str, Any]:
    parts, old = [changes], plan.files.get(str(bucket))
    if old is not None:
        try:
            rows = pq.read_table(plan.directory / old, partitioning=None).cast(plan.schema)
        except (OSError, pa.ArrowException) as error:
            return {"damaged": f"{old}: {error}"}
        parts.append(counted(rows))
    after = added_up(parts, plan.schema.names)
    negative = after.filter(pc.less(after[MULTIPLICITY], 0))
    if negative.num_rows:
        return {"missing": _packed(negative)}
    after = after.filter(pc.greater(after[MULTIPLICITY], 0))
    if plan.key is not None and (twice := above_one(after, plan.key)).num_rows:
        return {"repeated": _packed(twice)}
    if not after.num_rows:
        return {}
    name = f"bucket-{bucket:05d}-{uuid.uuid4().hex}.parquet"
    _write_file(plan.staged / name, repeated(after))
    return {"file": name}


def _packed(rows: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_table(rows.slice(0, 1))
    return bytes(out.getvalue())


def _write_file(path: Path, rows: pa.Table) -> None:
    with path.open("wb") as handle:
        pq.write_table(rows, handle)
        handle.flush()
        os.fsync(handle.fileno())


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSink(DirectorySink):
    """A directory of Parquet files."""

    kind: ClassVar[str] = "parquet"
    keys: ClassVar[tuple[str, ...]] = ("path", "key", "buckets")
    buckets: int = 8

    @classmethod
    def read(cls, section: Section, key: tuple[str, ...] | None) -> Self:
        return cls(path=cls.read_path(section), key=key, buckets=section.positive("buckets", 8))

    def writer(self, view: str, on_rows: Callable[[str], None]) -> SinkFunction:
        del view, on_rows
        return parquet_sink(self.path, key=self.key, buckets=self.buckets)

    def contents(self, spark: SparkSession, schema: st.StructType, checkpoint: str) -> DataFrame | None:
        del checkpoint
        return or_none(lambda: spark.read.parquet(self.path).select(*map(quoted, schema.names)))
