"""A view's pipeline over engines in other processes, without saying what carries rows between them.

Rows of a source are dispatched to the engines that read them: those of fragments, or the normaliser if the table has a key; the normaliser's
changes are dispatched likewise. What a fragment exports goes to later fragments, and at last to the exit, where changes of all shards stand
together, are netted and paired, and leave. Each arrow is an address (which fragment, which engine) and a blob. Hops follow one another:
what is for a later one passes through those between.

A ``Pipeline`` is made of values only: it is sent to workers as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.layout.layout import Layout
from everview.query.logical_view import OutputColumn
from everview.schema.table import Table
from everview.shards.bad_rows import BadRows, DeadLetterFile
from everview.shards.blob import Section, concat, slices
from everview.shards.changes import net, with_change_types
from everview.shards.durable import Stage
from everview.shards.identity import Identity, TableShape
from everview.shards.normaliser import KeyedInput, Normaliser
from everview.shards.parcels import Address, Parcels
from everview.shards.routing import Destination, FeedRouter, KeyRouter
from everview.shards.view_engine import EngineSpec
from everview.shards.view_stage import ViewStage

if TYPE_CHECKING:
    import pyarrow as pa

NORMALISE = -1
"""The number of the hop before the first fragment."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table that comes in: the feeds that want its rows, and which input of the normaliser it is, if it has a key."""

    table: Table
    feeds: tuple[Destination, ...]
    keyed: int | None = None


@dataclass(frozen=True, slots=True)
class Outlet:
    """What becomes of an export: the feeds that want its rows. With ``one_place`` only those of the first engine count."""

    feeds: tuple[Destination, ...]
    one_place: bool


@dataclass(frozen=True, slots=True)
class Hop:
    """A fragment as it runs. ``engines``: how many hear of every batch. ``judged``: per table whether its deletes may find no row."""

    spec: EngineSpec
    engines: int
    outlets: tuple[Outlet, ...]
    judged: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All that workers need to know of a view."""

    name: str
    identity: Identity
    shards: int
    sources: tuple[Source, ...]
    inputs: tuple[KeyedInput, ...]
    hops: tuple[Hop, ...]
    gathered_by: tuple[int, ...] | None
    """Positions of the columns by which changes are brought together at the exit; None if each shard's stay apart."""
    disjoint: bool
    """No row of the result is on two shards, so that changes need not be added up."""
    key: tuple[int, ...] | None
    columns: tuple[OutputColumn, ...]
    dead_letters: str | None
    tombstone_seconds: float

    @property
    def made_with(self) -> tuple[str | None, float]:
        """What engines are made with that their state does not depend on: an engine held in memory is used only with the same."""
        return self.dead_letters, self.tombstone_seconds

    @property
    def hop_numbers(self) -> range:
        """The hops in their order: the normaliser, where there is one, and the fragments."""
        return range(NORMALISE if self.inputs else 0, len(self.hops))

    @property
    def exit(self) -> int:
        """The number of what comes after the last hop."""
        return len(self.hops)

    # ---- from the sources to the first hops ------------------------------------------------------------------------

    def dispatch(self, source: int, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Address, bytes]]:
        """Rows of a source (in its column order, as its kind of input has it, and with the input rows if they carry them) to the next hop."""
        found = self.sources[source]
        first = 0 if found.keyed is None else NORMALISE
        parcels = Parcels((first, number) for number in range(self._engines(first)))
        for rows in batches:
            if found.keyed is None:
                _add(parcels, found.feeds, rows)
            else:
                given = self.inputs[found.keyed]
                names = [c.name for c in given.table.columns]
                router = KeyRouter([names.index(k) for k in given.table.primary_key], self.shards)
                for at, part in router.route(given.lightened(rows)):
                    parcels.add([(NORMALISE, at)], found.keyed, part)
            if parcels.is_full:
                yield from parcels.flush(last=False)
        yield from parcels.flush(last=True)

    def _engines(self, hop: int) -> int:
        return self.shards if hop == NORMALISE else self.hops[hop].engines

    # ---- from hop to hop -------------------------------------------------------------------------------------------

    def make(self, hop: int, number: int, current_batch: Callable[[], int], threads: int = 1) -> Stage:
        """An empty engine of a hop, for so many threads. ``current_batch`` tells which batch is being applied, whenever it is asked."""
        letters = self._letters(hop, number, current_batch)
        if hop == NORMALISE:
            return Normaliser(self.inputs, tombstone_seconds=self.tombstone_seconds, letters=letters)
        spec = self.hops[hop].spec
        bad_rows = None
        if letters is not None and any(self.hops[hop].judged):
            bad_rows = BadRows(spec.shown, self._reports(hop, number), letters)
        return ViewStage(spec, bad_rows, threads)

    def _letters(self, hop: int, number: int, current_batch: Callable[[], int]) -> DeadLetterFile | None:
        if self.dead_letters is None:
            return None
        return DeadLetterFile(self.dead_letters, f"{hop_name(hop)}-{number:03d}", current_batch)

    def _reports(self, hop: int, engine: int) -> list[bool | None]:
        """Per table whether this engine reports its bad rows: the first feed of a source, on the first of its replicas."""
        reports: list[bool | None] = [False if judged else None for judged in self.hops[hop].judged]
        for source in self.sources:
            first, *_ = source.feeds
            if first.feed.fragment == hop and reports[first.section] is not None:
                base = sum(engine // r.stride % r.share * r.stride for r in first.feed.routes)
                reports[first.section] = base == engine
        return reports

    def forward(self, hop: int, number: int, delta: Iterable[Section]) -> Iterator[tuple[Address, bytes]]:
        """What the change of an engine becomes for later hops."""
        following = self._engines(hop + 1) if hop + 1 < self.exit else 0
        parcels = Parcels((hop + 1, told) for told in range(number, following, self._engines(hop)))
        for section, batches in delta:
            for rows in (part for batch in batches for part in slices(batch)):
                if hop == NORMALISE:
                    _add(parcels, next(s for s in self.sources if s.keyed == section).feeds, rows)
                else:
                    self._export(hop, number, section, rows, parcels)
                if parcels.is_full:
                    yield from parcels.flush(last=False)
        yield from parcels.flush(last=True)

    def _export(self, hop: int, number: int, section: int, rows: pa.RecordBatch, parcels: Parcels) -> None:
        outlet = self.hops[hop].outlets[section]
        if outlet.one_place and number > 0:
            return
        _add(parcels, outlet.feeds, rows)
        if hop + 1 < self.exit or section != self.result:
            return
        if self.gathered_by is None:
            parcels.add([(self.exit, number)], 0, rows)
            return
        for at, part in KeyRouter(self.gathered_by, self.shards).route(rows):
            parcels.add([(self.exit, at)], 0, part)

    @property
    def result(self) -> int:
        """Which export of the last hop is the result."""
        return len(self.hops[-1].outlets) - 1

    # ---- the exit --------------------------------------------------------------------------------------------------

    def finish(self, sections: Sequence[Section], *, change_types: bool) -> pa.RecordBatch | None:
        """The changes that leave, of all sections that arrive together; None if there are none."""
        batches = [b for _, found in sections for b in found if b.num_rows]
        if not batches:
            return None
        rows = concat(batches)
        if not self.disjoint:
            rows = net(rows)
        if not rows.num_rows:
            return None
        return with_change_types(rows, self.key) if change_types else rows


def hop_name(hop: int) -> str:
    """How users know a hop."""
    return {NORMALISE: "normalise", 0: "shard", 1: "merge"}.get(hop, f"merge{hop}")


def _add(parcels: Parcels, feeds: Sequence[Destination], rows: pa.RecordBatch) -> None:
    for destinations, section, part in FeedRouter(feeds).route(rows):
        parcels.add(destinations, section, part)


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
    wanted: dict[str | int, list[Destination]] = {}
    for fragment in layout.fragments:
        for section, feed in enumerate(fragment.feeds):
            shown = layout.sources[feed.origin].name if isinstance(feed.origin, str) else layout.view.name
            wanted.setdefault(feed.origin, []).append(Destination(feed, section, shown))
    hops = []
    for fragment in layout.fragments:
        names_shown = tuple(wanted[feed.origin][0].shown for feed in fragment.feeds)
        plans = tuple(view.plan.to_json() for view in fragment.views)
        exports = tuple(export.view for export in fragment.exports)
        spec = EngineSpec(tuple(feed.table for feed in fragment.feeds), names_shown, plans, exports)
        outlets = tuple(Outlet(tuple(wanted.get(e.stage, ())), e.one_place) for e in fragment.exports)
        judged = tuple(isinstance(feed.origin, str) and feed.origin not in layout.checked for feed in fragment.feeds)
        hops.append(Hop(spec, fragment.engines, outlets, judged))
    names = [c.name for c in layout.columns]
    by = layout.gathered_by
    return Pipeline(
        name=layout.view.name,
        identity=Identity(_fingerprint(layout, inputs), layout.view.sql, layout.wanted, shapes or {}),
        shards=layout.shards,
        sources=tuple(Source(table, tuple(wanted[name]), numbers.get(name)) for name, table in layout.sources.items()),
        inputs=tuple(inputs.values()),
        hops=tuple(hops),
        gathered_by=None if by is None else tuple(names.index(c) for c in by),
        disjoint=layout.spread is not None,
        key=None if layout.key is None else tuple(names.index(k) for k in layout.key),
        columns=layout.columns,
        dead_letters=dead_letters,
        tombstone_seconds=tombstone_seconds,
    )


def _fingerprint(layout: Layout, inputs: Mapping[str, KeyedInput]) -> str:
    """A hash of everything that the state of any hop depends on."""
    kinds = [
        [name, i.hidden, i.latest, i.latest and list(i.order), [[c.name, str(c.type)] for c in i.table.columns]]
        for name, i in sorted(inputs.items())
    ]
    return hashlib.sha256(json.dumps([layout.fingerprint, kinds]).encode()).hexdigest()
