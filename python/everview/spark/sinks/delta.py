"""A view as a Delta table, written through the ``deltalake`` package: no Delta in the JVM.

Each batch is one Delta commit that carries the batch id as an application transaction, so that Delta itself tells a replay. With a key a
batch is a MERGE on it. A bag has nothing to merge on but the whole row, and MERGE cannot remove some of several equal rows; so rows that lose
copies are removed altogether and the copies that stay are inserted again, in the same commit.

The driver first reads the rows that the batch concerns, in the table version that the commit is based on; Delta refuses a MERGE if another
writer changed what it read. A batch costs a scan of the key columns (of all columns for a bag that loses rows), a rewrite of the files
touched, and the driver's memory for its changes. A batch that only adds rows is an append.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc

from everview.spark.sinks.changes import (
    CHANGE_TYPE,
    MULTIPLICITY,
    above_one,
    added_up,
    arrow_schema,
    check_key,
    checked_key,
    collect_net,
    counted,
    first_row,
    repeated,
    view_fields,
    view_schema,
)
from everview.spark.sinks.job_sink import DirectorySink, SinkFunction
from everview.spark.sinks.progress import (
    check_first_batch,
    is_replay,
    missing_row,
    other_schema,
    repeated_key,
    writer_of,
)

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st

    from everview.spark.job_keys import Section

PUT, DROP = "insert", "delete"  # what MERGE does with a row of the source, in a column no view has


def delta_sink(
    path: str | os.PathLike[str],
    *,
    key: str | Sequence[str] | None = None,
    app_id: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that keeps the Delta table at ``path`` equal to the view.

    ``key`` names columns that identify a row; without it the view is a bag. ``app_id`` names the writer where several queries write to one
    table. ``storage_options`` are those of ``deltalake``, for object stores.
    """
    import deltalake

    location, names = os.fspath(path), checked_key(key)
    options = dict(storage_options) if storage_options is not None else None

    def write(changes: DataFrame, batch_id: int) -> None:
        check_key(names, view_schema(changes))
        writer = writer_of(changes, app_id)
        net = collect_net(changes)
        schema = view_fields(net)
        transaction = deltalake.Transaction(writer.app_id, batch_id)
        commit = deltalake.CommitProperties(app_transactions=[transaction])
        if not deltalake.DeltaTable.is_deltatable(location, options):
            is_replay(location, writer, last=None, batch_id=batch_id)  # a first batch, or refused
            rows = repeated(_after(location, schema.empty_table(), net, names))
            deltalake.write_deltalake(location, rows, mode="error", storage_options=options, commit_properties=commit)
            return
        table = deltalake.DeltaTable(location, storage_options=options)
        _check_schema(table, location, schema)
        last = table.transaction_version(writer.app_id)
        if is_replay(location, writer, last=last, batch_id=batch_id):
            return
        if last is None:
            check_first_batch(location, writer, last=last, empty=not table.count())
        _apply(table, location, net, names, commit)

    return write


def _check_schema(table: DeltaTable, location: str, schema: pa.Schema) -> None:
    import deltalake

    there = {f.name: str(f.type) for f in table.schema().fields}
    here = {f.name: str(f.type) for f in deltalake.Schema.from_arrow(schema).fields}
    if there != here:
        raise other_schema(location, f"its columns are {there}, and {here} came")


def _apply(
    table: DeltaTable,
    location: str,
    net: pa.Table,
    key: tuple[str, ...] | None,
    commit: CommitProperties,
) -> None:
    import deltalake

    if not net.num_rows:
        table.create_write_transaction([], "append", table.schema(), commit_properties=commit)
        return
    schema = view_fields(net)
    columns = schema.names
    removed = net.filter(pc.less(net[MULTIPLICITY], 0))
    matched = list(key or columns)
    concerned = added_up([net if key is not None else removed], matched).select(matched)
    before = _matching(table, concerned, schema)
    if key is None:
        staying = _after(location, before, removed, key)  # the other copies of rows that lose some
        put = repeated(pa.concat_tables([staying, net.filter(pc.greater(net[MULTIPLICITY], 0))]))
        dropped = removed.select(columns)
    else:
        put = repeated(_after(location, before, net, key))
        dropped = _without(concerned, put.select(matched))
    if not before.num_rows:
        deltalake.write_deltalake(table, put, mode="append", commit_properties=commit)
        return
    # Of rows dropped by their key the other columns are NULL in the source.
    source = pa.concat_tables([_marked(put, PUT), _marked(dropped, DROP)], promote_options="default")
    merge = table.merge(
        source,
        predicate=_same(matched) if key is not None else f"{_same(matched)} AND s.{_quoted(CHANGE_TYPE)} = '{DROP}'",
        source_alias="s",
        target_alias="t",
        commit_properties=commit,
    )
    values = {_quoted(name): f"s.{_quoted(name)}" for name in columns}
    is_put, is_drop = (f"s.{_quoted(CHANGE_TYPE)} = '{what}'" for what in (PUT, DROP))
    if key is not None:
        merge = merge.when_matched_update(values, predicate=is_put)
    merge.when_matched_delete(is_drop).when_not_matched_insert(values, predicate=is_put).execute()


def _after(location: str, before: pa.Table, net: pa.Table, key: tuple[str, ...] | None) -> pa.Table:
    """The rows that ``before`` becomes, with their multiplicities; refuses what cannot be."""
    columns = net.column_names[:-1]
    after = added_up([net, counted(before)], columns)
    negative = after.filter(pc.less(after[MULTIPLICITY], 0))
    if negative.num_rows:
        raise missing_row(location, first_row(negative))
    after = after.filter(pc.greater(after[MULTIPLICITY], 0))
    if key is not None and (twice := above_one(after, key)).num_rows:
        raise repeated_key(location, first_row(twice))
    return after


def _matching(table: DeltaTable, concerned: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows of the table that agree with one of ``concerned`` on its columns, in the table's version at hand."""
    import deltalake

    if not concerned.num_rows:
        return schema.empty_table()
    with tempfile.TemporaryDirectory(prefix="everview-") as scratch:  # SQL joins Delta tables with Delta tables only
        deltalake.write_deltalake(scratch, concerned)
        query = deltalake.QueryBuilder().register("t", table).register("s", deltalake.DeltaTable(scratch))
        wanted = ", ".join(f"t.{_quoted(name)}" for name in schema.names)
        sql = f"SELECT {wanted} FROM t LEFT SEMI JOIN s ON {_same(concerned.column_names)}"  # noqa: S608 - names are quoted
        found = query.execute(sql)
        return pa.table(found.read_all()).cast(schema)


def _without(keys: pa.Table, others: pa.Table) -> pa.Table:
    """The keys that are not among others; both hold each key once."""
    both = added_up([counted(keys), counted(others), counted(others)], keys.column_names)
    return both.filter(pc.equal(both[MULTIPLICITY], 1)).select(keys.column_names)


def _marked(rows: pa.Table, what: str) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(what), rows.num_rows))


def _same(names: Sequence[str]) -> str:
    """The condition that rows of t and s agree on columns; in parentheses, since the parser takes AND into the right side otherwise."""
    return " AND ".join(f"(t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)})" for name in names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSink(DirectorySink):
    """A Delta table."""

    kind: ClassVar[str] = "delta"
    keys: ClassVar[tuple[str, ...]] = ("path", "key", "storage_options")
    storage_options: Mapping[str, str] | None = None

    @classmethod
    def read(cls, section: Section, key: tuple[str, ...] | None) -> Self:
        return cls(path=cls.read_path(section), key=key, storage_options=section.settings("storage_options") or None)

    def writer(self, view: str, on_rows: Callable[[str], None]) -> SinkFunction:
        del view, on_rows
        return delta_sink(self.path, key=self.key, storage_options=self.storage_options)

    def contents(self, spark: SparkSession, schema: st.StructType, checkpoint: str) -> DataFrame | None:
        del checkpoint
        return read_delta(spark, self.path, schema, storage_options=self.storage_options)
