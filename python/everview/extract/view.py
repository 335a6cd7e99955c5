"""A relational plan to a logical view: one core, and the stages above it.

Four shapes, each a function: a plain select (core, Map), DISTINCT (a distinct core, or core, Map, Distinct), grouping
without aggregates (a distinct core over the keys) and grouping with aggregates (core, GroupAggregate, Filter for
HAVING, Map). A Map that would change nothing is left out: the variables of the core then carry the output names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.extract.block import block_of
from everview.extract.core_builder import CoreBuilder
from everview.extract.grouped import extract_grouped
from everview.query.expression import ColumnRef, Expression, PlanColumn
from everview.query.logical_view import Core, Distinct, LogicalView, Map, Stage
from everview.relational.plan import Aggregate, Filter, Project, columns_read
from everview.relational.plan import Distinct as DistinctRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everview.extract.core_builder import Term
    from everview.relational.plan import Query

Item = tuple[str, Expression]


def extract_view(name: str, sql: str, query: Query) -> LogicalView:
    """The logical view of a query whose plan the rules have rewritten."""
    node = query.node
    distinct = isinstance(node, DistinctRows)
    if isinstance(node, DistinctRows):
        node = node.input
    assert isinstance(node, Project)
    items = [(n, e) for n, (_, e) in zip(query.names, node.items, strict=True)]
    below = node.input
    having = below.conditions if isinstance(below, Filter) and isinstance(below.input, Aggregate) else ()
    aggregate = below.input if having and isinstance(below, Filter) else below
    if isinstance(aggregate, Aggregate):
        core = CoreBuilder(sql, name, block_of(aggregate.input))
        stages = extract_grouped(core, aggregate, having, items)
        if distinct:
            stages.append(Distinct(len(stages) - 1, stages[-1].columns))
    else:
        core = CoreBuilder(sql, name, block_of(below))
        stages = _extract_distinct(core, items) if distinct else _extract_plain(core, items)
    return LogicalView(name, sql, tuple(stages))


def _extract_plain(core: CoreBuilder, items: Sequence[Item]) -> list[Stage]:
    if _is_bare(core, items):
        roots = [core.request(e) for _, e in items]
        if len(set(roots)) == len(roots):
            core.freeze({r: n for r, (n, _) in zip(roots, items, strict=True)}, {})
            return [Core(core.build())]
    core.request_columns(e for _, e in items)
    core.freeze({}, {})
    return [Core(core.build()), Map(0, tuple((n, core.over_head(e)) for n, e in items))]


def _extract_distinct(core: CoreBuilder, items: Sequence[Item]) -> list[Stage]:
    if any(len(core.block.atoms_of(e)) > 1 for _, e in items):
        core.request_columns(e for _, e in items)
        core.freeze({}, {})
        mapped = Map(0, tuple((n, core.over_head(e)) for n, e in items))
        return [Core(core.build(distinct=True)), mapped, Distinct(1, mapped.columns)]
    preferred: dict[Term, str] = {}
    for name, expression in items:
        if columns_read(expression):
            preferred.setdefault(core.request(expression), name)
    core.freeze(preferred, {})
    query = Core(core.build(distinct=True))
    expressions = tuple((n, core.reference(e) if columns_read(e) else e) for n, e in items)
    if all(isinstance(e, ColumnRef) and e.name == n for n, e in expressions) and len(expressions) == len(query.columns):
        return [query]
    return [query, Map(0, expressions)]


def _is_bare(core: CoreBuilder, items: Sequence[Item]) -> bool:
    """Whether the items are columns whose variables have their types."""
    return all(isinstance(e, PlanColumn) and not core.needs_cast(e) for _, e in items)
