"""Sizes and heavy hitters of tables, measured on samples of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from everview.query.expression import ColumnRef
from everview.spark.inputs.table_input import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.query.conjunctive import ConjunctiveQuery


@dataclass(frozen=True)
class Measured:
    """Rows per table, and the fraction of an atom's rows that have the most frequent value of a variable."""

    sizes: dict[str, float] = field(default_factory=dict)
    heaviest: dict[int, dict[tuple[str, str], float]] = field(default_factory=dict)
    """By core, atom and variable."""


def measure(cores: Mapping[int, ConjunctiveQuery], samples: Mapping[str, DataFrame]) -> Measured:
    """Measure samples, by lower-case name of their table: one pass per table and joined column."""
    found = Measured()
    fractions: dict[tuple[str, str], float] = {}
    for table, frame in samples.items():
        found.sizes[table] = float(frame.count())

    def fraction(table: str, column: str) -> float:
        if (table, column) not in fractions:
            counts = samples[table].groupBy(f.col(quoted(column)).alias("v")).count().filter("v IS NOT NULL")
            most = counts.agg(f.max("count")).head()
            rows = max(1.0, found.sizes[table])
            fractions[table, column] = float((most[0] if most is not None else 0) or 0) / rows
        return fractions[table, column]

    for core, query in cores.items():
        found.heaviest[core] = {
            (atom.name, variable): fraction(atom.table.lower(), expression.name)
            for atom in query.atoms
            if atom.table.lower() in samples
            for variable, expression in atom.bindings
            if variable in query.join_variables and isinstance(expression, ColumnRef)
        }
    return found
