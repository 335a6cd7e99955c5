"""Debezium's envelopes: JSON with the row before and after a change, as upserts by key or as images.

All values are read as texts first and then as their types (``debezium_values``), so that a value of a wrong type is a bad row and not a NULL.
A column that an event does not have is NULL, as for events from before it was added; what columns the events do have is told with the rows that
lack a value, so that one that none has can be told from one that is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as f
from pyspark.sql.types import DataType as SparkType
from pyspark.sql.types import (
    StringType,
    StructField,
    StructType,
    _parse_datatype_string,
)

from everview.errors import PipelineError
from everview.interop.batch import MULTIPLICITY
from everview.schema.table import Column, Table
from everview.shards.carried import ROW
from everview.shards.normaliser import LIVE, SEQUENCE, WITHIN, KeyedInput
from everview.spark.inputs.debezium_values import UNAVAILABLE, TimeUnit, log_position, misread, value_of
from everview.spark.inputs.table_input import (
    BAD,
    FIELDS,
    Declared,
    Prepared,
    TableInput,
    as_json,
    quoted,
    require_column,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from everview.spark.job import TableSource


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
    timestamps that come as numbers; dates as numbers are days. Decimals must come as text (``decimal.handling.mode=string``), bytes as base64
    (``binary.handling.mode=bytes``, the default).
    """
    parsed = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed, StructType):
        raise PipelineError(
            "INVALID_OPTION",
            f"the schema {schema!r} is not a list of columns",
            hint="for example 'id BIGINT, name STRING'",
        )
    return Debezium(frame, parsed, column, sequence, time_unit)


@dataclass(frozen=True)
class Debezium(TableInput):
    """Made by ``debezium``."""

    kind: ClassVar[str] = "debezium"
    job_keys: ClassVar[tuple[str, ...]] = ("sequence", "column", "row_schema", "time_unit")
    needs: ClassVar[Mapping[str, str]] = {
        "row_schema": 'give the columns of the table, for example "id BIGINT, name STRING"'
    }
    schema_key: ClassVar[str] = "row_schema"
    schema: StructType
    column: str
    sequence: str | None
    time_unit: TimeUnit

    @property
    def columns(self) -> Sequence[StructField]:
        return self.schema.fields

    def check(self, name: str, key: Sequence[str]) -> None:
        del key
        require_column(name, self.frame, self.column, "the envelopes")

    def prepare(self, declared: Declared, wanted: Sequence[Column], *, carry: bool) -> Prepared:
        """Envelopes as upserts by key, or, without a key, as images: then updates and deletes need the row before.

        With ``carry`` rows carry all columns of the image that they are taken from.
        """
        events = _Events(self, declared.table, wanted, carry=carry)
        return events.by_key() if declared.table.primary_key else events.as_images()

    @classmethod
    def of_job(cls, frame: DataFrame, source: TableSource) -> TableInput:
        assert source.row_schema is not None
        schema, unit = source.row_schema, source.time_unit
        return debezium(frame, schema, column=source.column, sequence=source.sequence, time_unit=unit)


class _Events:
    """The envelopes of a table as ``_e``: before, after, op and source, all values as texts; ``_raw`` is the event as it came."""

    def __init__(self, given: Debezium, table: Table, wanted: Sequence[Column], *, carry: bool) -> None:
        self._table, self._wanted, self._carry, self._given = table, wanted, carry, given
        self._types: dict[str, SparkType] = {s.name: s.dataType for s in given.schema.fields}
        image_type = StructType([StructField(c.name, StringType()) for c in (table.columns if carry else wanted)])
        parts = [StructField(name, image_type) for name in ("before", "after")]
        parts += [StructField(name, StringType()) for name in ("op", "source")]
        raw = f.col(quoted(given.column)).cast("string")
        envelope = f.from_json(
            raw, StructType([*parts, StructField("payload", StructType(parts))]), {"mode": "PERMISSIVE"}
        )
        frame = given.frame.filter(raw.isNotNull() & (f.trim(raw) != "") & (f.trim(raw) != "null"))
        frame = frame.select(raw.alias("_raw"), envelope.alias("_e"))
        bare = f.struct("_e.before", "_e.after", "_e.op", "_e.source")
        wrapped = f.col("_e.payload").isNotNull()
        frame = frame.select("_raw", wrapped.alias("_wrapped"), f.coalesce("_e.payload", bare).alias("_e"))
        self._frame = frame.withColumn("_e", f.col("_e").withField("after", _with_unchanged(image_type.names)))
        self._before, self._after, self._operation = f.col("_e.before"), f.col("_e.after"), f.col("_e.op")
        known = f.coalesce(self._operation.isin("c", "r", "u", "d"), f.lit(False))
        self._unknown = f.when(
            ~known, f.concat(f.lit("not a Debezium event with op c, r, u or d: "), f.substring("_raw", 1, 200))
        )

    def by_key(self) -> Prepared:
        """Rows that are the newest of their key. An update that changes the key is two: the end of the old one, and the new one."""
        keys = {k.lower() for k in self._table.primary_key}
        needed = [c for c in self._wanted if c.name.lower() in keys]
        others = [c for c in self._wanted if c not in needed]
        is_delete = self._operation == "d"
        had_row = (self._operation == "u") & self._before.isNotNull()
        image = f.when(is_delete, f.coalesce(self._before, self._after)).otherwise(self._after)
        order, numbers = self._order()
        # Values are computed once, in a projection of their own: what follows reads them twice.
        frame = self._frame.select(
            *("_raw", "_wrapped", "_e"),
            image.alias("_image"),
            *(number.alias(name) for name, number in zip(order, numbers, strict=True)),
            *(self._value(image, c).alias(f"_now{n}") for n, c in enumerate(self._wanted)),
            *(f.when(had_row, self._value(self._before, c)).alias(f"_was{n}") for n, c in enumerate(needed)),
        )
        image, now = f.col("_image"), {c.name: f.col(f"_now{n}") for n, c in enumerate(self._wanted)}
        was = {c.name: f.col(f"_was{n}") for n, c in enumerate(needed)}
        reasons = [self._unknown, f.when(image.isNull(), f.lit("the event has no image of its row"))]
        reasons += [misread(image[c.name], now[c.name], c) for c in needed]
        reasons += [f.when(~is_delete, misread(image[c.name], now[c.name], c)) for c in others]
        for c in needed:
            lacks = f"the row before the event lacks the key column `{c.name}`: set the replica identity to FULL"
            reasons.append(f.when(had_row & self._before[c.name].isNull(), f.lit(lacks)))
            reasons.append(f.when(had_row, misread(self._before[c.name], was[c.name], c)))
        unplaced = f.lit("the event does not tell its place in the log: pass sequence=")
        reasons += [f.when(f.col(name).isNull(), unplaced) for name in order]
        frame = frame.select("*", f.coalesce(*reasons).alias(BAD))
        same = reduce(and_, [was[c.name].eqNullSafe(now[c.name]) for c in needed])
        nothing = [f.lit(None).cast(self._types[c.name]) for c in others]
        ended = {c.name: was[c.name] for c in needed} | {c.name: n for c, n in zip(others, nothing, strict=True)}
        ends = self._row(ended, self._before, f.lit(False))
        comes = self._row(now, image, ~is_delete)
        moves = f.col(BAD).isNull() & had_row & ~same
        sides = f.when(moves, f.array(ends, comes)).otherwise(f.array(comes))
        frame = frame.select(*order, BAD, self._fields(~is_delete).alias(FIELDS), f.explode(sides).alias("_c"))
        row = f.col("_c")
        columns = [row[f"_{n}"].alias(c.name) for n, c in enumerate(self._wanted)]
        carried = [row[ROW].alias(ROW)] if self._carry else []
        selected = frame.select(*columns, *order, row[LIVE].alias(LIVE), BAD, FIELDS, *carried)
        source = Table(self._table.name, tuple(self._wanted), self._table.primary_key)
        return Prepared(source, selected, KeyedInput(source, latest=True, order=order), checked=True)

    def _row(self, values: Mapping[str, SparkColumn], image: SparkColumn, live: SparkColumn) -> SparkColumn:
        """A row of an event, with the image it is taken from if rows carry it."""
        columns = [values[c.name].alias(f"_{n}") for n, c in enumerate(self._wanted)]
        return f.struct(*columns, live.alias(LIVE), *self._carried(image))

    def as_images(self) -> Prepared:
        """Whole rows that come and go."""
        before, after = self._before, self._after
        removes, adds = self._operation.isin("u", "d"), self._operation.isin("c", "r", "u")
        lacks = "the event lacks the row before it: set the replica identity to FULL, or declare the primary key"
        reasons = [
            self._unknown,
            f.when(removes & before.isNull(), f.lit(lacks)),
            f.when(adds & after.isNull(), f.lit("the event has no image of its row")),
        ]
        for image, concerned in ((before, removes), (after, adds)):
            reasons += [f.when(concerned, self._misread(image, c)) for c in self._wanted]
        frame = self._frame.select("_raw", "_wrapped", "_e", f.coalesce(*reasons).alias(BAD))
        sides = (  # an event is used or set aside as a whole
            f.when(f.col(BAD).isNotNull(), f.array(_side(f.coalesce(after, before), 1)))
            .when(self._operation == "u", f.array(_side(before, -1), _side(after, 1)))
            .when(self._operation == "d", f.array(_side(before, -1)))
            .otherwise(f.array(_side(after, 1)))
        )
        frame = frame.select(BAD, self._fields(adds).alias(FIELDS), f.explode(sides).alias("_c"))
        image, sign = f.col("_c.image"), f.col("_c.kind").cast("long")
        columns = [self._value(image, c).alias(c.name) for c in self._wanted]
        selected = frame.select(*columns, sign.alias(MULTIPLICITY), BAD, FIELDS, *self._carried(image))
        return Prepared(Table(self._table.name, tuple(self._wanted)), selected, None, checked=False)

    def _order(self) -> tuple[tuple[str, ...], list[SparkColumn]]:
        """The columns by which events are ordered, and what they are."""
        path = self._given.sequence
        if path is None:
            return (SEQUENCE, WITHIN), list(log_position(f.col("_e.source")))
        raw = f.col("_raw")
        found = f.coalesce(f.get_json_object(raw, f"$.{path}"), f.get_json_object(raw, f"$.payload.{path}"))
        return (SEQUENCE,), [found.try_cast("long")]

    def _value(self, image: SparkColumn, column: Column) -> SparkColumn:
        return value_of(image[column.name], self._types[column.name], self._given.time_unit)

    def _misread(self, image: SparkColumn, column: Column) -> SparkColumn:
        return misread(image[column.name], self._value(image, column), column)

    def _fields(self, concerned: SparkColumn) -> SparkColumn:
        """The names that the row after an event has, as JSON, where some column has no value; it costs reading the event once more."""
        valueless = [self._after[c.name].isNull() for c in self._wanted]
        if not valueless:
            return f.lit(None).cast("string")
        raw = f.col("_raw")
        paths = (f.get_json_object(raw, "$.payload.after"), f.get_json_object(raw, "$.after"))
        names = f.json_object_keys(f.when(f.col("_wrapped"), paths[0]).otherwise(paths[1]))
        return f.when(f.col(BAD).isNull() & concerned & reduce(or_, valueless), f.to_json(names))

    def _carried(self, image: SparkColumn) -> list[SparkColumn]:
        """All columns of an image as JSON; as the texts that came, if one of them cannot be read."""
        if not self._carry:
            return []
        values = [self._value(image, c) for c in self._table.columns]
        unreadable = [image[c.name].isNotNull() & v.isNull() for c, v in zip(self._table.columns, values, strict=True)]
        as_it_came = f.to_json(image, {"ignoreNullFields": "false"})
        told = as_json(self._table.columns, values)
        return [f.when(image.isNotNull() & reduce(or_, unreadable), as_it_came).otherwise(told).alias(ROW)]


def _with_unchanged(names: Sequence[str]) -> SparkColumn:
    """The row after an event, with those values that it leaves out because they did not change taken from the row before, if it has them."""
    before, after = f.col("_e.before"), f.col("_e.after")
    fields = [
        f.when((after[name] == UNAVAILABLE) & before.isNotNull(), before[name]).otherwise(after[name]).alias(name)
        for name in names
    ]
    return f.when(after.isNotNull(), f.struct(*fields))


def _side(image: SparkColumn, kind: SparkColumn | bool | int) -> SparkColumn:
    """A row of an event, and what becomes of it."""
    return f.struct(image.alias("image"), (f.lit(kind) if isinstance(kind, bool | int) else kind).alias("kind"))
