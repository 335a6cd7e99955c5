"""A maintained view, as the user holds it."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.analysis.classification import QueryClass
from everview.engine import refusals
from everview.errors import AccessPatternError, SessionError
from everview.interop.batch import MULTIPLICITY
from everview.interop.expand import expand
from everview.plan.explain import explain
from everview.plan.view_lookup import view_lookups
from everview.schema.arrow import arrow_type
from everview.session.display import to_html
from everview.session.metrics import ViewMetrics, read_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everview.analysis.classification import Classification
    from everview.engine import Cursor
    from everview.plan.lower import PlannedView
    from everview.session.session import Session

_CHUNK = 65536


class Subscription:
    """A callback that gets every delta of a view. Ends with ``cancel`` or with the view."""

    def __init__(self, view: View, callback: Callable[[pa.Table], object]) -> None:
        self.view = view
        self.callback = callback

    def cancel(self) -> None:
        """Stop calling the callback; safe to call twice."""
        self.view._forget(self)


class View:
    """The live result of a query. Safe to share between threads; every read sees the state after some commit.

    The result is kept factorised, not listed: reading it enumerates it with constant delay. There is no ``len`` and no truth value;
    ask ``count()``.
    """

    def __init__(self, session: Session, planned: PlannedView, handle: int) -> None:
        self._session = session
        self._planned = planned
        self._handle = handle
        self._dropped = False
        self._subscriptions: tuple[Subscription, ...] = ()
        columns = planned.view.columns
        self.schema: pa.Schema = pa.schema([pa.field(c.name, arrow_type(c.type), c.nullable) for c in columns])
        self._empty_delta = self.schema.append(pa.field(MULTIPLICITY, pa.int64(), nullable=False)).empty_table()

    @property
    def name(self) -> str:
        return self._planned.view.name

    @property
    def sql(self) -> str:
        return self._planned.view.sql

    @property
    def plan(self) -> PlannedView:
        """The view's plan and how it came about."""
        return self._planned

    @property
    def classification(self) -> Classification:
        """The classes of the view's query, each with a witness where it is not in it."""
        return self._planned.cores[0].classification

    def to_arrow(self, *, multiplicity: bool = False) -> pa.Table:
        """The full result; duplicates repeated as in SQL, or each row once with ``_multiplicity``."""
        if multiplicity:
            schema = self.schema.append(pa.field(MULTIPLICITY, pa.int64(), nullable=False))
            return _net(pa.Table.from_batches(list(self._read(self._open(), _CHUNK)), schema=schema))
        return pa.Table.from_batches(list(self.batches()), schema=self.schema)

    def to_pandas(self) -> Any:
        """The full result as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The full result as a polars DataFrame."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def batches(self, rows: int = _CHUNK) -> Iterator[pa.RecordBatch]:
        """The full result in record batches of at most ``rows`` rows, enumerated as they are asked for."""
        return self._expanded(self._open(), rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Any]:
        """The rows of the result as named tuples."""
        row = namedtuple("Row", self.schema.names, rename=True)  # type: ignore[misc]  # noqa: PYI024
        for batch in self.batches():
            yield from map(row._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def __len__(self) -> int:
        raise TypeError("a view has no len(): use count()")

    def __bool__(self) -> bool:
        raise TypeError("a view has no truth value: use count() > 0")

    def count(self) -> int:
        """The number of rows of the result, duplicates included. Costs at most one pass over the state."""
        self._require()
        with refusals():
            count = self._session._kernel.count(self._handle)
        if count is None:  # a condition above the groups: they are counted one by one
            return sum(batch.num_rows for batch in self.batches())
        return count

    def lookup(self, **values: Any) -> pa.Table:
        """The rows of the result with these values, found through the tree's indexes with constant delay."""
        self._require()
        lookups = view_lookups(self._planned)
        names = {name.lower() for name in self.schema.names}
        wanted = {name.lower(): value for name, value in values.items()}
        chosen = next((lk for lk in lookups if {c.lower() for c in lk.columns} == set(wanted)), None)
        if chosen is None or not wanted:
            unknown = [name for name in values if name.lower() not in names]
            reason = f"there is no column `{unknown[0]}`" if unknown else f"no index on ({', '.join(values)})"
            choices = "; ".join("(" + ", ".join(lk.columns) + ")" for lk in lookups if lk.columns)
            hint = f"look up by one of: {choices}" if choices else "this view has no index; filter to_arrow() instead"
            raise AccessPatternError("NO_INDEX", f"view `{self.name}`: {reason if values else 'lookup() needs columns'}", hint=hint)
        core = self._planned.plan.stages[0]
        variables = [v.name for v in core.variables]  # type: ignore[union-attr]
        head = [variables[v] for v in core.head]  # type: ignore[union-attr]
        arrays, fields = [], []
        for column, variable in zip(chosen.columns, chosen.variables, strict=True):
            kind = arrow_type(self._planned.cores[0].query.variables[variable].type)
            try:
                arrays.append(pa.array([wanted[column.lower()]], type=kind))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise AccessPatternError("WRONG_TYPE", f"view `{self.name}`: column `{column}` is {kind}: {error}") from None
            fields.append(pa.field(column, kind))
        batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        with refusals():
            cursor = self._session._kernel.lookup(self._handle, [head.index(v) for v in chosen.variables], batch)
        return pa.Table.from_batches(list(self._expanded(cursor, _CHUNK)), schema=self.schema)

    def subscribe(self, callback: Callable[[pa.Table], object]) -> Subscription:
        """Call ``callback(delta)`` after every commit that changes the result.

        Callbacks run after the commit, in the committing thread; they may read views but not change the session.
        """
        self._require()
        subscription = Subscription(self, callback)
        self._subscriptions += (subscription,)
        return subscription

    def _forget(self, subscription: Subscription) -> None:
        self._subscriptions = tuple(s for s in self._subscriptions if s is not subscription)

    def metrics(self) -> ViewMetrics:
        """What the view holds (rows and bytes per node) and the work it has done."""
        self._require()
        return read_metrics(self._session._kernel.metrics(self._handle), self._planned)

    def explain(self, format: str = "text") -> str:  # noqa: A002
        """How the view is maintained, what class it is in, what that guarantees, and why: text, json, dot, svg or html."""
        return explain(self._planned, format)

    def drop(self) -> None:
        """Drop the view."""
        self._session._drop_view(self.name)

    def _open(self) -> Cursor:
        self._require()
        return self._session._kernel.open(self._handle)

    def _read(self, cursor: Cursor, rows: int) -> Iterator[pa.RecordBatch]:
        while True:
            with refusals():
                batch = cursor.read(rows)
            if batch is None:
                return
            yield batch

    def _expanded(self, cursor: Cursor, rows: int) -> Iterator[pa.RecordBatch]:
        if rows < 1:
            raise ValueError("batches hold at least one row")
        for batch in self._read(cursor, rows):
            yield from expand(batch, self.schema, rows)

    def _require(self) -> None:
        self._session._require_open()
        if self._dropped:
            raise SessionError("VIEW_DROPPED", f"view `{self.name}` was dropped")

    def __repr__(self) -> str:
        ranked = (QueryClass.Q_HIERARCHICAL, QueryClass.FREE_CONNEX, QueryClass.ACYCLIC)
        kind = next(c for c in ranked if self.classification.holds(c))
        columns = ", ".join(f"{f.name} {f.type}" for f in self.schema)
        return f"<View {self.name}({columns}): {kind}>"

    def _repr_html_(self) -> str:
        return to_html(self)


def _net(table: pa.Table) -> pa.Table:
    """Each row once: enumeration may come to one row by several ways where columns were projected away."""
    names = [n for n in table.column_names if n != MULTIPLICITY]
    if not names or table.num_rows < 2:
        return table
    summed = table.group_by(names, use_threads=False).aggregate([(MULTIPLICITY, "sum")])
    if summed.num_rows == table.num_rows:
        return table
    return summed.rename_columns([*names, MULTIPLICITY]).cast(table.schema)
