"""MIN and MAX: the least and the greatest value, of any type that has an order."""

from __future__ import annotations

from collections.abc import Sequence

from everview.aggregates.function import AggregateFunction, Merged, of_partial
from everview.query.expression import ColumnRef
from everview.query.logical_view import Aggregate
from everview.schema.datatype import STRING, DataType


class Extremum(AggregateFunction):
    """NULL where there is no value. Texts are compared by bytes, NaN is above all numbers.

    Under deletes no sum tells it: the values of a group are kept in order, each with its number.
    """

    takes_numbers = False
    sums = False
    kept = "the distinct values of {} in order"
    keeps_values = True
    counts_duplicates = False

    def result_type(self, argument: DataType) -> DataType:
        return STRING if argument.is_string else argument

    def accumulated(self, argument: DataType) -> DataType:
        return argument

    def may_refuse(self, result: DataType) -> bool:
        del result
        return False

    def partials(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        return (aggregate,)

    def merged(self, aggregate: Aggregate, partials: Sequence[ColumnRef]) -> Merged:
        (partial,) = partials
        return Merged((of_partial(aggregate, partial),))


class Minimum(Extremum):
    """MIN."""

    name = "min"
    spellings = ("min",)


class Maximum(Extremum):
    """MAX."""

    name = "max"
    spellings = ("max",)
