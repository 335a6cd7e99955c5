"""Rows that insert or replace by primary key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, DateType, IntegralType, TimestampNTZType, TimestampType

from everview.errors import PipelineError
from everview.schema.table import Column, Table
from everview.shards.normaliser import LIVE, SEQUENCE, KeyedInput
from everview.spark.failure import SPARK_ERRORS, spark_message
from everview.spark.inputs.table_input import Declared, Prepared, TableInput, carried, picked, quoted, require_column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from everview.spark.job import TableSource


def upserts(frame: DataFrame, *, sequence: str | None = None, delete_when: str | None = None) -> TableInput:
    """Rows that insert or replace by primary key.

    ``sequence``: a column by which the rows of a key are ordered; rows not newer than what is held are dropped. Without it, what arrives
    in a later micro-batch is newer. Ties are broken by content. ``delete_when``: a SQL condition on the rows that delete their key instead.
    """
    return Upserts(frame, sequence, delete_when)


@dataclass(frozen=True)
class Upserts(TableInput):
    """Made by ``upserts``."""

    kind: ClassVar[str] = "upserts"
    job_keys: ClassVar[tuple[str, ...]] = ("sequence", "delete_when")
    needs: ClassVar[Mapping[str, str]] = {"primary_key": "upserts replace rows by their key: name its columns"}
    sequence: str | None = None
    delete_when: str | None = None

    @property
    def meaning(self) -> str:
        return self.kind if self.sequence is None else f"{self.kind} with a sequence"

    def check(self, name: str, key: Sequence[str]) -> None:
        if not key:
            raise PipelineError(
                "MISSING_KEY",
                f"table `{name}` takes upserts and has no primary key",
                hint=f'pass primary_keys={{"{name}": ["..."]}}',
            )
        if self.sequence is not None:
            _require_sequence(name, self.frame, self.sequence)
        if self.delete_when is not None:
            _require_condition(name, self.frame, self.delete_when)

    def prepare(self, declared: Declared, wanted: Sequence[Column], *, carry: bool) -> Prepared:
        order = () if self.sequence is None else (SEQUENCE,)
        sequence = [] if self.sequence is None else [_as_long(self.frame, self.sequence).alias(SEQUENCE)]
        live = f.lit(True) if self.delete_when is None else ~f.coalesce(f.expr(self.delete_when), f.lit(False))
        selected = self.frame.select(*picked(wanted), *sequence, live.alias(LIVE), *carried(declared, carry=carry))
        source = Table(declared.table.name, tuple(wanted), declared.table.primary_key)
        return Prepared(source, selected, KeyedInput(source, latest=True, order=order), checked=True)

    @classmethod
    def of_job(cls, frame: DataFrame, source: TableSource) -> Upserts:
        return cls(frame, source.sequence, source.delete_when)

    @classmethod
    def why_uncheckable(cls, source: TableSource) -> tuple[str, str] | None:
        if source.sequence is not None:
            return None
        why = "takes upserts without a `sequence`: which row of a key came last cannot be told from the source"
        return why, "give the table a `sequence` column"


def _require_sequence(table: str, frame: DataFrame, sequence: str) -> None:
    require_column(table, frame, sequence, "the sequence")
    kind = next(s.dataType for s in frame.schema.fields if s.name.lower() == sequence.lower())
    if not isinstance(kind, IntegralType | DateType | TimestampType | TimestampNTZType):
        raise PipelineError(
            "INVALID_OPTION",
            f"table `{table}`: the sequence column `{sequence}` is {kind.simpleString()}",
            hint="a sequence is an integer, a date or a timestamp",
            option="sequence",
            wrong=f"names `{sequence}`, which is {kind.simpleString()}",
        )


def _require_condition(table: str, frame: DataFrame, condition: str) -> None:
    wrong = None
    try:
        kind = frame.select(f.expr(condition)).schema.fields[0].dataType
        if not isinstance(kind, BooleanType):
            wrong = f"it is of type {kind.simpleString()}"
    except SPARK_ERRORS as error:
        wrong = spark_message(error)
    if wrong is not None:
        message = f"is {condition!r}, which is no condition on the table's rows: {wrong}"
        raise PipelineError(
            "INVALID_OPTION",
            f"table `{table}`: delete_when {message}",
            hint=f"write it over the columns {', '.join(frame.columns)}",
            option="delete_when",
            wrong=message,
        )


def _as_long(frame: DataFrame, name: str) -> SparkColumn:
    kind = next(s.dataType for s in frame.schema.fields if s.name.lower() == name.lower())
    column = f.col(quoted(name))
    if isinstance(kind, DateType):
        return f.unix_date(column).cast("long")
    if isinstance(kind, TimestampType | TimestampNTZType):
        return f.unix_micros(column)  # a session that has timestamps is in UTC
    return column.cast("long")
