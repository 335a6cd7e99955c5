"""Two DataFrames compared as bags, doubles within a relative tolerance.

Rows are first set off exactly (EXCEPT ALL, both ways). Where there are doubles, what is left is paired: rows that agree in all other columns, in
the order of their doubles. A pair whose doubles are all near is no difference. Sums of doubles depend on the order of additions, so most
rows of a correct view may get to the second step. The pairing can miss a match only where rows differ in nothing but several doubles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql.types import DoubleType, FloatType
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RELATIVE = 1e-9
RELATIVE_FLOAT = 1e-5
"""FLOAT has 24 bits: a sum in another order differs in the seventh digit."""

_NUMBER, _LEFT, _RIGHT = "_number", "_l", "_r"


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows of one side that the other lacks: how many, and the first of them."""

    count: int
    rows: list[dict[str, Any]]


def compare(expected: DataFrame, found: DataFrame, *, shown: int) -> tuple[int, Difference, Difference]:
    """How many rows ``found`` has, those it lacks, and those that are too many. Columns are compared by position."""
    expected, found = expected.persist(), found.toDF(*expected.columns).persist()
    try:
        return found.count(), *_differences(expected, found, shown)
    finally:
        expected.unpersist()
        found.unpersist()


def _differences(expected: DataFrame, found: DataFrame, shown: int) -> tuple[Difference, Difference]:
    missing, extra = expected.exceptAll(found).persist(), found.exceptAll(expected).persist()
    try:
        inexact = {c.name: c.dataType for c in expected.schema.fields if isinstance(c.dataType, DoubleType | FloatType)}
        if not inexact or missing.isEmpty() or extra.isEmpty():
            return _shown(missing, shown), _shown(extra, shown)
        tolerances = {n: RELATIVE if isinstance(t, DoubleType) else RELATIVE_FLOAT for n, t in inexact.items()}
        pairs = _paired(missing, extra, tolerances).persist()
        try:
            return _shown(_side(pairs, _LEFT), shown), _shown(_side(pairs, _RIGHT), shown)
        finally:
            pairs.unpersist()
    finally:
        missing.unpersist()
        extra.unpersist()


def _shown(rows: DataFrame, shown: int) -> Difference:
    return Difference(rows.count(), [row.asDict() for row in rows.limit(shown).collect()])


def _paired(missing: DataFrame, extra: DataFrame, tolerances: dict[str, float]) -> DataFrame:
    """Pairs that are not near; a row without a partner is paired with NULL."""
    inexact = list(tolerances)
    exact = [name for name in missing.columns if name not in inexact]
    # rounded first, so that a difference in the last digits of one double does not decide over the others
    order = [_column(name).cast("float") for name in inexact] + [_column(name) for name in inexact]
    window = Window.partitionBy(*map(_column, exact)) if exact else Window.partitionBy(f.lit(0))
    sides = []
    for rows, name in ((missing, _LEFT), (extra, _RIGHT)):
        numbered = rows.withColumn(_NUMBER, f.row_number().over(window.orderBy(*order)))
        sides.append(numbered.select(f.struct(*map(_column, numbered.columns)).alias(name)))
    same = [f.col(_LEFT)[name].eqNullSafe(f.col(_RIGHT)[name]) for name in [*exact, _NUMBER]]
    both = sides[0].join(sides[1], on=_all(same), how="full_outer")
    near = _all([_near(f.col(_LEFT)[name], f.col(_RIGHT)[name], t) for name, t in tolerances.items()])
    matched = f.col(_LEFT).isNotNull() & f.col(_RIGHT).isNotNull() & near
    return both.filter(~f.coalesce(matched, f.lit(False)))


def _near(one: Column, two: Column, tolerance: float) -> Column:
    largest = f.greatest(f.abs(one), f.abs(two))
    return one.eqNullSafe(two) | f.coalesce(f.abs(one - two) <= largest * tolerance, f.lit(False))


def _all(conditions: list[Column]) -> Column:
    first, *others = conditions
    for other in others:
        first = first & other
    return first


def _side(pairs: DataFrame, name: str) -> DataFrame:
    return pairs.filter(f.col(name).isNotNull()).select(f"{name}.*").drop(_NUMBER)


def _column(name: str) -> Column:
    return f.col("`" + name.replace("`", "``") + "`")
