"""The types that random tables have, and a few values of each: those that join, and those that are easily got wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from everview.schema.datatype import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Kind,
    decimal,
)

MONEY = decimal(6, 2)
LONG = decimal(25, 4)
CHAR = DataType(Kind.CHAR, length=3)
WIDE_CHAR = DataType(Kind.CHAR, length=5)
VARCHAR = DataType(Kind.VARCHAR, length=4)

# For keys and filters, not for sums: 0.1 as a FLOAT and as a DOUBLE, the largest FLOATs and the smallest one. A sum of such values that
# cancels out depends in DuckDB on the order of adding; of all others it is exact (and would not be if 2^24 were added up as a FLOAT).
INEXACT = (0.10000000149011612, 0.1, 3.4028234663852886e38, -3.4028234663852886e38, 1.401298464324817e-45)
# Values as tables hold them: CHAR(n) padded, timestamps in UTC; ``replay`` hands some over in other forms. Zeros of both signs and NaN are
# there since DuckDB and Spark join, group and order them alike (rows are compared by ``meaning``).
VALUES: Mapping[DataType, Sequence[Any]] = {
    BIGINT: (0, 1, 2, 3, -1, 2**40),
    INT: (0, 1, 2, 3, -1),
    STRING: ("a", "b", "", "Ab", "a ", "ä", "a longer text that fits no word"),
    TINYINT: (0, 1, 2, 3, -1, 127, -128),
    SMALLINT: (0, 1, 2, 3, -1, 32767, -32768),
    DOUBLE: (0.0, 0.5, 1.0, -2.25, 3.0, -0.0, math.nan, math.inf, -math.inf, *INEXACT[:2]),
    MONEY: (Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("3.00"), Decimal("0.01")),
    LONG: (
        Decimal("1.0000"),
        Decimal("0.0000"),
        Decimal("12345678901234567890.5000"),
        Decimal("-0.0001"),
        Decimal("1.5000"),
    ),
    DATE: (date(2024, 2, 29), date(2024, 3, 1), date(1969, 12, 31), date(2025, 1, 1)),
    BOOLEAN: (False, True),
    FLOAT: (0.0, 2.0**24, INEXACT[0], 1.0, 0.5, -2.25, -0.0, math.nan, math.inf, -math.inf, *INEXACT[2:]),
    TIMESTAMP: (
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC),
        datetime(2024, 3, 1, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ),
    TIMESTAMP_NTZ: tuple(
        datetime.fromisoformat(text)
        for text in (
            "2024-02-29",
            "2024-03-31T02:30:00",  # an hour that is left out where clocks go forward
            "1969-12-31T23:59:59.500000",
            "2024-03-01",
            "1970-01-01",
            "0001-01-01",
            "9999-12-31T23:59:59.999999",
        )
    ),
    BINARY: (b"", b"a", b"\x00", b"\xff\xfe", b"b", "ä".encode(), b"bytes that fit no word, \xc3"),
    CHAR: ("a  ", "b  ", "   ", "abc", "Ab ", " a ", "ä日 "),
    WIDE_CHAR: ("a    ", "b    ", "     ", "abc  ", "Ab   ", "ä日   ", "abcde"),
    VARCHAR: ("a", "b", "", "abc", "a  ", "abcd", "ä日", "a   "),
}
