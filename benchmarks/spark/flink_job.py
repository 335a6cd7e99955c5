"""Flink SQL on a view, in a process and an environment of its own: prints the seconds of the job without those of an empty one.

python flink_job.py JOB.json, with ``tables`` (per table its columns and the files of its events and of none), ``columns`` and ``sql`` of the view.
"""

import json
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment


def seconds(job: dict, files: str) -> float:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    config = tables.get_config()
    config.set("parallelism.default", "2")
    config.set("taskmanager.memory.process.size", "8g")
    config.set("taskmanager.numberOfTaskSlots", "8")
    for name, table in job["tables"].items():
        source = f"'connector'='filesystem','path'='file://{table[files]}','format'='debezium-json'"
        tables.execute_sql(f"CREATE TABLE {name} ({table['columns']}) WITH ({source})")
    tables.execute_sql(f"CREATE TABLE into_nothing ({job['columns']}) WITH ('connector'='blackhole')")
    started = time.perf_counter()
    tables.execute_sql(f"INSERT INTO into_nothing {job['sql']}").wait()
    return time.perf_counter() - started


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text())
    start = seconds(given, "none")
    print(seconds(given, "events") - start)
