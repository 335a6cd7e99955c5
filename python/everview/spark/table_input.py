"""A table as a user passes it, as it is declared, and as workers get it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as f

from everview.schema.datatype import Kind as TypeKind

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from everview.schema.table import Column, Table
    from everview.shards.normaliser import KeyedInput

BAD = "_bad"
"""The column that says why a row cannot be used, NULL if it can."""

FIELDS = "_fields"
"""The column with the names that an event has, as a JSON list, where it has no value for some column that is wanted; else NULL."""

Kind = Literal["inserts", "changes", "upserts", "debezium"]
TimeUnit = Literal["millis", "micros", "nanos"]


@dataclass(frozen=True)
class TableInput:
    """A DataFrame and what its rows mean. Made by ``upserts`` and ``debezium``, or from a bare DataFrame."""

    frame: DataFrame
    kind: Kind
    sequence: str | None = None
    delete_when: str | None = None
    schema: StructType | None = None
    column: str = "value"
    time_unit: TimeUnit = "millis"


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
