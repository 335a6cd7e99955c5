"""The settings a Spark session needs for everview: which they are, setting them, and checking them.

The library never changes a session that it is given. ``configure`` sets everything on a builder, for those who want it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from everview.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("everview")

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_TASK_CPUS = "spark.task.cpus"
_PARTITIONS = "spark.sql.shuffle.partitions"
_TIME_ZONE = "spark.sql.session.timeZone"
_PYTHON = "spark.pyspark.python"
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_UNCHECKED = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
_LARGEST_METHOD = "spark.sql.codegen.hugeMethodLimit"
_LARGEST_COMPILED = "8000"
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def configure(
    builder: SparkSession.Builder, *, shards: int = 2, executor_cores: int | None = None
) -> SparkSession.Builder:
    """Set everything everview needs on a builder, and return it.

    ``shards``: how many state partitions stateful stages get; as many as ``maintain`` is asked for is best.
    ``executor_cores``: the cores of one executor; found from the master if that is ``local[n]`` or ``local-cluster[...]``.
    """
    options = getattr(builder, "_options", {})
    if executor_cores is None:
        executor_cores = _executor_cores(str(options.get("spark.master", "")), options.get("spark.executor.cores"))
    if executor_cores is None:
        raise PipelineError(
            "MISSING_SETTING",
            "how many cores an executor has is not known yet",
            hint="call configure() after master(), or pass executor_cores=",
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the driver asks the environment only
    for name, value in (settings(shards=shards, executor_cores=executor_cores) | _for_speed(options)).items():
        builder = builder.config(name, value)
    return builder


def settings(*, shards: int, executor_cores: int) -> dict[str, str]:
    """The settings by name."""
    return {
        _PROVIDER: _ROCKSDB,
        _CHANGELOG: "true",
        _TASK_CPUS: str(executor_cores),
        _PARTITIONS: str(shards),
        _TIME_ZONE: "UTC",
        _PYTHON: os.environ.get("PYSPARK_PYTHON", sys.executable),
    }


def _for_speed(options: Mapping[str, object]) -> dict[str, str]:
    """Settings without which everything works, but slower; what is set already stays."""
    found = {}
    for name in _JAVA_OPTIONS:  # of every value that Spark reads from Arrow, Arrow would check what Spark has checked
        given = str(options.get(name, ""))
        if "arrow.enable" not in given:
            found[name] = f"{given} {_UNCHECKED}".strip()
    if (
        _LARGEST_METHOD not in options
    ):  # the JVM does not compile longer ones, such as the parsing of events with a few columns becomes
        found[_LARGEST_METHOD] = _LARGEST_COMPILED
    if str(options.get("spark.master", "")).startswith("local") and _FILE_MANAGER not in options:
        found[_FILE_MANAGER] = _BY_FILE_SYSTEM  # the other one runs `readlink` as a process, dozens of times per batch
    return found


def check_settings(spark: SparkSession, *, shards: int, uses_timestamps: bool) -> None:
    """Refuse a session that lacks a setting, by name and with the value to use."""
    if _get(spark, _PROVIDER) != _ROCKSDB:
        raise _missing(_PROVIDER, _get(spark, _PROVIDER), _ROCKSDB, "state is kept in RocksDB")
    _check_python(spark)
    master, given = _get(spark, "spark.master") or "", _get(spark, "spark.executor.cores")
    cores = _executor_cores(master, given) or 1
    task_cpus = int(_get(spark, _TASK_CPUS) or 1)
    if cores // task_cpus > 1:
        why = (
            f"an executor has {cores} cores and would run {cores // task_cpus} tasks at once, each in a worker of its own;"
            " engines stay in a worker's memory, and only with one task at a time does a shard find its own again"
        )
        raise _missing(_TASK_CPUS, str(task_cpus), str(cores), why)
    if uses_timestamps and (_get(spark, _TIME_ZONE) or "") not in ("UTC", "Etc/UTC", "GMT", "Z", "+00:00"):
        raise _missing(_TIME_ZONE, _get(spark, _TIME_ZONE), "UTC", "views compute with timestamps in UTC")
    partitions = int(_get(spark, _PARTITIONS) or 200)
    if partitions != shards:
        logger.warning(
            "%s is %d and the view has %d shards: set it to %d, so that each has a partition and none is empty",
            _PARTITIONS,
            partitions,
            shards,
            shards,
        )


def _check_python(spark: SparkSession) -> None:
    """Refuse workers on this machine that would run a Python without everview. Those of a cluster are its administrator's matter."""
    context = getattr(spark, "_sc", None)
    if context is None or not str(context.master).startswith("local"):
        return
    python = shutil.which(context.pythonExec)
    if python is None or Path(python) == Path(sys.executable):
        return
    if subprocess.run([python, "-c", "import everview.spark"], capture_output=True, check=False).returncode:  # noqa: S603
        why = f"workers would run {python}, which has no everview"
        raise _missing("PYSPARK_PYTHON (in the environment)", context.pythonExec, sys.executable, why)


def _missing(name: str, found: str | None, wanted: str, why: str) -> PipelineError:
    return PipelineError(
        "MISSING_SETTING",
        f"the Spark setting {name} is {found or 'not set'} and must be {wanted}: {why}",
        hint=f"set {name}={wanted} when the session is built, or let everview.spark.configure(builder) do it",
        setting=name,
        value=wanted,
    )


def _get(spark: SparkSession, name: str) -> str | None:
    return spark.conf.get(name, None)


def _executor_cores(master: str, given: object) -> int | None:
    """The cores of one executor, as far as settings tell."""
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if local is not None:
        if local[1] == "*":
            return os.cpu_count() or 1
        return int(local[1] or 1)
    cluster = re.fullmatch(r"local-cluster\[\s*\d+\s*,\s*(\d+)\s*,\s*\d+\s*\]", master)
    if cluster is not None:
        return int(cluster[1])
    return int(str(given)) if given is not None else None
