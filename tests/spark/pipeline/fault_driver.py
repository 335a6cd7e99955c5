"""A driver of its own: a view over files into a Parquet sink. Told by the test where to be cut short.

    python fault_driver.py DIRECTORY MASTER [die-after-sink BATCH]

It leaves a file ``marks/<what>-<batch>`` at the start of each batch (``begin``) and after the sink has it (``sunk``), and ``marks/done`` at the end.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from everview.spark import configure, maintain
from everview.spark.sinks import parquet_sink

SQL = "SELECT c.nation, COUNT(*) AS n, SUM(e.b) AS s FROM customer c JOIN edge e ON c.ck = e.a GROUP BY c.nation"
CUSTOMER = "ck LONG, name STRING, nation STRING, _change_type STRING"
EDGE = "a LONG, b LONG, _change_type STRING"


def session(directory, master):
    builder = SparkSession.builder.master(master).appName("faults")
    options = {
        "spark.executor.memory": "512m",
        "spark.driver.memory": "768m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.log.level": "ERROR",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.locality.wait": "0",
        "spark.network.timeout": "60s",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    return configure(builder, shards=2).getOrCreate()


def main(directory, master, *how):
    directory = Path(directory)
    marks = directory / "marks"
    marks.mkdir(exist_ok=True)
    spark = session(directory, master)
    frames = {
        name: spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory / name))
        for name, schema in (("customer", CUSTOMER), ("edge", EDGE))
    }
    changes = maintain(spark, SQL, frames, primary_keys={"customer": "ck"}, shards=2)
    sink = parquet_sink(directory / "view", key="nation", buckets=2)

    def write(frame, number):
        (marks / f"begin-{number}").touch()
        sink(frame, number)
        (marks / f"sunk-{number}").touch()
        if how == ("die-after-sink", str(number)):
            os._exit(9)  # the sink has the batch, Spark does not know it yet

    writer = changes.writeStream.trigger(availableNow=True).option("checkpointLocation", str(directory / "checkpoint"))
    query = writer.foreachBatch(write).start()
    query.awaitTermination()
    (marks / "done").touch()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
