"""The stages of a grouped block: a core over the keys, the aggregate, a filter for HAVING and the SELECT list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from everview.aggregates import FUNCTIONS
from everview.extract.components import AggregatePlanner
from everview.extract.core_builder import CoreBuilder, Term, identifier_of
from everview.query.expression import ColumnRef, Expression, PlanColumn, conjunction, rewrite
from everview.query.logical_view import Aggregate, Core, Distinct, Filter, GroupAggregate, Map, OutputColumn, Stage
from everview.query.names import unique_name
from everview.relational.plan import columns_read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everview.relational.plan import Aggregate as AggregateNode
    from everview.relational.plan import Condition

Item = tuple[str, Expression]


@dataclass(frozen=True, slots=True)
class Above:
    """What stands above an Aggregate: conditions on its groups, and the columns computed from them."""

    having: Sequence[Condition]
    items: Sequence[Item]


def extract_grouped(stages: list[Stage], core: CoreBuilder, node: AggregateNode, above: Above) -> None:
    """Add the stages of an Aggregate over a block, and of what stands above it."""
    _Grouped(core, node, above).add_to(stages)


class _Grouped:
    def __init__(self, core: CoreBuilder, node: AggregateNode, above: Above) -> None:
        self._core = core
        self._items = items = above.items
        self._having = above.having
        self._is_global = not node.keys
        # A constant key has one value; where there are only such, one is kept, so that no input gives no row.
        varying = [c for c, key in node.keys if columns_read(key)] or [c for c, _ in node.keys[:1]]
        key_of = dict(node.keys)
        self._columns: dict[PlanColumn, Expression] = {c: key for c, key in node.keys if c not in varying}
        # Keys follow the SELECT list, which often makes the last Map superfluous.
        order: dict[Expression, int] = {e: n for n, (_, e) in reversed(list(enumerate(items)))}
        varying.sort(key=lambda column: order.get(column, len(items)))
        self._keys: Mapping[PlanColumn, Expression] = {c: key_of[c] for c in varying}
        self._single = [c for c in varying if core.can_bind(key_of[c])]
        self._spanning = [c for c in varying if not core.can_bind(key_of[c])]
        self._roots: dict[PlanColumn, Term] = {c: core.request(key_of[c]) for c in self._single}
        core.request_columns(key_of[c] for c in self._spanning)
        planner = AggregatePlanner(core, factoring=not self._spanning)
        self._calls = [column for column, _ in node.calls]
        self._aggregates = [planner.plan(call) for _, call in node.calls]

    def add_to(self, stages: list[Stage]) -> None:
        names = self._names_without_map()
        preferred = {} if names is None else dict(zip(dict.fromkeys(self._roots.values()), names, strict=False))
        hints = {self._roots[e]: n for n, e in self._items if isinstance(e, PlanColumn) and e in self._roots}
        self._core.freeze(preferred, hints)
        self._columns |= {c: self._core.reference(self._keys[c]) for c in self._single}
        key_columns = [self._output(r) for r in dict.fromkeys(self._roots.values())]
        query = self._core.build(distinct=not any(FUNCTIONS[a.function].counts_duplicates for a in self._aggregates))
        stages.append(Core(query))
        if self._spanning:
            key_columns += self._map_keys(stages)
        if self._aggregates or self._is_global:
            taken = {c.name.lower() for c in key_columns}
            aggregates = tuple(self._named(n, a, taken, key_columns, names) for n, a in enumerate(self._aggregates))
            stages.append(GroupAggregate(len(stages) - 1, tuple(key_columns), aggregates))
            self._columns |= {
                c: ColumnRef(a.name, a.type, a.nullable) for c, a in zip(self._calls, aggregates, strict=True)
            }
        elif self._spanning:
            stages.append(Distinct(len(stages) - 1, stages[-1].columns))
        if self._having:
            stages.append(Filter(len(stages) - 1, self._predicate(), stages[-1].columns))
        if names is None:
            stages.append(Map(len(stages) - 1, tuple((n, self._above(e)) for n, e in self._items)))

    def _names_without_map(self) -> list[str] | None:
        """The output names, if the SELECT list is exactly the keys and then the aggregates."""
        roots = list(dict.fromkeys(self._roots.values()))
        wanted: list[object] = [*roots, *self._calls]
        found: list[object] = []
        for _, expression in self._items:
            key = self._keys.get(expression) if isinstance(expression, PlanColumn) else None
            if isinstance(expression, PlanColumn) and expression in self._roots and key is not None:
                found.append(None if self._core.needs_cast(key) else self._roots[expression])
            else:
                found.append(expression)
        return [n for n, _ in self._items] if found == wanted and not self._spanning else None

    def _output(self, root: Term) -> OutputColumn:
        variable = self._core.variable(root)
        return OutputColumn(variable.name, variable.type, variable.nullable)

    def _map_keys(self, stages: list[Stage]) -> list[OutputColumn]:
        """The Map that computes keys that no variable can hold; it keeps the head for the arguments of aggregates.

        Without aggregates it gives the keys alone, which a Distinct then makes unique.
        """
        head = stages[-1].columns
        taken = {c.name.lower() for c in head}
        if self._aggregates:
            kept = [c.name for c in head]
        else:
            kept = [self._core.variable(r).name for r in dict.fromkeys(self._roots.values())]
        expressions: list[tuple[str, Expression]] = [
            (c.name, ColumnRef(c.name, c.type, c.nullable)) for c in head if c.name in kept
        ]
        aliases = {e: n for n, e in reversed(self._items)}
        added = []
        for column in self._spanning:
            key = self._keys[column]
            name = unique_name(aliases.get(column) or identifier_of(key), taken)
            expressions.append((name, self._core.over_head(key)))
            self._columns[column] = ColumnRef(name, key.type, key.nullable)
            added.append(OutputColumn(name, key.type, key.nullable))
        stages.append(Map(len(stages) - 1, tuple(expressions)))
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
        second = None if aggregate.second is None else self._core.over_head(aggregate.second)
        return replace(aggregate, name=name, argument=argument, second=second)

    def _predicate(self) -> Expression:
        found = conjunction([self._above(c.expression) for c in self._having])
        assert found is not None
        return found

    def _above(self, expression: Expression) -> Expression:
        """An expression over the columns of the Aggregate in terms of the stages below."""
        return rewrite(expression, lambda part: self._columns[part] if isinstance(part, PlanColumn) else None)
