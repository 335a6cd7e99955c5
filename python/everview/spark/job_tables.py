"""The tables of a job as inputs: read as streams to run it, as they are now to check it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.errors import JobError, PipelineError
from everview.spark.failure import SPARK_ERRORS, spark_message
from everview.spark.inputs import JOB_INPUTS, declare
from everview.spark.inputs.table_input import Declared, TableInput
from everview.spark.job_keys import job_error
from everview.sql.mentions import tables_mentioned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.spark.job import Job, TableSource


def open_declared(spark: SparkSession, job: Job, sql: str, *, streaming: bool) -> dict[str, Declared]:
    """The tables of a job that a SQL text may read, by lower-case name."""
    mentioned = tables_mentioned(sql)
    wanted = [t for t in job.tables.values() if t.name.lower() in mentioned]
    return {t.name.lower(): _declared(job, t, open_table(spark, t, streaming=streaming)) for t in wanted}


def _declared(job: Job, source: TableSource, given: DataFrame | TableInput) -> Declared:
    try:
        return declare(source.name, given, source.primary_key or None)
    except PipelineError as error:
        option = error.parameters.get("option")
        if option is None:
            raise
        key = f"tables.{source.name}.{option}"
        raise job_error("JOB_INVALID_VALUE", job.file, key, error.parameters["wrong"], error.hint or "") from error


def open_table(spark: SparkSession, source: TableSource, *, streaming: bool) -> DataFrame | TableInput:
    """A table's source, as ``maintain`` takes it."""
    try:
        reader = spark.readStream if streaming else spark.read
        reader = reader.format(source.format).options(**source.options)
        if source.schema is not None:
            reader = reader.schema(source.schema)
        frame = reader.load(source.path)
        return frame if source.changes is None else JOB_INPUTS[source.changes].of_job(frame, source)
    except SPARK_ERRORS as error:
        how = "as a stream" if streaming else "as a whole"
        message = f"`tables.{source.name}` cannot be read {how}: {spark_message(error)}"
        hint = "check `format`, `path`, `schema` and `options` of the table, and that the source's package is there"
        raise JobError("JOB_SOURCE", message, hint=hint, table=source.name) from error
