"""A pipeline in one process: the stages of everview.shards with state stores in memory that roll back, and workers that can be lost."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from everview.layout.layout import lay_out
from everview.schema.arrow import arrow_type
from everview.shards.blob import unpack
from everview.shards.carried import together
from everview.shards.durable import DurableEngine, Holder
from everview.shards.pipeline import build_pipeline, hop_name
from everview.lower import lower_query
from everview.testing.memory_store import MemoryStore


class LocalPipeline:
    """With ``dead_letters``, rows carry their input rows as they do on Spark. ``shuffled``: blobs arrive in any order, as after a shuffle."""

    def __init__(self, sql, tables, shards, inputs=None, workers=1, seed=0, shuffled=False, **options):
        self.shuffled = shuffled
        self.tables = {t.name.lower(): t for t in tables}
        checked = frozenset(inputs or ())
        layout_options = {k: options.pop(k) for k in ("sizes", "heaviest") if k in options}
        self.layout = lay_out(
            lower_query("v", sql, self.tables), self.tables, shards, checked=checked, **layout_options
        )
        self.inputs = inputs or {}
        self.pipeline = build_pipeline(self.layout, self.inputs, **options)
        self.stores = {}
        self.holders = [Holder() for _ in range(workers)]
        self.random = random.Random(seed)
        self.batch = 0
        self.sources = []
        self.wrap = lambda store: store  # what engines see of a store

    def restart(self, **options):
        """Go on from the same stores and workers with other options."""
        self.pipeline = build_pipeline(self.layout, self.inputs, **options)

    def source_index(self, name):
        return next(i for i, s in enumerate(self.pipeline.sources) if s.table.name.lower() == name)

    def step(self, changes, *, change_types=False, parts=1):
        """One batch: {table: record batch as its input has it}, each cut at random into parts. Returns the rows that leave.

        Nothing changes if it raises: the stores roll back, the workers keep what they hold.
        """
        saved = copy.deepcopy(self.stores)
        try:
            return self._step(changes, change_types, parts)
        except BaseException:
            self.stores = saved
            raise

    def _step(self, changes, change_types, parts):
        self.sources = []
        keyed, arriving = [], []
        for name, given in changes.items():
            rows = given if self.pipeline.dead_letters is None else carrying(given)
            index = self.source_index(name)
            part_of = [self.random.randrange(parts) for _ in range(rows.num_rows)]
            for part in range(parts):
                piece = rows.filter(pa.array([p == part for p in part_of], type=pa.bool_()))
                target = arriving if self.pipeline.sources[index].keyed is None else keyed
                target += self.pipeline.dispatch(index, iter([piece]))
        leaving = keyed
        for hop in self.pipeline.hop_numbers:
            leaving = self._hop(hop, [*arriving, *leaving] if hop == 0 else leaving)
        self.batch += 1
        rows = []
        assert all(hop == self.pipeline.exit for (hop, _), _ in leaving)
        for blobs in self._arriving(leaving).values():
            sections = [s for blob in blobs for s in unpack(blob)]
            batch = self.pipeline.finish(sections, change_types=change_types)
            if batch is not None:
                rows.append(batch)
        return rows

    def _hop(self, hop, arriving):
        leaving = [(address, blob) for address, blob in arriving if address[0] != hop]
        here = [(address, blob) for address, blob in arriving if address[0] == hop]
        for (_, number), blobs in sorted(self._arriving(here).items()):
            leaving += self.pipeline.forward(hop, number, self.run(hop_name(hop), number, blobs))
        return leaving

    def _arriving(self, routed):
        found = {}
        for at, blob in routed:
            found.setdefault(at, []).append(blob)
        for blobs in found.values() if self.shuffled else ():
            self.random.shuffle(blobs)
        return found

    def run(self, stage, number, blobs):
        """Runs a batch of one engine: yields its delta, returns what it took."""
        store = self.stores.setdefault((stage, number), MemoryStore())
        holder = self.random.choice(self.holders)
        outcome = yield from self.engine(stage, number, holder).run(self.wrap(store), blobs)
        self.sources.append(outcome.source)
        return outcome

    def engine(self, stage, number, holder):
        hop = next(h for h in self.pipeline.hop_numbers if hop_name(h) == stage)
        make = lambda: self.pipeline.make(hop, number, lambda: self.batch)
        return DurableEngine(self.pipeline.identity, make, holder, (stage, number), self.pipeline.made_with)

    def lose_workers(self):
        self.holders = [Holder() for _ in self.holders]

    def rows_held(self, *stages):
        """The rows that the engines of these stages (of all, if none is named) hold, as their stores tell."""
        return sum(e.size()[0] for e in self.engines(*stages))

    def engines(self, *stages):
        """Engines as a worker that holds nothing would restore them."""
        found = [
            self.engine(stage, number, Holder()).read(store)
            for (stage, number), store in self.stores.items()
            if not stages or stage in stages
        ]
        return [engine for engine in found if engine is not None]


def carrying(rows):
    """Rows with themselves as JSON: all columns but those that say what kind of change they are, and ``_rest``."""
    names = [n for n in rows.schema.names if n not in ("_multiplicity", "_sequence", "_within", "_live", "_rest")]
    texts = [json.dumps(row, default=str) for row in rows.select(names).to_pylist()]
    return together(rows, pa.array(texts, pa.string()))


def batch_for(table, rows, extra=("_multiplicity",)):
    """Rows (tuples with the extra columns last) of a table."""
    types = [(c.name, arrow_type(c.type)) for c in table.columns]
    kinds = {"_multiplicity": pa.int64(), "_sequence": pa.int64(), "_within": pa.int64(), "_live": pa.bool_()}
    schema = pa.schema([*types, *((name, kinds[name]) for name in extra)])
    arrays = [pa.array([r[i] for r in rows], type=f.type) for i, f in enumerate(schema)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def add_up(total: Counter, batches):
    """Adds net rows to a bag."""
    for batch in batches:
        names = batch.schema.names[:-1]
        columns = [batch.column(i).to_pylist() for i in range(len(names))]
        weights = batch.column(len(names)).to_pylist()
        for row, weight in zip(zip(*columns, strict=True) if columns else [()] * len(weights), weights, strict=True):
            total[row] += weight
            if total[row] == 0:
                del total[row]
    return total


def sum_of(column):
    return pc.sum(column).as_py()
