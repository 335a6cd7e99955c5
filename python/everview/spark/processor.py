"""The stateful stages in a Spark worker: state variables as a store, engines held between batches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    Row,
    StringType,
    StructField,
    StructType,
)

from everview.shards.bad_rows import drop_other_parts
from everview.shards.durable import DurableEngine, Holder, Outcome, check_identity
from everview.shards.returning import Returning
from everview.spark.placement import GUARD
from everview.spark.told import Told, absent_columns

if TYPE_CHECKING:
    from everview.shards.pipeline import Pipeline

HOLDER = Holder()
"""The engines of this worker process."""

PACKED = StructType(
    [
        StructField("destination", IntegerType(), False),
        StructField("hop", IntegerType(), False),
        StructField("blob", BinaryType(), False),
    ]
)
"""What travels between hops: the key of an engine, the hop that the blob is for, and the blob."""

MEASURED = (
    ("engine", IntegerType()),
    ("held", LongType()),
    ("rebuilt", LongType()),
    ("rows_in", LongType()),
    ("rows_out", LongType()),
    ("state_rows", LongType()),
    ("state_bytes", LongType()),
    ("bytes_written", LongType()),
    ("stale_rows", LongType()),
    ("bad_rows", LongType()),
    ("seconds", DoubleType()),
    ("facts", StringType()),
)
"""What a hop tells of each engine and batch, in the row for the guard of the next hop."""

EMITTED = StructType([*PACKED.fields, *(StructField(name, kind, True) for name, kind in MEASURED)])

_TEXT = StructType([StructField("text", StringType(), False)])
_NUMBER = StructType([StructField("number", LongType(), False)])
_BYTES = StructType([StructField("bytes", BinaryType(), False)])

HEAD, LOG, SNAPSHOT = "head", "log", "snapshot"


def current_batch() -> int:
    """The number of the micro-batch that this task belongs to; 0 outside of streams."""
    context = TaskContext.get()
    found = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return 0 if found is None else int(found)


class _StateStore:
    """The state variables of one grouping key as a store. Log and snapshot are maps: each blob is a row of its own in RocksDB."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState(HEAD, _TEXT)
        self._log = handle.getMapState(LOG, _NUMBER, _BYTES)
        self._snapshot = handle.getMapState(SNAPSHOT, _NUMBER, _BYTES)

    def read_head(self) -> str | None:
        found = self._head.get()
        return None if found is None else found[0]

    def write_head(self, text: str) -> None:
        self._head.update((text,))

    def read_log(self) -> Iterable[bytes]:
        return _in_order(self._log)

    def append_log(self, entries: Sequence[bytes], at: int) -> None:
        for number, entry in enumerate(entries):
            self._log.updateValue((at + number,), (entry,))

    def clear_log(self) -> None:
        self._log.clear()

    def read_snapshot(self) -> Iterable[bytes]:
        return _in_order(self._snapshot)

    def write_snapshot(self, blobs: Iterator[bytes]) -> None:
        self._snapshot.clear()
        for number, blob in enumerate(blobs):
            self._snapshot.updateValue((number,), (blob,))


def _in_order(state: Any) -> Iterable[bytes]:
    found = sorted((key[0], value[0]) for key, value in state.iterator())
    return [bytes(value) for _, value in found]


class EngineProcessor(StatefulProcessor):
    """One hop. Every grouping key is an engine; blobs for later hops pass through.

    The guard checks the identity of the state, and sums up what the tasks before tell of rows that were set aside and of columns that are not there.
    """

    def __init__(self, pipeline: Pipeline, hop: int, keys: Sequence[int]) -> None:
        self._pipeline = pipeline
        self._hop = hop
        self._keys = keys
        self._number = {key: number for number, key in enumerate(keys)}

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = _StateStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803, ARG002
        if key[0] == GUARD:
            about = result_spec(self._pipeline) if self._hop + 1 == self._pipeline.exit else {}
            text = check_identity(self._store.read_head(), self._pipeline.identity, about)
            if text is not None:
                self._store.write_head(text)
            told = [Told.from_blob(bytes(row.blob)) for row in rows if row.blob]
            self._drop_letters_of_other_parts(told)
            found = {"bad_rows": sum(t.bad for t in told), "facts": _lines(absent_columns(told))}
            if any(found.values()):
                yield _row(GUARD, self._hop, b"", tuple(found.get(name) for name, _ in MEASURED))
            return
        number = self._number[key[0]]
        blobs = []
        for row in rows:
            if row.hop == self._hop:
                blobs.append(bytes(row.blob))
            else:
                yield _row(key[0], row.hop, bytes(row.blob))
        if not blobs:  # it only passes something on
            return
        run = Returning(self._engine(number).run(self._store, blobs))
        for (hop, destination), blob in self._pipeline.forward(self._hop, number, run):
            yield _row(self._keys[destination], hop, blob)
        yield _row(GUARD, self._hop, b"", measured(number, run.returned))

    def _drop_letters_of_other_parts(self, told: Sequence[Told]) -> None:
        if self._pipeline.dead_letters is None:
            return
        for table in {t.table for t in told}:
            parts = {t.part for t in told if t.table == table}
            drop_other_parts(self._pipeline.dead_letters, current_batch(), table, parts)

    def _engine(self, number: int) -> DurableEngine:
        pipeline, hop = self._pipeline, self._hop
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        key = (query, pipeline.identity.fingerprint, hop, number)
        threads = 1 if context is None else context.cpus()
        make = partial(pipeline.make, hop, number, current_batch, threads)
        return DurableEngine(pipeline.identity, make, HOLDER, key, pipeline.made_with)


def result_spec(pipeline: Pipeline) -> dict[str, Any]:
    """What is needed to read the result from the state of the last hop's engines alone."""
    last = pipeline.hops[-1]
    columns = [[c.name, str(c.type), c.nullable] for c in pipeline.columns]
    return {
        "result": {
            "view": pipeline.name,
            "engine": last.spec.to_json(),
            "export": pipeline.result,
            "shards": pipeline.shards,
            "one_place": last.outlets[pipeline.result].one_place,
            "columns": columns,
        }
    }


def measured(number: int, outcome: Outcome) -> tuple[Any, ...]:
    """What is told of a batch, in the order of ``MEASURED``."""
    return (
        number,
        int(outcome.source == "held"),
        int(outcome.source == "rebuilt"),
        outcome.rows_in,
        outcome.rows_out,
        outcome.state_rows,
        outcome.state_bytes,
        outcome.written,
        outcome.notes.get("stale", 0),
        outcome.notes.get("bad", 0),
        outcome.seconds,
        _lines(outcome.facts),
    )


def _lines(facts: Iterable[Mapping[str, Any]]) -> str | None:
    """Facts as lines of JSON, which travel with the metrics."""
    return "\n".join(json.dumps(fact) for fact in facts) or None


_NOTHING = (None,) * len(MEASURED)


def _row(destination: int, hop: int, blob: bytes, about: tuple[Any, ...] = _NOTHING) -> Row:
    return Row(**dict(zip(EMITTED.names, (destination, hop, blob, *about), strict=True)))
