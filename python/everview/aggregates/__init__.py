"""The aggregate functions, one file each."""

from everview.aggregates.average import Average
from everview.aggregates.count import Count
from everview.aggregates.extremum import Maximum, Minimum
from everview.aggregates.function import AggregateFunction
from everview.aggregates.single import Single
from everview.aggregates.sum import Sum

FUNCTIONS: dict[str, AggregateFunction] = {
    f.name: f for f in (Count(), Sum(), Average(), Minimum(), Maximum(), Single())
}
"""By the name that plans have."""

SPELLINGS = {spelling: f for f in FUNCTIONS.values() for spelling in f.spellings}
"""By the names that SQL has, in lower case."""

__all__ = ["FUNCTIONS", "SPELLINGS", "AggregateFunction"]
