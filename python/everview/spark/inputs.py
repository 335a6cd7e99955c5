"""What comes in: streams of inserts, of changes, of upserts, and Debezium envelopes, each as columns that the dispatch understands.

A DataFrame by itself is a stream of inserts, or of changes if it has Spark's column ``_change_type``. ``upserts`` and ``debezium`` say of a DataFrame
what else it is. ``Prepared`` has the DataFrame that workers get: the columns of the table that the view reads, then ``_multiplicity``, or
``_sequence`` and ``_live`` where rows are the newest of their key, then ``_bad``: why a row cannot be used, NULL if it can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import DateType, IntegralType, StructType, TimestampType, _parse_datatype_string

from everview.errors import PipelineError, SchemaError
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.schema.datatype import BIGINT
from everview.schema.table import Column, Table
from everview.shards.normaliser import LIVE, SEQUENCE, KeyedInput
from everview.spark.types import from_spark

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

BAD = "_bad"
UNREAD = "_unread"
"""A hash of the columns that the view does not read: rows that differ only there are different rows."""

_CONTROL = (CHANGE_TYPE, MULTIPLICITY, "_commit_version", "_commit_timestamp")
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


def upserts(frame: DataFrame, *, sequence: str | None = None, delete_when: str | None = None) -> TableInput:
    """Rows that insert or replace by primary key.

    ``sequence``: a column by which the rows of a key are ordered; rows not newer than what is held are dropped. Without it, what arrives
    later is newer. ``delete_when``: a SQL condition on the rows that delete their key instead.
    """
    return TableInput(frame, "upserts", sequence=sequence, delete_when=delete_when)


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


def declare(name: str, given: DataFrame | TableInput, key: Sequence[str] | None) -> Declared:
    """A table from its DataFrame and primary key."""
    if isinstance(given, DataFrame) or (hasattr(given, "schema") and hasattr(given, "isStreaming")):
        frame = given  # a DataFrame of Spark Connect is none of pyspark.sql.DataFrame's subclasses
        names = {c.lower() for c in frame.columns}  # type: ignore[union-attr]
        given = TableInput(frame, "changes" if {CHANGE_TYPE, MULTIPLICITY} & names else "inserts")  # type: ignore[arg-type]
    if not isinstance(given, TableInput):
        raise PipelineError(
            "INVALID_INPUT",
            f"table `{name}` is {type(given).__name__}",
            hint="pass a DataFrame, upserts(...) or debezium(...)",
        )
    schema = given.schema if given.schema is not None else given.frame.schema
    if given.kind == "debezium":
        _require_column(name, given.frame, given.column, "the envelopes")
    columns, unreadable = [], {}
    for spark_field in schema.fields:
        if spark_field.name.lower() in _CONTROL and given.kind != "debezium":
            continue
        kind = from_spark(spark_field.dataType)
        if kind is None:
            unreadable[spark_field.name] = spark_field.dataType.simpleString()
        else:
            columns.append(Column(spark_field.name, kind, nullable=True))
    known = {c.name.lower(): c.name for c in columns}
    for part in key or ():
        if part.lower() not in known:
            raise SchemaError(
                "UNKNOWN_COLUMN",
                f"table `{name}` has no column `{part}`, which its primary key names",
                hint=f"the columns are {', '.join(known.values())}",
            )
    primary = tuple(known[part.lower()] for part in key or ())
    if given.kind == "upserts" and not primary:
        raise PipelineError(
            "MISSING_KEY",
            f"table `{name}` takes upserts and has no primary key",
            hint=f'pass primary_keys={{"{name}": ["..."]}}',
        )
    if given.sequence is not None and given.kind == "upserts":
        _require_sequence(name, given.frame, given.sequence)
    # a key column may still come as NULL: the normaliser sorts such rows out
    return Declared(name, given, Table(name, tuple(columns), primary), unreadable)


def _require_column(table: str, frame: DataFrame, column: str, what: str) -> None:
    if column.lower() not in (c.lower() for c in frame.columns):
        raise PipelineError(
            "UNKNOWN_COLUMN",
            f"table `{table}` has no column `{column}` with {what}",
            hint=f"the columns are {', '.join(frame.columns)}",
        )


def _require_sequence(table: str, frame: DataFrame, sequence: str) -> None:
    _require_column(table, frame, sequence, "the sequence")
    kind = next(s.dataType for s in frame.schema.fields if s.name.lower() == sequence.lower())
    if not isinstance(kind, IntegralType | DateType | TimestampType):
        raise PipelineError(
            "INVALID_OPTION",
            f"table `{table}`: the sequence column `{sequence}` is {kind.simpleString()}",
            hint="a sequence is an integer, a date or a timestamp",
        )


def prepare(declared: Declared, read: frozenset[str], *, whole_rows: bool) -> Prepared:
    """The DataFrame for workers. ``read``: the lower-case names of the columns that the view reads; ``whole_rows``: all of them go along."""
    given, table = declared.given, declared.table
    key = {k.lower() for k in table.primary_key}
    wanted = [c for c in table.columns if whole_rows or c.name.lower() in read | key]
    if given.kind == "debezium":
        return _debezium(declared, wanted)
    frame = given.frame
    picked = [f.col(_quoted(c.name)) for c in wanted]
    unread = [name for name in frame.columns if name.lower() not in {c.name.lower() for c in wanted} | set(_CONTROL)]
    if given.kind == "upserts":
        sequence = f.lit(0).cast("long") if given.sequence is None else _as_long(frame, given.sequence)
        live = f.lit(True) if given.delete_when is None else ~f.coalesce(f.expr(given.delete_when), f.lit(False))
        selected = frame.select(*picked, sequence.alias(SEQUENCE), live.alias(LIVE))
        source = Table(table.name, tuple(wanted), table.primary_key)
        return Prepared(source, selected, KeyedInput(source, 0, latest=True, ordered=given.sequence is not None), True)
    if given.kind == "inserts":
        selected = frame.select(*picked, f.lit(1).cast("long").alias(MULTIPLICITY))
        source = Table(table.name, tuple(wanted), table.primary_key)
        return Prepared(source, selected, KeyedInput(source, 0, latest=False, ordered=False) if key else None, True)
    multiplicity, bad = _multiplicity(frame)
    hashed = [f.xxhash64(*(f.col(_quoted(name)) for name in unread)).alias(UNREAD)] if unread else []
    selected = frame.select(*picked, *hashed, multiplicity.alias(MULTIPLICITY), bad.alias(BAD))
    columns = (*wanted, *(Column(UNREAD, BIGINT, nullable=False) for _ in hashed))
    if key:
        keyed = KeyedInput(Table(table.name, columns, table.primary_key), len(hashed), latest=False, ordered=False)
        return Prepared(Table(table.name, tuple(wanted), table.primary_key), selected, keyed, True)
    return Prepared(Table(table.name, columns), selected, None, False)


def _multiplicity(frame: DataFrame) -> tuple[SparkColumn, SparkColumn]:
    """The multiplicity of a change, and what is wrong with it."""
    if CHANGE_TYPE not in frame.columns:
        column = f.col(MULTIPLICITY).cast("long")
        return column, f.when(column.isNull(), f.lit("`_multiplicity` is NULL"))
    kind = f.col(CHANGE_TYPE)
    sign = f.when(kind.isin("insert", "update_postimage"), 1).when(kind.isin("delete", "update_preimage"), -1)
    shown = f.coalesce(f.concat(f.lit("'"), kind, f.lit("'")), f.lit("NULL"))
    reason = f.concat(
        f.lit("`_change_type` is "), shown, f.lit(", not insert, delete, update_preimage or update_postimage")
    )
    return sign.cast("long"), f.when(sign.isNull(), reason)


def _as_long(frame: DataFrame, name: str) -> SparkColumn:
    kind = next(s.dataType for s in frame.schema.fields if s.name.lower() == name.lower())
    column = f.col(_quoted(name))
    if isinstance(kind, DateType):
        return f.unix_date(column).cast("long")
    return f.unix_micros(column) if isinstance(kind, TimestampType) else column.cast("long")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# ---- Debezium -----------------------------------------------------------------------------------------------------


def _debezium(declared: Declared, wanted: Sequence[Column]) -> Prepared:
    """Envelopes as upserts by key, or, without a key, as images: then updates and deletes need the row before."""
    given, table = declared.given, declared.table
    assert given.schema is not None
    types = {s.name: s.dataType for s in given.schema.fields}
    texts = ", ".join(f"{_quoted(c.name)} STRING" for c in wanted)
    body = f"before STRUCT<{_as_struct(texts)}>, after STRUCT<{_as_struct(texts)}>, op STRING, source STRING"
    raw = f.col(_quoted(given.column)).cast("string")
    if given.sequence is not None:
        order = f.get_json_object(raw, f"$.{given.sequence}")
        order = f.coalesce(order, f.get_json_object(raw, f"$.payload.{given.sequence}")).try_cast("long")
    envelope = f.from_json(raw, f"{body}, payload STRUCT<{_as_struct(body)}>", {"mode": "PERMISSIVE"})
    frame = given.frame.filter(raw.isNotNull() & (f.trim(raw) != "") & (f.trim(raw) != "null"))
    frame = frame.select(raw.alias("_raw"), envelope.alias("_e"), *([order.alias("_o")] if given.sequence else []))
    frame = frame.select(
        "_raw",
        f.coalesce("_e.payload", f.struct("_e.before", "_e.after", "_e.op", "_e.source")).alias("_e"),
        *(["_o"] if given.sequence else []),
    )
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
            *columns, sequence.alias(SEQUENCE), (~is_delete).alias(LIVE), f.coalesce(*reasons).alias(BAD)
        )
        source = Table(table.name, tuple(wanted), table.primary_key)
        return Prepared(source, selected, KeyedInput(source, 0, latest=True, ordered=True), checked=True)
    change = f.explode(
        f.when(operation == "u", f.array(_side("_e.before", -1), _side("_e.after", 1)))
        .when(operation == "d", f.array(_side("_e.before", -1)))
        .otherwise(f.array(_side("_e.after", 1)))
    )
    frame = frame.select("_raw", unknown.alias("_u"), change.alias("_c"))
    image = f.col("_c.image")
    values = [_value(image[c.name], types[c.name], given.time_unit) for c in wanted]
    no_image = f.when(
        image.isNull(),
        f.lit("the event lacks the row before it: set the replica identity to FULL, or declare the primary key"),
    )
    reasons = [f.col("_u"), no_image, *(_misread(image[c.name], v, c) for c, v in zip(wanted, values, strict=True))]
    columns = [v.alias(c.name) for c, v in zip(wanted, values, strict=True)]
    selected = frame.select(
        *columns, f.col("_c.sign").cast("long").alias(MULTIPLICITY), f.coalesce(*reasons).alias(BAD)
    )
    return Prepared(Table(table.name, tuple(wanted)), selected, None, checked=False)


def _as_struct(columns: str) -> str:
    """A list of columns as the inside of STRUCT<...>."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(columns + ","):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            name, kind = (
                columns[start:at].strip().rsplit(" ", 1)
                if "<" not in columns[start:at]
                else columns[start:at].strip().split(" ", 1)
            )
            parts.append(f"{name}: {kind}")
            start = at + 1
    return ", ".join(parts)


def _side(column: str, sign: int) -> SparkColumn:
    return f.struct(f.col(column).alias("image"), f.lit(sign).alias("sign"))


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
        micros = text.try_cast("decimal(38,0)") * {"millis": 1000, "micros": 1, "nanos": 1}[unit]
        micros = f.floor(micros / 1000) if unit == "nanos" else micros
        return f.when(whole, f.timestamp_micros(micros.try_cast("long"))).otherwise(text.try_cast(kind))
    return text.try_cast(kind)


def _misread(text: SparkColumn, value: SparkColumn, column: Column) -> SparkColumn:
    reason = f.concat(f.lit(f"column `{column.name}` is {str(column.type).upper()} and got "), text)
    return f.when(text.isNotNull() & value.isNull(), reason)
