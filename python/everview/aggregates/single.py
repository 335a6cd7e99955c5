"""The value of the only row of a group: what a scalar subquery gives. No SQL text calls it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.aggregates.function import AggregateFunction, Merged, of_partial, partial_count
from everview.query.expression import ColumnRef
from everview.query.logical_view import Aggregate
from everview.schema.datatype import STRING, DataType


class Single(AggregateFunction):
    """NULL where there is no row. A batch after which a group has two rows, equal or not, is refused (SCALAR_SUBQUERY_TOO_MANY_ROWS)."""

    name = "single"
    spellings = ()
    takes_numbers = False
    sums = False
    kept = "the distinct values of {} in order"

    def result_type(self, argument: DataType) -> DataType:
        return STRING if argument.is_string else argument

    def accumulated(self, argument: DataType) -> DataType:
        return argument

    def may_refuse(self, result: DataType) -> bool:
        del result
        return True

    def partials(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        """The number of rows, whatever their value, and the value of a shard's only row."""
        return replace(partial_count(aggregate), argument=None), aggregate

    def merged(self, aggregate: Aggregate, partials: Sequence[ColumnRef]) -> Merged:
        count, value = partials
        return Merged((replace(of_partial(aggregate, value), count=count.name),))
