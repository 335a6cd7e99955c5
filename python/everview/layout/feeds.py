"""The feeds of fragments: which rows of tables and of earlier stages travel, in which columns, and to which engines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from everview.layout.placement import Placement
from everview.layout.shares import Shares
from everview.query.conjunctive import Atom, StageSource
from everview.query.expression import Call, ColumnRef, Expression, Literal, columns_of, to_json
from everview.query.logical_view import Core
from everview.schema.datatype import BIGINT, BOOLEAN
from everview.schema.table import Column, Table

REST = "_rest"
"""The column that stands for those a view does not read: a hash of them, which tells rows apart that differ only there."""


@dataclass(frozen=True, slots=True)
class Route:
    """One dimension of a grid: how many shards it has, how far apart they are, and the hashed expressions over the origin's columns."""

    share: int
    stride: int
    hashed: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Feed:
    """A table of the engines of a fragment.

    ``origin``: a source table by lower-case name, or the number of a stage. ``columns``: positions of the origin's columns that are kept.
    ``rest``: those that are hashed into ``_rest``. ``replicas``: what to add to the place given by the routes to get all shards with a copy.
    ``filter``: rows for which it is not true are of no use to any atom; with ``drops`` they stay behind.
    """

    name: str
    fragment: int
    origin: str | int
    table: Table
    columns: tuple[int, ...]
    rest: tuple[int, ...]
    routes: tuple[Route, ...]
    replicas: tuple[int, ...]
    filter: Mapping[str, Any] | None
    drops: bool

    @property
    def has_rest(self) -> bool:
        return any(c.name == REST for c in self.table.columns)


class Feeds:
    """The feeds of a placement. ``names``: per core and atom its feed; atoms that read a stage where it stands have none."""

    def __init__(self, placement: Placement, tables: Mapping[str, Table], checked: frozenset[str]) -> None:
        found: dict[tuple[int, str | int, str], Feed] = {}
        members: dict[str, list[Atom]] = {}
        self.names: dict[tuple[int, str], str] = {}
        for at, placed in enumerate(placement.stages):
            if not isinstance(placed.stage, Core):
                continue
            assert placed.shares is not None
            for atom in placed.stage.query.atoms:
                origin: str | int = atom.table.lower()
                if isinstance(atom.source, StageSource):
                    origin = atom.source.stage
                    if placement.stages[origin].fragment == placed.fragment:
                        continue
                table = _table_of(origin, placement, tables)
                routes, replicas = _routes(atom, placed.shares, table)
                identity = (placed.fragment, origin, json.dumps([[r.share, r.stride, r.hashed] for r in routes]))
                if identity not in found:
                    name = f"{table.name}_{len(found)}"
                    kept = Feed(name, placed.fragment, origin, table, (), (), routes, replicas, None, drops=False)
                    found[identity] = kept
                self.names[at, atom.name] = found[identity].name
                members.setdefault(found[identity].name, []).append(atom)
        self._feeds = [
            _finish(
                feed,
                members[feed.name],
                _table_of(feed.origin, placement, tables),
                strict=isinstance(feed.origin, str) and feed.origin not in checked,
            )
            for feed in found.values()
        ]
        self.sources = list(dict.fromkeys(feed.origin for feed in self._feeds if isinstance(feed.origin, str)))

    def of(self, fragment: int) -> tuple[Feed, ...]:
        """The feeds of a fragment."""
        return tuple(feed for feed in self._feeds if feed.fragment == fragment)

    def is_read(self, stage: int, fragment: int) -> bool:
        """Whether a later fragment reads a stage of this one."""
        return any(feed.origin == stage and feed.fragment > fragment for feed in self._feeds)


def _table_of(origin: str | int, placement: Placement, tables: Mapping[str, Table]) -> Table:
    if isinstance(origin, str):
        return tables[origin]
    columns = placement.stages[origin].stage.columns
    return Table(f"stage_{origin}", tuple(Column(c.name, c.type, c.nullable) for c in columns))


def _routes(atom: Atom, shares: Shares, table: Table) -> tuple[tuple[Route, ...], tuple[int, ...]]:
    bindings = dict(atom.bindings)
    routes, free = [], []
    for dimension, stride in zip(shares.dimensions, shares.strides, strict=True):
        if dimension.spreads(atom):
            given: list[Expression] = [bindings[v] for v in dimension.variables] or [
                ColumnRef(c.name, c.type, c.nullable) for c in table.columns
            ]
            given = given or [Literal(0, BIGINT)]  # rows without columns are all equal
            hashed = tuple(over(e, table) for e in given)
            routes.append(Route(dimension.share, stride, hashed))
        else:
            free.append([i * stride for i in range(dimension.share)])
    return tuple(routes), tuple(sorted(sum(choice) for choice in product(*free)))


def over(expression: Expression, table: Table) -> Mapping[str, Any]:
    """An expression in its plan form, over a table's columns."""
    position = {c.name.lower(): i for i, c in enumerate(table.columns)}
    return to_json(expression, {name: position[name.lower()] for name in columns_of(expression)})


def _finish(feed: Feed, atoms: list[Atom], origin: Table, *, strict: bool) -> Feed:
    """What of the origin a feed keeps."""
    read = columns_read(atoms)
    kept = tuple(i for i, c in enumerate(origin.columns) if c.name.lower() in read)
    rest = tuple(i for i in range(len(origin.columns)) if i not in kept) if strict else ()
    columns = tuple(origin.columns[i] for i in kept)
    if rest or not columns:  # a table has a column, even if only its rows count
        columns += (Column(REST, BIGINT, nullable=False),)
    filters = [a.filter for a in atoms]
    condition = None
    if all(f is not None for f in filters):
        first, *others = dict.fromkeys(f for f in filters if f is not None)
        nullable = any(f is not None and f.nullable for f in filters)
        condition = over(Call("or", (first, *others), BOOLEAN, nullable) if others else first, origin)
    table = Table(feed.name, columns)
    return replace(feed, table=table, columns=kept, rest=rest, filter=condition, drops=not strict)


def columns_read(atoms: Iterable[Atom]) -> set[str]:
    """The columns of their sources that atoms read, in lower case."""
    return {name.lower() for atom in atoms for e in expressions_of(atom) for name in columns_of(e)}


def expressions_of(atom: Atom) -> list[Expression]:
    """All expressions that an atom evaluates on a row."""
    found = [e for _, e in atom.bindings]
    return found + [e for e in (atom.filter, *atom.factors) if e is not None]
