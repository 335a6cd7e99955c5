"""The pipeline on Spark: rows per second against the same pipeline with an empty kernel, and against Flink SQL."""
