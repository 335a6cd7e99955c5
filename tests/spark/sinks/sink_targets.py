"""What the tests see of a target: its sink, and its content as a Counter of rows."""

import math
import shutil
from collections import Counter
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.dataset as ds


def canonical(value):
    """A value that compares as SQL does, NULL and NaN being equal to themselves."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc)
    return value


def counted(rows):
    return Counter(tuple(map(canonical, row)) for row in rows)


def rows_of(table):
    return counted(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Directory:
    def __init__(self, path):
        self.path = path

    def exists(self):
        return self.path.exists()

    def remove(self):
        shutil.rmtree(self.path)


class ParquetTarget(Directory):
    def sink(self, **options):
        from everview.spark.sinks import parquet_sink

        return parquet_sink(self.path, **{"buckets": 3} | options)

    def content(self):
        return rows_of(ds.dataset(self.path).to_table())


class DeltaTarget(Directory):
    def sink(self, **options):
        from everview.spark.sinks import delta_sink

        return delta_sink(self.path, **options)

    def table(self):
        from deltalake import DeltaTable

        return DeltaTable(self.path)

    def content(self):
        return rows_of(pa.table(self.table().to_pyarrow_table()))


class PostgresTarget:
    def __init__(self, dsn, name):
        self.dsn, self.name = dsn, name

    def sink(self, **options):
        from everview.spark.sinks import postgres_sink

        return postgres_sink(self.dsn, self.name, **options)

    def run(self, query, *names):
        import psycopg
        from psycopg.sql import SQL, Identifier

        with psycopg.connect(self.dsn) as connection:
            composed = SQL(query).format(*map(Identifier, names or (self.name,)))
            cursor = connection.execute(composed, binary=True)  # as text, 0.1::real would read as the double 0.1
            return cursor.fetchall() if cursor.description else []

    def exists(self):
        return bool(self.run("SELECT 1 FROM pg_tables WHERE tablename = '" + self.name + "'"))

    def remove(self):
        self.run("DROP TABLE {}")

    def content(self):
        return counted(self.run("SELECT * FROM {}"))
