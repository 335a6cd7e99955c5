"""The aggregate functions, one file per kind."""

from everview.aggregates.average import Average
from everview.aggregates.by import MaximumBy, MinimumBy
from everview.aggregates.count import Count
from everview.aggregates.extremum import Maximum, Minimum
from everview.aggregates.function import AggregateFunction
from everview.aggregates.moments import MOMENTS
from everview.aggregates.single import Single
from everview.aggregates.sum import Sum

_ALL: tuple[AggregateFunction, ...] = (
    Count(),
    Sum(),
    Average(),
    Minimum(),
    Maximum(),
    MinimumBy(),
    MaximumBy(),
    *MOMENTS,
    Single(),
)

FUNCTIONS: dict[str, AggregateFunction] = {f.name: f for f in _ALL}
"""By the name that plans have."""

SPELLINGS = {spelling: f for f in FUNCTIONS.values() for spelling in f.spellings}
"""By the names that SQL has, in lower case."""

__all__ = ["FUNCTIONS", "SPELLINGS", "AggregateFunction"]
