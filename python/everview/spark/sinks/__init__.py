"""Sinks: functions for ``foreachBatch`` that apply the changes of a view to a table, each batch exactly once; and their kinds in jobs."""

from everview.spark.sinks.changes import net_changes
from everview.spark.sinks.console import ConsoleSink
from everview.spark.sinks.delta import DeltaSink, delta_sink
from everview.spark.sinks.job_sink import JobSink
from everview.spark.sinks.parquet import ParquetSink, parquet_sink
from everview.spark.sinks.postgres import PostgresSink, postgres_sink

JOB_SINKS: dict[str, type[JobSink]] = {sink.kind: sink for sink in (ParquetSink, DeltaSink, PostgresSink, ConsoleSink)}
"""The kinds that a job file may name."""

__all__ = ["JOB_SINKS", "JobSink", "delta_sink", "net_changes", "parquet_sink", "postgres_sink"]
