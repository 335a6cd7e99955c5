"""The values of Debezium's events: each is a text first, then a value of its type, or nothing if it is none or would lose something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, DateType, DecimalType, DoubleType, FloatType, TimestampNTZType, TimestampType
from pyspark.sql.types import DataType as SparkType

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

    from everview.schema.table import Column

TimeUnit = Literal["millis", "micros", "nanos"]

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium writes for a large value that PostgreSQL does not put into its log because the update left it as it was."""

_FILES = 1 << 31
_POSITIONS = 1 << 32


def value_of(text: SparkColumn, kind: SparkType, unit: TimeUnit) -> SparkColumn:
    """A value from its JSON text; NULL if it is none of the type, or would have to be rounded or cut to be one."""
    whole = text.rlike(r"^-?\d+$")
    value = text.try_cast(kind)
    if isinstance(kind, DateType):
        by_name = f.when(text.rlike(r"^\s*[+-]?\d+-\d+-\d+\s*$"), value)
        return f.when(whole, f.date_from_unix_date(text.try_cast("int"))).otherwise(by_name)
    if isinstance(kind, BinaryType):
        is_base64 = text.rlike(r"^[A-Za-z0-9+/]*={0,2}$") & (
            f.length(text) % 4 == 0
        )  # Spark's own reader skips what is none
        return f.when(is_base64, f.unbase64(text))
    if isinstance(kind, TimestampType | TimestampNTZType):
        factor = f.lit({"millis": 1000, "micros": 1, "nanos": 1}[unit])
        micros = f.try_multiply(text.try_cast("decimal(38,0)"), factor)
        micros = f.floor(micros / 1000) if unit == "nanos" else micros
        return f.when(whole, f.timestamp_micros(micros.try_cast("long")).cast(kind)).otherwise(value)
    if isinstance(kind, DecimalType):
        return f.when(~_rounds(text, value, kind.scale), value)
    if isinstance(kind, FloatType | DoubleType):
        return f.when((f.abs(value) != f.lit(float("inf"))) | text.rlike("(?i)inf"), value)
    return value


def _rounds(text: SparkColumn, value: SparkColumn, scale: int) -> SparkColumn:
    """Whether a decimal has more digits behind its point than its type. With an exponent it comes from a double, and is compared as one.

    Few texts are longer behind their point, so that few are looked at with a regular expression.
    """
    point = f.instr(text, ".")
    longer = (point > 0) & (f.length(text) - point > scale)
    plain = longer & text.rlike(rf"^\s*[+-]?\d*\.\d{{{scale}}}\d*[1-9]")
    with_exponent = (text.contains("e") | text.contains("E")) & (value.cast("double") != text.try_cast("double"))
    return plain | f.coalesce(with_exponent, f.lit(False))


def misread(text: SparkColumn, value: SparkColumn, column: Column) -> SparkColumn:
    """Why a text is no value of its column, NULL if it is one, or is NULL."""
    reason = f.concat(f.lit(f"column `{column.name}` is {str(column.type).upper()} and got "), text)
    lacking = f.lit(
        f"the event leaves out column `{column.name}`, which did not change: set the replica identity to FULL"
    )
    return f.when(text == UNAVAILABLE, lacking).when(text.isNotNull() & value.isNull(), reason)


def log_position(source: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
    """The place of an event in the log of its database, as two numbers: PostgreSQL's LSN and nothing; or MySQL's file and position, and the row."""

    def number(path: str) -> SparkColumn:
        return f.get_json_object(source, f"$.{path}").try_cast("long")

    def below(found: SparkColumn, limit: int) -> SparkColumn:
        return f.when(found.between(0, limit - 1), found)

    file = below(f.regexp_extract(f.get_json_object(source, "$.file"), r"(\d+)$", 1).try_cast("long"), _FILES)
    place = file * f.lit(_POSITIONS) + below(number("pos"), _POSITIONS)
    lsn, none = number("lsn"), f.lit(0).cast("long")
    return f.coalesce(lsn, place), f.when(lsn.isNotNull(), none).otherwise(f.coalesce(number("row"), none))
