"""What sinks wrote is read back as it is."""

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

SCHEMA = "i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(10,2), s STRING, b BOOLEAN, t DATE, z TIMESTAMP, y TINYINT, x BINARY, w TIMESTAMP_NTZ"
ROWS = [
    (
        1,
        2,
        0.5,
        0.1,
        Decimal("1.50"),
        "é",
        True,
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc),
        -128,
        b"\xff\x00",
        datetime(2026, 3, 29, 2, 30),
    ),
    (None,) * 12,
    (None,) * 12,
]


@pytest.mark.parametrize("kind", ["delta", "postgres"])
def test_read_back(spark, request, kind):
    from everview.spark.sinks.delta import read_delta
    from everview.spark.sinks.postgres import read_postgres

    target = request.getfixturevalue({"delta": "delta", "postgres": "table"}[kind])
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = spark.createDataFrame(ROWS, SCHEMA)

    def read():
        if kind == "delta":
            return read_delta(spark, str(target.path), frame.schema)
        return read_postgres(spark, target.dsn, target.name, frame.schema)

    assert read() is None
    target.sink()(frame.selectExpr("*", "'insert' AS _change_type"), 0)
    found = read()
    assert found.schema == frame.schema
    assert found.exceptAll(frame).count() == frame.exceptAll(found).count() == 0
    assert found.count() == 3
