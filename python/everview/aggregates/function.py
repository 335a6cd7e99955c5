"""What an aggregate function is to the rest of the system: its types, what is accumulated for it, and how parts of it are merged.

Most functions are computed from the number of the argument's values that are not NULL and, where ``sums``, from their sum. Both are
carried by the tree where the argument factors over the atoms, and accumulated above it otherwise. For others more is kept, above the tree
(``kept``). Over shards, each emits *partials*, which are aggregates too; ``merged`` computes the function
from the sums of these, or from the partial columns themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from everview.query.expression import ColumnRef, Expression
from everview.query.logical_view import Aggregate
from everview.schema.datatype import BIGINT, DOUBLE, DataType, Kind, decimal


@dataclass(frozen=True, slots=True)
class Merged:
    """Aggregates of partial columns; ``value`` computes the result from theirs, or is None if the one aggregate is the result."""

    aggregates: tuple[Aggregate, ...]
    value: Callable[[Sequence[ColumnRef]], Expression] | None = None


class AggregateFunction(ABC):
    """One function. To add one: a file with a subclass, and a line in ``everview.aggregates``; the kernel has an accumulator of its name."""

    name: str
    spellings: tuple[str, ...]
    """How SQL calls it."""
    takes_rows: ClassVar[bool] = False
    """It may be called with ``*``, and needs no argument where that is never NULL."""
    arity: int = 1
    """How many arguments it takes."""
    takes_numbers: ClassVar[bool] = True
    """Its argument is a number; otherwise it may have any type."""
    sums: ClassVar[bool] = True
    """Whether it needs the sum of its argument."""
    kept: ClassVar[str] = ""
    """What is kept of a group for it, if it is no function of that number and that sum, as text over ``{}``, its arguments."""
    keeps_values: ClassVar[bool] = False
    """Whether these are the values of its arguments themselves, however many there are."""
    counts_duplicates: ClassVar[bool] = True
    """Whether it matters how often a value is there."""

    @abstractmethod
    def result_type(self, argument: DataType) -> DataType:
        """The type of the result."""

    def is_nullable(self, *, argument_nullable: bool, grouped: bool) -> bool:
        """Whether the result may be NULL: of no values it is, and only groups are never empty."""
        return argument_nullable or not grouped

    def accumulated(self, argument: DataType) -> DataType:
        """The type to which the argument is cast: BIGINT, DOUBLE or the decimal itself."""
        if argument.is_integer:
            return BIGINT
        return DOUBLE if argument.is_floating else argument

    def may_refuse(self, result: DataType) -> bool:
        """Whether a result may not fit its type."""
        return not result.is_floating

    @abstractmethod
    def partials(self, aggregate: Aggregate) -> tuple[Aggregate, ...]:
        """What shards emit for an aggregate."""

    @abstractmethod
    def merged(self, aggregate: Aggregate, partials: Sequence[ColumnRef]) -> Merged:
        """How the partials' columns become the aggregate."""


def partial_count(aggregate: Aggregate) -> Aggregate:
    """The number of the values of an aggregate's argument."""
    return replace(aggregate, function="count", type=BIGINT, nullable=False, argument_type=None, second=None, sum=None)


def partial_sum(aggregate: Aggregate) -> Aggregate:
    """The sum of an aggregate's argument: DOUBLE, or a decimal of the argument's scale that holds all 128 bits can."""
    argument = aggregate.argument_type or BIGINT
    exact = decimal(38, argument.scale if argument.kind is Kind.DECIMAL else 0)
    return replace(aggregate, function="sum", type=DOUBLE if argument.is_floating else exact, nullable=True)


def of_partial(aggregate: Aggregate, partial: ColumnRef) -> Aggregate:
    """The aggregate of a partial column itself."""
    return replace(aggregate, argument_type=partial.type, argument=partial, second=None, sum=None, count=None)


def added_up(aggregate: Aggregate, total: ColumnRef, count: ColumnRef) -> Aggregate:
    """The aggregate from exact partial sums and counts, which are components of what reads them."""
    return replace(aggregate, argument=None, sum=total.name, count=count.name)


def added_up_doubles(aggregate: Aggregate, total: ColumnRef) -> Aggregate:
    """The sum of partial sums of doubles, each of which was rounded."""
    return replace(aggregate, function="sum", argument=total, sum=None, count=None)
