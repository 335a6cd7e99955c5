"""Sizes and heavy hitters of tables, measured on samples of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from everview.query.expression import ColumnRef
from everview.spark.table_input import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.query.conjunctive import ConjunctiveQuery


@dataclass(frozen=True)
class Measured:
    """Rows per table, and the fraction of an atom's rows that have the most frequent value of a variable."""

    sizes: dict[str, float] = field(default_factory=dict)
    heaviest: dict[tuple[str, str], float] = field(default_factory=dict)


def measure(query: ConjunctiveQuery, samples: Mapping[str, DataFrame]) -> Measured:
    """Measure samples, by lower-case name of their table: one pass per table and joined column."""
    found = Measured()
    fractions: dict[tuple[str, str], float] = {}
    for table, frame in samples.items():
        found.sizes[table] = float(frame.count())
    for atom in query.atoms:
        table = atom.table.lower()
        for variable, expression in atom.bindings:
            if table not in samples or variable not in query.join_variables or not isinstance(expression, ColumnRef):
                continue
            if (table, expression.name) not in fractions:
                counts = (
                    samples[table].groupBy(f.col(quoted(expression.name)).alias("v")).count().filter("v IS NOT NULL")
                )
                most = counts.agg(f.max("count")).head()
                rows = max(1.0, found.sizes[table])
                fractions[table, expression.name] = float((most[0] if most is not None else 0) or 0) / rows
            found.heaviest[atom.name, variable] = fractions[table, expression.name]
    return found
