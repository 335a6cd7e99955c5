"""Debezium's envelopes: JSON with the row before and after a change, as upserts by key or as images.

All values are read as texts first and then as their types, so that a value of a wrong type is a bad row and not a NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import DateType, StringType, StructField, StructType, TimestampType, _parse_datatype_string

from everview.errors import PipelineError
from everview.interop.batch import MULTIPLICITY
from everview.schema.table import Column, Table
from everview.shards.carried import ROW
from everview.shards.normaliser import LIVE, SEQUENCE, KeyedInput
from everview.spark.table_input import BAD, Declared, Prepared, TableInput, TimeUnit, as_json, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium writes for a large value that PostgreSQL does not put into its log because the update left it as it was."""


def debezium(
    frame: DataFrame,
    schema: StructType | str,
    *,
    column: str = "value",
    sequence: str | None = None,
    time_unit: TimeUnit = "millis",
) -> TableInput:
    """Debezium's JSON envelopes, with or without their schema, in a text or binary column.

    ``schema``: the table's columns (a StructType or DDL text). ``sequence``: the path of a number in the envelope by which events are ordered; by
    default the position in the log of PostgreSQL (``source.lsn``) or MySQL (``source.file``, ``source.pos``, ``source.row``). ``time_unit``: of
    timestamps that come as numbers; dates as numbers are days. Decimals must come as text (``decimal.handling.mode=string``).
    """
    parsed = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed, StructType):
        raise PipelineError(
            "INVALID_OPTION",
            f"the schema {schema!r} is not a list of columns",
            hint="for example 'id BIGINT, name STRING'",
        )
    return TableInput(frame, "debezium", sequence=sequence, schema=parsed, column=column, time_unit=time_unit)


def prepare_envelopes(declared: Declared, wanted: Sequence[Column], *, carry: bool) -> Prepared:
    """Envelopes as upserts by key, or, without a key, as images: then updates and deletes need the row before.

    With ``carry`` rows carry all columns of the image that they are taken from, as far as their values can be read.
    """
    given, table = declared.given, declared.table
    assert given.schema is not None
    types = {s.name: s.dataType for s in given.schema.fields}
    image_type = StructType([StructField(c.name, StringType()) for c in (table.columns if carry else wanted)])
    parts = [StructField(name, image_type) for name in ("before", "after")]
    parts += [StructField(name, StringType()) for name in ("op", "source")]
    raw = f.col(quoted(given.column)).cast("string")
    if given.sequence is not None:
        order = f.get_json_object(raw, f"$.{given.sequence}")
        order = f.coalesce(order, f.get_json_object(raw, f"$.payload.{given.sequence}")).try_cast("long")
    envelope = f.from_json(raw, StructType([*parts, StructField("payload", StructType(parts))]), {"mode": "PERMISSIVE"})
    frame = given.frame.filter(raw.isNotNull() & (f.trim(raw) != "") & (f.trim(raw) != "null"))
    frame = frame.select(raw.alias("_raw"), envelope.alias("_e"), *([order.alias("_o")] if given.sequence else []))
    frame = frame.select(
        "_raw",
        f.coalesce("_e.payload", f.struct("_e.before", "_e.after", "_e.op", "_e.source")).alias("_e"),
        *(["_o"] if given.sequence else []),
    )
    frame = frame.withColumn("_e", f.col("_e").withField("after", _with_unchanged(image_type.names)))

    def carried(image: SparkColumn) -> list[SparkColumn]:
        if not carry:
            return []
        values = [_value(image[c.name], types[c.name], given.time_unit) for c in table.columns]
        return [as_json(table.columns, values).alias(ROW)]

    operation = f.col("_e.op")
    known = operation.isin("c", "r", "u", "d")
    unknown = f.when(
        ~f.coalesce(known, f.lit(False)),
        f.concat(f.lit("not a Debezium event with op c, r, u or d: "), f.substring("_raw", 1, 200)),
    )
    if table.primary_key:
        is_delete = operation == "d"
        image = f.when(is_delete, f.coalesce("_e.before", "_e.after")).otherwise(f.col("_e.after"))
        sequence = f.col("_o") if given.sequence else _log_position()
        values = [_value(image[c.name], types[c.name], given.time_unit) for c in wanted]
        keys = {k.lower() for k in table.primary_key}
        needed = [c for c in wanted if c.name.lower() in keys]
        reasons = [unknown, f.when(image.isNull(), f.lit("the event has no image of its row"))]
        reasons += [_misread(image[c.name], v, c) for c, v in zip(wanted, values, strict=True) if c in needed]
        reasons += [
            f.when(~is_delete, _misread(image[c.name], v, c))
            for c, v in zip(wanted, values, strict=True)
            if c not in needed
        ]
        reasons.append(f.when(sequence.isNull(), f.lit("the event does not tell its place in the log: pass sequence=")))
        columns = [v.alias(c.name) for c, v in zip(wanted, values, strict=True)]
        selected = frame.select(
            *columns,
            sequence.alias(SEQUENCE),
            (~is_delete).alias(LIVE),
            f.coalesce(*reasons).alias(BAD),
            *carried(image),
        )
        source = Table(table.name, tuple(wanted), table.primary_key)
        return Prepared(source, selected, KeyedInput(source, 0, latest=True, ordered=True), checked=True)
    before, after = f.col("_e.before"), f.col("_e.after")
    removes, adds = operation.isin("u", "d"), operation.isin("c", "r", "u")
    lacks = "the event lacks the row before it: set the replica identity to FULL, or declare the primary key"
    reasons = [
        unknown,
        f.when(removes & before.isNull(), f.lit(lacks)),
        f.when(adds & after.isNull(), f.lit("the event has no image of its row")),
    ]
    for image, concerned in ((before, removes), (after, adds)):
        for c in wanted:
            value = _value(image[c.name], types[c.name], given.time_unit)
            reasons.append(f.when(concerned, _misread(image[c.name], value, c)))
    frame = frame.select("_e", f.coalesce(*reasons).alias(BAD))
    sides = (  # an event is used or set aside as a whole
        f.when(f.col(BAD).isNotNull(), f.array(_side(f.coalesce(after, before), 1)))
        .when(operation == "u", f.array(_side(before, -1), _side(after, 1)))
        .when(operation == "d", f.array(_side(before, -1)))
        .otherwise(f.array(_side(after, 1)))
    )
    frame = frame.select(BAD, f.explode(sides).alias("_c"))
    image = f.col("_c.image")
    columns = [_value(image[c.name], types[c.name], given.time_unit).alias(c.name) for c in wanted]
    selected = frame.select(*columns, f.col("_c.sign").cast("long").alias(MULTIPLICITY), BAD, *carried(image))
    return Prepared(Table(table.name, tuple(wanted)), selected, None, checked=False)


def _with_unchanged(names: Sequence[str]) -> SparkColumn:
    """The row after an event, with those values that it leaves out because they did not change taken from the row before, if it has them."""
    before, after = f.col("_e.before"), f.col("_e.after")
    fields = [
        f.when((after[name] == UNAVAILABLE) & before.isNotNull(), before[name]).otherwise(after[name]).alias(name)
        for name in names
    ]
    return f.when(after.isNotNull(), f.struct(*fields))


def _side(image: SparkColumn, sign: int) -> SparkColumn:
    return f.struct(image.alias("image"), f.lit(sign).alias("sign"))


def _log_position() -> SparkColumn:
    """The place of an event in the log of its database: PostgreSQL's LSN, or MySQL's file, position and row."""
    source = f.col("_e.source")

    def number(path: str) -> SparkColumn:
        return f.get_json_object(source, f"$.{path}").try_cast("long")

    file = f.regexp_extract(f.get_json_object(source, "$.file"), r"(\d+)$", 1).try_cast("long")
    row = f.coalesce(number("row"), f.lit(0).cast("long"))
    return f.coalesce(number("lsn"), (file * (1 << 36) + number("pos")) * 256 + f.least(row, f.lit(255).cast("long")))


def _value(text: SparkColumn, kind: SparkType, unit: TimeUnit) -> SparkColumn:
    """A value from its JSON text, NULL if it is none of the type."""
    whole = text.rlike(r"^-?\d+$")
    if isinstance(kind, DateType):
        return f.when(whole, f.date_from_unix_date(text.try_cast("int"))).otherwise(text.try_cast(kind))
    if isinstance(kind, TimestampType):
        factor = f.lit({"millis": 1000, "micros": 1, "nanos": 1}[unit])
        micros = f.try_multiply(text.try_cast("decimal(38,0)"), factor)
        micros = f.floor(micros / 1000) if unit == "nanos" else micros
        return f.when(whole, f.timestamp_micros(micros.try_cast("long"))).otherwise(text.try_cast(kind))
    return text.try_cast(kind)


def _misread(text: SparkColumn, value: SparkColumn, column: Column) -> SparkColumn:
    reason = f.concat(f.lit(f"column `{column.name}` is {str(column.type).upper()} and got "), text)
    lacking = f.lit(
        f"the event leaves out column `{column.name}`, which did not change: set the replica identity to FULL"
    )
    return f.when(text == UNAVAILABLE, lacking).when(text.isNotNull() & value.isNull(), reason)
