"""GROUP BY and HAVING: what stands above the Aggregate of a block, and what below."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import SchemaError
from everview.query.expression import Expression, PlanColumn, rewrite
from everview.relational.plan import Aggregate, Condition, Filter, Node
from everview.sql.coercion import condition
from everview.sql.expressions import ExpressionLowering, conjuncts
from everview.sql.literal import CoercionError
from everview.sql.reject import mismatch, reject
from everview.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everview.errors import Span
    from everview.sql.bind import Binder, SelectItem
    from everview.sql.bind_aggregates import AggregateCollector
    from everview.sql.bind_subqueries import Subqueries
    from everview.sql.scope import Scope


class Grouping:
    """The grouping of one block: first its keys are bound, then HAVING, then what stands above."""

    def __init__(
        self,
        binder: Binder,
        scope: Scope,
        aliases: Mapping[str, Expression],
        collector: AggregateCollector,
        subqueries: Subqueries,
    ) -> None:
        self._binder = binder
        self._scope = scope
        self._aliases = aliases
        self._collector = collector
        self._subqueries = subqueries
        self._keys: dict[Expression, None] = {}
        self._having: list[Condition] = []
        self._ours: frozenset[PlanColumn] = (
            frozenset()
        )  # the columns that are grouped; others are of a query around this one

    def bind_keys(self, group: exp.Group, items: Sequence[SelectItem]) -> None:
        """The keys of GROUP BY: expressions, ordinals and aliases of the SELECT list. Columns go before aliases.

        GROUP BY ALL: the items of the SELECT list without aggregates.
        """
        sql = self._binder.sql
        if group.args.get("all"):
            self._keys.update((i.expression, None) for i in items if not self._collector.contains(i.expression))
        for part in ("rollup", "cube", "grouping_sets", "totals"):
            if group.args.get(part):
                raise reject("GROUPING_SETS", sql, group, name=f"GROUP BY ... {part.replace('_', ' ').upper()}")
        lowering = ExpressionLowering(
            sql, lambda column: self._scope.resolve(column, self._aliases), None, self._subqueries.bind
        )
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
            if self._collector.contains(key):
                raise reject("MISPLACED_AGGREGATE", sql, node, name="the expression")
            self._keys[key] = None

    def bind_having(self, having: exp.Having) -> None:
        """HAVING: a bare name is a grouped column, else an alias of the SELECT list."""

        def resolve(column: exp.Column) -> Expression:
            alias = None if column.table else self._aliases.get(column.name.lower())
            if alias is not None and not any(found in self._keys for found in self._scope.try_bare(column.name)):
                return alias
            return self._scope.resolve(column)

        sql = self._binder.sql
        lowering = ExpressionLowering(sql, resolve, self._collector.lower, self._subqueries.bind)
        for part in conjuncts(having.this):
            try:
                self._having.append(Condition(condition(lowering.lower(part)), span_of(part)))
            except CoercionError as error:
                raise mismatch(sql, part, str(error)) from None

    def above(self, node: Node, items: Sequence[SelectItem], path: tuple[str, ...]) -> tuple[Node, list[SelectItem]]:
        """The Aggregate over the rows of the block, HAVING above it, and the SELECT list in terms of its columns."""
        calls = self._collector.calls
        node = self._subqueries.onto(node, [*self._keys, *(e for call in calls for e in call.expressions)])
        self._ours = frozenset(node.columns)
        names = {i.expression: i.name for i in reversed(items)}
        columns = {
            k: self._binder.column(k, names.get(k) or (k.name if isinstance(k, PlanColumn) else "")) for k in self._keys
        }
        found: Node = Aggregate(
            node, tuple((c, k) for k, c in columns.items()), tuple((c, a) for a, c in calls.items()), path
        )
        found = self._subqueries.onto(found, change=lambda e, span: self._over_groups(e, columns, span))
        if self._having:
            having = [replace(c, expression=self._over_groups(c.expression, columns, c.span)) for c in self._having]
            found = Filter(found, tuple(having))
        return found, [replace(i, expression=self._over_groups(i.expression, columns, i.span)) for i in items]

    def _over_groups(self, expression: Expression, columns: Mapping[Expression, PlanColumn], span: Span) -> Expression:
        """An expression in terms of the keys and aggregates."""
        aggregates = set(self._collector.calls.values())
        ours = self._ours

        def column(part: Expression) -> Expression | None:
            if part in columns:
                return columns[part]
            if isinstance(part, PlanColumn) and part not in aggregates and part in ours:
                message = f"column `{part.name}` is neither grouped nor aggregated"
                hint = f"add `{part.name}` to GROUP BY, or aggregate it, with MIN for example"
                raise SchemaError("NOT_GROUPED", message, sql=self._binder.sql, span=span, hint=hint)
            return None

        return rewrite(expression, column)
