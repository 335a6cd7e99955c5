"""A streaming table with the changes of a self-join, in a declarative pipeline.

``maintain`` looks at the schemas of its tables, which Spark does not allow inside of a pipeline's functions: it is called before.
"""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from everview.spark import maintain

DATA = Path(__file__).resolve().parents[1] / "data" / "friends"

spark = SparkSession.active()
friends = (
    spark.readStream.schema("a STRING, b STRING, _change_type STRING").option("maxFilesPerTrigger", 1).json(str(DATA))
)
changes = maintain(
    spark,
    "SELECT DISTINCT x.a, y.b FROM friends x JOIN friends y ON x.b = y.a",
    {"friends": friends},
    shards=1,
)


@dp.table(comment="Who is a friend of a friend, as a stream of changes")
def friend_of_friend_changes() -> DataFrame:
    """What the table is filled with."""
    return changes
