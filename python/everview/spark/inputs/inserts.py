"""Rows that come and stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as f

from everview.interop.batch import MULTIPLICITY
from everview.schema.table import Column, Table
from everview.shards.normaliser import KeyedInput
from everview.spark.inputs.table_input import Declared, Prepared, TableInput, carried, picked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from everview.spark.job import TableSource


@dataclass(frozen=True)
class Inserts(TableInput):
    """A DataFrame by itself."""

    kind: ClassVar[str] = "inserts"
    only_inserts: ClassVar[bool] = True

    def prepare(self, declared: Declared, wanted: Sequence[Column], *, carry: bool) -> Prepared:
        one = f.lit(1).cast("long").alias(MULTIPLICITY)
        selected = self.frame.select(*picked(wanted), one, *carried(declared, carry=carry))
        source = Table(declared.table.name, tuple(wanted), declared.table.primary_key)
        return Prepared(source, selected, KeyedInput(source) if source.primary_key else None, checked=True)

    @classmethod
    def of_job(cls, frame: DataFrame, source: TableSource) -> Inserts:
        del source
        return cls(frame)
