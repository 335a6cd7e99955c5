"""W3's change stream: customers, orders and lineitems made like TPC-H's.

Customers are loaded first. Orders then arrive with random keys, each followed by its one to seven lines; once ``window`` of these rows
are in, every insertion is followed by the deletion of the oldest row. One customer in five is of segment 0. Days are since 1970.

The streams are cached as Parquet under ``benchmarks/data``; the seed and all parameters are in the file name.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import generate

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {"customer": ("ck", "seg"), "orders": ("ok", "ck", "od", "sp"), "lineitem": ("ok", "ln", "rv", "sd")}
CUSTOMER, ORDERS, LINEITEM = range(3)
FIRST_DAY, DAYS = 8035, 2406  # TPC-H's orders: 1992-01-01 to 1998-08-02


@dataclass(frozen=True)
class OrdersSpec:
    """Parameters of a stream; ``window`` is the fraction of orders and lineitems that are in at a time."""

    orders: int
    seed: int
    window: float = 0.2

    @property
    def name(self) -> str:
        return f"orders-o{self.orders}-w{self.window:g}-s{self.seed}"

    def __str__(self) -> str:
        return f"{self.orders:,} orders, seed {self.seed}"


@dataclass(frozen=True)
class OrdersStream:
    """Changes in order: ``op`` is 1 or -1, ``table`` the number of a table in ``COLUMNS``, ``columns`` four per change."""

    name: str
    op: np.ndarray
    table: np.ndarray
    columns: np.ndarray

    def __len__(self) -> int:
        return len(self.op)

    def record_batches(self, count: int) -> list[dict[str, pa.RecordBatch]]:
        """The changes as ``count`` batches in the form that ``Session.apply`` takes; a table without changes is left out."""
        return [self._batch(slice(start, end)) for start, end in pairwise(generate.cuts(len(self), count))]

    def _batch(self, part: slice) -> dict[str, pa.RecordBatch]:
        op, table, columns = self.op[part], self.table[part], self.columns[part]
        batch = {}
        for number, (name, names) in enumerate(COLUMNS.items()):
            chosen = table == number
            if chosen.any():
                values = {column: columns[chosen, i] for i, column in enumerate(names)}
                batch[name] = pa.RecordBatch.from_pydict(
                    {column: pa.array(own) for column, own in (values | {"_multiplicity": op[chosen]}).items()}
                )
        return batch

    def raw_file(self) -> Path:
        """A file of six int64 per change (op, table, four columns), for the native peers."""
        path = generate.DATA / f"{self.name}.i64"
        if not path.exists():
            generate.DATA.mkdir(parents=True, exist_ok=True)
            np.column_stack((self.op, self.table, self.columns)).astype("<i8").tofile(path)
        return path


def load(spec: OrdersSpec) -> OrdersStream:
    """The stream of ``spec``, generated on first use."""
    path = generate.DATA / f"{spec.name}.parquet"
    if not path.exists():
        generate.DATA.mkdir(parents=True, exist_ok=True)
        stream = make(spec)
        columns = {f"column{i}": stream.columns[:, i] for i in range(4)}
        pq.write_table(pa.table({"op": stream.op, "table": stream.table, **columns}), path)
    found = [column.to_numpy() for column in pq.read_table(path).columns]
    return OrdersStream(spec.name, found[0], found[1], np.column_stack(found[2:]))


def make(spec: OrdersSpec) -> OrdersStream:
    random = np.random.default_rng(spec.seed)
    customers = spec.orders // 10
    loaded = _rows(CUSTOMER, np.arange(customers), random.integers(0, 5, customers))
    facts = _facts(spec.orders, customers, random)
    op, order = generate.fifo_order(len(facts), int(len(facts) * spec.window))
    changes = np.concatenate((loaded, facts[order]))
    return OrdersStream(spec.name, np.concatenate((np.ones(customers, np.int64), op)), changes[:, 0], changes[:, 1:])


def _facts(orders: int, customers: int, random: np.random.Generator) -> np.ndarray:
    """Every order followed by its lines, as rows of table and columns."""
    keys = random.permutation(4 * orders)[:orders]  # sparse, as TPC-H's are
    day = FIRST_DAY + random.integers(0, DAYS, orders)
    placed = _rows(ORDERS, keys, random.integers(0, customers, orders), day, np.zeros(orders, np.int64))
    lines = random.integers(1, 8, orders)
    order = np.repeat(np.arange(orders), lines)
    number = np.arange(len(order)) - np.repeat(np.cumsum(lines) - lines, lines) + 1
    cents = random.integers(90_000, 10_500_000, len(order))
    revenue = cents * (100 - random.integers(0, 11, len(order)))
    shipped = day[order] + random.integers(1, 122, len(order))
    sold = _rows(LINEITEM, keys[order], number, revenue, shipped)
    facts = np.concatenate((placed, sold))
    return facts[np.argsort(np.concatenate((np.arange(orders), order)), kind="stable")]


def _rows(table: int, *columns: np.ndarray) -> np.ndarray:
    """Rows of table and four columns, of which missing ones are zero."""
    rows = np.zeros((len(columns[0]), 5), np.int64)
    rows[:, 0] = table
    for i, column in enumerate(columns, start=1):
        rows[:, i] = column
    return rows
