"""A view in a session and over several numbers of shards, fed with the same changes and compared after every batch."""

from collections import Counter
from random import Random

import pyarrow as pa
from local_pipeline import LocalPipeline, batch_for

import everview as ev
from everview.schema.arrow import arrow_type
from everview.schema.datatype import BIGINT
from everview.schema.table import Column, Table
from everview.shards.normaliser import KeyedInput
from everview.shards.pipeline import hop_name
from everview.testing.oracle import bits, difference, meaning, rows_of
from everview.testing.strategies import create_table

SHARDS = (1, 2, 4, 7)
SIGNS = {"insert": 1, "delete": -1, "update_preimage": -1, "update_postimage": 1}
ORDER = {"images": (), "unordered": (), "ordered": ("_sequence",), "ordered twice": ("_sequence", "_within")}
MODES = (*ORDER, "images with rest")


def session_over(tables, sql):
    session = ev.connect()
    session.execute(";".join(create_table(t) for t in tables))
    return session, session.create_view("v", sql)


def keyed_as(mode, table):
    """How a table with a key comes in."""
    if mode == "images with rest":
        columns = (*table.columns, Column("_rest", BIGINT, nullable=False))
        return KeyedInput(Table(table.name, columns, table.primary_key), hidden=1)
    return KeyedInput(table, latest=mode != "images", order=ORDER[mode])


def counted(batches):
    """What leaves in one batch as {row by its bits: change}. It must be net: no row twice, none zero."""
    found, means = Counter(), set()
    for batch in batches:
        assert batch.num_rows
        for *values, kind in rows_of(pa.Table.from_batches([batch])):
            row = tuple(values)
            if isinstance(kind, str):
                found[bits(row)] += SIGNS[kind]
                continue
            assert kind, f"a change of zero: {row}"
            assert meaning(row) not in means, f"a row twice in one batch: {row}"
            means.add(meaning(row))
            found[bits(row)] = kind
    return found


def check_change_types(batch, key):
    """Copies are never both inserted and deleted, pairs of an update stand together, and a key has one change."""
    rows = rows_of(pa.Table.from_batches([batch]))
    directions = {}
    for *values, kind in rows:
        assert directions.setdefault(meaning(tuple(values)), SIGNS[kind]) == SIGNS[kind], f"not net: {values}"
    if key is None:
        assert not {r[-1] for r in rows} & {"update_preimage", "update_postimage"}
        return
    keys = [meaning(tuple(r[i] for i in key)) for r in rows]
    kinds = {}
    for at, (k, row) in enumerate(zip(keys, rows, strict=True)):
        kinds.setdefault(k, []).append(row[-1])
        if row[-1] == "update_preimage":
            assert keys[at + 1] == k, "the postimage does not follow"
    assert set(map(tuple, kinds.values())) <= {("insert",), ("delete",), ("update_preimage", "update_postimage")}


class Watched:
    """One pipeline, the sum of what left it, and the values of its rows."""

    def __init__(self, sql, tables, shards, modes=None, **options):
        self.modes = modes or {t.name: "images" for t in tables if t.primary_key}
        keyed = {t.name.lower(): keyed_as(self.modes[t.name], t) for t in tables if t.name in self.modes}
        self.run = LocalPipeline(sql, tables, shards, keyed, **options)
        names = {s.table.name for s in self.run.pipeline.sources}
        self.tables = [t for t in tables if t.name in names]
        self.sum = Counter()
        self.values = {}
        self.sequence = 0

    def step(self, changes, *, change_types=False, parts=1):
        """Changes in order as (table, row, sign)."""
        given = {t.name.lower(): self.input(t, [c for c in changes if c[0] == t.name]) for t in self.tables}
        leaving = self.run.step(given, change_types=change_types, parts=parts)
        for batch in leaving:
            if change_types:
                check_change_types(batch, self.run.pipeline.key)
            else:
                columns = self.run.pipeline.columns
                assert batch.schema.names == [*(c.name for c in columns), "_multiplicity"]
                assert batch.schema.types == [*(arrow_type(c.type) for c in columns), pa.int64()]
            for column, values in zip(self.run.pipeline.columns, batch.columns[:-1], strict=True):
                assert column.nullable or not values.null_count, f"NULL in `{column.name}`, which is never NULL"
            for *values, _ in rows_of(pa.Table.from_batches([batch])):
                self.values[bits(tuple(values))] = tuple(values)
        for row, change in counted(leaving).items():
            self.sum[row] += change
            assert self.sum[row] >= 0, f"more of {self.values[row]} leaves than came"
            if not self.sum[row]:
                del self.sum[row]
        return leaving

    def input(self, table, changes):
        """Changes of a table in the form its input has."""
        mode = self.modes.get(table.name)
        if mode is None or mode == "images":
            return batch_for(table, [(*row, sign) for _, row, sign in changes])
        if mode == "images with rest":
            rows = batch_for(table, [(*row, sign) for _, row, sign in changes])
            return rows.add_column(rows.num_columns - 1, "_rest", pa.array([5] * rows.num_rows, type=pa.int64()))
        key = [i for i, c in enumerate(table.columns) if c.name in table.primary_key]
        newest, known = {}, []
        for _, row, sign in changes:
            self.sequence += 1
            live = sign > 0
            # A deletion has a key alone.
            values = row if live else tuple(v if i in key else None for i, v in enumerate(row))
            place = {"unordered": (), "ordered": (self.sequence,), "ordered twice": divmod(self.sequence, 7)}[mode]
            known.append((*values, *place, live))
            k = meaning(tuple(row[i] for i in key))
            newest.setdefault(k, [sign < 0, None])[1] = known[-1]
        if mode == "unordered":  # the last one of each key; a key that comes and goes within the batch stays out
            known = [row for was, row in newest.values() if was or row[-1]]
        self.run.random.shuffle(known)
        return batch_for(table, known, (*ORDER[mode], "_live"))

    @property
    def rows(self):
        return [self.values[row] for row in self.sum.elements()]


class Comparison:
    """A session and pipelines over the same view."""

    def __init__(self, sql, tables, shards=SHARDS, seed=0, modes=None, **options):
        self.random = Random(seed)
        self.sql = sql
        self.session, self.view = session_over(tables, sql)
        self.tables = {t.name: t for t in tables}
        self.pipelines = {n: Watched(sql, tables, n, modes, seed=seed, workers=1 + seed % 3, **options) for n in shards}
        self.held = {t.name: Counter() for t in tables}

    def step(self, changes, *, losses=0.0, parts=1, change_types=False):
        """Changes in order as (table, row, sign)."""
        for name, row, sign in changes:
            self.held[name][row] += sign
            if not self.held[name][row]:
                del self.held[name][row]
        given = {
            name: batch_for(table, [(*row, sign) for n, row, sign in changes if n == name])
            for name, table in self.tables.items()
        }
        self.session.apply(given, deltas=False)
        for shards, watched in self.pipelines.items():
            if self.random.random() < losses:
                watched.run.lose_workers()
            watched.step(changes, change_types=change_types, parts=parts)
        self.check()

    def check(self):
        expected = rows_of(self.view.to_arrow())
        for shards, watched in self.pipelines.items():
            surplus, missing = difference(watched.rows, expected)
            assert (surplus, missing) == ([], []), f"{shards} shards: {surplus} too many, {missing} missing\n{self.sql}"
            key = watched.run.pipeline.key
            if key is not None:
                keys = Counter(meaning(tuple(r[i] for i in key)) for r in watched.rows)
                assert all(n == 1 for n in keys.values()), f"{key} is no key: {keys}"

    def insert(self, **rows):
        self.step([(name, row, 1) for name, found in rows.items() for row in found])

    def delete(self, **rows):
        self.step([(name, row, -1) for name, found in rows.items() for row in found])

    def empty(self):
        """Delete everything; nothing is held then but what is held of nothing, such as the partial row of an aggregate without groups."""
        self.step([(name, row, -1) for name, held in self.held.items() for row in held.elements()])
        for shards, watched in self.pipelines.items():
            keyed = any(mode.startswith("ordered") for mode in watched.modes.values())
            assert keyed or watched.run.rows_held("normalise") == 0
            assert watched.run.rows_held("shard") == 0
            fresh = Watched(self.sql, list(self.tables.values()), shards, watched.modes)
            fresh.step([])
            later = [hop_name(hop) for hop in watched.run.pipeline.hop_numbers if hop > 0]
            assert not later or watched.run.rows_held(*later) == fresh.run.rows_held(*later)

    def close(self):
        self.session.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
