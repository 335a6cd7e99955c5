"""Revenue per country from the change events that Debezium writes for two PostgreSQL tables.

Run ``python revenue.py``: the events are in ``events/``, the table is written to ``out/revenue``. On Kafka, only ``read`` differs (see README.md).
"""

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from everview.spark import configure, debezium, maintain
from everview.spark.sinks import parquet_sink

HERE = Path(__file__).resolve().parent
CUSTOMERS = "id BIGINT, name STRING, country STRING"
ORDERS = "id BIGINT, customer BIGINT, total DECIMAL(10, 2), placed_at TIMESTAMP"
REVENUE = """
SELECT c.country, COUNT(*) AS orders, SUM(o.total) AS total
FROM customers c JOIN orders o ON c.id = o.customer
WHERE o.placed_at >= TIMESTAMP '2026-01-01 00:00:00'
GROUP BY c.country
"""


def read(spark: SparkSession, table: str) -> DataFrame:
    """The events of a table: a streaming DataFrame with a column ``value``, one JSON text per row."""
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(HERE / "events" / table))


def main(spark: SparkSession, out: Path) -> list[Row]:
    """Take in all events there are, and return the view's rows."""
    tables = {
        "customers": debezium(read(spark, "customers"), CUSTOMERS),
        "orders": debezium(read(spark, "orders"), ORDERS, time_unit="micros"),
    }
    changes = maintain(spark, REVENUE, tables, primary_keys={"customers": "id", "orders": "id"})
    writer = changes.writeStream.foreachBatch(parquet_sink(out / "revenue", key="country"))
    writer = writer.option("checkpointLocation", str(out / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    return spark.read.parquet(str(out / "revenue")).orderBy("country").collect()


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[1]").appName("revenue")
    with configure(builder, shards=2).getOrCreate() as session:
        for row in main(session, HERE / "out"):
            print(row.country, row.orders, row.total)
