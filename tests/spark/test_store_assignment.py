"""What INSERT stores and refuses, on Spark itself."""

import datetime as dt

import pytest
from everview.testing.store_assignment import ASSIGNED, STORED, is_code

CONDITIONS = {  # Spark's names, where they are others; those of casts it gives one name in INSERT
    "TYPE_MISMATCH": "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
    "NUMERIC_VALUE_OUT_OF_RANGE": "CAST_OVERFLOW_IN_TABLE_INSERT",
    "CAST_OVERFLOW": "CAST_OVERFLOW_IN_TABLE_INSERT",
}


@pytest.fixture(scope="module")
def table(spark):
    spark.sql("DROP TABLE IF EXISTS s")
    spark.sql(STORED + " USING parquet")
    yield "s"
    spark.sql("DROP TABLE s")


def test_values_are_stored_alike(spark, table):
    kept = [(column, expression, value) for column, expression, value in ASSIGNED if not is_code(value)]
    rounds = []
    for column, expression, value in kept:  # as few statements as columns allow
        free = next((chosen for chosen in rounds if column not in chosen), None)
        if free is None:
            rounds.append(free := {})
        free[column] = (expression, value)
    for chosen in rounds:
        spark.sql(f"TRUNCATE TABLE {table}")
        names = ", ".join(chosen)
        values = ", ".join(expression for expression, _ in chosen.values())
        spark.sql(f"INSERT INTO {table} ({names}) VALUES ({values})")
        ((row,),) = [spark.sql(f"SELECT {names} FROM {table}").collect()]
        for column, (expression, value) in chosen.items():
            found = row[column]
            if isinstance(found, dt.datetime) and value.tzinfo is not None:
                found = found.astimezone(dt.UTC)
            assert (bytes(found) if isinstance(found, bytearray) else found) == value, expression


@pytest.mark.parametrize(("column", "expression", "code"), [case for case in ASSIGNED if is_code(case[2])])
def test_values_are_refused_alike(spark, table, column, expression, code):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        spark.sql(f"INSERT INTO {table} ({column}) VALUES ({expression})")
    text = str(caught.value)
    assert f"[{CONDITIONS.get(code, code)}" in text
