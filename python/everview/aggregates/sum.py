"""SUM: exact for integers and decimals, an error where it does not fit; of doubles rounded once."""

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
from everview.query.expression import ColumnRef
from everview.query.logical_view import Aggregate
from everview.schema.datatype import BIGINT, DOUBLE, MAX_PRECISION, DataType, Kind, decimal


class Sum(AggregateFunction):
    """NULL where there is no value."""

    name = "sum"
    spellings = ("sum",)

    def result_type(self, argument: DataType) -> DataType:
        if argument.is_integer:
            return BIGINT
        if argument.kind is Kind.DECIMAL:
            return decimal(min(MAX_PRECISION, argument.precision + 10), argument.scale)
        return DOUBLE

    def partials(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        return partial_count(aggregate), partial_sum(aggregate)

    def merged(self, aggregate: Aggregate, partials: Sequence[ColumnRef]) -> Merged:
        count, total = partials
        if total.type == DOUBLE:
            return Merged((added_up_doubles(aggregate, total),))
        return Merged((added_up(aggregate, total, count),))
