"""Groups over the rows of a stage, without a join: a Map computes keys and arguments, the aggregate adds them up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.aggregates import FUNCTIONS
from everview.extract.core_builder import identifier_of
from everview.query.expression import ColumnRef, Expression, PlanColumn, conjunction, rewrite
from everview.query.logical_view import Aggregate, Distinct, Filter, GroupAggregate, Map, OutputColumn, Stage
from everview.query.names import unique_name
from everview.sql.coercion import cast_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everview.extract.grouped import Above
    from everview.relational.plan import Aggregate as AggregateNode


def extract_regrouped(
    stages: list[Stage],
    stage: int,
    columns: Mapping[PlanColumn, Expression],
    node: AggregateNode,
    above: Above,
) -> None:
    """Add the stages of an Aggregate over a stage, whose ``columns`` are given, and of what stands above it."""
    computed = _Computed()
    found = {column: computed.add(column.name, over(key, columns)) for column, key in node.keys}
    keys = tuple(dict.fromkeys(found.values()))
    aggregates: list[Aggregate] = []
    taken = {key.name.lower() for key in keys}
    for column, call in node.calls:
        function = FUNCTIONS[call.function]
        reference, second = (
            None if e is None else computed.add("", cast_to(over(e, columns), function.accumulated(e.type)))
            for e in (call.argument, call.second)
        )
        name = unique_name(column.name or f"agg_{len(aggregates)}", taken)
        argument_type = None if reference is None else reference.type
        aggregates.append(
            Aggregate(name, function.name, call.type, call.nullable, argument_type, reference, second=second)
        )
        found[column] = ColumnRef(name, call.type, call.nullable)
    stages.append(Map(stage, tuple((n, e) for e, n in computed.names.items())))
    if aggregates or not keys:
        grouped = tuple(OutputColumn(key.name, key.type, key.nullable) for key in keys)
        stages.append(GroupAggregate(len(stages) - 1, grouped, tuple(aggregates)))
    else:
        stages.append(Distinct(len(stages) - 1, stages[-1].columns))
    predicate = conjunction([over(c.expression, found) for c in above.having])
    if predicate is not None:
        stages.append(Filter(len(stages) - 1, predicate, stages[-1].columns))
    expressions = tuple((n, over(e, found)) for n, e in above.items)
    if [(c.name, c.name) for c in stages[-1].columns] != [
        (n, e.name if isinstance(e, ColumnRef) else None) for n, e in expressions
    ]:
        stages.append(Map(len(stages) - 1, expressions))


def over(expression: Expression, columns: Mapping[PlanColumn, Expression]) -> Expression:
    """An expression with the columns of the plan replaced by those of a stage."""
    return rewrite(expression, lambda part: columns[part] if isinstance(part, PlanColumn) else None)


class _Computed:
    """Computed columns, equal ones once."""

    def __init__(self) -> None:
        self.names: dict[Expression, str] = {}
        self._taken: set[str] = set()

    def add(self, name: str, expression: Expression) -> ColumnRef:
        if expression not in self.names:
            self.names[expression] = unique_name(name or identifier_of(expression), self._taken)
        return ColumnRef(self.names[expression], expression.type, expression.nullable)
