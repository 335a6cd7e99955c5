"""A pipeline with an empty kernel: it reads, routes, logs and emits as many rows as the real one, and computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import pyarrow as pa

from everview.interop.batch import MULTIPLICITY
from everview.schema.arrow import arrow_type
from everview.schema.datatype import parse_type
from everview.shards.blob import Section, by_number
from everview.shards.durable import Applied, Stage
from everview.shards.pipeline import Pipeline, StageName
from everview.shards.view_stage import DELTA

Counts = Mapping[tuple[str, int, int], int]
"""Rows emitted by (stage, engine, batch)."""


class EmptyStage:
    """Emits rows of zeros."""

    def __init__(self, schema: pa.Schema, count: Callable[[], int]) -> None:
        self._schema = schema
        self._count = count

    def apply(self, sections: Sequence[Section], *, deltas: bool) -> Applied:
        rows = sum(batch.num_rows for batch in by_number(sections).values())
        count = self._count() if deltas else 0
        if not count:
            return Applied([], rows)
        columns = [pa.repeat(pa.scalar(1 if f.name == MULTIPLICITY else 0).cast(f.type), count) for f in self._schema]
        return Applied([(DELTA, [pa.RecordBatch.from_arrays(columns, schema=self._schema)])], rows)

    def begin(self, delta: list[Section]) -> list[Section]:
        return delta

    def snapshot(self) -> Iterator[Section]:
        return iter(())

    def restore(self, sections: Sequence[Section]) -> None:
        del sections

    def size(self) -> tuple[int, int]:
        return 0, 0


@dataclass(frozen=True)
class EmptyPipeline(Pipeline):
    """A pipeline whose engines are empty."""

    counts: Counts = None  # type: ignore[assignment]
    emitted: tuple[tuple[str, str], ...] = ()

    def make(self, stage: StageName, number: int, current_batch: Callable[[], int]) -> Stage:
        names = self.emitted if stage == "shard" else tuple((c.name, str(c.type)) for c in self.columns)
        fields_ = [pa.field(name, arrow_type(parse_type(kind))) for name, kind in names]
        schema = pa.schema([*fields_, pa.field(MULTIPLICITY, pa.int64())])
        return EmptyStage(schema, lambda: self.counts.get((stage, number, current_batch()), 0))


def emptied(pipeline: Pipeline, emitted: Sequence[tuple[str, str]], counts: Counts) -> EmptyPipeline:
    """The same pipeline with empty engines. Its changes are not netted or paired: they are not the view's."""
    values = {f.name: getattr(pipeline, f.name) for f in fields(Pipeline)}
    return EmptyPipeline(**values, counts=counts, emitted=tuple(emitted))
