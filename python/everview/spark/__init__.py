"""Views kept up to date on Spark: streaming DataFrames and SQL in, a streaming DataFrame of changes out."""

from everview.spark.failure import reason
from everview.spark.inputs import TableInput, debezium, upserts
from everview.spark.maintain import explain, maintain
from everview.spark.metrics import read_metrics, read_warnings
from everview.spark.quiet import errors_into
from everview.spark.result import full_result
from everview.spark.settings import configure

__all__ = [
    "TableInput",
    "configure",
    "debezium",
    "errors_into",
    "explain",
    "full_result",
    "maintain",
    "read_metrics",
    "read_warnings",
    "reason",
    "upserts",
]
