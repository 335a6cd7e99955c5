"""Spark's types as everview's, and back."""

from __future__ import annotations

from pyspark.sql import types as spark

from everview.schema import datatype as ours
from everview.schema.datatype import DataType, Kind

_TO_OURS: dict[type[spark.DataType], DataType] = {
    spark.BooleanType: ours.BOOLEAN,
    spark.ByteType: ours.TINYINT,
    spark.ShortType: ours.SMALLINT,
    spark.IntegerType: ours.INT,
    spark.LongType: ours.BIGINT,
    spark.FloatType: ours.FLOAT,
    spark.DoubleType: ours.DOUBLE,
    spark.StringType: ours.STRING,
    spark.BinaryType: ours.BINARY,
    spark.DateType: ours.DATE,
    spark.TimestampType: ours.TIMESTAMP,
    spark.TimestampNTZType: ours.TIMESTAMP_NTZ,
}
_TO_SPARK: dict[Kind, spark.DataType] = {
    Kind.BOOLEAN: spark.BooleanType(),
    Kind.TINYINT: spark.ByteType(),
    Kind.SMALLINT: spark.ShortType(),
    Kind.INT: spark.IntegerType(),
    Kind.BIGINT: spark.LongType(),
    Kind.FLOAT: spark.FloatType(),
    Kind.DOUBLE: spark.DoubleType(),
    Kind.STRING: spark.StringType(),
    Kind.CHAR: spark.StringType(),
    Kind.VARCHAR: spark.StringType(),
    Kind.BINARY: spark.BinaryType(),
    Kind.DATE: spark.DateType(),
    Kind.TIMESTAMP: spark.TimestampType(),
    Kind.TIMESTAMP_NTZ: spark.TimestampNTZType(),
    Kind.NULL: spark.NullType(),
}


def from_spark(data_type: spark.DataType) -> DataType | None:
    """The type of a column, None if everview has no such type."""
    if isinstance(data_type, spark.DecimalType):
        return ours.decimal(data_type.precision, data_type.scale)
    if isinstance(data_type, spark.StringType) and not data_type.isUTF8BinaryCollation():
        return None
    return _TO_OURS.get(type(data_type))


def to_spark(data_type: DataType) -> spark.DataType:
    """Spark's type for a column of a view."""
    if data_type.kind is Kind.DECIMAL:
        return spark.DecimalType(data_type.precision, data_type.scale)
    return _TO_SPARK[data_type.kind]
