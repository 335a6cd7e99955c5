"""SQL text to a logical view: bind, rewrite, extract."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everview.errors import Span, UnsupportedQueryError
from everview.extract.view import extract_view
from everview.query.expression import Call
from everview.relational.meaning import meaning
from everview.rules import rewrite_plan
from everview.sql.bind import bind_query
from everview.sql.nesting import MOST_LEVELS, expression_too_deep, room_to_recurse, too_deep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everview.query.logical_view import LogicalView
    from everview.relational.plan import Query
    from everview.schema.table import Table


def refuse_warnings(view: LogicalView) -> None:
    """Refuse a view that carries a warning, where that was asked for."""
    if view.warnings:
        hint = "pass on_warning='accept' to take it all the same"
        span = Span(0, len(view.sql))
        raise UnsupportedQueryError("VIEW_WARNING", view.warnings[0], hint=hint, sql=view.sql, span=span)


def lower_query(
    name: str, sql: str, tables: Mapping[str, Table], views: Mapping[str, Table] | None = None
) -> LogicalView:
    """The logical view of a SELECT. ``tables`` and ``views`` that it may read are keyed by lower-case name.

    >>> from everview.schema.datatype import BIGINT
    >>> from everview.schema.table import Column, Table
    >>> g = Table("g", (Column("src", BIGINT), Column("dst", BIGINT)))
    >>> view = lower_query("hop", "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src", {"g": g})
    >>> print(view.stages[0].query)
    hop(src, dst) :- a(src, a_dst), b(a_dst, dst)
    """
    return lower_bound(name, sql, bind_query(sql, tables, views))


def lower_bound(name: str, sql: str, query: Query) -> LogicalView:
    """The logical view of a query that is bound."""
    try:
        with room_to_recurse():
            view = extract_view(name, sql, replace(query, node=rewrite_plan(query.node)))
            view = replace(view, meaning=meaning(query))
    except RecursionError:
        raise too_deep(sql) from None
    if any(isinstance(e, Call) and e.levels > MOST_LEVELS for e in view.expressions):
        raise expression_too_deep(sql)
    return view
