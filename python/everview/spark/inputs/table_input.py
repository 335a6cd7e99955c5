"""A table as a user passes it, as it is declared, and as workers get it.

``Prepared`` has the DataFrame that workers get: the columns of the table that the view reads, then ``_multiplicity``, or the columns of a sequence and
``_live`` where rows are the newest of their key, then ``_bad``: why a row cannot be used, NULL if it can. Where bad rows are set aside, the
whole input row comes last (see ``everview.shards.carried``); all else is the same with and without it.

To add a kind of input: a file with a subclass of ``TableInput``, and a line in ``everview.spark.inputs``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as f

from everview.errors import PipelineError
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.schema.datatype import Kind as TypeKind
from everview.shards.carried import ROW

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

    from everview.schema.table import Column, Table
    from everview.shards.normaliser import KeyedInput
    from everview.spark.job import TableSource

BAD = "_bad"
"""The column that says why a row cannot be used, NULL if it can."""

FIELDS = "_fields"
"""The column with the names that an event has, as a JSON list, where it has no value for some column that is wanted; else NULL."""

UNREAD = "_unread_"
"""What the name of the column begins with that is a hash of those the view does not read: rows that differ only there are different rows. A hash
of their names and types follows: with other columns the rows held would not be found again, so they are part of what state belongs to."""

CONTROL = (CHANGE_TYPE, MULTIPLICITY, "_commit_version", "_commit_timestamp")
"""The columns of a DataFrame that are none of the table."""


@dataclass(frozen=True)
class TableInput(ABC):
    """A DataFrame and what its rows mean. Made by ``upserts`` and ``debezium``, or from a bare DataFrame."""

    kind: ClassVar[str]
    """Its name in jobs, and for people."""
    job_keys: ClassVar[tuple[str, ...]] = ()
    """The keys of a job's table that have a meaning for it, beyond those of every table."""
    needs: ClassVar[Mapping[str, str]] = {}
    """The keys of a job's table that it cannot do without, with a hint."""
    schema_key: ClassVar[str] = "schema"
    """The key of a job's table that has the columns."""
    only_inserts: ClassVar[bool] = False
    frame: DataFrame

    @property
    def columns(self) -> Sequence[StructField]:
        """The columns of the table."""
        return [c for c in self.frame.schema.fields if c.name.lower() not in CONTROL]

    @property
    def meaning(self) -> str:
        """What its rows mean, for people."""
        return self.kind

    def check(self, name: str, key: Sequence[str]) -> None:
        """Refuse what makes no sense for a table of this name and primary key."""
        del name, key

    @abstractmethod
    def prepare(self, declared: Declared, wanted: Sequence[Column], *, carry: bool) -> Prepared:
        """The DataFrame for workers with the columns that are wanted; ``carry``: rows carry their input rows."""

    @classmethod
    @abstractmethod
    def of_job(cls, frame: DataFrame, source: TableSource) -> TableInput:
        """From a table of a job and its DataFrame."""

    @classmethod
    def why_uncheckable(cls, source: TableSource) -> tuple[str, str] | None:
        """Why what a job's table holds cannot be told from its source, and a hint; None if it can."""
        del source
        return None


def require_column(table: str, frame: DataFrame, column: str, what: str) -> None:
    """Refuse a DataFrame that lacks a column."""
    if column.lower() not in (c.lower() for c in frame.columns):
        raise PipelineError(
            "UNKNOWN_COLUMN",
            f"table `{table}` has no column `{column}` with {what}",
            hint=f"the columns are {', '.join(frame.columns)}",
        )


@dataclass(frozen=True)
class Declared:
    """A table as the user declares it: its columns that everview can read, and the types of those it cannot."""

    name: str
    given: TableInput
    table: Table
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_streaming(self) -> bool:
        return self.given.frame.isStreaming


@dataclass(frozen=True)
class Prepared:
    """What workers get of a table. ``checked``: its changes are valid when they reach the shards."""

    table: Table
    frame: DataFrame
    keyed: KeyedInput | None
    checked: bool
    unread: Mapping[str, str] = field(default_factory=dict)
    """The columns that are not read and yet tell rows apart, with their types."""


_AS_TOLD = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSSxxx",
    "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
}


def as_json(columns: Sequence[Column], values: Sequence[SparkColumn]) -> SparkColumn:
    """A row as JSON text. Decimals are texts: readers of JSON round numbers."""
    fields = [
        (value.cast("string") if column.type.kind is TypeKind.DECIMAL else value).alias(column.name)
        for column, value in zip(columns, values, strict=True)
    ]
    return f.to_json(f.struct(*fields), _AS_TOLD) if fields else f.lit("{}")


def quoted(name: str) -> str:
    """A column's name as Spark takes it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def picked(wanted: Sequence[Column]) -> list[SparkColumn]:
    """The columns that are wanted, of a DataFrame that has them as they are."""
    return [f.col(quoted(c.name)) for c in wanted]


def carried(declared: Declared, *, carry: bool) -> list[SparkColumn]:
    """The column with the input row, where rows carry it."""
    columns = declared.table.columns
    return [as_json(columns, [f.col(quoted(c.name)) for c in columns]).alias(ROW)] if carry else []
