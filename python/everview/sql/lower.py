"""A SELECT to a logical view: one core, and the stages above it.

Four shapes, each a function: a plain select (core, Map), DISTINCT (a distinct core, or core, Map, Distinct), grouping
without aggregates (a distinct core over the keys) and grouping with aggregates (core, GroupAggregate, Filter for
HAVING, Map). A Map that would change nothing is left out: the variables of the core then carry the output names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.errors import SchemaError
from everview.query.expression import Call, ColumnRef, Expression
from everview.query.logical_view import Core, Distinct, LogicalView, Map, Stage
from everview.sql.aggregates import AggregateCollector
from everview.sql.expressions import ExpressionLowering
from everview.sql.grouping import Grouping, group_keys, lower_grouped, lower_having
from everview.sql.nesting import MOST_LEVELS, expression_too_deep, room_to_recurse, too_deep
from everview.sql.reject import reject
from everview.sql.resolve import Resolver, SelectItem
from everview.sql.scope import atoms_of, columns_in
from everview.sql.spans import keyword_span, parse_query, span_of
from everview.sql.variables import CoreBuilder, Term

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from everview.schema.table import Table


def lower_query(name: str, sql: str, tables: Mapping[str, Table], views: Collection[str] = ()) -> LogicalView:
    """The logical view of a SELECT. ``tables`` is keyed by lower-case name; ``views`` are lower-case names of what it may not read.

    >>> from everview.schema.datatype import BIGINT
    >>> from everview.schema.table import Column, Table
    >>> g = Table("g", (Column("src", BIGINT), Column("dst", BIGINT)))
    >>> view = lower_query("hop", "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src", {"g": g})
    >>> print(view.stages[0].query)
    hop(src, dst) :- a(src, a_dst), b(a_dst, dst)
    """
    try:
        with room_to_recurse():
            view = _lower(name, sql, tables, views)
    except RecursionError:
        raise too_deep(sql) from None
    if any(isinstance(e, Call) and e.levels > MOST_LEVELS for e in view.expressions):
        raise expression_too_deep(sql)
    return view


def _lower(name: str, sql: str, tables: Mapping[str, Table], views: Collection[str]) -> LogicalView:
    resolver = Resolver(sql, tables, views)
    select, ctes = resolver.unwrap(parse_query(sql), {})
    scope = resolver.block(select, ctes)
    group, having = select.args.get("group"), select.args.get("having")
    collector = AggregateCollector(grouped=group is not None)
    aliases: dict[str, Expression] = {}
    lowering = ExpressionLowering(sql, lambda column: scope.resolve(column, aliases), collector.lower)
    items = resolver.items(select, scope, lowering, aliases)
    _check_names(sql, items)
    keys = [] if group is None else group_keys(sql, group, items, scope, aliases)
    condition = (
        None
        if having is None
        else lower_having(sql, having, keys=keys, scope=scope, aliases=aliases, collector=collector)
    )
    core = CoreBuilder(sql, name, resolver.atoms, resolver.conditions)
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        place = keyword_span(sql, span_of(select), "DISTINCT ON")
        raise reject("UNSUPPORTED_CLAUSE", sql, place, name="DISTINCT ON")
    if group is not None or having is not None or collector.calls:
        grouping = Grouping(tuple(keys), tuple(collector.calls), condition, grouped=group is not None)
        stages = lower_grouped(sql, core, items, grouping)
        if distinct is not None:
            stages.append(Distinct(len(stages) - 1, stages[-1].columns))
    elif distinct is not None:
        stages = _lower_distinct(core, items)
    else:
        stages = _lower_plain(core, items)
    return LogicalView(name, sql, tuple(stages))


def _lower_plain(core: CoreBuilder, items: Sequence[SelectItem]) -> list[Stage]:
    if _is_bare(core, items):
        roots = [core.request(i.expression) for i in items]
        if len(set(roots)) == len(roots):
            core.freeze({r: i.name for r, i in zip(roots, items, strict=True)}, {})
            return [Core(core.build())]
    for item in items:
        for column in columns_in(item.expression):
            core.request(column)
    core.freeze({}, {})
    return [Core(core.build()), Map(0, tuple((i.name, core.over_head(i.expression)) for i in items))]


def _lower_distinct(core: CoreBuilder, items: Sequence[SelectItem]) -> list[Stage]:
    if any(len(atoms_of(i.expression)) > 1 for i in items):
        for item in items:
            for column in columns_in(item.expression):
                core.request(column)
        core.freeze({}, {})
        expressions = tuple((i.name, core.over_head(i.expression)) for i in items)
        mapped = Map(0, expressions)
        return [Core(core.build(distinct=True)), mapped, Distinct(1, mapped.columns)]
    preferred: dict[Term, str] = {}
    for item in items:
        if atoms_of(item.expression):
            preferred.setdefault(core.request(item.expression), item.name)
    core.freeze(preferred, {})
    query = Core(core.build(distinct=True))
    expressions = tuple(
        (i.name, core.reference(i.expression) if atoms_of(i.expression) else i.expression) for i in items
    )
    if all(isinstance(e, ColumnRef) and e.name == n for n, e in expressions) and len(expressions) == len(query.columns):
        return [query]
    return [query, Map(0, expressions)]


def _is_bare(core: CoreBuilder, items: Sequence[SelectItem]) -> bool:
    """Whether the items are columns whose variables have their types."""
    return all(isinstance(i.expression, ColumnRef) and not core.needs_cast(i.expression) for i in items)


def _check_names(sql: str, items: Sequence[SelectItem]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.name.lower() in seen:
            message = f"two columns of the result are named `{item.name}`"
            hint = "give one of them another name with AS"
            raise SchemaError("DUPLICATE_COLUMN", message, sql=sql, span=item.span, hint=hint)
        seen.add(item.name.lower())
