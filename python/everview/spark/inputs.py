"""What comes in: streams of inserts, of changes, of upserts, and Debezium envelopes, each as columns that the dispatch understands.

A DataFrame by itself is a stream of inserts, or of changes if it has Spark's column ``_change_type``. ``upserts`` and ``debezium`` say of a DataFrame
what else it is. ``Prepared`` has the DataFrame that workers get: the columns of the table that the view reads, then ``_multiplicity``, or the
columns of a sequence and ``_live`` where rows are the newest of their key, then ``_bad``: why a row cannot be used, NULL if it can. Where bad rows are
set aside, the whole input row comes last (see ``everview.shards.carried``); all else is the same with and without it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, DateType, IntegralType, TimestampNTZType, TimestampType

from everview.errors import PipelineError, SchemaError
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.schema.datatype import BIGINT
from everview.schema.table import Column, Table
from everview.shards.carried import ROW
from everview.shards.identity import TableShape
from everview.shards.normaliser import LIVE, SEQUENCE, KeyedInput
from everview.spark.debezium import prepare_envelopes
from everview.spark.failure import SPARK_ERRORS, spark_message
from everview.spark.table_input import BAD, Declared, Prepared, TableInput, as_json, quoted
from everview.spark.types import from_spark

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

UNREAD = "_unread_"
"""What the name of the column begins with that is a hash of those the view does not read: rows that differ only there are different rows. A hash
of their names and types follows: with other columns the rows held would not be found again, so they are part of what state belongs to."""

_CONTROL = (CHANGE_TYPE, MULTIPLICITY, "_commit_version", "_commit_timestamp")


def upserts(frame: DataFrame, *, sequence: str | None = None, delete_when: str | None = None) -> TableInput:
    """Rows that insert or replace by primary key.

    ``sequence``: a column by which the rows of a key are ordered; rows not newer than what is held are dropped. Without it, what arrives
    in a later micro-batch is newer. Ties are broken by content. ``delete_when``: a SQL condition on the rows that delete their key instead.
    """
    return TableInput(frame, "upserts", sequence=sequence, delete_when=delete_when)


def declare(name: str, given: DataFrame | TableInput, key: Sequence[str] | None) -> Declared:
    """A table from its DataFrame and primary key."""
    if isinstance(given, DataFrame) or (hasattr(given, "schema") and hasattr(given, "isStreaming")):
        frame = given  # a DataFrame of Spark Connect is none of pyspark.sql.DataFrame's subclasses
        names = {c.lower() for c in frame.columns}  # type: ignore[union-attr]
        if {CHANGE_TYPE, MULTIPLICITY} <= names:
            raise PipelineError(
                "AMBIGUOUS_CHANGE", f"table `{name}` has {CHANGE_TYPE} and {MULTIPLICITY}", hint="drop one of them"
            )
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
    if given.delete_when is not None:
        _require_condition(name, given.frame, given.delete_when)
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
    if not isinstance(kind, IntegralType | DateType | TimestampType | TimestampNTZType):
        raise PipelineError(
            "INVALID_OPTION",
            f"table `{table}`: the sequence column `{sequence}` is {kind.simpleString()}",
            hint="a sequence is an integer, a date or a timestamp",
            option="sequence",
            wrong=f"names `{sequence}`, which is {kind.simpleString()}",
        )


def _require_condition(table: str, frame: DataFrame, condition: str) -> None:
    wrong = None
    try:
        kind = frame.select(f.expr(condition)).schema.fields[0].dataType
        if not isinstance(kind, BooleanType):
            wrong = f"it is of type {kind.simpleString()}"
    except SPARK_ERRORS as error:
        wrong = spark_message(error)
    if wrong is not None:
        message = f"is {condition!r}, which is no condition on the table's rows: {wrong}"
        raise PipelineError(
            "INVALID_OPTION",
            f"table `{table}`: delete_when {message}",
            hint=f"write it over the columns {', '.join(frame.columns)}",
            option="delete_when",
            wrong=message,
        )


def prepare(declared: Declared, read: frozenset[str], *, carry: bool = False) -> Prepared:
    """The DataFrame for workers. ``read``: the lower-case names of the columns that the view reads; ``carry``: rows carry their input rows."""
    given, table = declared.given, declared.table
    key = {k.lower() for k in table.primary_key}
    wanted = [c for c in table.columns if c.name.lower() in read | key]
    if given.kind == "debezium":
        return prepare_envelopes(declared, wanted, carry=carry)
    frame = given.frame
    picked = [f.col(quoted(c.name)) for c in wanted]
    carried = [as_json(table.columns, [f.col(quoted(c.name)) for c in table.columns]).alias(ROW)] if carry else []
    unread = [name for name in frame.columns if name.lower() not in {c.name.lower() for c in wanted} | set(_CONTROL)]
    if given.kind == "upserts":
        order = () if given.sequence is None else (SEQUENCE,)
        sequence = [] if given.sequence is None else [_as_long(frame, given.sequence).alias(SEQUENCE)]
        live = f.lit(True) if given.delete_when is None else ~f.coalesce(f.expr(given.delete_when), f.lit(False))
        selected = frame.select(*picked, *sequence, live.alias(LIVE), *carried)
        source = Table(table.name, tuple(wanted), table.primary_key)
        return Prepared(source, selected, KeyedInput(source, latest=True, order=order), True)
    if given.kind == "inserts":
        selected = frame.select(*picked, f.lit(1).cast("long").alias(MULTIPLICITY), *carried)
        source = Table(table.name, tuple(wanted), table.primary_key)
        return Prepared(source, selected, KeyedInput(source) if key else None, True)
    multiplicity, bad = _multiplicity(frame)
    kinds = {s.name: s.dataType.simpleString() for s in frame.schema.fields}
    unread_as = f"{UNREAD}{zlib.crc32(json.dumps([[name, kinds[name]] for name in unread]).encode()):08x}"
    hashed = [f.xxhash64(*(f.col(quoted(name)) for name in unread)).alias(unread_as)] if unread else []
    selected = frame.select(*picked, *hashed, multiplicity.alias(MULTIPLICITY), bad.alias(BAD), *carried)
    columns = (*wanted, *(Column(unread_as, BIGINT, nullable=False) for _ in hashed))
    if key:
        keyed = KeyedInput(Table(table.name, columns, table.primary_key), hidden=len(hashed))
        whole = Table(table.name, tuple(wanted), table.primary_key)
        return Prepared(whole, selected, keyed, checked=True, unread={n: kinds[n] for n in unread})
    return Prepared(Table(table.name, columns), selected, None, checked=False, unread={n: kinds[n] for n in unread})


def shape_of(declared: Declared, prepared: Prepared) -> TableShape:
    """What a view depends on of a table, for people."""
    columns = {c.name: str(c.type) for c in prepared.table.columns if not c.name.startswith(UNREAD)}
    ordered = declared.given.kind == "upserts" and declared.given.sequence is not None
    kind = f"{declared.given.kind} with a sequence" if ordered else declared.given.kind
    return TableShape(kind, declared.table.primary_key, columns, prepared.unread)


def _multiplicity(frame: DataFrame) -> tuple[SparkColumn, SparkColumn]:
    """The multiplicity of a change, and what is wrong with it."""
    if CHANGE_TYPE not in (c.lower() for c in frame.columns):
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
    column = f.col(quoted(name))
    if isinstance(kind, DateType):
        return f.unix_date(column).cast("long")
    if isinstance(kind, TimestampType | TimestampNTZType):
        return f.unix_micros(column)  # a session that has timestamps is in UTC
    return column.cast("long")
