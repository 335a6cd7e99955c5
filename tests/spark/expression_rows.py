"""The rows on which expressions are compared with Spark.

Every column has a list of edge values. Row ``r`` holds value ``r`` of the list of the first column of a type (cyclically) and another one
of the second column, so that the rows run through many pairs.
"""

import datetime as dt
import re
from decimal import Decimal

import pyarrow as pa

from everview.schema.arrow import arrow_type
from everview.sql.parse import parse_statements

D = Decimal
NAN, INF = float("nan"), float("inf")
UTC = dt.UTC
MAX38, MIN38 = D("9999999999999999999999999999.9999999999"), D("-9999999999999999999999999999.9999999999")


def _ts(*parts):
    return dt.datetime(*parts, tzinfo=UTC)


TYPES = {
    "bo": ("BOOLEAN", [True, False, None]),
    "ti": ("TINYINT", [0, 1, -1, 7, -8, 127, -128, None, 100, 2]),
    "si": ("SMALLINT", [0, 1, -1, 7, -8, 32767, -32768, None, 100]),
    "i": ("INT", [0, 1, -1, 2, -7, 10, 2147483647, -2147483648, None, 12345, 1600000000]),
    "b": (
        "BIGINT",
        [0, 1, -1, 3, -10, 9223372036854775807, -9223372036854775808, None, 4294967296, 253402300799, 65536],
    ),
    "f": (
        "FLOAT",
        [
            0.0,
            -0.0,
            1.5,
            -2.5,
            0.1,
            3.4028234663852886e38,
            1.401298464324817e-45,
            NAN,
            INF,
            -INF,
            None,
            16777216.0,
            100.0,
        ],
    ),
    "d": (
        "DOUBLE",
        [
            0.0,
            -0.0,
            1.5,
            -2.5,
            2.5,
            0.1,
            1e308,
            5e-324,
            NAN,
            INF,
            -INF,
            None,
            1e10,
            123456.789,
            2147483648.7,
            -1e19,
            0.285,
            1.005,
            65535.0,
            2.0**63,
        ],
    ),
    "n": (
        "DECIMAL(12,2)",
        [
            D("0.00"),
            D("0.01"),
            D("-0.05"),
            D("1.25"),
            D("-2.50"),
            D("9999999999.99"),
            D("-9999999999.99"),
            None,
            D("100.00"),
            D("2.55"),
        ],
    ),
    "m": ("DECIMAL(5,4)", [D("0.0000"), D("0.0001"), D("-1.5000"), D("9.9999"), None, D("0.5000"), D("-0.0005")]),
    "k": (
        "DECIMAL(38,10)",
        [
            D("0E-10"),
            MAX38,
            MIN38,
            D("0.0000000001"),
            None,
            D("1.5000000000"),
            D("12345678901234567890.1234567890"),
            D("-3.0000000000"),
        ],
    ),
    "st": (
        "STRING",
        [
            "",
            " ",
            "a",
            "abc",
            "ABC",
            "Straße",
            "éà",
            "日本語",
            "😀x",
            "  pad  ",
            "a%b",
            "a_b",
            "a\\b",
            None,
            "İ",
            "\tt\n",
            "Ab c",
            "ab",
            "ﬁ",
            "b" * 30,
        ],
    ),
    "nst": (
        "STRING",
        [
            "12",
            " 12 ",
            "-7",
            "+5",
            "1.5",
            "1e3",
            "",
            "abc",
            None,
            "2147483648",
            "9223372036854775808",
            "NaN",
            "Infinity",
            "-inf",
            "0x1F",
            "1.",
            ".5",
        ]
        + [
            "true",
            "F",
            "yes",
            "1",
            "0",
            "12L",
            "1d",
            "9" * 38,
            "1_000",
            "7\n",
            "-",
            "1e400",
            "32768",
            "-0",
            "0.005",
            "1e-3",
            "n",
            "--1",
            "1 2",
        ],
    ),
    "dst": (
        "STRING",
        [
            "2024-02-29",
            "2023-02-29",
            "2024-1-5",
            "2024",
            "2024-07",
            "2024-02-29 12:34:56",
            "2024-02-29T23:59:59.123456Z",
            "2024-02-29 12:34:56+05:30",
            "",
        ]
        + [
            "abc",
            None,
            "1582-10-10",
            "0001-01-01",
            "9999-12-31",
            "2024-13-01",
            "epoch",
            "2024-02-29 24:00:00",
            " 2024-03-01 ",
            "2024-02-29 1:2:3",
        ]
        + [
            "2024-02-29 12:34:56.1234567",
            "2024-02-29 12:34",
            "2024-02-29 UTC",
            "2024-02-29 12:34:56 UTC",
            "2024-02-29 12:34:56 GMT+1",
            "24-01-01",
        ]
        + [
            "2024-02-29 12:34:56-18:00",
            "2024-02-29 12:34:56+18:01",
            "2024-001-01",
            "2024-01-01x",
            "2024-01-01Tx",
            "2024-02-29 ",
            "-2024-01-01",
        ],
    ),
    "ch": ("CHAR(5)", ["", "a", "ab", "abc", "abcde", "é", "日本", " a", None, "12", "1.5", "a%"]),
    "vc": ("VARCHAR(8)", ["", "a", "ab", "abc", "abcdefgh", "12  ", "a ", None, "ab   ", "日本"]),
    "bi": (
        "BINARY",
        [
            b"",
            b"a",
            b"abc",
            b"\x00",
            b"\xff\xfe",
            None,
            b"ab",
            b"12",
            "日本".encode(),
            b"\xc3",
            b"\x80a",
            b"2024-01-01",
        ],
    ),
    # bytes that are texts, so that a cast to STRING means the same here and in Spark
    "tbi": ("BINARY", [b"", b"a", b"abc", None, b"ABC", b"12", "日本".encode(), b" pad ", b"a%b", b"ab"]),
    "dt": (
        "DATE",
        [
            dt.date(1970, 1, 1),
            dt.date(2024, 2, 29),
            dt.date(2023, 2, 28),
            dt.date(2024, 12, 31),
            dt.date(2000, 1, 1),
            dt.date(1900, 2, 28),
        ]
        + [
            dt.date(1, 1, 1),
            dt.date(9999, 12, 31),
            dt.date(1582, 10, 4),
            None,
            dt.date(2024, 1, 31),
            dt.date(2021, 1, 3),
            dt.date(1969, 12, 31),
        ],
    ),
    "ts": (
        "TIMESTAMP",
        [
            _ts(1970, 1, 1),
            _ts(2024, 2, 29, 23, 59, 59, 999999),
            _ts(1969, 12, 31, 23, 59, 59, 500000),
            _ts(1, 1, 1),
            _ts(9999, 12, 31, 23, 59, 59, 999999),
        ]
        + [
            None,
            _ts(2024, 3, 31, 12),
            _ts(2000, 1, 1, 0, 0, 0, 1),
            _ts(2024, 1, 1),
            _ts(1582, 10, 10, 1, 2, 3),
            _ts(2021, 1, 3, 11, 30, 15, 250000),
        ],
    ),
    "nt": (
        "TIMESTAMP_NTZ",
        [
            dt.datetime(1970, 1, 1),
            dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
            dt.datetime(1969, 12, 31, 23, 59, 59, 500000),
            dt.datetime(1, 1, 1),
            None,
            dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
            dt.datetime(2024, 1, 1),
            dt.datetime(2024, 3, 31, 2, 30),
            dt.datetime(1582, 10, 10, 1, 2, 3),
        ],
    ),
}
_SECOND = {
    "bo2": "bo",
    "ti2": "ti",
    "bi2": "bi",
    "tbi2": "tbi",
    "nt2": "nt",
    "si2": "si",
    "i2": "i",
    "b2": "b",
    "f2": "f",
    "d2": "d",
    "n2": "n",
    "m2": "m",
    "k2": "k",
    "st2": "st",
    "dt2": "dt",
    "ts2": "ts",
}
_CHAR3 = ("CHAR(3)", ["a", "abc", "", None, "ab", " a", "é"])
ROWS = 54

COLUMNS = (
    {"id": "BIGINT NOT NULL"}
    | {c: t for c, (t, _) in TYPES.items()}
    | {c: TYPES[of][0] for c, of in _SECOND.items()}
    | {"ch2": "CHAR(3)"}
)


def _data():
    def other(values, step):
        return [values[(step * r + r // len(values) + 3) % len(values)] for r in range(ROWS)]

    data = {"id": list(range(ROWS))}
    for column, (_, values) in TYPES.items():
        data[column] = [values[r % len(values)] for r in range(ROWS)]
    for column, of in _SECOND.items():
        data[column] = other(TYPES[of][1], 5)
    data["ch2"] = other(_CHAR3[1], 3)
    (table,) = parse_statements(f"CREATE TABLE t ({', '.join(f'{c} {t}' for c, t in COLUMNS.items())})")
    return pa.table(data, pa.schema([(c.name, arrow_type(c.type)) for c in table.table.columns]))


DATA = _data()


def columns_of(expression):
    """The columns an expression reads, and ``id``."""
    code = re.sub(r"'[^']*'", "", expression)
    used = {word for word in re.findall(r"\w+", code) if word in COLUMNS}
    return {c: t for c, t in COLUMNS.items() if c == "id" or c in used}
