"""Sessions, as the user holds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from everview.engine import refusals
from everview.errors import ChangeError
from everview.session import definitions
from everview.session.commit import OnMissing, Request, commit
from everview.session.execute import execute
from everview.session.metrics import TableMetrics, table_metrics
from everview.session.query import run_query
from everview.session.snapshot import save
from everview.session.state import SessionState
from everview.session.view import View

if TYPE_CHECKING:
    from os import PathLike
    from types import TracebackType

    from everview.schema.table import Table
    from everview.session.changes import Executed
    from everview.session.result import Result
    from everview.sql.parameters import Parameters


class Session:
    """An embedded database of base tables and maintained views.

    Safe to share between threads: commits are serialised, and every read sees the state after some commit.
    """

    def __init__(self, state: SessionState | None = None) -> None:
        self._state = SessionState() if state is None else state

    # ---- definitions ---------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Parameters | None = None, *, deltas: bool = True) -> Executed:
        """Run CREATE TABLE, CREATE [MATERIALIZED] VIEW, DROP, INSERT, UPDATE and DELETE statements, separated by semicolons.

        The text is parsed as a whole, then the statements run one after another, each an atomic commit of its own; one that is refused
        ends it, and those before it stand. Returns how many rows were inserted, updated or deleted, and the deltas of views as ``apply``
        does. ``parameters``, of a single statement: a list or tuple for ``?``, a mapping for ``:name``; for INSERT ... VALUES also a
        list of these, whose rows are inserted in one commit.
        """
        with self._state.lock:
            self._state.require_changeable()
            return execute(self._state, sql, parameters, deltas=deltas)

    def sql(self, query: str, parameters: Parameters | None = None) -> Result:
        """The result of a SELECT over the tables and views as they are now: any that a view could have.

        It costs what building the view costs, and leaves nothing behind. ``parameters`` as in ``execute``.
        """
        return run_query(self._state, query, parameters)

    def create_view(
        self,
        name: str,
        sql: str,
        *,
        update_rates: Mapping[str, int] | None = None,
        replace: bool = False,
        on_warning: Literal["accept", "refuse"] = "accept",
    ) -> View:
        """Create a view from a SELECT; on loaded tables it is built from their rows.

        ``update_rates`` (changes per table, any unit) guide the choice of the join tree; without them the changes seen so far do.
        ``on_warning``: whether to take a view that costs more than a join tree would, for the reasons that ``explain`` gives.
        """
        with self._state.lock:
            self._state.require_changeable()
            options = definitions.ViewOptions(update_rates, replace, on_warning)
            return View(self._state, definitions.create_view(self._state, name, sql, options))

    # ---- changes -------------------------------------------------------------------------------------------------

    def apply(
        self, changes: Mapping[str, Any], *, deltas: bool = True, on_missing: OnMissing = "error"
    ) -> dict[str, pa.Table]:
        """Apply a batch of changes over some tables as one atomic commit; return the net delta of every view.

        Each batch holds rows of its table and optionally ``_change_type`` (insert, delete, update_preimage,
        update_postimage) or ``_multiplicity`` (negative deletes); without either, inserts. A batch is a set of changes:
        netted by row, valid or not by the state after it. With ``deltas=False`` no deltas are computed and none
        returned. With ``on_missing="ignore"`` deletes of absent rows are skipped.
        """
        return commit(self._state, _requests("apply", changes), deltas=deltas, on_missing=on_missing)

    def apply_stream(
        self,
        changes: Mapping[str, Any],
        receive: Callable[[str, pa.RecordBatch], object],
        *,
        on_missing: OnMissing = "error",
    ) -> None:
        """Apply a batch as ``apply`` does, and hand the deltas to ``receive(view, rows)`` in pieces, rows with ``_multiplicity``.

        Joins that keep all columns hand their pieces out while the batch is applied, so that a delta of any size passes. Nothing is handed
        out of a batch that is refused. ``receive`` must not use the session. What it raises ends the handing over, not the commit.
        """
        commit(self._state, _requests("apply_stream", changes), deltas=False, on_missing=on_missing, receive=receive)

    def insert(self, table: str, rows: Any, *, deltas: bool = True) -> dict[str, pa.Table]:
        """Insert rows; a column that dicts leave out is NULL."""
        return commit(self._state, [(table, "insert", rows)], deltas=deltas)

    def delete(
        self, table: str, rows: Any, *, deltas: bool = True, on_missing: OnMissing = "error"
    ) -> dict[str, pa.Table]:
        """Delete rows, or, in a table with a primary key, the rows with the given keys."""
        return commit(self._state, [(table, "delete", rows)], deltas=deltas, on_missing=on_missing)

    def update(self, table: str, rows: Any, *, deltas: bool = True) -> dict[str, pa.Table]:
        """Replace the rows with the same primary keys by whole rows; every key must be there."""
        return commit(self._state, [(table, "update", rows)], deltas=deltas)

    def upsert(self, table: str, rows: Any, *, deltas: bool = True) -> dict[str, pa.Table]:
        """Insert whole rows, replacing those with the same primary keys; of several rows with one key the last counts."""
        return commit(self._state, [(table, "upsert", rows)], deltas=deltas)

    # ---- looking around ------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of commits so far."""
        return self._state.version

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
        self._state.require_open()
        return {base.table.name: base.table for base in tuple(self._state.tables.values())}

    @property
    def views(self) -> dict[str, View]:
        """The views by name."""
        self._state.require_open()
        return {view.name: View(self._state, view) for view in tuple(self._state.views.values())}

    def view(self, name: str) -> View:
        """The view of this name."""
        self._state.require_open()
        return View(self._state, self._state.view(name))

    def table_rows(self, name: str) -> pa.Table:
        """The rows of a base table with their ``_multiplicity``; those of a window in the order in which they expire."""
        state = self._state
        with state.handles, refusals():
            state.require_open()
            return pa.Table.from_batches(state.kernel.table_rows(state.table(name).handle))

    def table_metrics(self, name: str) -> TableMetrics:
        """What a base table holds (views' state is reported by ``View.metrics``) and what its window has done."""
        state = self._state
        with state.handles:
            state.require_open()
            return table_metrics(state.kernel, state.table(name).handle)

    # ---- life ----------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write a snapshot: the rows of the tables and the definitions, checksummed, atomically."""
        with self._state.lock:
            self._state.require_open()
            save(self._state, path)

    def close(self) -> None:
        """Free everything; safe to call twice."""
        self._state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self._state
        if state.closed:
            return "<Session: closed>"
        return f"<Session: {len(state.tables)} tables, {len(state.views)} views, version {state.version}>"

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be pickled: use save() and everview.restore()")


def _requests(method: str, changes: Mapping[str, Any]) -> list[tuple[str, Request, Any]]:
    if not isinstance(changes, Mapping):
        raise ChangeError(
            "WRONG_TYPE",
            f"{method}() takes batches by table name and got {type(changes).__name__}",
            hint=f'write {method}({{"table": rows}})',
        )
    return [(name, "changes", data) for name, data in changes.items()]


def connect(*, delta_limit: int | None = None) -> Session:
    """A new embedded session.

    ``delta_limit``: the bytes that one delta may take while a batch is applied; by default a quarter of the memory. A batch that would take
    more is refused as a whole.
    """
    return Session(SessionState(delta_limit))
