"""A pipeline with an empty kernel: it reads, routes, logs, writes snapshots and emits as many rows as the real one, and computes nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import pyarrow as pa
import pyarrow.compute as pc

from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.shards.blob import Section, by_number, slices
from everview.shards.durable import Applied, Stage
from everview.shards.pipeline import Pipeline, hop_name

Counts = Mapping[tuple[str, int, int], int]
"""A number by (stage, engine, batch)."""

_PIECE = 1 << 17
_PARTS = 16
"""Rows are emitted in pieces, as the kernel does: parts from all over a real batch, which take as many bytes on their way as real ones."""


class EmptyStage:
    """Emits the given rows over and over; its snapshots are as large as those of the real one."""

    def __init__(self, piece: pa.RecordBatch, emitted: Callable[[], int], held: Callable[[], int]) -> None:
        self._piece = piece
        self._emitted = emitted
        self._held = held
        self._seen: dict[int, pa.RecordBatch] = {}

    def apply(self, sections: Sequence[Section], *, deltas: bool) -> Applied:
        rows = by_number(sections)
        self._seen |= rows
        return Applied(self._pieces(self._emitted() if deltas else 0), sum(batch.num_rows for batch in rows.values()))

    def _pieces(self, count: int) -> Iterator[Section]:
        for at in range(0, count, self._piece.num_rows):
            yield 0, [self._piece.slice(0, count - at)]

    def begin(self, delta: Sequence[Section]) -> Sequence[Section]:
        return delta

    def snapshot(self) -> Iterator[Section]:
        share = self._held() // max(1, len(self._seen))
        for number, rows in self._seen.items():
            for at in range(0, share, rows.num_rows):
                for part in slices(rows.slice(0, min(rows.num_rows, share - at))):
                    yield number, [part]

    def restore(self, sections: Sequence[Section]) -> None:
        del sections

    def size(self) -> tuple[int, int]:
        return 0, 0


@dataclass(frozen=True)
class EmptyPipeline(Pipeline):
    """A pipeline whose engines are empty. ``piece``: the file of what they emit."""

    counts: Counts = None  # type: ignore[assignment]
    held: Counts = None  # type: ignore[assignment]
    piece: str = ""

    def make(self, hop: int, number: int, current_batch: Callable[[], int], threads: int = 1) -> Stage:  # noqa: ARG002
        with pa.ipc.open_file(self.piece) as file:
            piece = file.get_batch(0)
        at = lambda counts: counts.get((hop_name(hop), number, current_batch()), 0)  # noqa: E731
        return EmptyStage(piece, lambda: at(self.counts), lambda: at(self.held))


def emptied(pipeline: Pipeline, changes: pa.Table, counts: Counts, held: Counts) -> EmptyPipeline:
    """The same pipeline with empty engines, which emit rows of ``changes``, those of one batch. They are not netted or paired: they are not the view's."""
    if len(pipeline.hops) > 1:
        raise ValueError(
            f"`{pipeline.name}` merges its shards, and what they emit is not known here: run it with --shards 1"
        )
    signs = pc.if_else(pc.is_in(changes[CHANGE_TYPE], pa.array(["insert", "update_postimage"])), 1, -1)
    rows = changes.select([c.name for c in pipeline.columns]).append_column(MULTIPLICITY, signs.cast(pa.int64()))
    parts = [rows.slice(rows.num_rows * i // _PARTS, _PIECE // _PARTS) for i in range(_PARTS)]
    piece = pa.concat_tables(parts).combine_chunks().to_batches()[0]
    handle, path = tempfile.mkstemp(prefix="everview-bench-", suffix=".arrow")
    os.close(handle)
    with pa.ipc.new_file(path, piece.schema) as writer:
        writer.write_batch(piece)
    values = {f.name: getattr(pipeline, f.name) for f in fields(Pipeline)}
    return EmptyPipeline(**values, counts=counts, held=held, piece=path)
