"""What a session is made of, shared by the parts of this package: the kernel, the tables, the views, and the locks around them.

Two locks, both native, so that no interrupt comes between taking one and the block that gives it back. ``lock`` is held by every change from its first check to its last callback, so that changes are serialised. ``handles`` is held for
the moment in which a handle of the kernel is used or dropped: a reader never meets a handle whose table or view is gone, and never waits for
a callback.

What changes with the kernel (``version``, ``tables``, ``views``, handles, ``updates``, ``failed``) is only written in one native step with the
change itself (``engine.change_and_note``, ``engine.commit_and_notify``): an interrupt finds both or neither. ``tables`` and ``views`` are
replaced, never changed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from everview.engine import Database
from everview.errors import SchemaError, SessionError, cut, listed, shown
from everview.interop.batch import MULTIPLICITY, BatchReader
from everview.machine import default_delta_limit
from everview.plan.output_key import output_key
from everview.query.conjunctive import StageSource
from everview.schema.table import Column, Table
from everview.session.rows import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everview.plan.lower import PlannedView
    from everview.query.conjunctive import TableSource, ViewSource

ChangeKind = Literal["rows", "upsert", "update", "keys"]


class BaseTable:
    """A table: its definition, its place in the kernel, how batches for it are read, and how many rows they had."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.handle = -1  # once the kernel has it
        self.reader = BatchReader(table)
        self.updates = 0

    def read(self, kind: str, data: Any) -> tuple[int, ChangeKind, pa.RecordBatch]:
        """A batch as the kernel takes it."""
        if kind == "changes":
            return self.handle, "rows", self.reader.changes(data)
        if kind == "insert":
            return self.handle, "rows", self.reader.rows(data, sparse=True)
        if kind == "delete":
            return self.handle, *self.reader.deletes(data)
        return self.handle, "update" if kind == "update" else "upsert", self.reader.rows(data)


class MaintainedView:
    """A view: its plan, its place in the kernel, the rates its tree was chosen by, and who listens."""

    def __init__(self, planned: PlannedView, rates: Mapping[str, int] | None) -> None:
        self.planned = planned
        self.handle = -1  # once the kernel has it
        self.rates = rates
        self.listeners: tuple[Listener, ...] = ()
        self.schema: pa.Schema = schema_of(planned.view)
        self.no_change: pa.Table = self.schema.append(pa.field(MULTIPLICITY, pa.int64(), nullable=False)).empty_table()

    @property
    def name(self) -> str:
        return self.planned.view.name

    @property
    def table(self) -> Table:
        """The view as other views read it."""
        columns = tuple(Column(c.name, c.type, c.nullable) for c in self.planned.view.columns)
        return Table(self.name, columns, output_key(self.planned.view) or ())

    def reads(self, source: TableSource | ViewSource) -> bool:
        """Whether a table or another view is among those the view is built from."""
        atoms = (atom for core in self.planned.cores for atom in core.query.atoms)
        named = (a.source for a in atoms if not isinstance(a.source, StageSource))
        return any(type(s) is type(source) and s.name.lower() == source.name.lower() for s in named)


class Listener:
    """A callback of a view."""

    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[pa.Table], object]) -> None:
        self.callback = callback
        self.cancelled = False


class SessionState:
    """The state of one session."""

    def __init__(self, delta_limit: int | None = None, text_bytes: int | None = None) -> None:
        """``text_bytes``: how much text a column of a chunk of rows has within the kernel; for tests."""
        if delta_limit is not None and (
            isinstance(delta_limit, bool) or not isinstance(delta_limit, int) or delta_limit < 1
        ):
            hint = "pass a number of bytes, or leave it out"
            raise SessionError("INVALID_ARGUMENT", f"delta_limit is {delta_limit!r}", hint=hint)
        self.kernel = Database(1, default_delta_limit() if delta_limit is None else delta_limit, text_bytes)
        self.tables: dict[str, BaseTable] = {}
        self.views: dict[str, MaintainedView] = {}
        self.version = 0
        self.closed = False
        self.failed = False
        self.lock = threading.RLock()
        self.handles = threading.Lock()
        self.notifying = threading.local()

    def table(self, name: str) -> BaseTable:
        """The table of this name."""
        found = self.tables.get(name.lower()) if isinstance(name, str) else None
        if found is None:
            known = listed(t.table.name for t in self.tables.values()) or "none"
            raise SchemaError("UNKNOWN_TABLE", f"there is no table `{_named(name)}`", hint=f"the tables are: {known}")
        return found

    def view(self, name: str) -> MaintainedView:
        """The view of this name."""
        found = self.views.get(name.lower()) if isinstance(name, str) else None
        if found is None:
            known = listed(v.name for v in self.views.values()) or "none"
            raise SchemaError("UNKNOWN_VIEW", f"there is no view `{_named(name)}`", hint=f"the views are: {known}")
        return found

    def schemas(self) -> tuple[dict[str, Table], dict[str, Table]]:
        """The tables and the views, as queries read them, by lower-case name."""
        tables, views = self.tables, self.views
        return {key: base.table for key, base in tables.items()}, {key: view.table for key, view in views.items()}

    def require_open(self) -> None:
        """Refuse a session that is closed or broken."""
        if self.closed:
            raise SessionError("SESSION_CLOSED", "the session is closed", hint="open a new one with everview.connect()")
        if self.failed:
            message = "a bug in everview left this session unusable"
            raise SessionError("SESSION_FAILED", message, hint="restore the last snapshot")
        if getattr(self.notifying, "applying", False):
            message = "a function that receives a delta tried to use the session, which is still applying the batch"
            raise SessionError("READ_IN_STREAM", message, hint="do it after apply_stream() has returned")

    def require_changeable(self) -> None:
        """Refuse a change of a session that is closed or broken, and one that a callback asks for. The caller holds ``lock``."""
        self.refuse_in_callback()
        self.require_open()

    def has(self, view: MaintainedView) -> bool:
        """Whether a view has not been dropped."""
        return self.views.get(view.name.lower()) is view

    def refuse_in_callback(self) -> None:
        """Refuse a change that one of the session's own callbacks asks for."""
        if getattr(self.notifying, "active", False):
            raise SessionError(
                "CHANGE_IN_CALLBACK",
                "a callback tried to change the session it was called by",
                hint="collect what to do and do it after apply() has returned, or in another thread",
            )

    def close(self) -> None:
        """Free everything."""
        self.refuse_in_callback()
        with self.lock, self.handles:
            self.closed = True
            self.kernel = Database()
            self.tables = {}
            self.views = {}


def _named(name: Any) -> str:
    return cut(name) if isinstance(name, str) else shown(name)
