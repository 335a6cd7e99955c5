"""Variances, standard deviations, covariances and correlations, of doubles.

They are computed from exact sums of arguments and of their products, rounded in the end: they depend on the rows alone, and nothing is left
of what was inserted and deleted. Over shards these sums travel as bytes, so that the result is the same to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.aggregates.function import AggregateFunction, Merged, of_partial, partial_count
from everview.query.expression import ColumnRef
from everview.query.logical_view import Aggregate
from everview.schema.datatype import BINARY, DOUBLE, DataType


class Moments(AggregateFunction):
    """A function of such sums. NULL where there are too few rows, NaN where an argument is not finite."""

    sums = False
    kept = "exact sums of {} and of products"

    def __init__(self, name: str, *others: str, state: str, arity: int = 1) -> None:
        self.name = name
        self.spellings = (name, *others)
        self.arity = arity
        self._state = state

    def result_type(self, argument: DataType) -> DataType:
        del argument
        return DOUBLE

    def is_nullable(self, *, argument_nullable: bool, grouped: bool) -> bool:
        del argument_nullable, grouped
        return True

    def accumulated(self, argument: DataType) -> DataType:
        del argument
        return DOUBLE

    def partials(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        """The number of rows, which the first argument tells (it is NULL where the second is), and the sums."""
        return partial_count(aggregate), replace(aggregate, function=self._state, type=BINARY, nullable=False)

    def merged(self, aggregate: Aggregate, partials: Sequence[ColumnRef]) -> Merged:
        count, state = partials
        return Merged((replace(of_partial(aggregate, state), count=count.name),))


class State(Moments):
    """The sums themselves, as bytes. No SQL text calls it."""

    def __init__(self, name: str, *, arity: int = 1) -> None:
        super().__init__(name, state=name, arity=arity)
        self.spellings = ()

    def result_type(self, argument: DataType) -> DataType:
        del argument
        return BINARY

    def may_refuse(self, result: DataType) -> bool:
        del result
        return False


MOMENTS: tuple[AggregateFunction, ...] = (
    Moments("var_pop", state="variance_state"),
    Moments("var_samp", "variance", state="variance_state"),
    Moments("stddev_pop", state="variance_state"),
    Moments("stddev_samp", "stddev", "std", state="variance_state"),
    Moments("covar_pop", state="covariance_state", arity=2),
    Moments("covar_samp", state="covariance_state", arity=2),
    Moments("corr", state="correlation_state", arity=2),
    State("variance_state"),
    State("covariance_state", arity=2),
    State("correlation_state", arity=2),
)
