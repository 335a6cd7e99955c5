"""A view as a PostgreSQL table, each batch one transaction.

The transaction also records the batch in ``everview_commits`` beside the table, so that a batch and its record are there both or neither. How
the rows are changed is in ``postgres_rows``. The changes of a batch go through the driver's memory and one connection.

Other writers of the same table wait on an advisory lock; a lock on the table itself would keep vacuum away from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from everview.errors import SchemaError, SinkError
from everview.spark.sinks.changes import arrow_schema, check_key, checked_key, collect_net, view_schema
from everview.spark.sinks.job_sink import JobSink, SinkFunction
from everview.spark.sinks.postgres_rows import Rows, run_sql
from everview.spark.sinks.progress import check_first_batch, is_replay, other_schema, writer_of

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Identifier
    from pyspark.sql import SparkSession

    from everview.spark.job_keys import Section

LONGEST_NAME = 63  # bytes; PostgreSQL cuts what is longer
OLDEST_SERVER = 15_00_00  # the first with NULLS NOT DISTINCT

PLAIN_TYPES: dict[type[st.DataType], str] = {
    st.BooleanType: "boolean",
    st.ByteType: "smallint",
    st.ShortType: "smallint",
    st.IntegerType: "integer",
    st.LongType: "bigint",
    st.FloatType: "real",
    st.DoubleType: "double precision",
    st.StringType: "text",
    st.BinaryType: "bytea",
    st.DateType: "date",
    st.TimestampType: "timestamp with time zone",
    st.TimestampNTZType: "timestamp without time zone",
}


def postgres_sink(
    dsn: str,
    table: str,
    *,
    key: str | Sequence[str] | None = None,
    schema: str | None = None,
    app_id: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that keeps a PostgreSQL table equal to the view; the table is created if it is not there.

    ``key`` names columns that identify a row; without it the view is a bag. ``schema`` is that of the table; without it, the first of the
    search path. ``app_id`` names the writer where several queries write to one table. A table that is there already may have further columns,
    if these have defaults.
    """
    import psycopg

    names = checked_key(key)
    for name in (table, *([] if schema is None else [schema])):
        _check_name(name)

    def write(changes: DataFrame, batch_id: int) -> None:
        view = view_schema(changes)
        check_key(names, view)
        for name in view.names:
            _check_name(name)
        writer = writer_of(changes, app_id)
        net = collect_net(changes)
        with psycopg.connect(dsn) as connection:  # commits at the end, rolls back on an error
            target = Target(connection, schema or _current_schema(connection), table, view, names)
            target.lock()
            created = target.prepare()
            last = target.last_batch(writer.app_id)
            if created and last is not None:
                message = f"{target.label} is gone, and had the batches up to {last} of {writer.app_id!r}"
                hint = f"to start anew, delete its rows from {COMMITS} and use a new checkpoint"
                raise SinkError("SINK_DAMAGED", message, hint=hint, last=last)
            if is_replay(target.label, writer, last=last, batch_id=batch_id):
                return
            if last is None:
                check_first_batch(target.label, writer, last=last, empty=target.is_empty())
            if net.num_rows:
                Rows(connection, target.name, target.label, target.types, names).apply(net)
            target.record(writer.app_id, batch_id)

    return write


def _check_name(name: str) -> None:
    if not name or "\0" in name or len(name.encode()) > LONGEST_NAME:
        message = f"{name!r} cannot be a name in PostgreSQL"
        raise SchemaError("INVALID_ARGUMENT", message, hint=f"use 1 to {LONGEST_NAME} bytes", name=name)


def _current_schema(connection: Connection[tuple[Any, ...]]) -> str:
    ((found,),) = connection.execute("SELECT current_schema()").fetchall()
    if found is None:
        raise SchemaError("INVALID_ARGUMENT", "the search path names no schema that is there", hint="pass schema=")
    return str(found)


def sql_type(spark_type: st.DataType) -> str:
    """The PostgreSQL type that holds exactly the values of a Spark type, as ``format_type`` writes it."""
    if isinstance(spark_type, st.DecimalType):
        return f"numeric({spark_type.precision},{spark_type.scale})"
    return PLAIN_TYPES[type(spark_type)]


COMMITS = "everview_commits"


@dataclass(frozen=True, slots=True)
class Target:
    """A table and its record of batches, within a transaction."""

    connection: Connection[tuple[Any, ...]]
    schema: str
    table: str
    view: st.StructType
    key: tuple[str, ...] | None

    @property
    def label(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def name(self) -> Identifier:
        return self._named(self.table)

    @property
    def types(self) -> dict[str, str]:
        """The SQL types of the view's columns."""
        return {f.name: sql_type(f.dataType) for f in self.view.fields}

    def lock(self) -> None:
        """Wait for other sinks that write to the table, until the end of the transaction."""
        digest = hashlib.sha256(f"everview {self.schema} {self.table}".encode()).digest()
        number = int.from_bytes(digest[:8], "big", signed=True)
        run_sql(self.connection, "SELECT pg_advisory_xact_lock({})", number)

    def prepare(self) -> bool:
        """Create or check the table, its key's index and the record; whether the table was created."""
        from psycopg.sql import SQL, Identifier

        if not self._is_there(self._named(COMMITS)):
            run_sql(
                self.connection,
                "CREATE TABLE IF NOT EXISTS {} (sink_table text, app_id text, batch_id bigint NOT NULL,"
                " committed_at timestamptz NOT NULL, PRIMARY KEY (sink_table, app_id))",
                self._named(COMMITS),
            )
        created = not self._is_there(self.name)
        if created:
            columns = [SQL("{} ").format(Identifier(name)) + SQL(kind) for name, kind in self.types.items()]
            run_sql(self.connection, "CREATE TABLE {} ({})", self.name, SQL(", ").join(columns))
        else:
            self._check_columns()
        if self.key is not None and not self._is_there(self._named(self._key_index)):
            if self.connection.info.server_version < OLDEST_SERVER:
                raise other_schema(self.label, "a sink with a key needs PostgreSQL 15 or newer")
            run_sql(
                self.connection,
                "CREATE UNIQUE INDEX {} ON {} ({}) NULLS NOT DISTINCT",
                Identifier(self._key_index),
                self.name,
                SQL(", ").join(map(Identifier, self.key)),
            )
        return created

    def last_batch(self, app_id: str) -> int | None:
        """The batch recorded for a writer."""
        found = run_sql(
            self.connection,
            "SELECT batch_id FROM {} WHERE sink_table = {} AND app_id = {}",
            self._named(COMMITS),
            self.table,
            app_id,
        ).fetchone()
        return None if found is None else int(found[0])

    def record(self, app_id: str, batch_id: int) -> None:
        """Record a batch as applied."""
        run_sql(
            self.connection,
            "INSERT INTO {} VALUES ({}, {}, {}, now()) ON CONFLICT (sink_table, app_id)"
            " DO UPDATE SET batch_id = excluded.batch_id, committed_at = excluded.committed_at",
            self._named(COMMITS),
            self.table,
            app_id,
            batch_id,
        )

    def is_empty(self) -> bool:
        ((found,),) = run_sql(self.connection, "SELECT EXISTS (SELECT FROM {})", self.name).fetchall()
        return not found

    def _check_columns(self) -> None:
        query = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = {}::regclass AND attnum > 0"
        there = dict(run_sql(self.connection, query, self.name.as_string(self.connection)).fetchall())
        for name, kind in self.types.items():
            if name not in there:
                raise other_schema(self.label, f"it has no column {name!r}")
            if there[name] != kind:
                raise other_schema(self.label, f"its column {name!r} is {there[name]}, and the view's is {kind}")

    @property
    def _key_index(self) -> str:
        return "everview_key_" + hashlib.sha256(repr((self.table, self.key)).encode()).hexdigest()[:20]

    def _is_there(self, name: Identifier) -> bool:
        query = "SELECT to_regclass({}) IS NOT NULL"
        ((found,),) = run_sql(self.connection, query, name.as_string(self.connection)).fetchall()
        return bool(found)

    def _named(self, name: str) -> Identifier:
        from psycopg.sql import Identifier

        return Identifier(self.schema, name)


def read_postgres(
    spark: SparkSession, dsn: str, table: str, schema: st.StructType, *, namespace: str | None = None
) -> DataFrame | None:
    """The rows of a PostgreSQL table as a view's columns; None if there is no table."""
    import psycopg
    from psycopg.sql import SQL, Identifier

    name = Identifier(table) if namespace is None else Identifier(namespace, table)
    with psycopg.connect(dsn) as connection:
        try:
            query = SQL("SELECT {} FROM {}").format(SQL(", ").join(map(Identifier, schema.names)), name)
            rows = connection.execute(query, binary=True).fetchall()  # as text, 0.1::real would read as the double 0.1
        except psycopg.errors.UndefinedTable:
            return None
    kinds = arrow_schema(schema)
    columns = [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(kinds)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=kinds), schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSink(JobSink):
    """A PostgreSQL table."""

    kind: ClassVar[str] = "postgres"
    keys: ClassVar[tuple[str, ...]] = ("table", "dsn", "schema", "key")
    dsn: str
    table: str
    schema: str | None = None

    @classmethod
    def read(cls, section: Section, key: tuple[str, ...] | None) -> Self:
        dsn = section.required_text("dsn", 'give the connection, for example "host=db dbname=sales user=everview"')
        table = section.required_text("table", "name the table")
        return cls(dsn=dsn, table=table, schema=section.text("schema"), key=key)

    @property
    def target(self) -> str:
        return f"the table {self.table}"

    @property
    def place(self) -> tuple[str | None, ...]:
        return self.dsn, self.schema, self.table

    def writer(self, view: str, on_rows: Callable[[str], None]) -> SinkFunction:
        del view, on_rows
        return postgres_sink(self.dsn, self.table, key=self.key, schema=self.schema)

    def contents(self, spark: SparkSession, schema: st.StructType, checkpoint: str) -> DataFrame | None:
        del checkpoint
        return read_postgres(spark, self.dsn, self.table, schema, namespace=self.schema)
