"""Hypothesis strategy: streams of changes that leave every table valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from everview.schema.table import Column, Table
from everview.testing.oracle import Row
from everview.testing.values import INEXACT, VALUES

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn


@dataclass(frozen=True, slots=True)
class Change:
    """One row of a batch. ``type`` is insert, delete, update_preimage or update_postimage."""

    table: str
    row: Row
    type: str

    @property
    def sign(self) -> int:
        return 1 if self.type in ("insert", "update_postimage") else -1


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes in the order in which they came about; each is valid after those before it.

    ``form`` says how they are handed over: with ``_multiplicity``, with ``_change_type``, or through insert, delete, update and upsert.
    """

    changes: tuple[Change, ...]
    form: str = "multiplicity"
    deltas: bool = True

    def rows(self, table: str) -> list[Change]:
        """The changes of one table."""
        return [c for c in self.changes if c.table == table]


def _pool(table: Table, rng: Random, width: int, *, summed: bool) -> list[Row]:
    """A few rows. Values come mostly from the first ``width`` of their type, so that rows join; now and then from all, or NULL."""

    def value(column: Column, usual: int) -> Any:
        values, chance = VALUES[column.type], rng.random()
        if summed and column.type.is_floating:
            values = [v for v in values if v not in INEXACT]
        if column.nullable and chance < 0.08:
            return None
        if chance < 0.16:
            return rng.choice(values)
        return values[usual % len(values)] if chance < 0.6 else rng.choice(values[:width])

    rows = []
    for _ in range(POOL):
        usual = rng.randrange(width)
        rows.append(tuple(value(c, usual) for c in table.columns))
    return rows


class _State:
    """The rows a table holds while a stream is drawn."""

    def __init__(self, table: Table, limit: int) -> None:
        self.table = table
        self.rows: Counter[Row] = Counter()
        self.limit = limit
        self._key = [i for i, c in enumerate(table.columns) if c.name in table.primary_key]

    def insert(self, row: Row) -> list[Change]:
        """An insert, unless its key is there."""
        if self._key and any(all(_same(r[i], row[i]) for i in self._key) for r in self.rows):
            return []
        return self._note([Change(self.table.name, row, "insert")])

    def change(self, row: Row, action: int) -> list[Change]:
        """One change around ``row``, as changes that leave a valid table: an insert, a delete or an update."""
        name = self.table.name
        held = sorted(self.rows, key=repr)
        if self._key:
            old = next((r for r in held if all(_same(r[i], row[i]) for i in self._key)), None)
            if old is not None:
                if action < 3 or repr(old) == repr(row):
                    return self._note([Change(name, old, "delete")])
                return self._note([Change(name, old, "update_preimage"), Change(name, row, "update_postimage")])
        if held and (action == 0 or self.rows.total() >= self.limit):
            return self._note([Change(name, row if self.rows[row] else held[-1], "delete")])
        if held and action == 1 and not self._key:
            return self._note([Change(name, held[0], "update_preimage"), Change(name, row, "update_postimage")])
        twice = action == 7 and not self._key
        return self._note([Change(name, row, "insert")] * (2 if twice else 1))

    def empty(self) -> list[Change]:
        """Deletes of everything."""
        return self._note([Change(self.table.name, r, "delete") for r in sorted(self.rows.elements(), key=repr)])

    def _note(self, changes: list[Change]) -> list[Change]:
        for change in changes:
            self.rows[change.row] += change.sign
            if not self.rows[change.row]:
                del self.rows[change.row]
        return changes


def _same(a: object, b: object) -> bool:
    return a == b or (a != a and b != b)  # noqa: PLR0124


POOL = 9
DECK = 500
FORMS = ("multiplicity", "change_type", "calls", "tuples")


@st.composite
def streams(
    draw: DrawFn, tables: Sequence[Table], *, limit: int, max_batches: int = 4, summed: bool = True
) -> list[Batch]:
    """Batches of 0 to 20 changes over several tables, drawn from a few rows per table. ``summed``: without ``INEXACT``.

    A seed gives a deck of changes, which does not shrink; the batches are cards drawn from it one by one, which does.
    """
    rng = Random(draw(st.integers(0, 2**32)))  # noqa: S311
    width = draw(st.sampled_from([2, 3, 1, 4, 9]))
    deck = [(rng.choice(tables).name, rng.randrange(POOL), rng.randrange(8)) for _ in range(DECK)]
    pools = {t.name: _pool(t, rng, width, summed=summed) for t in tables}
    states = {t.name: _State(t, limit) for t in tables}
    loaded = draw(st.integers(0, 4)) > 0
    dense = [
        rng.randint(4, 20) for _ in range(draw(st.integers(0, 3)))
    ]  # sizes of batches that come whole from the seed
    count = draw(st.integers(1, max_batches))
    batches = []
    if loaded:
        changes = [
            c for name, pool in pools.items() for row in pool[: max(4, limit - 4)] for c in states[name].insert(row)
        ]
        batches.append(Batch(tuple(changes), draw(st.sampled_from(FORMS))))
    for size in [-1] * count + dense:
        changes = []
        if size < 0:
            cards = draw(st.lists(st.integers(0, DECK - 1), max_size=20, unique=True))
        else:
            cards = rng.choices(range(DECK), k=size)
        for card in cards:
            name, index, action = deck[card]
            changes += states[name].change(pools[name][index], action)
        if draw(st.integers(0, 9)) == 9:
            changes += [c for state in states.values() for c in state.empty()]
        form = draw(st.sampled_from(FORMS))
        batches.append(Batch(tuple(changes), form, draw(st.integers(0, 4)) < 4))
    return batches
