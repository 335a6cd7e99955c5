"""Runs the pipeline benchmarks on Spark in local mode.

.venv/bin/python -m benchmarks.spark.run [--only w3,w1,state,flink] [--repeat 3] [--json out.json]

``flink`` runs the workloads that are named with it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.spark.empty import emptied
from benchmarks.spark.streams import Workload, paths, revenue
from everview.spark import configure, read_metrics
from everview.spark.maintain import PipelinePlan, assemble, plan_pipeline
from everview.shards.pipeline import hop_name


@dataclass
class Run:
    """One run: rows in and out after the first batch, seconds they took, and rows emitted and held by engine and batch."""

    rows_in: int
    rows_out: int
    seconds: float
    first: float
    counts: dict[tuple[str, int, int], int]
    held: dict[tuple[str, int, int], int]
    kernel: float
    rebuilt: int
    checksum: Any = None
    sample: Any = None


_SAMPLED = 10
"""The batch whose rows the empty kernel emits."""


def session(cores: int, shards: int) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{cores}]").appName("everview benchmark")
    builder = configure(builder, shards=shards)
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
        "spark.sql.files.maxPartitionBytes": str(1 << 30),
        "spark.sql.streaming.numRecentProgressUpdates": "200",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def frames(spark: SparkSession, workload: Workload) -> dict[str, Any]:
    """The tables as streams of one file per micro-batch."""
    return {
        name: spark.readStream.schema(workload.schemas[name]).option("maxFilesPerTrigger", 1).parquet(str(path))
        for name, path in workload.tables.items()
    }


def run(plan: PipelinePlan, shards: int, *, collect: bool = False) -> Run:
    """Run a pipeline over all files into a sink that reads every row and keeps none; with ``collect`` it sums the changes up and keeps those of one batch."""
    checkpoint = tempfile.mkdtemp(prefix="everview-bench-")
    changes = assemble(plan, change_types=True)
    total: dict[str, int] = {}
    sample: list[Any] = []

    def add_up(frame: Any, batch: int) -> None:
        sampled = batch == _SAMPLED
        if sampled:
            frame.persist()
        sign = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END"
        names = [c for c in frame.columns if not c.startswith("_")]
        found = frame.selectExpr(
            f"sum({sign}) n", f"sum({sign} * CAST(xxhash64({', '.join(names)}) AS DECIMAL(38,0))) h"
        ).head()
        total["rows"] = total.get("rows", 0) + int(found["n"] or 0)
        total["hash"] = total.get("hash", 0) + int(found["h"] or 0)
        if sampled:
            sample.append(frame.toArrow())
            frame.unpersist()

    writer = changes.writeStream.foreachBatch(add_up) if collect else changes.writeStream.format("noop")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    counts: dict[tuple[str, int, int], int] = {}
    held: dict[tuple[str, int, int], int] = {}
    kernel, rebuilt, rows_out = 0.0, 0, 0
    for at, p in enumerate(progress):
        for stage, values in read_metrics(p).items():
            counts |= {(stage, i, p["batchId"]): int(values[f"rows_out_{i}"]) for i in range(shards)}
            held |= {(stage, i, p["batchId"]): int(values[f"state_rows_{i}"]) for i in range(shards)}
            if at:
                kernel += values["seconds"]
                rebuilt += int(values["rebuilt"])
                rows_out += int(values["rows_out"]) if stage == hop_name(len(plan.pipeline.hops) - 1) else 0
    shutil.rmtree(checkpoint, ignore_errors=True)
    seconds = [p["batchDuration"] / 1000 for p in progress]
    rows_in = sum(p["numInputRows"] for p in progress[1:])
    return Run(rows_in, rows_out, sum(seconds[1:]), seconds[0], counts, held, kernel, rebuilt, total or None, *sample)


def recomputed(spark: SparkSession, workload: Workload) -> dict[str, int]:
    """The view over the final tables in Spark SQL: its rows and the sum of their hashes."""
    sign = "CASE WHEN _change_type = 'insert' THEN 1 ELSE -1 END"
    for name, path in workload.tables.items():
        rows = spark.read.schema(workload.schemas[name]).parquet(str(path))
        columns = [c for c in rows.columns if not c.startswith("_")]
        kept = (
            rows.selectExpr(*columns, f"{sign} AS s").groupBy(*columns).sum("s").filter("`sum(s)` > 0").drop("sum(s)")
        )
        kept.createOrReplaceTempView(name)
    result = spark.sql(workload.sql)
    names = ", ".join(result.columns)
    found = result.selectExpr("count(*) n", f"sum(CAST(xxhash64({names}) AS DECIMAL(38,0))) h").head()
    return {"rows": int(found["n"]), "hash": int(found["h"] or 0)}


def compare(spark: SparkSession, workload: Workload, shards: int, repeat: int, console: Console) -> dict[str, Any]:
    """The pipeline against itself with an empty kernel, in turns."""
    plan = plan_pipeline(workload.sql, frames(spark, workload), shards=shards)
    checked = run(plan, shards, collect=True)
    expected = recomputed(spark, workload)
    if checked.checksum != expected:
        raise SystemExit(
            f"{workload.name}: the summed deltas {checked.checksum} are not the recomputed result {expected}"
        )
    empty = replace(plan, pipeline=emptied(plan.pipeline, checked.sample, checked.counts, checked.held))
    real_runs, empty_runs = [], []
    for _ in range(repeat):
        real_runs.append(run(plan, shards))
        empty_runs.append(run(empty, shards))
    Path(empty.pipeline.piece).unlink()
    real, hollow = (statistics.median(r.rows_in / r.seconds for r in runs) for runs in (real_runs, empty_runs))
    found = {
        "workload": workload.name,
        "shards": shards,
        "rows_in": real_runs[0].rows_in,
        "rows_out": real_runs[0].rows_out,
        "rows_out_per_second": real_runs[0].rows_out / statistics.median(r.seconds for r in real_runs),
        "everview_rows_per_second": real,
        "empty_rows_per_second": hollow,
        "ratio": real / hollow,
        "seconds": statistics.median(r.seconds for r in real_runs),
        "kernel_seconds": statistics.median(r.kernel for r in real_runs),
        "rebuilt": sum(r.rebuilt for r in real_runs),
    }
    table = Table(
        title=f"{workload.name}, {shards} shard(s), {workload.batches} micro-batches, from the end of the first"
    )
    for name in found:
        table.add_column(name.replace("_", " "))
    table.add_row(
        *(
            f"{v:,.3g}" if isinstance(v, float) and v < 100 else f"{v:,.0f}" if isinstance(v, float) else str(v)
            for v in found.values()
        )
    )
    console.print(table)
    return found


def state_writes(spark: SparkSession, console: Console) -> dict[str, Any]:
    """Bytes that go into the state store in each of 50 batches of one size, while the state grows to 50 times the first."""
    workload = paths(500_000, 400_000, 1.0, batches=50, seed=5)
    plan = plan_pipeline(workload.sql, frames(spark, workload), shards=1)
    checkpoint = tempfile.mkdtemp(prefix="everview-bench-")
    query = assemble(plan, change_types=True).writeStream.format("noop").option("checkpointLocation", checkpoint)
    started = query.trigger(availableNow=True).start()
    started.awaitTermination()
    values = [read_metrics(p)["shard"] for p in started.recentProgress if p["numInputRows"]]
    shutil.rmtree(checkpoint, ignore_errors=True)
    written = [int(v["bytes_written"]) for v in values]
    usual = statistics.median(written)
    found = {
        "batches": len(written),
        "rows_per_batch": workload.rows // len(written),
        "state_rows_first": int(values[0]["state_rows"]),
        "state_rows_last": int(values[-1]["state_rows"]),
        "bytes_median": usual,
        "bytes_first_ten": statistics.mean(written[:10]),
        "bytes_last_ten": statistics.mean(written[-10:]),
        "bytes_total_over_median_times_batches": sum(written) / (usual * len(written)),
        "snapshots": sum(w > 3 * usual for w in written),
    }
    console.print(found)
    return found


def flink(spark: SparkSession, names: list[str], shards: int, console: Console) -> list[dict[str, Any]]:
    """Workloads in Flink SQL and here, from the same changes. Needs a Python with apache-flink: EVERVIEW_FLINK_PYTHON."""
    python = os.environ.get("EVERVIEW_FLINK_PYTHON")
    if python is None:
        console.print("flink: left out, EVERVIEW_FLINK_PYTHON names no Python with apache-flink")
        return []
    results = []
    for name in names:
        workload = WORKLOADS[name]()
        plan = plan_pipeline(workload.sql, frames(spark, workload), shards=shards)
        folder = Path(tempfile.mkdtemp(prefix="everview-flink-"))
        columns = ", ".join(f"{c.name} {c.type}" for c in plan.layout.columns)
        job = {"tables": debezium_files(workload, folder), "columns": columns, "sql": workload.sql}
        (folder / "job.json").write_text(json.dumps(job))
        command = [python, str(Path(__file__).with_name("flink_job.py")), str(folder / "job.json")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        shutil.rmtree(folder, ignore_errors=True)
        theirs, ours = float(done.stdout.strip().splitlines()[-1]), run(plan, shards)
        # ours counts from the end of the first of the batches: theirs is scaled to the same rows
        ratio = theirs * ours.rows_in / workload.rows / ours.seconds
        seconds = {"flink_seconds": theirs, "everview_seconds": ours.seconds}
        results.append({"workload": f"flink {workload.name}", **seconds, "rows": ours.rows_in, "ratio": ratio})
        console.print(results[-1])
    return results


def debezium_files(workload: Workload, folder: Path) -> dict[str, dict[str, str]]:
    """The change files of a workload as Debezium's JSON, one file per table."""
    (folder / "none.json").touch()
    found = {}
    for name, path in workload.tables.items():
        columns = [c.split()[0] for c in workload.schemas[name].split(", ")[:-1]]
        events = folder / f"{name}.json"
        with events.open("wb") as out:
            for file in sorted(path.glob("*.parquet")):
                rows = pq.read_table(file)
                parts = [p for c in columns for p in (f',"{c}":', rows[c].cast("string"))]
                image = pc.binary_join_element_wise("{" + parts[0][1:], *parts[1:], "}", "")
                insert = pc.equal(rows["_change_type"], "insert")
                lines = pc.if_else(
                    insert,
                    pc.binary_join_element_wise('{"before":null,"after":', image, ',"op":"c"}\n', ""),
                    pc.binary_join_element_wise('{"before":', image, ',"after":null,"op":"d"}\n', ""),
                )
                for chunk in lines.chunks:
                    out.write(b"".join(text.as_buffer() for text in chunk))
        declared = ", ".join(workload.schemas[name].split(", ")[:-1])
        found[name] = {"columns": declared, "events": str(events), "none": str(folder / "none.json")}
    return found


WORKLOADS = {  # vertices are chosen such that an event of W1 changes about as many results at every size: 15
    "w1": lambda: paths(2_000_000, 470_000, 0.2),
    "w1-large": lambda: paths(3_000_000, 800_000, 0.2),
    "w1-small": lambda: paths(100_000, 10_000, 0.2),
    "w3": lambda: revenue(1_500_000),
    "w3-small": lambda: revenue(75_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="w3,w1,state,flink")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    console = Console(width=200)
    started = time.perf_counter()
    spark = session(options.cores, options.shards)
    results = []
    for name in options.only.split(","):
        if name == "state":
            results.append(state_writes(spark, console))
        elif name == "flink":
            names = [n for n in options.only.split(",") if n in WORKLOADS]
            results += flink(spark, names, options.shards, console)
        else:
            results.append(compare(spark, WORKLOADS[name](), options.shards, options.repeat, console))
    console.print(f"{time.perf_counter() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    spark.stop()


if __name__ == "__main__":
    main()
