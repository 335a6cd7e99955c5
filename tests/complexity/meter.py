"""Streams and the work that views do on them, counted by the kernel; no clocks.

A stream is a list of changes ``(sign, table, row)``. ``Meter`` holds one session with one view and applies streams to
it, so many changes per commit; ``run`` returns the work of that stream as a ``Work``: the growth of the view's counters
and the number of changes. What an update costs is ``Work.per_update``: probes, status changes and annotation changes by
the number of changes. Bounds in the tests are absolute numbers, or small multiples of the number of nodes of the tree:
they must hold for every size of the data.
"""

import json
import random
from collections import defaultdict, deque
from dataclasses import dataclass

import everview as ev
import pyarrow as pa

COUNTERS = ("updates", "probes", "status_changes", "annotation_changes", "live_changes", "steps", "rows_emitted")


@dataclass(frozen=True)
class Work:
    """The growth of the counters over a stream of ``changes`` changes."""

    changes: int
    updates: int
    probes: int
    status_changes: int
    annotation_changes: int
    live_changes: int
    steps: int
    rows_emitted: int

    @property
    def propagation(self):
        """Rows visited above the changed rows."""
        return self.status_changes + self.annotation_changes

    @property
    def per_update(self):
        return (self.probes + self.propagation) / self.changes


class Meter:
    """One view over tables of BIGINT columns. ``tables``: name to column names, a key column marked with ``!``."""

    def __init__(self, tables, sql, update_rates=None):
        self.db = ev.connect()
        for table, columns in tables.items():
            names = columns.split()
            keys = [n[:-1] for n in names if n.endswith("!")]
            text = ", ".join(f"{n.rstrip('!')} BIGINT NOT NULL" for n in names)
            text += f", PRIMARY KEY ({', '.join(keys)})" if keys else ""
            self.db.execute(f"CREATE TABLE {table} ({text})")
        self.view = self.db.create_view("v", sql, update_rates=update_rates)

    @property
    def tree(self):
        return self.view.plan.cores[0].choice.tree

    @property
    def height(self):
        return self.tree.height

    @property
    def nodes(self):
        return len(self.tree.nodes)

    def guarantee(self, name):
        """What explain says of a bound, say ``update, FIFO stream``: (bound, note)."""
        core = json.loads(self.view.explain("json"))["stages"][0]
        found = {g["name"]: g for g in core["guarantees"]}[name]
        return found["bound"], found["note"]

    def value_edges(self):
        """The value edges as explain names them: (child, parent) to (cost, bound)."""
        core = json.loads(self.view.explain("json"))["stages"][0]
        return {(e["child"], e["parent"]): (e["cost"], e["bound"]) for e in core["value_edges"]}

    def counters(self):
        metrics = self.view.metrics()
        return [getattr(metrics, name) for name in COUNTERS]

    def run(self, stream, batch=1, deltas=True):
        """Apply a stream, ``batch`` changes per commit (None: all in one); return its work."""
        stream = list(stream)
        before = self.counters()
        for start in range(0, len(stream), batch or len(stream) or 1):
            self.commit(stream[start : start + (batch or len(stream))], deltas=deltas)
        return Work(len(stream), *(b - a for a, b in zip(before, self.counters(), strict=True)))

    def commit(self, changes, deltas=True):
        """One commit; the rows of one table with their net multiplicity."""
        net = defaultdict(lambda: defaultdict(int))
        for sign, table, row in changes:
            net[table][row] += sign
        batches = {
            table: [(*row, m) for row, m in rows.items() if m] for table, rows in net.items() if any(rows.values())
        }
        named = {table: self.rows(table, rows) for table, rows in batches.items()}
        return self.db.apply(named, deltas=deltas).get("v")

    def rows(self, table, rows):
        schema = pa.schema(
            [*((c.name, pa.int64()) for c in self.db.tables[table].columns), ("_multiplicity", pa.int64())]
        )
        return pa.RecordBatch.from_arrays([pa.array(c, pa.int64()) for c in zip(*rows, strict=True)], schema=schema)

    def load(self, **rows):
        """Insert rows per table in one commit, without deltas."""
        self.commit([(1, table, row) for table, found in rows.items() for row in found], deltas=False)

    def read(self):
        """Enumerate the whole result; return the work of it."""
        before = self.counters()
        for _ in self.view.batches():
            pass
        return Work(1, *(b - a for a, b in zip(before, self.counters(), strict=True)))


def inserts(table, rows):
    return [(1, table, row) for row in rows]


def deletes(table, rows):
    return [(-1, table, row) for row in rows]


def grid(n):
    return [(i, j) for i in range(n) for j in range(n)]


def fifo(arrivals, window):
    """A FIFO stream: each ``(table, row)`` of ``arrivals`` leaves when ``window`` others have come after it."""
    held = deque()
    for table, row in arrivals:
        if len(held) == window:
            yield (-1, *held.popleft())
        yield 1, table, row
        held.append((table, row))
    while held:
        yield (-1, *held.popleft())


def ragged_fifo(arrivals, seed):
    """A FIFO stream with lifespans of all lengths: arrivals in order, departures in the same order, in random runs."""
    rng = random.Random(seed)
    held = deque()
    arrivals = deque(arrivals)
    while arrivals or held:
        for _ in range(rng.choice((1, 1, 3, 10, 50))):
            if arrivals:
                held.append(arrivals.popleft())
                yield (1, *held[-1])
        for _ in range(rng.choice((0, 1, 1, 3, 10, 60))):
            if held:
                yield (-1, *held.popleft())


def random_arrivals(widths, n, domain, seed, sticky=0):
    """``n`` random rows over tables (name to number of columns). ``sticky``: chance in percent to stay with the table."""
    rng = random.Random(seed)
    tables = list(widths)
    table = rng.choice(tables)
    found = []
    for _ in range(n):
        if rng.randrange(100) >= sticky:
            table = rng.choice(tables)
        found.append((table, tuple(rng.randrange(domain) for _ in range(widths[table]))))
    return found


# ---- enclosureness (CROWN, Definitions 6.1 to 6.4) ---------------------------------------------------------------


def lifespans(stream):
    """Per table the lifespans ``(start, end)`` of its rows; rows that stay end at infinity."""
    open_, found = {}, defaultdict(list)
    for time, (sign, table, row) in enumerate(stream):
        if sign > 0:
            open_[table, row] = time
        else:
            found[table].append((open_.pop((table, row)), time))
    for (table, _), start in open_.items():
        found[table].append((start, float("inf")))
    return found


def _disjoint(intervals):
    """The largest number of pairwise disjoint intervals."""
    count, free = 0, -1
    for start, end in sorted(intervals, key=lambda i: i[1]):
        if start > free:
            count, free = count + 1, end
    return count


def enclosureness(stream, below):
    """lambda_T of a stream on a tree, given per relation the relations properly below it (projections left out).

    Definition 6.4 with closed intervals over the positions of the changes; a row may appear with both of its effective
    lifespans, which at most doubles the value.
    """
    spans = lifespans(stream)
    total, count = 0, 0
    for table, found in spans.items():
        effective = []
        for child in below.get(table, ()):
            deeper = [s for t in below.get(child, ()) for s in spans[t]]
            for start, end in spans[child]:
                first_loss = min((e for _, e in deeper if e > start), default=end)
                last_gain = max((s for s, _ in deeper if s < end), default=start)
                effective += [(start, min(end, first_loss)), (max(start, last_gain), end)]
        for start, end in found:
            total += _disjoint([(s, e) for s, e in effective if start < s and e < end])
            count += 1
    return max(total / count, 1)
