"""Sessions: tables, views, and commits over all of them."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from everview.engine import Database, refusals
from everview.errors import ChangeError, SchemaError, SessionError
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY, BatchReader
from everview.plan.lower import plan_view
from everview.session.view import View
from everview.sql.lower import lower_query
from everview.sql.parse import parse_statements
from everview.sql.statement import CreateTable, CreateView, DropTable, DropView

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from types import TracebackType

    from everview.schema.table import Table

logger = logging.getLogger("everview")
OnMissing = Literal["error", "ignore"]


class _BaseTable:
    """A table of the session: its definition, its place in the kernel, and how batches for it are read."""

    def __init__(self, table: Table, handle: int) -> None:
        self.table = table
        self.handle = handle
        self.reader = BatchReader(table)
        self.updates = 0


class Session:
    """An embedded database of base tables and maintained views.

    Safe to share between threads: commits are serialised, and every read sees the state after some commit.
    """

    def __init__(self) -> None:
        self._kernel = Database()
        self._tables: dict[str, _BaseTable] = {}
        self._views: dict[str, View] = {}
        self._version = 0
        self._closed = False
        self._lock = threading.RLock()
        self._notifying = threading.local()

    # ---- definitions ---------------------------------------------------------------------------------------------

    def execute(self, sql: str) -> None:
        """Run CREATE TABLE, CREATE [MATERIALIZED] VIEW, DROP TABLE and DROP VIEW statements, separated by semicolons."""
        with self._changing():
            for statement in parse_statements(sql):
                match statement:
                    case CreateTable(table=table, if_not_exists=if_not_exists):
                        self._create_table(table, if_not_exists=if_not_exists)
                    case CreateView(name=name, sql_of_query=query):
                        if name.lower() in self._views and statement.if_not_exists:
                            continue
                        self.create_view(name, query, replace=statement.or_replace)
                    case DropTable(name=name, if_exists=if_exists):
                        self._drop_table(name, if_exists=if_exists)
                    case DropView(name=name, if_exists=if_exists):
                        self._drop_view(name, if_exists=if_exists)

    def create_view(
        self, name: str, sql: str, *, update_rates: Mapping[str, int] | None = None, replace: bool = False
    ) -> View:
        """Create a view from a SELECT; on loaded tables it is built from their rows.

        ``update_rates`` (changes per table, any unit) guide the choice of the join tree; without them the changes seen so far do.
        """
        with self._changing():
            if not replace or name.lower() not in self._views:
                self._require_free(name)
            rates = self._rates(update_rates)
            tables = {key: base.table for key, base in self._tables.items()}
            planned = plan_view(lower_query(name, sql, tables), tables, rates)
            with refusals():
                handle = self._kernel.create_view(planned.plan.to_json())
            if name.lower() in self._views:
                self._drop_view(name)
            view = View(self, planned, handle)
            self._views[name.lower()] = view
            logger.debug("created view %s", name)
            return view

    def _rates(self, given: Mapping[str, int] | None) -> dict[str, int] | None:
        if given is None:
            observed = {key: base.updates for key, base in self._tables.items() if base.updates}
            return observed or None
        for name in given:
            self._table(name)
        return {name.lower(): rate for name, rate in given.items()}

    def _create_table(self, table: Table, *, if_not_exists: bool) -> None:
        if if_not_exists and table.name.lower() in self._tables:
            return
        self._require_free(table.name)
        names = [c.name for c in table.columns]
        columns = [(c.name, str(c.type), c.nullable) for c in table.columns]
        key = [names.index(k) for k in table.primary_key]
        retention = None
        if table.retention is not None:
            if table.retention.rows is not None:
                retention = ("rows", table.retention.rows, 0)
            elif table.retention.micros is not None and table.retention.time_column is not None:
                retention = ("time", table.retention.micros, names.index(table.retention.time_column))
        with refusals():
            handle = self._kernel.create_table(table.name, columns, key, retention)
        self._tables[table.name.lower()] = _BaseTable(table, handle)

    def _drop_table(self, name: str, *, if_exists: bool) -> None:
        if if_exists and name.lower() not in self._tables:
            return
        base = self._table(name)
        readers = [v.name for v in self._views.values() if _reads(v, base.table)]
        if readers:
            raise SchemaError(
                "TABLE_IN_USE",
                f"table `{base.table.name}` is read by view `{readers[0]}`",
                hint=f"drop the view{'s' if len(readers) > 1 else ''} first: {', '.join(readers)}",
            )
        self._kernel.drop_table(base.handle)
        del self._tables[name.lower()]

    def _drop_view(self, name: str, *, if_exists: bool = False) -> None:
        with self._changing():
            if if_exists and name.lower() not in self._views:
                return
            view = self.view(name)
            self._kernel.drop_view(view._handle)
            view._dropped = True
            view._subscriptions = ()
            del self._views[name.lower()]

    def _require_free(self, name: str) -> None:
        for kind, names in (("table", self._tables), ("view", self._views)):
            if name.lower() in names:
                hint = "drop it first, or choose another name"
                raise SchemaError("NAME_IN_USE", f"there is a {kind} named `{name}` already", hint=hint)

    # ---- changes -------------------------------------------------------------------------------------------------

    def apply(
        self, changes: Mapping[str, Any], *, deltas: bool = True, on_missing: OnMissing = "error"
    ) -> dict[str, pa.Table]:
        """Apply a batch of changes over some tables as one atomic commit; return the net delta of every view.

        Each batch holds rows of its table and optionally ``_change_type`` (insert, delete, update_preimage, update_postimage) or
        ``_multiplicity`` (negative deletes); without either, inserts. With ``deltas=False`` no deltas are computed and none returned.
        """
        return self._commit([(name, "rows", data) for name, data in changes.items()], deltas=deltas, on_missing=on_missing)

    def insert(self, table: str, rows: Any, *, deltas: bool = True) -> dict[str, pa.Table]:
        """Insert rows."""
        self._refuse_change_columns(table, rows)
        return self._commit([(table, "rows", rows)], deltas=deltas)

    def delete(self, table: str, rows: Any, *, deltas: bool = True, on_missing: OnMissing = "error") -> dict[str, pa.Table]:
        """Delete rows, or, in a table with a primary key, the rows with the given keys."""
        base = self._table(table)
        if base.reader.is_key_only(rows):
            return self._commit([(table, "keys", rows)], deltas=deltas, on_missing=on_missing)
        self._refuse_change_columns(table, rows)
        batch = base.reader.rows(rows)
        signed = batch.append_column(MULTIPLICITY, pa.array([-1] * batch.num_rows, type=pa.int64()))
        return self._commit([(table, "rows", signed)], deltas=deltas, on_missing=on_missing)

    def update(self, table: str, rows: Any, *, deltas: bool = True) -> dict[str, pa.Table]:
        """Replace the rows with the same primary keys; every key must be there."""
        self._refuse_change_columns(table, rows)
        return self._commit([(table, "update", rows)], deltas=deltas)

    def upsert(self, table: str, rows: Any, *, deltas: bool = True) -> dict[str, pa.Table]:
        """Insert rows, replacing those with the same primary keys; of several rows with one key the last counts."""
        self._refuse_change_columns(table, rows)
        return self._commit([(table, "upsert", rows)], deltas=deltas)

    def _refuse_change_columns(self, table: str, rows: Any) -> None:
        schema = getattr(rows, "schema", None)
        names = list(getattr(schema, "names", None) or []) if not callable(getattr(schema, "names", None)) else schema.names()  # type: ignore[union-attr]
        found = [n for n in names if n in (MULTIPLICITY, CHANGE_TYPE)]
        if found:
            raise ChangeError("UNEXPECTED_COLUMN", f"`{found[0]}` in rows for table `{table}`", hint="use apply()")

    def _commit(
        self, changes: list[tuple[str, str, Any]], *, deltas: bool, on_missing: OnMissing = "error"
    ) -> dict[str, pa.Table]:
        if on_missing not in ("error", "ignore"):
            raise ValueError(f"on_missing is 'error' or 'ignore', not {on_missing!r}")
        with self._changing():
            batches = []
            seen = set()
            for name, kind, data in changes:
                base = self._table(name)
                if base.handle in seen:
                    raise ChangeError("TABLE_TWICE", f"table `{base.table.name}` is named twice in one batch")
                seen.add(base.handle)
                if kind == "keys":
                    batch = base.reader.keys(data)
                else:
                    batch = base.reader.rows(data)
                batches.append((base.handle, kind, batch))
            wanted = deltas or any(v._subscriptions for v in self._views.values())
            with refusals():
                changed = dict(self._kernel.commit(batches, wanted, on_missing == "ignore"))  # type: ignore[arg-type]
            self._version += 1
            for (name, _, _), (_, _, batch) in zip(changes, batches, strict=True):
                self._tables[name.lower()].updates += batch.num_rows
            if not wanted:
                return {}
            result = {}
            for view in self._views.values():
                batch = changed.get(view._handle)
                result[view.name] = view._empty_delta if batch is None else pa.Table.from_batches([batch])
            self._notify(result)
            return result if deltas else {}

    def _notify(self, deltas: Mapping[str, pa.Table]) -> None:
        failure: BaseException | None = None
        self._notifying.active = True
        try:
            for view in tuple(self._views.values()):
                delta = deltas[view.name]
                for subscription in view._subscriptions if delta.num_rows else ():
                    try:
                        subscription.callback(delta)
                    except Exception as error:
                        logger.exception("a callback of view %s failed", view.name)
                        error.add_note("the commit stands: callbacks run after it")
                        failure = failure or error
        finally:
            self._notifying.active = False
        if failure is not None:
            raise failure

    # ---- looking around ------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of commits so far."""
        return self._version

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
        return {base.table.name: base.table for base in self._tables.values()}

    @property
    def views(self) -> dict[str, View]:
        """The views by name."""
        return {view.name: view for view in self._views.values()}

    def view(self, name: str) -> View:
        """The view of this name."""
        found = self._views.get(name.lower())
        if found is None:
            known = ", ".join(v.name for v in self._views.values()) or "none"
            raise SchemaError("UNKNOWN_VIEW", f"there is no view `{name}`", hint=f"the views are: {known}")
        return found

    def table_rows(self, name: str) -> pa.Table:
        """The rows of a base table with their ``_multiplicity``."""
        self._require_open()
        return pa.Table.from_batches([self._kernel.table_rows(self._table(name).handle)])

    def table_bytes(self, name: str) -> int:
        """Bytes the base store holds for a table (views' state is reported by ``View.metrics``)."""
        self._require_open()
        return self._kernel.table_size(self._table(name).handle)[2]

    def _table(self, name: str) -> _BaseTable:
        found = self._tables.get(name.lower())
        if found is None:
            known = ", ".join(t.table.name for t in self._tables.values()) or "none"
            raise SchemaError("UNKNOWN_TABLE", f"there is no table `{name}`", hint=f"the tables are: {known}")
        return found

    # ---- life ----------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write a snapshot: the rows of the tables and the definitions, checksummed, atomically."""
        from everview.session.snapshot import save

        with self._lock:
            self._require_open()
            save(self, path)

    def close(self) -> None:
        """Free everything; safe to call twice."""
        with self._lock:
            self._closed = True
            self._kernel = Database()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"version {self._version}"
        return f"<Session: {len(self._tables)} tables, {len(self._views)} views, {state}>"

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be pickled: use save() and everview.restore()")

    def _require_open(self) -> None:
        if self._closed:
            raise SessionError("SESSION_CLOSED", "the session is closed")

    def _changing(self) -> _Changing:
        return _Changing(self)


class _Changing:
    """Holds the session's lock for a change; refuses changes from the session's own callbacks."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        session = self._session
        if getattr(session._notifying, "active", False):
            raise SessionError(
                "CHANGE_IN_CALLBACK",
                "a callback tried to change the session it was called by",
                hint="collect what to do and do it after apply() has returned, or in another thread",
            )
        session._lock.acquire()
        if session._closed:
            session._lock.release()
            session._require_open()

    def __exit__(self, *_: object) -> None:
        self._session._lock.release()


def _reads(view: View, table: Table) -> bool:
    return any(a.table.lower() == table.name.lower() for core in view.plan.cores for a in core.query.atoms)


def connect() -> Session:
    """A new embedded session."""
    return Session()
