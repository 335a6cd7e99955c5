"""Checks a job: every view computed anew by Spark SQL from the sources as they are now, and compared with what its sink holds.

The tables are parsed as the run parses them (``inputs.prepare``), in the columns that the view reads: others are not judged, and do not break
ties. Then they are summed up to what they hold now: inserts as they are, changes added up by row, upserts and Debezium events the newest per
key, where ties are broken as the run breaks them. The comparison is exact if nothing arrives meanwhile and the last run took in everything.

Rows that a run has set aside are left out by its dead letters where they alone tell: an expression that fails on a row fails on it always.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType
from pyspark.sql.window import Window

from everview.errors import CheckpointError, EverviewError, JobError, PipelineError
from everview.interop.batch import MULTIPLICITY
from everview.shards.normaliser import LIVE
from everview.spark.compare import Difference, compare
from everview.spark.failure import SPARK_ERRORS, spark_message
from everview.spark.inputs import JOB_INPUTS, prepare
from everview.spark.inputs.table_input import BAD, UNREAD, Declared, Prepared
from everview.spark.job import Job, View
from everview.spark.job_tables import open_declared
from everview.spark.maintain import tables_read
from everview.spark.run_job import end_session, start_session
from everview.spark.types import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SHOWN_ROWS = 10
_BY_STATE = ("ROW_NOT_FOUND", "DUPLICATE_KEY")
"""Codes of dead letters that depend on what the table held when the row came."""


@dataclass(frozen=True, slots=True)
class ViewCheck:
    """The comparison of a view. ``missing``: rows that the sink lacks; ``extra``: rows that it should not have."""

    view: str
    rows: int
    missing: Difference
    extra: Difference

    @property
    def equal(self) -> bool:
        return not self.missing.count and not self.extra.count


def check_job(job: Job, *, spark: SparkSession | None = None, log: Path | None = None) -> Iterator[ViewCheck]:
    """Compare each view of a job with recomputation. ``spark`` and ``log`` as in ``run_job``."""
    _refuse_uncheckable(job)
    session = start_session(job, log=log) if spark is None else spark
    try:
        with _settings(session):
            for view in job.views.values():
                yield _check(session, job, view)
    finally:
        if spark is None:
            end_session(session)


def _refuse_uncheckable(job: Job) -> None:
    for source in job.tables.values():
        key = f"tables.{source.name}"
        reason = None if source.changes is None else JOB_INPUTS[source.changes].why_uncheckable(source)
        if reason is not None:
            raise PipelineError("CHECK_UNSUPPORTED", f"`{key}` {reason[0]}", hint=reason[1])
        offsets = source.options.get("startingOffsets", "latest")
        if source.format == "kafka" and offsets != "earliest":
            message = f"`{key}.options.startingOffsets` is {offsets!r}: what was there before the job started is not part of the view"
            raise PipelineError("CHECK_UNSUPPORTED", message, hint='jobs that start with "earliest" can be checked')


@contextmanager
def _settings(spark: SparkSession) -> Iterator[None]:
    """ANSI mode and UTC, as views are maintained, for as long as it takes."""
    wanted = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}
    before = {name: str(spark.conf.get(name)) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _check(spark: SparkSession, job: Job, view: View) -> ViewCheck:
    tables: list[DataFrame] = []
    try:
        declared = open_declared(spark, job, view.sql, streaming=False)
        read = tables_read(view.name, view.sql, declared)
        for name, columns in read.items():
            tables.append(contents(spark, job, view, declared[name], columns))
            tables[-1].createOrReplaceTempView(declared[name].name)
        expected = spark.sql(view.sql)
        found = sink_contents(spark, job, view, expected.schema)
        return ViewCheck(view.name, *compare(expected, found, shown=SHOWN_ROWS))
    except EverviewError:
        raise
    except SPARK_ERRORS as error:
        message = f"view `{view.name}` cannot be computed by Spark SQL: {spark_message(error)}"
        hint = "correct the source or the SQL; a run would refuse the same row"
        raise JobError("CHECK_FAILED", message, hint=hint, view=view.name) from error
    finally:
        for table in tables:
            table.unpersist()
        for name in job.tables:
            spark.catalog.dropTempView(name)


# ---- what the tables hold --------------------------------------------------------------------------------------------


def contents(spark: SparkSession, job: Job, view: View, declared: Declared, read: frozenset[str]) -> DataFrame:
    """The rows that a table of a job holds now, in the columns that a view reads and those of the key."""
    prepared = prepare(declared, read)
    names = [c.name for c in prepared.table.columns if not c.name.startswith(UNREAD)]
    rows = prepared.frame
    if BAD in rows.columns:
        rows = rows.filter(f.col(BAD).isNull())
    letters = _dead_letters(spark, job, view, declared)
    if letters is not None:
        rows = _without(rows, letters, job, view, declared, names=names)
    if prepared.keyed is not None and prepared.keyed.latest:
        rows = _latest(rows, prepared)
    elif not declared.given.only_inserts:
        rows = _net(rows)
    rows = rows.select(*map(_column, names)) if names else rows.select(f.lit(True).alias("_"))  # rows that only count
    # a cache is a barrier: the optimizer would evaluate the view's filters on rows that are taken out here
    return rows if declared.given.only_inserts and letters is None else rows.persist()


def _net(changes: DataFrame) -> DataFrame:
    rows = [_column(name) for name in changes.columns if name not in (MULTIPLICITY, BAD)]
    net = changes.groupBy(*rows).agg(f.sum(MULTIPLICITY).alias(MULTIPLICITY)).filter(f.col(MULTIPLICITY) > 0)
    return net.withColumn(MULTIPLICITY, f.explode(f.sequence(f.lit(1).cast("long"), MULTIPLICITY))).drop(
        *(c for c in net.columns if c.startswith(UNREAD))
    )


def _latest(rows: DataFrame, prepared: Prepared) -> DataFrame:
    assert prepared.keyed is not None
    key = [_column(name) for name in prepared.table.primary_key]
    order = [*prepared.keyed.order, LIVE, *(c.name for c in prepared.table.columns)]  # as ``shards.order`` has it
    newest = f.row_number().over(Window.partitionBy(*key).orderBy(*(_column(name).desc() for name in order)))
    return rows.withColumn("_newest", newest).filter((f.col("_newest") == 1) & f.col(LIVE))


def _without(
    rows: DataFrame, letters: DataFrame, job: Job, view: View, declared: Declared, *, names: Sequence[str]
) -> DataFrame:
    """Rows without those that the view set aside; ``names``: the columns it reads, which alone decide."""
    by_state = letters.filter(f.col("_code").isin(*_BY_STATE))
    if not declared.given.only_inserts and not by_state.isEmpty():
        message = f"view `{view.name}`: rows of `{declared.name}` were set aside for what the table held at that moment"
        hint = f"see {job.dead_letters_of(view.name)}; views of tables without such rows can be checked"
        raise PipelineError("CHECK_UNSUPPORTED", message, hint=hint)
    always = letters.filter(~f.col("_code").isin(*_BY_STATE)).select(*map(_column, names)).distinct()
    same = [f.col(f"r.{_quoted(n)}").eqNullSafe(f.col(f"d.{_quoted(n)}")) for n in names]
    rows = rows.alias("r").join(always.alias("d"), on=same, how="left_anti")
    if declared.given.only_inserts and names:
        rows = rows.select(*map(_column, names)).exceptAll(by_state.select(*map(_column, names)))
    return rows


def _dead_letters(spark: SparkSession, job: Job, view: View, declared: Declared) -> DataFrame | None:
    """The rows of a table that a view set aside, with ``_code``; None if there are none."""
    directory = job.dead_letters_of(view.name)
    if directory is None:
        return None
    try:
        lines = spark.read.schema("table STRING, code STRING, row MAP<STRING, STRING>").json(
            f"{directory}/batch=*/*.jsonl"
        )
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    values = [f.col("row")[c.name].try_cast(to_spark(c.type)).alias(c.name) for c in declared.table.columns]
    return lines.filter(f.col("table") == declared.name).select(*values, f.col("code").alias("_code"))


# ---- what the sink holds ---------------------------------------------------------------------------------------------


def sink_contents(spark: SparkSession, job: Job, view: View, expected: StructType) -> DataFrame:
    """The rows that a view's sink holds; those of a console sink are in the checkpoint."""
    schema = StructType([StructField(c.name, c.dataType) for c in expected.fields])
    checkpoint = job.checkpoint_of(view.name)
    found = view.sink.contents(spark, schema, checkpoint)
    if found is None:
        place = checkpoint if view.sink.place is None else view.sink.target
        raise CheckpointError(
            "NO_RESULT",
            f"view `{view.name}`: there is nothing in {place} yet",
            hint=f"run the job first: everview run {job.file.name}",
        )
    return found


def _column(name: str) -> Column:
    return f.col(_quoted(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
