"""What comes in: streams of inserts, of changes, of upserts, and Debezium envelopes, each as columns that the dispatch understands."""

from everview.spark.inputs.changes import Changes
from everview.spark.inputs.debezium import Debezium, debezium
from everview.spark.inputs.declare import declare, prepare, shape_of
from everview.spark.inputs.inserts import Inserts
from everview.spark.inputs.table_input import TableInput
from everview.spark.inputs.upserts import Upserts, upserts

JOB_INPUTS: dict[str, type[TableInput]] = {i.kind: i for i in (Inserts, Changes, Upserts, Debezium)}
"""The kinds that a job file may name."""

__all__ = ["JOB_INPUTS", "TableInput", "debezium", "declare", "prepare", "shape_of", "upserts"]
