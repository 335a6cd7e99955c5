"""GROUP BY, HAVING and the stages of a grouped query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import SchemaError
from everview.query.expression import ColumnRef, Expression, parts, rewrite
from everview.query.logical_view import Aggregate, Core, Distinct, Filter, GroupAggregate, Map, OutputColumn, Stage
from everview.sql.aggregates import AggregateCall, AggregateCollector, AggregatePlanner, placeholder_index
from everview.sql.coercion import condition
from everview.sql.expressions import ExpressionLowering
from everview.sql.literal import CoercionError
from everview.sql.reject import mismatch, reject
from everview.sql.resolve import Condition, SelectItem
from everview.sql.scope import Scope, atoms_of, columns_in, is_qualified, split_reference
from everview.sql.spans import span_of
from everview.sql.variables import CoreBuilder, Term, identifier_of, unique_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everview.errors import Span


@dataclass(frozen=True, slots=True)
class Grouping:
    """How a query groups. ``grouped`` is False for a global aggregate, which has one row even without input."""

    keys: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    having: Condition | None
    grouped: bool


def group_keys(
    sql: str, group: exp.Group, items: Sequence[SelectItem], scope: Scope, aliases: Mapping[str, Expression]
) -> list[Expression]:
    """The keys of GROUP BY: expressions, ordinals and aliases of the SELECT list. Columns go before aliases."""
    for part in ("rollup", "cube", "grouping_sets", "all", "totals"):
        if group.args.get(part):
            raise reject("GROUPING_SETS", sql, group, name=f"GROUP BY ... {part.replace('_', ' ').upper()}")
    lowering = ExpressionLowering(sql, lambda column: scope.resolve(column, aliases))
    keys: dict[Expression, None] = {}
    for node in group.expressions:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            kind = "GROUPING SETS" if isinstance(node, exp.GroupingSets) else type(node).__name__.upper()
            raise reject("GROUPING_SETS", sql, node, name=f"GROUP BY {kind}")
        if isinstance(node, exp.Literal) and node.is_int:
            number = int(node.name)
            if not 1 <= number <= len(items):
                message = f"GROUP BY {number} is not a position of the SELECT list"
                raise SchemaError("GROUP_BY_POSITION", message, sql=sql, span=span_of(node))
            key = items[number - 1].expression
        else:
            key = lowering.lower(node)
        if any(placeholder_index(part) is not None for part in parts(key)):
            raise reject("MISPLACED_AGGREGATE", sql, node, name="the expression")
        keys[key] = None
    return list(keys)


def lower_having(
    sql: str,
    having: exp.Having,
    *,
    keys: Sequence[Expression],
    scope: Scope,
    aliases: Mapping[str, Expression],
    collector: AggregateCollector,
) -> Condition:
    """HAVING: a bare name is a grouped column, else an alias of the SELECT list."""

    def resolve(column: exp.Column) -> Expression:
        alias = None if column.table else aliases.get(column.name.lower())
        if alias is not None and not any(found in keys for found in scope.try_bare(column.name)):
            return alias
        return scope.resolve(column)

    expression = ExpressionLowering(sql, resolve, collector.lower).lower(having.this)
    try:
        return Condition(condition(expression), span_of(having))
    except CoercionError as error:
        raise mismatch(sql, having, str(error)) from None


def lower_grouped(sql: str, core: CoreBuilder, items: Sequence[SelectItem], grouping: Grouping) -> list[Stage]:
    """The stages of a query with GROUP BY or aggregates."""
    return _GroupedLowering(sql, core, items, grouping).stages()


class _GroupedLowering:
    def __init__(self, sql: str, core: CoreBuilder, items: Sequence[SelectItem], grouping: Grouping) -> None:
        self._sql = sql
        self._core = core
        self._items = items
        self._having = grouping.having
        self._grouped = grouping.grouped
        keys = [k for k in grouping.keys if columns_in(k)]
        if grouping.grouped and not keys:
            keys = list(grouping.keys[:1])  # only constants: one is kept, so that no input gives no row
        # Keys follow the SELECT list, which often makes the last Map superfluous.
        order = {item.expression: n for n, item in reversed(list(enumerate(items)))}
        keys.sort(key=lambda k: order.get(k, len(items)))
        self._single = [k for k in keys if len(atoms_of(k)) <= 1]
        self._spanning = [k for k in keys if len(atoms_of(k)) > 1]
        self._roots: dict[Expression, Term] = {k: core.request(k) for k in self._single}
        for key in self._spanning:
            for column in columns_in(key):
                core.request(column)
        planner = AggregatePlanner(core, factoring=not self._spanning)
        self._aggregates = [planner.plan(c) for c in grouping.calls]
        self._columns: dict[Expression, Expression] = {}
        self._aggregate_columns: list[ColumnRef] = []

    def stages(self) -> list[Stage]:
        names = self._names_without_map()
        preferred = {} if names is None else dict(zip(dict.fromkeys(self._roots.values()), names, strict=False))
        hints = {self._roots[i.expression]: i.name for i in self._items if i.expression in self._roots}
        self._core.freeze(preferred, hints)
        self._columns = {k: self._core.reference(k) for k in self._single}
        key_columns = [self._output(r) for r in dict.fromkeys(self._roots.values())]
        query = self._core.build(distinct=not self._aggregates)
        stages: list[Stage] = [Core(query)]
        if self._spanning:
            key_columns += self._map_keys(stages)
        if self._aggregates or not self._grouped:
            taken = {c.name.lower() for c in key_columns}
            aggregates = tuple(self._named(n, a, taken, key_columns, names) for n, a in enumerate(self._aggregates))
            stages.append(GroupAggregate(len(stages) - 1, tuple(key_columns), aggregates))
            self._aggregate_columns = [ColumnRef(a.name, a.type, a.nullable) for a in aggregates]
        elif self._spanning:
            stages.append(Distinct(len(stages) - 1, stages[-1].columns))
        if self._having is not None:
            predicate = self._above(self._having.expression, self._having.span)
            stages.append(Filter(len(stages) - 1, predicate, stages[-1].columns))
        if names is None:
            expressions = tuple((i.name, self._above(i.expression, i.span)) for i in self._items)
            stages.append(Map(len(stages) - 1, expressions))
        return stages

    def _names_without_map(self) -> list[str] | None:
        """The output names, if the SELECT list is exactly the keys and then the aggregates."""
        roots = list(dict.fromkeys(self._roots.values()))
        wanted: list[object] = [*roots, *range(len(self._aggregates))]
        found: list[object] = []
        for item in self._items:
            index = placeholder_index(item.expression)
            if index is None and item.expression in self._roots and not self._core.needs_cast(item.expression):
                found.append(self._roots[item.expression])
            else:
                found.append(index)
        return [i.name for i in self._items] if found == wanted and not self._spanning else None

    def _output(self, root: Term) -> OutputColumn:
        variable = self._core.variable(root)
        return OutputColumn(variable.name, variable.type, variable.nullable)

    def _map_keys(self, stages: list[Stage]) -> list[OutputColumn]:
        """The Map that computes keys over several atoms; it keeps the head for the arguments of aggregates.

        Without aggregates it gives the keys alone, which a Distinct then makes unique.
        """
        head = stages[0].columns
        taken = {c.name.lower() for c in head}
        if self._aggregates:
            kept = [c.name for c in head]
        else:
            kept = [self._core.variable(r).name for r in dict.fromkeys(self._roots.values())]
        expressions: list[tuple[str, Expression]] = [
            (c.name, ColumnRef(c.name, c.type, c.nullable)) for c in head if c.name in kept
        ]
        aliases = {i.expression: i.name for i in reversed(self._items)}
        added = []
        for key in self._spanning:
            name = unique_name(aliases.get(key) or identifier_of(key), taken)
            expressions.append((name, self._core.over_head(key)))
            self._columns[key] = ColumnRef(name, key.type, key.nullable)
            added.append(OutputColumn(name, key.type, key.nullable))
        stages.append(Map(0, tuple(expressions)))
        return added

    def _named(
        self,
        index: int,
        aggregate: Aggregate,
        taken: set[str],
        keys: Sequence[OutputColumn],
        names: Sequence[str] | None,
    ) -> Aggregate:
        name = unique_name(f"agg_{index}", taken) if names is None else names[len(keys) + index]
        argument = None if aggregate.argument is None else self._core.over_head(aggregate.argument)
        return replace(aggregate, name=name, argument=argument)

    def _above(self, expression: Expression, span: Span) -> Expression:
        """An expression of the SELECT list or HAVING in terms of the keys and aggregates."""

        def column(part: Expression) -> Expression | None:
            if part in self._columns:
                return self._columns[part]
            index = placeholder_index(part)
            if index is not None:
                return self._aggregate_columns[index]
            if isinstance(part, ColumnRef) and is_qualified(part):
                name = split_reference(part)[1]
                message = f"column `{name}` is neither grouped nor aggregated"
                hint = f"add `{name}` to GROUP BY, or aggregate it with COUNT, SUM or AVG"
                raise SchemaError("NOT_GROUPED", message, sql=self._sql, span=span, hint=hint)
            return None

        return rewrite(expression, column)
