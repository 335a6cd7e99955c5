"""The statements of a text, one after another. Callers hold the session's lock."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.errors import EverviewError, SchemaError, Span
from everview.session.changes import Executed, execute_change
from everview.session.definitions import ViewOptions, create_table, create_view, drop_table, drop_view
from everview.sql.parse import parse_statements
from everview.sql.statement import ChangeRows, CreateTable, CreateView, DropTable, DropView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everview.session.state import MaintainedView, SessionState


def execute(state: SessionState, sql: str, parameters: object, *, deltas: bool) -> Executed:
    """Run the statements of a text. Parameters are those of a single statement."""
    statements = parse_statements(sql)
    if parameters and len(statements) != 1:
        message = f"parameters are for one statement, and the text has {len(statements)}"
        hint = "execute the statements one by one"
        raise SchemaError("PARAMETER_STYLE", message, hint=hint, sql=sql, span=Span(0, len(sql)))
    rows = 0
    changed: dict[MaintainedView, list[pa.Table]] = {}
    for statement in statements:
        if isinstance(statement, ChangeRows):
            count, found = execute_change(state, sql, statement, parameters, deltas=deltas)
            rows += count
            for name, delta in found.items():
                changed.setdefault(state.view(name), []).append(delta)
            continue
        if parameters:
            message = "the statement has no parameters"
            raise SchemaError("PARAMETER_COUNT", message, hint="pass none", sql=sql, span=statement.span)
        _define(state, sql, statement)
    views = [view for view in state.views.values() if view in changed]
    return Executed(rows, {view.name: pa.concat_tables(changed[view]) for view in views})


def _define(state: SessionState, sql: str, statement: CreateTable | CreateView | DropTable | DropView) -> None:
    match statement:
        case CreateTable(table=table, if_not_exists=if_not_exists):
            if not (if_not_exists and table.name.lower() in state.tables):
                create_table(state, table)
        case CreateView(name=name, sql_of_query=query):
            if not (statement.if_not_exists and name.lower() in state.views):
                with _placed_in(sql, statement):
                    create_view(state, name, query, ViewOptions(replace=statement.or_replace))
        case DropTable(name=name, if_exists=if_exists):
            if not (if_exists and name.lower() not in state.tables):
                drop_table(state, name)
        case DropView(name=name, if_exists=if_exists):
            if not (if_exists and name.lower() not in state.views):
                drop_view(state, state.view(name))


@contextmanager
def _placed_in(script: str, statement: CreateView) -> Iterator[None]:
    """Errors about the query of a statement point into the script that has it."""
    try:
        yield
    except EverviewError as error:
        if error.span is None or error.sql != statement.sql_of_query:
            raise
        start = statement.span.start
        raise error.located(script, Span(start + error.span.start, start + error.span.end)) from None
