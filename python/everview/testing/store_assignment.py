"""Values stored in columns of other types, and what becomes of them: a table for tests of sessions, and of Spark, whose rules these are."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

STORED = """
CREATE TABLE s (ti TINYINT, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(5,2), t STRING, c CHAR(3), v VARCHAR(3), b BOOLEAN, dt DATE, ts TIMESTAMP,
    ntz TIMESTAMP_NTZ, raw BINARY)
"""
NOON = dt.datetime(2024, 5, 1, 12, 30)  # noqa: DTZ001 a TIMESTAMP_NTZ


def is_code(expected: object) -> bool:
    """Whether a value is refused."""
    return isinstance(expected, str) and expected.isupper()


ASSIGNED: list[tuple[str, str, Any]] = [
    ("ti", "127", 127),
    ("ti", "128", "CAST_OVERFLOW"),
    ("ti", "CAST(-128 AS BIGINT)", -128),
    ("ti", "1.9", 1),
    ("ti", "1.9D", 1),
    ("ti", "TRUE", "TYPE_MISMATCH"),
    ("i", "2147483648", "CAST_OVERFLOW"),
    ("i", "1e10", "CAST_OVERFLOW"),
    ("i", "'1'", "TYPE_MISMATCH"),
    ("i", "NULL", None),
    ("l", "99999999999999999999", "CAST_OVERFLOW"),
    ("f", "0.1D", 0.10000000149011612),
    ("f", "1", 1.0),
    ("d", "1.5", 1.5),
    ("n", "1.005", Decimal("1.01")),
    ("n", "1.004D", Decimal("1.00")),
    ("n", "999.99", Decimal("999.99")),
    ("n", "1000", "NUMERIC_VALUE_OUT_OF_RANGE"),
    ("n", "999.999", "NUMERIC_VALUE_OUT_OF_RANGE"),
    ("t", "1", "1"),
    ("t", "1.50", "1.50"),
    ("t", "TRUE", "true"),
    ("t", "DATE'2024-05-01'", "2024-05-01"),
    ("c", "'ab'", "ab "),
    ("c", "'abcd'", "EXCEED_LIMIT_LENGTH"),
    ("v", "'abc   '", "abc"),
    ("v", "1234", "EXCEED_LIMIT_LENGTH"),
    ("b", "TRUE", True),
    ("b", "1", "TYPE_MISMATCH"),
    ("b", "'true'", "TYPE_MISMATCH"),
    ("dt", "DATE'2024-05-01'", dt.date(2024, 5, 1)),
    ("dt", "TIMESTAMP'2024-05-01 12:30:00'", dt.date(2024, 5, 1)),
    ("dt", "'2024-05-01'", "TYPE_MISMATCH"),
    ("dt", "1", "TYPE_MISMATCH"),
    ("ts", "DATE'2024-05-01'", dt.datetime(2024, 5, 1, tzinfo=dt.UTC)),
    ("ts", "TIMESTAMP_NTZ'2024-05-01 12:30:00'", NOON.replace(tzinfo=dt.UTC)),
    ("ntz", "TIMESTAMP'2024-05-01 12:30:00'", NOON),
    ("ntz", "1", "TYPE_MISMATCH"),
    ("raw", "X'00ff'", b"\x00\xff"),
    ("raw", "'a'", "TYPE_MISMATCH"),
]
"""Column, expression, and the value that is stored or the code of the refusal."""
