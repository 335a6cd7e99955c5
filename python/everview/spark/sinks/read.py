"""Reading the targets of sinks back, as DataFrames. Delta and PostgreSQL go through the driver's memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.spark.sinks.changes import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st


def read_delta(
    spark: SparkSession, path: str, schema: st.StructType, *, storage_options: Mapping[str, str] | None = None
) -> DataFrame | None:
    """The rows of a Delta table as a view's columns; None if there is no table."""
    import deltalake

    options = dict(storage_options) if storage_options is not None else None
    if not deltalake.DeltaTable.is_deltatable(path, options):
        return None
    found = pa.table(deltalake.DeltaTable(path, storage_options=options).to_pyarrow_table(columns=schema.names))
    return spark.createDataFrame(found.cast(arrow_schema(schema)), schema)


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
