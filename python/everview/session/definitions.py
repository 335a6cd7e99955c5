"""Creating and dropping tables and views. Callers hold the session's lock."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING

from everview.engine import change_and_note, refusals
from everview.errors import SchemaError, shown
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.lower import lower_query, refuse_warnings
from everview.plan.lower import plan_view
from everview.query.conjunctive import TableSource, ViewSource
from everview.session.state import BaseTable, MaintainedView, SessionState
from everview.sql.names import why_no_name

if TYPE_CHECKING:
    from everview.schema.table import Table

logger = logging.getLogger("everview")
_MONTH = 30 * 24 * 3600 * 10**6


def create_table(state: SessionState, table: Table) -> None:
    """Add an empty table."""
    _require_free(state, table.name)
    names = [c.name for c in table.columns]
    refuse_reserved(f"table `{table.name}`", names)
    columns = [(c.name, str(c.type), c.nullable) for c in table.columns]
    key = [names.index(k) for k in table.primary_key]
    retention = None
    kept = table.retention
    if kept is not None and kept.rows is not None:
        retention = ("rows", kept.rows, 0, 0)
    elif kept is not None and kept.micros is not None and kept.time_column is not None:
        jump = max(_MONTH, kept.micros) if kept.max_jump is None else kept.max_jump
        retention = ("time", kept.micros, names.index(kept.time_column), jump)
    base = BaseTable(table)
    keeps_rows = table.keep == "rows"
    create = partial(state.kernel.create_table, table.name, columns, key, retention, keeps_rows)
    with refusals():
        change_and_note(create, [(state, "tables", {**state.tables, table.name.lower(): base})], keep=(base, "handle"))


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """How to create a view; ``replace``: in the place of one of this name."""

    update_rates: Mapping[str, int] | None = None
    replace: bool = False
    on_warning: str = "accept"


def create_view(state: SessionState, name: str, sql: str, options: ViewOptions) -> MaintainedView:
    """Plan a view and build it from the tables' rows."""
    if options.on_warning not in ("accept", "refuse"):
        message = f"on_warning is {shown(options.on_warning)}"
        raise SchemaError("INVALID_ARGUMENT", message, hint="use 'accept' or 'refuse'")
    wrong = why_no_name(name)
    if wrong is not None:
        raise SchemaError("INVALID_NAME", f"create_view(): {wrong}", hint="give the view a name")
    old = state.views.get(name.lower()) if options.replace else None
    if old is None:
        _require_free(state, name)
    else:
        _require_view_unread(state, old)
    rates = _rates(state, options.update_rates)
    tables, known = state.schemas()
    others = {key: other for key, other in state.views.items() if other is not old}
    known = {key: known[key] for key in others}
    logical = lower_query(name, sql, tables, known)
    refuse_reserved(f"view `{name}`", [c.name for c in logical.columns])
    if options.on_warning == "refuse":
        refuse_warnings(logical)
    planned = plan_view(logical, {**known, **tables}, rates)
    view = MaintainedView(planned, rates)
    views = {**others, name.lower(): view}  # in an order in which each reads earlier ones
    create = partial(state.kernel.create_view, planned.plan.to_json())
    drop_old = None if old is None else partial(state.kernel.drop_view, old.handle)
    with state.handles, refusals():
        change_and_note(create, [(state, "views", views)], keep=(view, "handle"), then=drop_old)
    logger.debug("created view %s", name)
    return view


def drop_table(state: SessionState, name: str) -> None:
    """Drop a table that no view reads."""
    base = state.table(name)
    readers = [v.name for v in state.views.values() if v.reads(TableSource(base.table.name))]
    if readers:
        raise _in_use_error("TABLE_IN_USE", f"table `{base.table.name}`", readers)
    left = {key: other for key, other in state.tables.items() if other is not base}
    with state.handles:
        change_and_note(partial(state.kernel.drop_table, base.handle), [(state, "tables", left)])


def drop_view(state: SessionState, view: MaintainedView) -> None:
    """Drop a view that no other reads."""
    _require_view_unread(state, view)
    left = {key: other for key, other in state.views.items() if other is not view}
    with state.handles:
        change_and_note(partial(state.kernel.drop_view, view.handle), [(state, "views", left)])


def _require_view_unread(state: SessionState, view: MaintainedView) -> None:
    readers = [v.name for v in state.views.values() if v.reads(ViewSource(view.name))]
    if readers:
        raise _in_use_error("VIEW_IN_USE", f"view `{view.name}`", readers)


def _in_use_error(code: str, what: str, readers: list[str]) -> SchemaError:
    hint = f"drop the view{'s' if len(readers) > 1 else ''} first: {', '.join(readers)}"
    return SchemaError(code, f"{what} is read by view `{readers[0]}`", hint=hint)


def _rates(state: SessionState, given: Mapping[str, int] | None) -> dict[str, int] | None:
    if given is None:
        observed = {key: base.updates for key, base in state.tables.items() if base.updates}
        return observed or None
    if not isinstance(given, Mapping):
        message = f"update_rates are numbers by table name, not {type(given).__name__}"
        raise SchemaError("INVALID_ARGUMENT", message, hint='write update_rates={"table": 1000}')
    for name, rate in given.items():
        state.table(name)
        if isinstance(rate, bool) or not isinstance(rate, Integral) or not 0 <= rate < 2**63:
            message = f"the update rate of table `{name}` is {shown(rate)}"
            raise SchemaError("INVALID_ARGUMENT", message, hint="a rate is a whole number of changes, 0 or more")
    return {name.lower(): int(rate) for name, rate in given.items()}


def refuse_reserved(what: str, names: list[str]) -> None:
    """Refuse columns with names that batches and deltas use."""
    found = next((name for name in names if name.lower() in (MULTIPLICITY, CHANGE_TYPE)), None)
    if found is not None:
        message = f"{what} has a column `{found}`, a name that batches and deltas use"
        raise SchemaError("RESERVED_NAME", message, hint="give it another name")


def _require_free(state: SessionState, name: str) -> None:
    for kind, names in (("table", state.tables), ("view", state.views)):
        if name.lower() in names:
            hint = "drop it first, or choose another name"
            raise SchemaError("NAME_IN_USE", f"there is a {kind} named `{name}` already", hint=hint)
