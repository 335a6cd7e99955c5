"""One-off queries: planned as a view is, read in one call of the kernel, and forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.engine import refusals
from everview.errors import ChangeError, Span
from everview.interop.literals import literal_of
from everview.lower import lower_bound
from everview.plan.lower import plan_view
from everview.session.definitions import refuse_reserved
from everview.session.order import ordered
from everview.session.result import Result
from everview.session.rows import repeated, schema_of
from everview.sql.bind import bind_once

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from everview.query.logical_view import LogicalView
    from everview.relational.plan import Query
    from everview.schema.table import Table
    from everview.session.state import SessionState

_NAME = "the query"


def run_query(state: SessionState, sql: str, parameters: object) -> Result:
    """The result of a SELECT over the tables and views as they are."""

    def bind(tables: dict[str, Table], views: dict[str, Table]) -> Query:
        return bind_once(sql, tables, views, parameters, literal_of)

    try:
        view, batches = read_once(state, sql, bind)
    except ChangeError as error:
        raise error.located(sql, Span(0, len(sql))) from None
    refuse_reserved(_NAME, [c.name for c in view.columns])
    return Result(sql, ordered(repeated(batches, schema_of(view)), view.order))


def read_once(
    state: SessionState, sql: str, bind: Callable[[dict[str, Table], dict[str, Table]], Query]
) -> tuple[LogicalView, list[pa.RecordBatch]]:
    """The rows of a query, with multiplicities; ``bind`` makes its plan from tables and views by lower-case name.

    It waits for a batch that is being applied, not for callbacks. If a definition comes between planning and reading, it is planned again.
    """
    while True:
        state.require_open()
        bases, others = state.tables, state.views
        tables, views = state.schemas()
        view = lower_bound(_NAME, sql, bind(tables, views))
        plan = plan_view(view, {**views, **tables}).plan.to_json()
        with state.handles, refusals():
            state.require_open()
            if state.tables is bases and state.views is others:
                return view, state.kernel.read_once(plan)
