"""``everview demo``: a revenue view in the manner of TPC-H, maintained over a stream of inserts, updates and deletes.

Every batch is one commit over three tables. At the end the maintained result is compared with the sum of all deltas and, where DuckDB is
installed, with recomputation from the base tables; then everything is deleted and the state is shown to be empty.
"""

from __future__ import annotations

import datetime as dt
import random
import time
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from everview.analysis.classification import QueryClass
from everview.errors import InternalError
from everview.interop.batch import MULTIPLICITY
from everview.session.session import Session, connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everview.session.view import View

SCHEMA = """
CREATE TABLE customer (c_custkey BIGINT PRIMARY KEY, c_mktsegment VARCHAR(10) NOT NULL);
CREATE TABLE orders (o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT NOT NULL, o_orderdate DATE NOT NULL);
CREATE TABLE lineitem (l_orderkey BIGINT, l_linenumber INT, l_extendedprice DECIMAL(12, 2), l_discount DECIMAL(12, 2),
                       PRIMARY KEY (l_orderkey, l_linenumber))
"""
QUERY = """
SELECT l_orderkey, o_orderdate, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS items
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate
"""
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_CUSTOMERS = 1_000
_BATCHES = 200
_ORDERS_PER_BATCH = 100
_SHOWN = 10

Row = tuple[Any, ...]
Batch = dict[str, list[dict[str, Any]]]


class _Stream:
    """Batches of changes: new orders with their lines, orders taken back, prices corrected, customers moved to another segment."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 a reproducible stream, not a secret
        self._customers: dict[int, str] = {}
        self._orders: dict[int, Row] = {}
        self._lines: dict[int, list[Row]] = {}
        self._next = 0

    def batches(self) -> Iterator[Batch]:
        for number in range(_BATCHES):
            changes: dict[str, Counter[Row]] = {"customer": Counter(), "orders": Counter(), "lineitem": Counter()}
            if number == 0:
                for key in range(_CUSTOMERS):
                    self._customers[key] = self._random.choice(_SEGMENTS)
                    changes["customer"][key, self._customers[key]] += 1
            for _ in range(_ORDERS_PER_BATCH):
                self._order(changes)
            for key in self._random.sample(sorted(self._orders), len(self._orders) // 200):
                changes["orders"][self._orders.pop(key)] -= 1
                changes["lineitem"].subtract(self._lines.pop(key))
            for key in self._random.sample(sorted(self._orders), len(self._orders) // 100):
                old = self._lines[key].pop()
                changes["lineitem"][old] -= 1
                self._add_line(key, old[1], changes)
            for key in self._random.sample(range(_CUSTOMERS), 10):
                changes["customer"][key, self._customers[key]] -= 1
                self._customers[key] = self._random.choice(_SEGMENTS)
                changes["customer"][key, self._customers[key]] += 1
            yield {table: _records(table, rows) for table, rows in changes.items()}

    def _order(self, changes: dict[str, Counter[Row]]) -> None:
        key = self._next
        self._next += 1
        day = dt.date(1994, 9, 1) + dt.timedelta(days=self._random.randrange(300))
        self._orders[key] = (key, self._random.randrange(_CUSTOMERS), day)
        changes["orders"][self._orders[key]] += 1
        self._lines[key] = []
        for line in range(self._random.randint(1, 6)):
            self._add_line(key, line, changes)

    def _add_line(self, key: int, line: int, changes: dict[str, Counter[Row]]) -> None:
        price = Decimal(self._random.randrange(100_000, 10_000_000)).scaleb(-2)
        row = (key, line, price, Decimal(self._random.randrange(11)).scaleb(-2))
        self._lines[key].append(row)
        changes["lineitem"][row] += 1


_COLUMNS = {
    "customer": ("c_custkey", "c_mktsegment"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_extendedprice", "l_discount"),
}


def _records(table: str, rows: Counter[Row]) -> list[dict[str, Any]]:
    names = _COLUMNS[table]
    return [dict(zip(names, row, strict=True)) | {MULTIPLICITY: n} for row, n in rows.items() if n]


def run() -> None:
    """Run the demo on standard output."""
    console = Console(highlight=False)
    with connect() as session:
        session.execute(SCHEMA)
        view = session.create_view("revenue", QUERY)
        console.print("A view over customer, orders and lineitem:", style="bold")
        console.print(QUERY.strip(), markup=False, soft_wrap=True)
        _explain(console, view)
        summed = _maintain(console, session, view)
        _show(console, view)
        _prove(console, session, view, summed)
        _delete_all(console, session, view)


def _explain(console: Console, view: View) -> None:
    ranked = (QueryClass.Q_HIERARCHICAL, QueryClass.FREE_CONNEX, QueryClass.ACYCLIC)
    best = next(c for c in ranked if view.classification.holds(c))
    bound = view.plan.cores[0].choice.guarantee.insert_only
    console.print(
        f"class   {best}, join tree of height {view.plan.cores[0].choice.tree.height}", markup=False, soft_wrap=True
    )
    console.print(
        f"update  {bound.bound} per change of an insert-only stream [{bound.source}]", markup=False, soft_wrap=True
    )


def _maintain(console: Console, session: Session, view: View) -> Counter[Row]:
    summed: Counter[Row] = Counter(_rows(view.to_arrow()))
    changed = emitted = 0
    spent = 0.0
    with _progress(console) as advance:
        for number, batch in enumerate(_Stream(seed=3).batches(), start=1):
            start = time.perf_counter()
            delta = session.apply(batch)["revenue"]
            spent += time.perf_counter() - start
            changed += sum(len(rows) for rows in batch.values())
            emitted += delta.num_rows
            for row, multiplicity in zip(_rows(delta), delta[MULTIPLICITY].to_pylist(), strict=True):
                summed[row] += multiplicity
            advance(number, f"{changed:,} changes in, {emitted:,} out, {view.count():,} rows")
    console.print(
        f"{changed:,} changes in {_BATCHES} commits: {changed / spent:,.0f} changes per second, {emitted:,} delta rows"
    )
    return +summed


def _show(console: Console, view: View) -> None:
    table = Table("order", "date", "revenue", "items", title=f"the {_SHOWN} largest of {view.count():,} orders")
    for row in sorted(_rows(view.to_arrow()), key=lambda r: (-r[2], r[0]))[:_SHOWN]:
        table.add_row(str(row[0]), str(row[1]), f"{row[2]:,.2f}", str(row[3]))
    console.print(table)


def _prove(console: Console, session: Session, view: View, summed: Counter[Row]) -> None:
    result = Counter(_rows(view.to_arrow()))
    _check(result == summed, "the sum of all deltas")
    console.print(f"the sum of all deltas equals the result: {result.total():,} rows")
    try:
        import duckdb
    except ImportError:
        console.print("DuckDB is not installed: the comparison with recomputation is left out")
        return
    with duckdb.connect() as other:
        for name in _COLUMNS:
            other.register(name, session.table_rows(name))
        recomputed = Counter(other.sql(QUERY).fetchall())
    _check(result == recomputed, "recomputation with DuckDB")
    console.print(f"recomputation with DuckDB equals the result: {recomputed.total():,} rows")


def _delete_all(console: Console, session: Session, view: View) -> None:
    before = view.metrics()
    everything = {name: session.table_rows(name) for name in _COLUMNS}
    gone = {name: _negated(rows) for name, rows in everything.items()}
    session.apply(gone)
    after = view.metrics()
    _check(view.count() == 0 and after.state_rows == 0, "an empty state")
    deleted = sum(rows.num_rows for rows in everything.values())
    console.print(
        f"deleted all {deleted:,} base rows: the state goes from {before.state_rows:,} rows to {after.state_rows}"
    )


def _negated(rows: pa.Table) -> pa.Table:
    negative = pa.array([-n for n in rows[MULTIPLICITY].to_pylist()], type=pa.int64())
    return rows.set_column(rows.num_columns - 1, MULTIPLICITY, negative)


def _rows(table: pa.Table) -> Iterator[Row]:
    columns = (table[name].to_pylist() for name in table.column_names if name != MULTIPLICITY)
    return zip(*columns, strict=True)


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise InternalError("INTERNAL_ERROR", f"the maintained result differs from {what}", hint="please report this")


class _progress:  # noqa: N801 a context manager, used as a function
    """On a terminal a live bar, elsewhere a line per quarter; gives a function to call with the number of batches done and a text."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Progress | None = None

    def __enter__(self) -> Callable[[int, str], None]:
        if not self._console.is_terminal:
            return self._line
        columns = (
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
        )
        self._live = Progress(*columns, console=self._console)
        self._live.start()
        self._task = self._live.add_task("", total=_BATCHES)
        return self._bar

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _bar(self, done: int, text: str) -> None:
        assert self._live is not None
        self._live.update(self._task, completed=done, description=text)

    def _line(self, done: int, text: str) -> None:
        if done % (_BATCHES // 4) == 0:
            self._console.print(f"{done}/{_BATCHES} commits: {text}")
