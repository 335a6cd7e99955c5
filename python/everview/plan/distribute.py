"""A view laid out over shards: what travels to which shard, what each maintains, how the parts are put together.

What: the shares, one *copy* per table and way of spreading it (atoms of a self-join that are spread alike share one), the plan of the
shards, the plan that merges them where results span shards, and the key by which changes of the output are paired.
Representation: values only; ``to_json`` of the plans is what engines are told, and ``fingerprint`` tells whether state written under one
layout can be read under another.
Invariants: D1, the copies of a shard are tables of its engine, named by ``Copy.name``; D2, the same view, tables, options and sizes give the
same layout on any machine.
Cost: that of planning the two views and of choosing the shares.
Source: CROWN, section 8.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from everview.analysis.normalise import merge_equal_atoms
from everview.errors import Span, UnsupportedQueryError
from everview.plan.lower import PlannedView, plan_view
from everview.plan.output_key import output_key
from everview.plan.shares import Shares, choose_shares
from everview.plan.split import split_view
from everview.query.conjunctive import Atom, TableSource
from everview.query.expression import Call, Expression, columns_of, to_json
from everview.query.logical_view import Core, LogicalView, OutputColumn, TopK, Union
from everview.schema.datatype import BIGINT, BOOLEAN
from everview.schema.table import Column, Table

REST = "_rest"
"""The column that stands for those a view does not read: a hash of them, which tells rows apart that differ only there."""

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Copy:
    """A table as shards hold it.

    ``routes``: per dimension of the grid that spreads it, its position and the hashed expressions over the source's columns.
    ``columns``: positions of the source's columns that are kept. ``rest``: those that are hashed into ``_rest``.
    ``filter``: rows for which it is not true are of no use to any atom; with ``drops`` they stay behind.
    """

    name: str
    source: str
    table: Table
    columns: tuple[int, ...]
    rest: tuple[int, ...]
    routes: tuple[tuple[int, tuple[Mapping[str, Any], ...]], ...]
    filter: Mapping[str, Any] | None
    drops: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """A view over shards. ``wanted``: how many were asked for. ``sources``: the tables as they come in, by lower-case name."""

    view: LogicalView
    wanted: int
    sources: Mapping[str, Table]
    checked: frozenset[str]
    shares: Shares
    copies: tuple[Copy, ...]
    shard: PlannedView
    merge: PlannedView | None
    partial: Table | None
    merge_key: tuple[str, ...]
    disjoint: bool
    key: tuple[str, ...] | None

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.view.columns

    @property
    def emitted(self) -> tuple[OutputColumn, ...]:
        """The columns of what shards emit."""
        return self.shard.view.columns

    @property
    def fingerprint(self) -> str:
        """A hash of everything that state depends on."""
        parts = {
            "format": FORMAT,
            "shares": [[list(d.variables), d.share, d.atom] for d in self.shares.dimensions],
            "copies": [[c.name, list(c.columns), list(c.rest), list(c.routes), c.filter, c.drops] for c in self.copies],
            "tables": [[c.name, [[f.name, str(f.type), f.nullable] for f in c.table.columns]] for c in self.copies],
            "keys": {name: list(table.primary_key) for name, table in sorted(self.sources.items())},
            "rows": {  # of tables whose deletes must find their row, all columns tell rows apart
                name: [[c.name, str(c.type)] for c in table.columns]
                for name, table in sorted(self.sources.items())
                if name not in self.checked
            },
            "shard": self.shard.plan.plan_hash,
            "merge": None if self.merge is None else self.merge.plan.plan_hash,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def lay_out(
    view: LogicalView,
    tables: Mapping[str, Table],
    shards: int,
    *,
    checked: frozenset[str] = frozenset(),
    sizes: Mapping[str, float] | None = None,
    heaviest: Mapping[tuple[str, str], float] | None = None,
) -> Layout:
    """Lay a view out over at most ``shards`` shards.

    ``tables`` by lower-case name. ``checked``: those whose changes are known to be valid, so that what the view does not read
    of them need not travel. ``sizes`` and ``heaviest`` as in ``choose_shares``.
    """
    core = require_chain(view)
    query = merge_equal_atoms(core.query)
    shares = choose_shares(query, shards, sizes, heaviest)
    copies: dict[tuple[str, str], Copy] = {}
    members: dict[str, list[Atom]] = {}
    named: dict[str, str] = {}
    for atom in query.atoms:
        source = tables[atom.table.lower()]
        routes = _routes(atom, shares, source)
        identity = (source.name.lower(), json.dumps(routes))
        if identity not in copies:
            name = f"{source.name}_{len(copies)}"
            copies[identity] = Copy(name, source.name.lower(), source, (), (), routes, None, drops=False)
        named[atom.name] = copies[identity].name
        members.setdefault(named[atom.name], []).append(atom)
    finished = tuple(
        _finish(c, members[c.name], tables[c.source], strict=c.source not in checked) for c in copies.values()
    )
    moved = replace(query, atoms=tuple(replace(a, source=TableSource(named[a.name])) for a in query.atoms))
    spread = LogicalView(view.name, view.sql, (Core(moved), *view.stages[1:]))
    split = split_view(spread, shares.variables)
    shard = plan_view(split.shard, {c.name.lower(): c.table for c in finished})
    merge = None
    if split.merge is not None and split.partial is not None:
        merge = plan_view(split.merge, {split.partial.name: split.partial})
    key = output_key(LogicalView(view.name, view.sql, (Core(query), *view.stages[1:])))
    sources = {c.source: tables[c.source] for c in finished}
    return Layout(
        view=view,
        wanted=shards,
        sources=sources,
        checked=checked,
        shares=shares,
        copies=finished,
        shard=shard,
        merge=merge,
        partial=split.partial,
        merge_key=split.merge_key,
        disjoint=split.disjoint,
        key=key,
    )


def require_chain(view: LogicalView) -> Core:
    """The core of a view that is one core and a chain of operators; others are not laid out over shards."""
    core, *others = view.stages
    if isinstance(core, Core) and not any(isinstance(stage, Core | Union | TopK) for stage in others):
        return core
    raise UnsupportedQueryError(
        "SEVERAL_BLOCKS_ON_SPARK",
        "a view with grouped derived tables, UNION ALL, LIMIT or the like is not spread over shards yet",
        hint="maintain it in a session, or write one view per block",
        sql=view.sql,
        span=Span(0, len(view.sql)),
    )


def _routes(atom: Atom, shares: Shares, source: Table) -> tuple[tuple[int, tuple[Mapping[str, Any], ...]], ...]:
    bindings = dict(atom.bindings)
    return tuple(
        (at, tuple(over(bindings[v], source) for v in dimension.variables))
        for at, dimension in enumerate(shares.dimensions)
        if dimension.spreads(atom)
    )


def over(expression: Expression, table: Table) -> Mapping[str, Any]:
    """An expression in its plan form, over a table's columns."""
    position = {c.name.lower(): i for i, c in enumerate(table.columns)}
    return to_json(expression, {name: position[name.lower()] for name in columns_of(expression)})


def _finish(copy: Copy, atoms: list[Atom], source: Table, *, strict: bool) -> Copy:
    """What of the source a copy keeps."""
    read = {name.lower() for atom in atoms for e in expressions_of(atom) for name in columns_of(e)}
    kept = tuple(i for i, c in enumerate(source.columns) if c.name.lower() in read)
    rest = tuple(i for i in range(len(source.columns)) if i not in kept) if strict else ()
    columns = tuple(source.columns[i] for i in kept)
    if rest or not columns:  # a table has a column, even if only its rows count
        columns += (Column(REST, BIGINT, nullable=False),)
    filters = [a.filter for a in atoms]
    condition = None
    if all(f is not None for f in filters):
        first, *others = dict.fromkeys(f for f in filters if f is not None)
        nullable = any(f is not None and f.nullable for f in filters)
        condition = over(Call("or", (first, *others), BOOLEAN, nullable) if others else first, source)
    table = Table(copy.name, columns)
    return replace(copy, table=table, columns=kept, rest=rest, filter=condition, drops=not strict)


def expressions_of(atom: Atom) -> list[Expression]:
    found = [e for _, e in atom.bindings]
    return found + [e for e in (atom.filter, *atom.factors) if e is not None]
