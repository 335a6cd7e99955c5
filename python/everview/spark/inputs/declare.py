"""Tables from what users pass: checked, with the columns that views can read."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from everview.errors import PipelineError, SchemaError
from everview.interop.batch import CHANGE_TYPE, MULTIPLICITY
from everview.schema.table import Column, Table
from everview.shards.identity import TableShape
from everview.spark.inputs.changes import Changes
from everview.spark.inputs.inserts import Inserts
from everview.spark.inputs.table_input import UNREAD, Declared, Prepared, TableInput
from everview.spark.types import from_spark


def declare(name: str, given: DataFrame | TableInput, key: Sequence[str] | None) -> Declared:
    """A table from its DataFrame and primary key. A DataFrame by itself has inserts, or changes if it has a column that says so."""
    if isinstance(given, DataFrame) or (hasattr(given, "schema") and hasattr(given, "isStreaming")):
        frame: DataFrame = given  # type: ignore[assignment] # one of Spark Connect is none of pyspark.sql.DataFrame's subclasses
        names = {c.lower() for c in frame.columns}
        given = Changes(frame) if {CHANGE_TYPE, MULTIPLICITY} & names else Inserts(frame)
    if not isinstance(given, TableInput):
        raise PipelineError(
            "INVALID_INPUT",
            f"table `{name}` is {type(given).__name__}",
            hint="pass a DataFrame, upserts(...) or debezium(...)",
        )
    columns, unreadable = [], {}
    for spark_field in given.columns:
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
    given.check(name, primary)
    # a key column may still come as NULL: the normaliser sorts such rows out
    return Declared(name, given, Table(name, tuple(columns), primary), unreadable)


def prepare(declared: Declared, read: frozenset[str], *, carry: bool = False) -> Prepared:
    """The DataFrame for workers. ``read``: the lower-case names of the columns that the view reads; ``carry``: rows carry their input rows."""
    key = {k.lower() for k in declared.table.primary_key}
    wanted = [c for c in declared.table.columns if c.name.lower() in read | key]
    return declared.given.prepare(declared, wanted, carry=carry)


def shape_of(declared: Declared, prepared: Prepared) -> TableShape:
    """What a view depends on of a table, for people."""
    columns = {c.name: str(c.type) for c in prepared.table.columns if not c.name.startswith(UNREAD)}
    return TableShape(declared.given.meaning, declared.table.primary_key, columns, prepared.unread)
