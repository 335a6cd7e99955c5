"""Sinks: functions for ``foreachBatch`` that apply the changes of a view to a table, each batch exactly once."""

from everview.spark.sinks.changes import net_changes
from everview.spark.sinks.delta import delta_sink
from everview.spark.sinks.parquet import parquet_sink
from everview.spark.sinks.postgres import postgres_sink

__all__ = ["delta_sink", "net_changes", "parquet_sink", "postgres_sink"]
