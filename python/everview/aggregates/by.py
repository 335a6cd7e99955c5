"""MIN_BY and MAX_BY: the value of one argument in the row where another is least or greatest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from everview.aggregates.extremum import Extremum
from everview.aggregates.function import Merged, of_partial
from everview.query.expression import ColumnRef
from everview.query.logical_view import Aggregate
from everview.schema.datatype import STRING


class By(Extremum):
    """Rows where the second argument is NULL do not count. Of several rows with the same second argument the one with the least first
    argument counts, NULL last: the result depends on the rows alone.
    """

    arity = 2
    kept = "the distinct pairs of {} in order"
    of_second: ClassVar[str]

    def partials(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        second = aggregate.second
        assert second is not None
        data_type = STRING if second.type.is_string else second.type
        end = replace(
            aggregate,
            function=self.of_second,
            type=data_type,
            nullable=True,
            argument_type=second.type,
            argument=second,
            second=None,
        )
        return aggregate, end

    def merged(self, aggregate: Aggregate, partials: Sequence[ColumnRef]) -> Merged:
        value, end = partials
        return Merged((replace(of_partial(aggregate, value), second=end),))


class MinimumBy(By):
    """MIN_BY."""

    name = "min_by"
    spellings = ("min_by",)
    of_second = "min"


class MaximumBy(By):
    """MAX_BY."""

    name = "max_by"
    spellings = ("max_by",)
    of_second = "max"
