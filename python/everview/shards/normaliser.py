"""Tables with a primary key: the current row per key, so that every change that leaves names the old row in full.

What: two kinds of input. *Images*: whole rows that come and go; the batch is netted, must find what it deletes, and must leave one row per
key. *Latest*: the newest row per key, or its deletion; what is not newer than the row held is stale and dropped. Rows are ordered by the
columns of a sequence; where these tie, a row is newer than a deletion, and of two rows the one that is greater by content (``order``). So is
it without a sequence, within a batch: from batch to batch what comes later is newer. Where several rows of a batch would take one key, the
one that is greater by content is used.
Representation: a kernel table per input. For *latest* it has further columns: the sequence, whether the row is live, and when it was
deleted; deletions stay as tombstones, which have a key alone, so that a late row is still known to be stale.
Invariants: N1, what leaves are net changes of whole rows, valid whatever came in; N2, what a batch does depends on the rows held and those
given, not on their order: replaying it in other pieces gives the same; N3, with a sequence the rows held depend only on the rows given so
far, not on how they were cut into batches, as long as no tombstone is forgotten.
Cost: a probe per row, and the sort of a batch by key and sequence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.engine import Database, KernelError, group_rows, translate
from everview.interop.batch import MULTIPLICITY
from everview.schema.datatype import BIGINT, BOOLEAN
from everview.schema.table import Column, Table
from everview.shards.bad_rows import BadRow, Letters, refused_row
from everview.shards.blob import Section, by_number, concat, slices
from everview.shards.carried import apart, only_where, shown, shown_netted, together
from everview.shards.changes import net
from everview.shards.durable import Applied
from everview.shards.order import comes_after, compared, last_of
from everview.shards.view_engine import with_multiplicity

SEQUENCE = "_sequence"
WITHIN = "_within"
"""A second column of a sequence, for places that one number does not hold."""
LIVE = "_live"
DELETED_AT = "_deleted_at"


@dataclass(frozen=True, slots=True)
class KeyedInput:
    """A table with a primary key, as it comes in.

    ``hidden``: further columns that tell rows apart but do not leave (``_rest``). ``latest``: rows are the newest per key, with ``_live`` and the
    columns of a sequence, ``order``; without any, what comes in a later batch is newer.
    """

    table: Table
    hidden: int = 0
    latest: bool = False
    order: tuple[str, ...] = ()

    @property
    def stored(self) -> Table:
        if not self.latest:
            return self.table
        nullable = tuple(Column(c.name, c.type, c.name not in self.table.primary_key) for c in self.table.columns)
        sequence = tuple(Column(name, BIGINT, False) for name in self.order)
        added = (*sequence, Column(LIVE, BOOLEAN, False), Column(DELETED_AT, BIGINT, False))
        return Table(self.table.name, nullable + added, self.table.primary_key)

    def lightened(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows that carry their input rows only where the normaliser may refuse them.

        Of the newest per key these are those without key or sequence, and deletions that must find their row.
        """
        plain, carried = apart(rows)
        if carried is None or not self.latest:
            return rows
        suspects = [pc.is_null(plain.column(name)) for name in (*self.table.primary_key, *self.order)]
        if not self.order:
            suspects.append(pc.invert(plain.column(LIVE)))
        return together(plain, only_where(reduce(pc.or_, suspects), carried))


class Normaliser:
    """The stage of keyed inputs. Sections are numbered by input; what leaves has the input's number."""

    def __init__(
        self, inputs: Sequence[KeyedInput], *, tombstone_seconds: float, letters: Letters | None = None
    ) -> None:
        self._kernel = Database()
        self._letters = letters
        self._tombstone_ms = int(tombstone_seconds * 1000)
        self._tables = [_KeyedTable(self._kernel, i, strict=letters is None) for i in inputs]

    def apply(self, sections: Sequence[Section], *, deltas: bool) -> Applied:
        rows = by_number(sections)
        bad: list[BadRow] = []
        judged = {number: self._tables[number].judge(batch, bad) for number, batch in rows.items()}
        if deltas and self._letters is not None:
            self._letters.write(bad)
        commits: list[Any] = [commit for j in judged.values() for commit in j.commits]
        try:
            for commit in commits:
                self._kernel.commit([commit], False, False)
        except KernelError as error:
            raise _refusal(error) from None
        counts = [b.num_rows for b in rows.values()]
        delta: list[Section] = [(n, [j.delta]) for n, j in judged.items() if j.delta.num_rows] if deltas else []
        as_given = not bad and all(apart(batch)[1] is None for batch in rows.values())
        accepted: list[Section] | None = None if as_given else [(n, [j.accepted]) for n, j in judged.items()]
        notes = {"stale": sum(j.stale for j in judged.values()), "bad": len(bad)}
        facts = [
            {"table": self._tables[number].name, "known": j.known, "behind": j.behind}
            for number, j in judged.items()
            if j.known
        ]
        return Applied(delta, sum(counts), accepted, notes, facts)

    def begin(self, delta: Sequence[Section]) -> Sequence[Section]:
        return delta

    def snapshot(self) -> Iterator[Section]:
        before = time.time_ns() // 1_000_000 - self._tombstone_ms
        for number, table in enumerate(self._tables):
            table.forget(before)
            for batch in self._kernel.table_rows(table.handle):
                for rows in slices(batch):
                    yield number, [rows]

    def restore(self, sections: Sequence[Section]) -> None:
        for number, batches in sections:
            for batch in batches:
                self._kernel.commit([(self._tables[number].handle, "rows", batch)], False, False)

    def size(self) -> tuple[int, int]:
        sizes = [self._kernel.table_size(t.handle) for t in self._tables]
        return sum(s[1] for s in sizes), sum(s[2] for s in sizes) + self._kernel.texts_size()[1]


@dataclass(slots=True)
class _Judged:
    """What is to be done with a batch: kernel commits, the change that leaves, the rows accepted."""

    commits: list[tuple[int, str, pa.RecordBatch]]
    delta: pa.RecordBatch
    accepted: pa.RecordBatch
    stale: int = 0
    known: int = 0
    """Rows with a sequence whose keys are held, or were deleted."""
    behind: int = 0
    """Those of them that are older by their sequence alone: no repetitions."""


class _KeyedTable:
    def __init__(self, kernel: Database, given: KeyedInput, *, strict: bool) -> None:
        self._kernel = kernel
        self._given = given
        self._strict = strict
        table = given.stored
        self.name = table.name
        names = [c.name for c in table.columns]
        self._columns = [c.name for c in given.table.columns]
        self._out = self._columns[: len(self._columns) - given.hidden]
        self._key = list(table.primary_key)
        columns = [(c.name, str(c.type), c.nullable) for c in table.columns]
        self.handle = kernel.create_table(table.name, columns, [names.index(k) for k in self._key])

    def judge(self, rows: pa.RecordBatch, bad: list[BadRow]) -> _Judged:
        rows = self._with_keys(rows, bad)
        return self._latest(rows, bad) if self._given.latest else self._images(rows, bad)

    def _with_keys(self, rows: pa.RecordBatch, bad: list[BadRow]) -> pa.RecordBatch:
        for name in [*self._key, *self._given.order]:
            if rows.column(name).null_count:
                missing = pc.is_null(rows.column(name))
                what = "the sequence is NULL" if name in self._given.order else f"the key column `{name}` is NULL"
                self._set_aside(shown(rows.filter(missing), self._out), "NULL_NOT_ALLOWED", what, bad)
                rows = rows.filter(pc.invert(missing))
        return rows

    def _set_aside(self, values: Sequence[Mapping[str, Any]], code: str, reason: str, bad: list[BadRow]) -> None:
        if not values:
            return
        name = self._given.table.name
        if self._strict:
            raise refused_row(name, code, reason, values[0])
        bad.extend(BadRow(name, code, reason, row) for row in values)

    # ---- images --------------------------------------------------------------------------------------------------

    def _images(self, rows: pa.RecordBatch, bad: list[BadRow]) -> _Judged:
        netted = net(apart(rows)[0])
        netted = self._without_absent(netted, rows, bad)
        netted = self._without_duplicates(netted, rows, bad)
        delta = net(netted.select([*self._out, MULTIPLICITY]))
        return _Judged([(self.handle, "rows", netted)], delta, netted)

    def _refused(
        self, netted: pa.RecordBatch, counts: np.ndarray[Any, Any], given: pa.RecordBatch
    ) -> list[Mapping[str, Any]]:
        """So many copies of each netted row, as they are reported."""
        some = np.flatnonzero(counts)
        return [row for _, row in shown_netted(netted.take(pa.array(some)), counts[some], given, self._out)]

    def _without_absent(self, netted: pa.RecordBatch, given: pa.RecordBatch, bad: list[BadRow]) -> pa.RecordBatch:
        multiplicity = netted.column(netted.num_columns - 1).to_numpy()
        held = self._kernel.copies_of(self.handle, netted.select(self._columns)).to_numpy()
        absent = multiplicity + held < 0
        if not absent.any():
            return netted
        counts = np.where(absent, -(multiplicity + held), 0)
        values = self._refused(netted, counts, given)
        self._set_aside(values, "ROW_NOT_FOUND", "cannot delete what is not there", bad)
        kept = np.where(absent, -held, multiplicity)
        netted = netted.set_column(netted.num_columns - 1, MULTIPLICITY, pa.array(kept))
        return netted.filter(pa.array(kept != 0))

    def _without_duplicates(self, netted: pa.RecordBatch, given: pa.RecordBatch, bad: list[BadRow]) -> pa.RecordBatch:
        multiplicity = netted.column(netted.num_columns - 1).to_numpy()
        comes = np.flatnonzero(multiplicity > 0)
        if not len(comes):
            return netted
        coming = netted.take(pa.array(comes))
        keys = coming.select(self._key)
        chosen = np.zeros(len(comes), dtype=bool)
        chosen[last_of(group_rows(keys).to_numpy(), (), coming.select(self._columns))] = True
        positions, there = self._kernel.rows_with_keys(self.handle, keys)
        leaving = netted.filter(pa.array(multiplicity < 0)).select(self._columns)
        stays = ~_in(there.select(self._columns), leaving)
        taken = np.zeros(len(comes), dtype=bool)
        taken[positions.to_numpy()[stays]] = True
        stay = np.where(taken | ~chosen, 0, 1)
        surplus = multiplicity[comes] - stay
        if not surplus.any():
            return netted
        values = self._refused(coming, surplus, given)
        self._set_aside(values, "DUPLICATE_KEY", "another row has its key", bad)
        kept = multiplicity.copy()
        kept[comes] = stay
        netted = netted.set_column(netted.num_columns - 1, MULTIPLICITY, pa.array(kept))
        return netted.filter(pa.array(kept != 0))

    # ---- latest --------------------------------------------------------------------------------------------------

    def _latest(self, rows: pa.RecordBatch, bad: list[BadRow]) -> _Judged:
        given = apart(rows)[0]
        plain = self._without_values_of_deletions(given)
        group = group_rows(plain.select(self._key)).to_numpy()
        at = last_of(group, self._sequence(plain), plain.select(self._columns))
        newest = plain.take(pa.array(at))
        positions, there = self._kernel.rows_with_keys(self.handle, newest.select(self._key))
        known = positions.to_numpy()
        stale = np.zeros(plain.num_rows, dtype=bool)
        counts = (0, 0)
        if self._given.order:
            stale, counts = self._stale(plain, group, there, group[at[known]])
            passed = stale[at]
            logged = at
        else:
            held = np.zeros(len(at), dtype=bool)
            held[known] = True
            passed = ~held & ~newest.column(LIVE).to_numpy(zero_copy_only=False)
            lost = np.isin(group, group[at[passed]])  # all deletions of these keys: a row would be newer than they
            gone_before = shown(rows.filter(pa.array(lost)), self._out)
            self._set_aside(gone_before, "ROW_NOT_FOUND", "there is no row with its key", bad)
            logged = at[~passed]
        fresh = newest.filter(pa.array(~passed))
        was_live = there.column(LIVE).to_numpy(zero_copy_only=False)
        old = there.filter(pa.array(was_live & ~passed[known])).select(self._out)
        new = fresh.filter(fresh.column(LIVE)).select(self._out)
        minus = with_multiplicity(old, pa.array(np.full(old.num_rows, -1)))
        plus = with_multiplicity(new, pa.array(np.ones(new.num_rows, dtype=np.int64)))
        delta = net(concat([plus, minus]))
        return _Judged(self._commits(fresh), delta, given.take(pa.array(logged)), int(stale.sum()), *counts)

    def _without_values_of_deletions(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Of a deletion only key and sequence count."""
        live = rows.column(LIVE)
        if pc.all(live, min_count=0).as_py():
            return rows
        for at, name in enumerate(self._columns):
            if name not in self._key:
                column = rows.column(name)
                rows = rows.set_column(
                    at, rows.schema.field(at), pc.if_else(live, column, pa.scalar(None, column.type))
                )
        return rows

    def _sequence(self, rows: pa.RecordBatch) -> list[np.ndarray[Any, Any]]:
        """What orders rows before their content does."""
        numbers = [rows.column(name).to_numpy() for name in self._given.order]
        return [*numbers, rows.column(LIVE).to_numpy(zero_copy_only=False)]

    def _stale(
        self, rows: pa.RecordBatch, group: np.ndarray[Any, Any], there: pa.RecordBatch, groups: np.ndarray[Any, Any]
    ) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], tuple[int, int]]:
        """For each row whether it is not newer than the one of its key in ``there``, whose groups are given; and how many rows have
        such a key, and are older by their sequence alone."""
        stale = np.zeros(rows.num_rows, dtype=bool)
        if not there.num_rows:
            return stale, (0, 0)
        held = np.full(int(group.max()) + 1, -1)
        held[groups] = np.arange(len(groups))
        at = np.flatnonzero(held[group] >= 0)
        mine, theirs = rows.take(pa.array(at)), there.take(pa.array(held[group[at]]))
        by, others_by = self._sequence(mine), self._sequence(theirs)
        content = [batch.select(self._columns) for batch in (mine, theirs)]
        stale[at] = ~comes_after(by, content[0], others_by, content[1])
        places = len(self._given.order)
        older, _ = compared(others_by[:places], by[:places])
        return stale, (len(at), int(older.sum()))

    def _commits(self, fresh: pa.RecordBatch) -> list[tuple[int, str, pa.RecordBatch]]:
        commits = []
        if self._given.order:
            now = time.time_ns() // 1_000_000
            stamped = fresh.append_column(DELETED_AT, pa.array(np.full(fresh.num_rows, now)))
            commits.append((self.handle, "upsert", stamped))
        else:
            gone = fresh.filter(pc.invert(fresh.column(LIVE)))
            come = fresh.filter(fresh.column(LIVE))
            come = come.append_column(DELETED_AT, pa.array(np.zeros(come.num_rows, dtype=np.int64)))
            commits += [(self.handle, "keys", gone.select(self._key)), (self.handle, "upsert", come)]
        return [c for c in commits if c[2].num_rows]

    def forget(self, before: int) -> None:
        """Drop tombstones of deletions before a time."""
        if not self._given.order:
            return
        for rows in self._kernel.table_rows(self.handle):
            old = pc.and_(pc.invert(rows.column(LIVE)), pc.less(rows.column(DELETED_AT), before))
            keys = rows.filter(old).select(self._key)
            if keys.num_rows:
                self._kernel.commit([(self.handle, "keys", keys)], False, False)


def _in(rows: pa.RecordBatch, others: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each row whether it is among others."""
    group = group_rows(concat([others, rows])).to_numpy()
    found: np.ndarray[Any, np.dtype[np.bool_]] = np.isin(group[others.num_rows :], group[: others.num_rows])
    return found


def _refusal(error: KernelError) -> Exception:
    code, message, table, _, hint = error.args
    return translate(KernelError(code, message, table, None, hint))
