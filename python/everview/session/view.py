"""A maintained view, as the user holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.analysis.classification import QueryClass
from everview.engine import refusals
from everview.errors import AccessPatternError, ChangeError, SessionError, StaleIteratorError, shown
from everview.explain.formats import Format, explain
from everview.interop.batch import MULTIPLICITY
from everview.interop.expand import expand
from everview.session import definitions
from everview.session.display import columns_text, to_html
from everview.session.lookup import lookup_arguments
from everview.session.metrics import ViewMetrics, read_metrics
from everview.session.order import ordered
from everview.session.rows import CHUNK, named_rows, repeated
from everview.session.state import Listener, MaintainedView, SessionState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everview.analysis.classification import Classification
    from everview.engine import Cursor, Database
    from everview.plan.lower import PlannedView
    from everview.query.logical_view import SortKey


class Subscription:
    """A callback that gets every delta of a view. Ends with ``cancel`` or with the view."""

    def __init__(self, state: SessionState, view: MaintainedView, listener: Listener) -> None:
        self._state = state
        self._view = view
        self._listener = listener

    def cancel(self) -> None:
        """Stop calling the callback; safe to call twice."""
        self._listener.cancelled = True
        with self._state.handles:
            self._view.listeners = tuple(one for one in self._view.listeners if one is not self._listener)


class View:
    """The live result of a query. Safe to share between threads; every read sees the state after some commit.

    The result is kept factorised, not listed: reading it enumerates it with constant delay. There is no ``len`` and no
    truth value; ask ``count()``.
    """

    def __init__(self, state: SessionState, view: MaintainedView) -> None:
        self._state = state
        self._view = view

    @property
    def name(self) -> str:
        return self._view.name

    @property
    def sql(self) -> str:
        return self._view.planned.view.sql

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._view.schema

    @property
    def plan(self) -> PlannedView:
        """The view's plan and how it came about."""
        return self._view.planned

    @property
    def classification(self) -> Classification:
        """The classes of the view's query, each with a witness where it is not in it."""
        return self._view.planned.cores[0].classification

    # ---- results -------------------------------------------------------------------------------------------------

    def to_arrow(self, *, multiplicity: bool = False) -> pa.Table:
        """The full result; duplicates repeated as in SQL, or each row once with ``_multiplicity``."""
        batches = self._whole(self._open)
        if multiplicity:
            return ordered(_net(pa.Table.from_batches(batches, schema=self._view.no_change.schema)), self._order)
        return ordered(repeated(batches, self.schema), self._order)

    def to_pandas(self) -> Any:
        """The full result as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The full result as a polars DataFrame."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def batches(self, rows: int = CHUNK) -> Iterator[pa.RecordBatch]:
        """The full result in record batches of at most ``rows`` rows, enumerated as they are asked for.

        A later commit ends it with ``StaleIteratorError``.
        """
        if not isinstance(rows, int) or isinstance(rows, bool) or not 1 <= rows < 2**31:
            message = f"batches of {shown(rows)} rows were asked for"
            raise AccessPatternError(
                "INVALID_ARGUMENT", message, hint="a batch holds at least one row, and fewer than 2^31"
            )
        return self._expanded(self._open(), rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The full result as a stream. It is read here as a whole: a stream that is read later would meet later commits."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Any]:
        """The rows of the result as named tuples; a later commit ends it with ``StaleIteratorError``."""
        return self._tuples(self._open())

    def __len__(self) -> int:
        raise TypeError("a view has no len(): use count()")

    def __bool__(self) -> bool:
        raise TypeError("a view has no truth value: use count() > 0")

    def count(self) -> int:
        """The number of rows of the result, duplicates included. Costs at most one pass over the state."""
        with self._state.handles, refusals():
            count = self._kernel().count(self._view.handle)
        if count is None:  # a condition above the groups: they are counted one by one
            return sum(sum(batch.column(MULTIPLICITY).to_pylist()) for batch in self._whole(self._open))
        return count

    def lookup(self, **values: Any) -> pa.Table:
        """The rows of the result with these values, found through the tree's indexes with constant delay.

        The sets of columns to look up by are those that ``explain`` lists; others are refused.
        """
        self._require()
        columns, row = lookup_arguments(self._view.planned, self.schema.names, values)

        def find() -> Cursor:
            with self._state.handles, refusals():
                return self._kernel().lookup(self._view.handle, columns, row)

        return ordered(repeated(self._whole(find), self.schema), self._order)

    # ---- around --------------------------------------------------------------------------------------------------

    def subscribe(self, callback: Callable[[pa.Table], object]) -> Subscription:
        """Call ``callback(delta)`` after every commit that changes the result.

        Callbacks run after the commit, in the committing thread; they may read views but not change the session.
        """
        if not callable(callback):
            message = f"view `{self.name}`: a callback is a function of one argument, not {type(callback).__name__}"
            raise AccessPatternError("INVALID_ARGUMENT", message, hint="pass a function that takes the delta")
        listener = Listener(callback)
        subscription = Subscription(self._state, self._view, listener)
        with self._state.handles:
            self._require()
            self._view.listeners += (listener,)
        return subscription

    def metrics(self) -> ViewMetrics:
        """What the view holds (rows and bytes per node) and the work it has done."""
        with self._state.handles, refusals():
            return read_metrics(self._kernel().metrics(self._view.handle), self._view.planned)

    def explain(self, format: Format = "text") -> str:  # noqa: A002 the public API calls it format
        """How the view is maintained, its class, what that guarantees, and why: text, json, dot, svg or html."""
        return explain(self._view.planned, format)

    def drop(self) -> None:
        """Drop the view; safe to call twice."""
        with self._state.lock:
            self._state.require_changeable()
            if self._state.has(self._view):
                definitions.drop_view(self._state, self._view)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, View) and other._view is self._view

    def __hash__(self) -> int:
        return hash(id(self._view))

    def __repr__(self) -> str:
        ranked = (QueryClass.Q_HIERARCHICAL, QueryClass.FREE_CONNEX, QueryClass.ACYCLIC)
        kind = next(c for c in ranked if self.classification.holds(c))
        return f"<View {self.name}({columns_text(self.schema)}): {kind}>"

    def __reduce__(self) -> Any:
        raise TypeError("a view cannot be pickled: use to_arrow(), or save() its session")

    def _repr_html_(self) -> str:
        return to_html(self, self.name)

    # ---- reading -------------------------------------------------------------------------------------------------

    def _kernel(self) -> Database:
        """The kernel, which has the view as long as the caller holds ``handles``."""
        self._require()
        return self._state.kernel

    def _open(self) -> Cursor:
        with self._state.handles, refusals():
            return self._kernel().open(self._view.handle)

    def _whole(self, start: Callable[[], Cursor]) -> list[pa.RecordBatch]:
        """All that a cursor reads, from one state: if another thread's commit comes between, again with commits held up."""
        try:
            return list(self._read(start(), CHUNK))
        except StaleIteratorError:
            with self._state.lock:
                return list(self._read(start(), CHUNK))

    def _read(self, cursor: Cursor, rows: int) -> Iterator[pa.RecordBatch]:
        while True:
            self._require()
            with refusals():
                batch = cursor.read(rows)
            if batch is None:
                return
            yield batch

    @property
    def _order(self) -> tuple[SortKey, ...]:
        return self._view.planned.view.order

    def _expanded(self, cursor: Cursor, rows: int) -> Iterator[pa.RecordBatch]:
        for part in self._parts(cursor, rows):
            self._require_fresh(cursor)
            yield part

    def _parts(self, cursor: Cursor, rows: int) -> Iterator[pa.RecordBatch]:
        """The result in record batches: as it is enumerated, or, where the view has an order, read as a whole and sorted."""
        if self._order:
            yield from ordered(repeated(self._read(cursor, CHUNK), self.schema), self._order).to_batches(rows)
            return
        for batch in self._read(cursor, rows):
            yield from expand(batch, self.schema, rows)

    def _tuples(self, cursor: Cursor) -> Iterator[Any]:
        return named_rows(self._expanded(cursor, CHUNK), self.schema, lambda: self._require_fresh(cursor))

    def _require(self) -> None:
        dropped = not self._state.has(self._view)
        self._state.require_open()  # closing drops all views: that they are gone is looked at before, and told after
        if dropped:
            raise SessionError("VIEW_DROPPED", f"view `{self.name}` was dropped", hint="create it again")

    def _require_fresh(self, cursor: Cursor) -> None:
        self._require()
        with refusals():
            cursor.require_fresh()


def _net(table: pa.Table) -> pa.Table:
    """Each row once: enumeration may come to one row by several ways where columns were projected away."""
    names = [n for n in table.column_names if n != MULTIPLICITY]
    if not names or table.num_rows < 2:
        return table
    bound = pc.sum(pc.abs(pc.cast(table[MULTIPLICITY], pa.float64(), safe=False))).as_py()
    if bound >= 2.0**63:  # sums of integers wrap silently
        exact = table.set_column(
            table.num_columns - 1, MULTIPLICITY, pc.cast(table[MULTIPLICITY], pa.decimal128(38, 0))
        )
        summed = exact.group_by(names, use_threads=False).aggregate([(MULTIPLICITY, "sum")])
        if pc.max(summed[f"{MULTIPLICITY}_sum"]).as_py() >= 2**63:
            message = "a row of the result is there more than 2^63 times"
            raise ChangeError("ARITHMETIC_OVERFLOW", message, hint="read it with to_arrow(), row by row")
    else:
        summed = table.group_by(names, use_threads=False).aggregate([(MULTIPLICITY, "sum")])
    if summed.num_rows == table.num_rows:
        return table
    return summed.rename_columns([*names, MULTIPLICITY]).cast(table.schema)
