"""AVG, also called MEAN: the sum divided by the number of values, rounded once."""

from __future__ import annotations

from collections.abc import Sequence

from everview.aggregates.function import (
    AggregateFunction,
    Merged,
    added_up,
    added_up_doubles,
    partial_count,
    partial_sum,
)
from everview.query.expression import Call, ColumnRef, Expression, Literal
from everview.query.logical_view import Aggregate
from everview.schema.datatype import BIGINT, DOUBLE, MAX_PRECISION, DataType, Kind, decimal


class Average(AggregateFunction):
    """NULL where there is no value. A DOUBLE for integers, a decimal with four more digits for decimals."""

    name = "avg"
    spellings = ("avg", "mean")

    def result_type(self, argument: DataType) -> DataType:
        if argument.kind is Kind.DECIMAL:
            return decimal(min(MAX_PRECISION, argument.precision + 4), min(MAX_PRECISION, argument.scale + 4))
        return DOUBLE

    def partials(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        return partial_count(aggregate), partial_sum(aggregate)

    def merged(self, aggregate: Aggregate, partials: Sequence[ColumnRef]) -> Merged:
        count, total = partials
        if total.type != DOUBLE:
            return Merged((added_up(aggregate, total, count),))
        number = Aggregate("", "count", BIGINT, nullable=False, count=count.name)
        return Merged((added_up_doubles(aggregate, total), number), _mean)


def _mean(columns: Sequence[ColumnRef]) -> Expression:
    """Sum divided by count as doubles; NULL where there is nothing to count."""
    total, count = columns
    counted = Call("nullif", (count, Literal(0, BIGINT)), BIGINT, nullable=True)
    return Call("divide", (total, Call("cast", (counted,), DOUBLE, nullable=True)), DOUBLE, nullable=True)
