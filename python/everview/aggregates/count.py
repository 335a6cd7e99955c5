"""COUNT: the number of rows, or of values that are not NULL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.aggregates.function import AggregateFunction, Merged, partial_count
from everview.query.expression import ColumnRef
from everview.query.logical_view import Aggregate
from everview.schema.datatype import BIGINT, DataType


class Count(AggregateFunction):
    """It is never NULL, and fits its type as long as the number of rows does."""

    name = "count"
    spellings = ("count",)
    takes_rows = True
    takes_numbers = False
    sums = False

    def result_type(self, argument: DataType) -> DataType:
        del argument
        return BIGINT

    def is_nullable(self, *, argument_nullable: bool, grouped: bool) -> bool:
        del argument_nullable, grouped
        return False

    def accumulated(self, argument: DataType) -> DataType:
        return argument

    def may_refuse(self, result: DataType) -> bool:
        del result
        return False

    def partials(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        return (partial_count(aggregate),)

    def merged(self, aggregate: Aggregate, partials: Sequence[ColumnRef]) -> Merged:
        (count,) = partials
        return Merged((replace(aggregate, argument_type=None, argument=None, sum=None, count=count.name),))
