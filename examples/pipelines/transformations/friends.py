"""A streaming table with the changes of a self-join, in a declarative pipeline.

``maintain`` looks at the schemas of its tables, which Spark does not allow inside of a pipeline's functions: it is called before.
"""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

from everview.spark import maintain

spark = SparkSession.active()
friends = (
    spark.readStream.schema("a STRING, b STRING, _change_type STRING")
    .option("maxFilesPerTrigger", 1)
    .json(spark.conf.get("everview.example.friends"))
)
changes = maintain(
    spark,
    "SELECT DISTINCT x.a, y.b FROM friends x JOIN friends y ON x.b = y.a WHERE x.a <> 'nobody'",
    {"friends": friends},
    shards=1,
)


@dp.table(comment="Who is a friend of a friend, as a stream of changes")
def friend_of_friend_changes():
    return changes
