"""Flink SQL on W1, in a process and an environment of its own: prints the seconds of the job without those of an empty one.

python flink_job.py EVENTS.json EMPTY.json
"""

import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment


def seconds(path: str) -> float:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = tables.get_config()
    config.set("parallelism.default", "2")
    config.set("taskmanager.memory.process.size", "8g")
    config.set("taskmanager.numberOfTaskSlots", "8")
    source = f"'connector'='filesystem','path'='file://{path}','format'='debezium-json'"
    tables.execute_sql(f"CREATE TABLE g (src BIGINT, dst BIGINT) WITH ({source})")
    tables.execute_sql("CREATE TABLE o (a BIGINT, b BIGINT, c BIGINT, d BIGINT) WITH ('connector'='blackhole')")
    started = time.perf_counter()
    tables.execute_sql(
        "INSERT INTO o SELECT g1.src, g1.dst, g2.dst, g3.dst FROM g g1 JOIN g g2 ON g1.dst = g2.src"
        " JOIN g g3 ON g2.dst = g3.src WHERE MOD(g3.dst, 10) = 0"
    ).wait()
    return time.perf_counter() - started


if __name__ == "__main__":
    start = seconds(sys.argv[2])
    print(seconds(sys.argv[1]) - start)
