"""A view laid out over shards: fragments of its graph, what each is fed, and what leaves.

What: every fragment runs on one engine per shard. An engine has tables, each a *feed*: rows of a source table or of a stage of an earlier
fragment, sent by the grids of the atoms that read them (atoms whose rows are sent alike share a feed); views, which read the tables and each
other; and *exports*, the views whose changes leave, for the feeds of later fragments or as the result.
Representation: values only; ``to_json`` of the plans is what engines are told, and ``fingerprint`` tells whether state written under one
layout can be read under another.
Invariants: D1, the feeds of a fragment are tables of its engines, in this order; D2, the same view, tables, options and sizes give the same
layout on any machine; D3, ``fingerprint`` depends on what stored rows mean (query, feeds, how they are spread), not on trees or aliases.
Cost: that of planning the fragments and of choosing the shares.
Source: CROWN, section 8; the design is in ARCHITECTURE.md, "Shards".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from everview.errors import Span, UnsupportedQueryError
from everview.layout.feeds import Feed, Feeds
from everview.layout.fragment_views import build_views
from everview.layout.placement import Heaviest, Placement, Spread, place_view
from everview.plan.lower import PlannedView, plan_view
from everview.plan.output_key import output_key
from everview.query.conjunctive import TableSource
from everview.query.logical_view import Core, LogicalView, OutputColumn
from everview.schema.table import Column, Table

FORMAT = 2


@dataclass(frozen=True, slots=True)
class Export:
    """A stage whose changes leave a fragment. ``view``: the position of its view. With ``one_place`` only the first engine's count."""

    stage: int
    view: int
    one_place: bool


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of the graph. ``engines``: how many of the shards have one that does anything."""

    feeds: tuple[Feed, ...]
    views: tuple[PlannedView, ...]
    exports: tuple[Export, ...]
    engines: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A view over shards. ``wanted``: how many were asked for. ``sources``: the tables as they come in, by lower-case name."""

    view: LogicalView
    wanted: int
    sources: Mapping[str, Table]
    checked: frozenset[str]
    placement: Placement
    fragments: tuple[Fragment, ...]
    key: tuple[str, ...] | None

    @property
    def shards(self) -> int:
        return self.placement.shards

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.view.columns

    @property
    def feeds(self) -> tuple[Feed, ...]:
        return tuple(feed for fragment in self.fragments for feed in fragment.feeds)

    @property
    def spread(self) -> Spread | None:
        """Where the rows of the result stand."""
        return self.placement.stages[-1].spread

    @property
    def gathered_by(self) -> tuple[str, ...] | None:
        """The columns by which changes must be brought together before they leave; None if each shard's can stay apart."""
        if self.spread is not None and (self.key is None or self.spread.columns <= set(self.key)):
            return None
        return self.key if self.key is not None else tuple(c.name for c in self.columns)

    @property
    def fingerprint(self) -> str:
        """A hash of everything that the meaning of stored rows depends on."""
        parts = {
            "format": FORMAT,
            "view": self.view.name,
            "meaning": self.view.meaning,
            "feeds": [
                [
                    feed.fragment,
                    feed.origin if isinstance(feed.origin, str) else None,
                    [str(c.type) for c in feed.table.columns],
                    [[c.name, c.nullable] for c in feed.table.columns] if isinstance(feed.origin, str) else None,
                    list(feed.rest),
                    [[r.share, r.stride, list(r.hashed)] for r in feed.routes],
                    list(feed.replicas),
                    feed.filter,
                    feed.drops,
                ]
                for feed in self.feeds
            ],
            "keys": {name: list(table.primary_key) for name, table in sorted(self.sources.items())},
            "rows": {  # of tables whose deletes must find their row, all columns tell rows apart
                name: [[c.name, str(c.type)] for c in table.columns]
                for name, table in sorted(self.sources.items())
                if name not in self.checked
            },
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def lay_out(
    view: LogicalView,
    tables: Mapping[str, Table],
    shards: int,
    *,
    checked: frozenset[str] = frozenset(),
    sizes: Mapping[str, float] | None = None,
    heaviest: Heaviest | None = None,
) -> Layout:
    """Lay a view out over at most ``shards`` shards.

    ``tables`` by lower-case name. ``checked``: those whose changes are known to be valid, so that what the view does not read
    of them need not travel. ``sizes`` and ``heaviest`` as in ``place_view``.
    """
    if not any(isinstance(a.source, TableSource) for s in view.stages if isinstance(s, Core) for a in s.query.atoms):
        message = f"view `{view.name}` reads no table: nothing ever changes it"
        hint = "read at least one table, or query it in a session"
        raise UnsupportedQueryError("NO_FROM", message, hint=hint, sql=view.sql, span=Span(0, len(view.sql)))
    placement = place_view(view, shards, sizes, heaviest)
    feeds = Feeds(placement, tables, checked)
    fragments = []
    for number in range(placement.fragments):
        mine = feeds.of(number)
        known = {feed.name.lower(): feed.table for feed in mine}
        planned: list[PlannedView] = []
        exports: list[Export] = []
        for stage, logical in build_views(placement, number, feeds.names, view):
            planned.append(plan_view(logical, known))
            columns = tuple(Column(c.name, c.type, c.nullable) for c in logical.columns)
            known[logical.name.lower()] = Table(logical.name, columns)
            if feeds.is_read(stage, number) or stage == len(placement.stages) - 1:
                spread = placement.stages[stage].spread
                exports.append(Export(stage, len(planned) - 1, spread is not None and spread.is_one_place))
        here = [p for p in placement.stages if p.fragment == number and p.shares is not None]
        engines = max((p.shares.shards for p in here if p.shares is not None), default=1)
        fragments.append(Fragment(mine, tuple(planned), tuple(exports), engines))
    used = {feed.origin for fragment in fragments for feed in fragment.feeds}
    return Layout(
        view=view,
        wanted=shards,
        sources={name: tables[name] for name in feeds.sources if name in used},
        checked=checked,
        placement=placement,
        fragments=tuple(fragments),
        key=output_key(view),
    )
