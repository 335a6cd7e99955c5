"""A view's pipeline over engines in other processes, without saying what carries rows between them.

Rows of a source are dispatched (to the shards, or to the normaliser if the table has a key); the normaliser's changes are dispatched to
the shards; the shards' changes go to the merging engines, or, where nothing is left to merge, to the exit; at the exit changes of all shards
stand together, are netted and paired, and leave. Each arrow is a number (which engine) and a blob.

A ``Pipeline`` is made of values only: it is sent to workers as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from everview.plan.distribute import Layout
from everview.query.logical_view import OutputColumn
from everview.schema.table import Table
from everview.shards.bad_rows import BadRows, DeadLetterFile
from everview.shards.blob import Section, concat, slices
from everview.shards.changes import net, with_change_types
from everview.shards.durable import Stage
from everview.shards.identity import Identity, TableShape
from everview.shards.normaliser import KeyedInput, Normaliser
from everview.shards.parcels import Parcels
from everview.shards.routing import CopyRoute, KeyRouter, TableRouter, table_routes
from everview.shards.view_engine import EngineSpec
from everview.shards.view_stage import DELTA, ViewStage

if TYPE_CHECKING:
    import pyarrow as pa

StageName = Literal["normalise", "shard", "merge"]


@dataclass(frozen=True, slots=True)
class Source:
    """A table that comes in: how its rows reach the shards, and which input of the normaliser it is, if it has a key."""

    table: Table
    routes: tuple[CopyRoute, ...]
    keyed: int | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All that workers need to know of a view."""

    name: str
    identity: Identity
    shards: int
    sources: tuple[Source, ...]
    inputs: tuple[KeyedInput, ...]
    shard: EngineSpec
    merge: EngineSpec | None
    bucket_columns: tuple[int, ...] | None
    """Positions of the emitted columns by which changes are gathered at the next stage; None if each shard's stay apart."""
    disjoint: bool
    key: tuple[int, ...] | None
    columns: tuple[OutputColumn, ...]
    dead_letters: str | None
    tombstone_seconds: float

    @property
    def made_with(self) -> tuple[str | None, float]:
        """What engines are made with that their state does not depend on: an engine held in memory is used only with the same."""
        return self.dead_letters, self.tombstone_seconds

    # ---- from the sources to the shards ----------------------------------------------------------------------------

    def dispatch(self, source: int, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
        """Rows of a source (in its column order, as its kind of input has it, and with the input rows if they carry them) to the next stage."""
        found = self.sources[source]
        parcels = Parcels(range(self.shards))
        for rows in batches:
            if found.keyed is None:
                self._to_shards(found, rows, parcels)
            else:
                given = self.inputs[found.keyed]
                names = [c.name for c in given.table.columns]
                router = KeyRouter([names.index(k) for k in given.table.primary_key], self.shards)
                for at, part in router.route(given.lightened(rows)):
                    parcels.add([at], found.keyed, part)
            if parcels.is_full:
                yield from parcels.flush(last=False)
        yield from parcels.flush(last=True)

    def _to_shards(self, source: Source, rows: pa.RecordBatch, parcels: Parcels) -> None:
        for destinations, section, part in TableRouter(source.routes).route(rows):
            parcels.add(destinations, section, part)

    # ---- from stage to stage ---------------------------------------------------------------------------------------

    def make(self, stage: StageName, number: int, current_batch: Callable[[], int], threads: int = 1) -> Stage:
        """An empty engine of a stage, for so many threads. ``current_batch`` tells which batch is being applied, whenever it is asked."""
        letters = self._letters(stage, number, current_batch)
        if stage == "normalise":
            return Normaliser(self.inputs, tombstone_seconds=self.tombstone_seconds, letters=letters)
        if stage == "shard":
            bad_rows = None if letters is None else BadRows(self.shard.shown, self._reports(number), letters)
            return ViewStage(self.shard, bad_rows, threads)
        assert self.merge is not None
        return ViewStage(self.merge, threads=threads)

    def _letters(self, stage: StageName, number: int, current_batch: Callable[[], int]) -> DeadLetterFile | None:
        if self.dead_letters is None:
            return None
        return DeadLetterFile(self.dead_letters, f"{stage}-{number:03d}", current_batch)

    def _reports(self, shard: int) -> list[bool]:
        """Per copy, whether this shard reports its bad rows: the first copy of a table, on the first of its replicas."""
        first: dict[str, int] = {}
        for number, shown in enumerate(self.shard.shown):
            first.setdefault(shown, number)
        reports = [False] * len(self.shard.shown)
        for source in self.sources:
            for route in source.routes:
                strides = [(share, stride) for share, stride, _ in route.spread]
                base = sum(shard // stride % share * stride for share, stride in strides)
                reports[route.section] = first[source.table.name] == route.section and base == shard
        return reports

    def forward(self, stage: StageName, number: int, delta: Iterable[Section]) -> Iterator[tuple[int, bytes]]:
        """What a stage's change becomes for the next one."""
        parcels = Parcels(self._always_told(stage, number))
        for section, batches in delta:
            for rows in (part for batch in batches for part in slices(batch)):
                if stage == "normalise":
                    source = next(s for s in self.sources if s.keyed == section)
                    self._to_shards(source, rows, parcels)
                elif stage == "merge" or self.bucket_columns is None:
                    parcels.add([number], DELTA, rows)
                else:
                    for at, part in KeyRouter(self.bucket_columns, self.shards).route(rows):
                        parcels.add([at], DELTA, part)
                if parcels.is_full:
                    yield from parcels.flush(last=False)
        yield from parcels.flush(last=True)

    def _always_told(self, stage: StageName, number: int) -> Sequence[int]:
        """The engines of the next stage that hear from this one in every batch; of the exit nobody needs to.

        A result without groups is merged by the first engine alone: any other would begin with a row of its own.
        """
        if stage == "normalise":
            return range(self.shards)
        if stage == "merge" or self.merge is None:
            return ()
        return (number,) if self.bucket_columns or number == 0 else ()

    # ---- the exit --------------------------------------------------------------------------------------------------

    def finish(self, sections: Sequence[Section], *, change_types: bool) -> pa.RecordBatch | None:
        """The changes that leave, of all sections that arrive together; None if there are none."""
        batches = [b for _, found in sections for b in found if b.num_rows]
        if not batches:
            return None
        rows = concat(batches)
        if not self.disjoint and self.merge is None:
            rows = net(rows)
        if not rows.num_rows:
            return None
        return with_change_types(rows, self.key) if change_types else rows


def build_pipeline(
    layout: Layout,
    inputs: Mapping[str, KeyedInput],
    *,
    shapes: Mapping[str, TableShape] | None = None,
    dead_letters: str | None = None,
    tombstone_seconds: float = 86400.0,
) -> Pipeline:
    """The pipeline of a layout. ``inputs``: the tables with a key, by lower-case name. ``shapes``: what to say of tables that have changed."""
    numbers = {name: number for number, name in enumerate(inputs)}
    sources = tuple(
        Source(table, table_routes(layout, name), numbers.get(name)) for name, table in layout.sources.items()
    )
    shown = tuple(layout.sources[c.source].name for c in layout.copies)
    shard = EngineSpec(tuple(c.table for c in layout.copies), shown, layout.shard.plan.to_json())
    merge = None
    emitted = [c.name for c in layout.emitted]
    bucket_columns: tuple[int, ...] | None
    if layout.merge is not None and layout.partial is not None:
        merge = EngineSpec((layout.partial,), (layout.view.name,), layout.merge.plan.to_json())
        bucket_columns = tuple(emitted.index(k) for k in layout.merge_key)
    elif layout.key is not None:
        bucket_columns = tuple(emitted.index(k) for k in layout.key)
    else:
        bucket_columns = None if layout.disjoint else tuple(range(len(emitted)))
    names = [c.name for c in layout.columns]
    key = None if layout.key is None else tuple(names.index(k) for k in layout.key)
    identity = Identity(_fingerprint(layout, inputs), layout.view.sql, layout.wanted, shapes or {})
    return Pipeline(
        name=layout.view.name,
        identity=identity,
        shards=max(1, layout.shares.shards),
        sources=sources,
        inputs=tuple(inputs.values()),
        shard=shard,
        merge=merge,
        bucket_columns=bucket_columns,
        disjoint=layout.disjoint,
        key=key,
        columns=layout.columns,
        dead_letters=dead_letters,
        tombstone_seconds=tombstone_seconds,
    )


def _fingerprint(layout: Layout, inputs: Mapping[str, KeyedInput]) -> str:
    """A hash of everything that the state of any stage depends on."""
    kinds = [
        [name, i.hidden, i.latest, i.latest and list(i.order), [[c.name, str(c.type)] for c in i.table.columns]]
        for name, i in sorted(inputs.items())
    ]
    return hashlib.sha256(json.dumps([layout.fingerprint, kinds]).encode()).hexdigest()
