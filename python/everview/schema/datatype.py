"""SQL data types of the Spark dialect, as values.

The text form (``str(data_type)``) is what plans carry: ``bigint``, ``decimal(12,2)``, ``char(3)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

MAX_PRECISION = 38
"""The most digits of a decimal."""


class Kind(StrEnum):
    """The families of types. ``NULL`` is the type of the bare literal NULL."""

    BOOLEAN = "boolean"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    CHAR = "char"
    VARCHAR = "varchar"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class DataType:
    """One SQL type. ``precision`` and ``scale`` are those of a decimal; ``length`` that of CHAR(n) and VARCHAR(n)."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    length: int = 0

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        if self.kind in (Kind.CHAR, Kind.VARCHAR):
            return f"{self.kind}({self.length})"
        return str(self.kind)

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)

    @property
    def is_floating(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.DOUBLE)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_floating or self.kind is Kind.DECIMAL

    @property
    def is_string(self) -> bool:
        return self.kind in (Kind.STRING, Kind.CHAR, Kind.VARCHAR)

    @property
    def is_timestamp(self) -> bool:
        return self.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)

    @property
    def is_datetime(self) -> bool:
        return self.kind is Kind.DATE or self.is_timestamp


BOOLEAN = DataType(Kind.BOOLEAN)
TINYINT = DataType(Kind.TINYINT)
SMALLINT = DataType(Kind.SMALLINT)
INT = DataType(Kind.INT)
BIGINT = DataType(Kind.BIGINT)
FLOAT = DataType(Kind.FLOAT)
DOUBLE = DataType(Kind.DOUBLE)
STRING = DataType(Kind.STRING)
BINARY = DataType(Kind.BINARY)
DATE = DataType(Kind.DATE)
TIMESTAMP = DataType(Kind.TIMESTAMP)
TIMESTAMP_NTZ = DataType(Kind.TIMESTAMP_NTZ)
NULL = DataType(Kind.NULL)


def decimal(precision: int, scale: int) -> DataType:
    """The type DECIMAL(precision, scale)."""
    return DataType(Kind.DECIMAL, precision=precision, scale=scale)


_TEXT = re.compile(r"(\w+)(?:\((\d+)(?:,(\d+))?\))?")


def parse_type(text: str) -> DataType:
    """The inverse of ``str``.

    >>> parse_type("decimal(12,2)")
    DataType(kind=<Kind.DECIMAL: 'decimal'>, precision=12, scale=2, length=0)
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        msg = f"not a type: {text!r}"
        raise ValueError(msg)
    kind = Kind(match[1])
    if kind is Kind.DECIMAL:
        return decimal(int(match[2]), int(match[3] or 0))
    if kind in (Kind.CHAR, Kind.VARCHAR):
        return DataType(kind, length=int(match[2]))
    return DataType(kind)
