"""Runs a job: a session, a streaming query per view, and what they tell while they run.

All queries stop together: when one fails, when Spark is gone, when the caller is interrupted, and, with an available-now trigger, when all have taken in what there
was. A query stops between or within batches; a batch cut off is done again at the next run, and sinks apply each batch once.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession

from everview.errors import EverviewError, JobError, PipelineError
from everview.spark.failure import SPARK_ERRORS, spark_message, why
from everview.spark.job import AVAILABLE_NOW, Job, View
from everview.spark.job_record import check_record
from everview.spark.job_schema import check_sink_key, sql_errors
from everview.spark.job_tables import open_declared
from everview.spark.maintain import PlanOptions, maintain, plan_pipeline, tables_read
from everview.spark.metrics import read_metrics, read_warnings
from everview.spark.quiet import errors_into, without_traces
from everview.spark.settings import configure
from everview.spark.sinks import JobSink
from everview.spark.sinks.job_sink import SinkFunction

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger("everview")

_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Progress:
    """One batch of a view. State and engines are summed over all stages; ``skew`` is that of the shards."""

    view: str
    batch: int
    rows_in: int
    rows_per_second: float
    seconds: float
    rows_out: int
    state_rows: int
    state_bytes: int
    held: int
    rebuilt: int
    stale_rows: int
    skew: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewRun:
    """What a run did for a view. ``set_aside``: rows in its dead letters, of this and earlier runs, where these are files at hand."""

    view: str
    batches: int
    rows_in: int
    rows_out: int
    set_aside: int


# ---- the session -----------------------------------------------------------------------------------------------------


def start_session(job: Job, *, log: Path | None = None) -> SparkSession:
    """A session with everything everview needs; what the job says comes last and so has the last word.

    ``log``: a file for what the JVM and the Python workers write; without it they write where this process does.
    """
    _require_java()
    try:
        if log is None:
            return _build(job)
        with errors_into(log):
            return without_traces(_build(job))
    except (*SPARK_ERRORS, OSError) as error:
        told = "" if log is None else _last_lines(log)
        message = f"Spark does not start: {spark_message(error)}{told}"
        raise PipelineError(
            "SPARK_START", message, hint="check `master` and [spark] of the job, and JAVA_HOME"
        ) from error


def _last_lines(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return "".join(f"\n  {line[:200]}" for line in lines[-5:])


def _build(job: Job) -> SparkSession:
    builder = SparkSession.builder.appName(f"everview {job.name}")
    given = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    given |= {"spark.master": job.master} if job.master is not None else _submitted(job)
    given |= job.spark
    for name, value in given.items():
        builder = builder.config(name, value)
    if not given["spark.master"].startswith("local") and "spark.executor.cores" not in given:
        raise PipelineError(
            "MISSING_SETTING",
            f"how many cores an executor of {given['spark.master']} has is not known",
            hint='say so in the job: [spark] "spark.executor.cores" = "4"',
        )
    builder = configure(builder, shards=job.shards)
    for name, value in job.spark.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise PipelineError(
            "MISSING_SPARK",
            "Spark needs Java, and there is neither `java` on the PATH nor JAVA_HOME",
            hint="install a Java 17 runtime, for example with: apt-get install openjdk-17-jre-headless",
        )


def _submitted(job: Job) -> dict[str, str]:
    """The master and the executors' cores that spark-submit or spark-defaults.conf say; known once the JVM runs."""
    settings = SparkConf(loadDefaults=False).setAll(
        list(job.spark.items())
    )  # the driver's memory must be known by then
    SparkContext._ensure_initialized(conf=settings)  # noqa: SLF001 there is no public way to read the defaults before a session
    defaults = SparkConf()
    names = ("spark.master", "spark.executor.cores")
    return {"spark.master": "local[*]"} | {n: v for n in names if (v := defaults.get(n)) is not None}


# ---- the run ---------------------------------------------------------------------------------------------------------


def run_job(
    job: Job,
    *,
    spark: SparkSession | None = None,
    log: Path | None = None,
    on_start: Callable[[str], None] = lambda _: None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_rows: Callable[[str], None] = print,
) -> list[ViewRun]:
    """Run a job until all that was available is taken in, or for ever if its trigger is an interval.

    ``spark``: a session to use as it is, with none of the job's settings; otherwise one is started, writing to ``log``, and stopped. ``on_start`` is called
    with the name of a view when its query has been started, ``on_progress`` for every batch of every view, ``on_rows`` for every line that a console sink prints (from another thread).
    """
    session = start_session(job, log=log) if spark is None else spark
    try:
        running: list[_Running] = []
        try:
            for view in job.views.values():
                running.append(_start(session, job, view, on_rows))
                on_start(view.name)
            _watch(job, running, on_progress)
        finally:
            _stop(running)
        return [r.summary(job) for r in running]
    finally:
        if spark is None:
            end_session(session)


@dataclass(slots=True)
class _Running:
    view: View
    query: StreamingQuery
    sink: _Sink
    last: int = -1
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0

    def state(self) -> tuple[bool, list[Progress], BaseException | None]:
        """Whether the query runs, the batches finished since the last call, and why it failed."""
        try:
            active = self.query.isActive  # before the news: none comes after the end
            return active, self._news(), self.query.exception()
        except (Py4JError, OSError) as error:
            hint = "run the job again: its views go on where they stopped; with -v Spark's own messages say why"
            raise JobError(
                "SPARK_LOST", f"Spark has ended while the job ran: {spark_message(error)}", hint=hint
            ) from error

    def _news(self) -> list[Progress]:
        """The batches finished since the last call."""
        latest = self.query.lastProgress
        if latest is None or latest["batchId"] <= self.last:
            return []
        found = {p["batchId"]: p for p in self.query.recentProgress if p["batchId"] > self.last}
        news = [_progress(self.view.name, p) for _, p in sorted(found.items()) if _did_something(p)]
        self.last = max(found, default=self.last)
        self.batches += len(news)
        self.rows_in += sum(p.rows_in for p in news)
        self.rows_out += sum(p.rows_out for p in news)
        return news

    def summary(self, job: Job) -> ViewRun:
        return ViewRun(self.view.name, self.batches, self.rows_in, self.rows_out, _set_aside(job, self.view.name))


def _start(spark: SparkSession, job: Job, view: View, on_rows: Callable[[str], None]) -> _Running:
    declared = open_declared(spark, job, view.sql, streaming=True)
    try:
        with sql_errors(job.file, view.name):
            used = [declared[name] for name in tables_read(view.name, view.sql, declared)]
        tables = {d.name: d.given for d in used}
        options: PlanOptions = {
            "primary_keys": {d.name: d.table.primary_key for d in used if d.table.primary_key},
            "shards": job.shards,
            "name": view.name,
            "on_bad_rows": job.on_bad_rows,
            "dead_letters": job.dead_letters_of(view.name),
        }
        with sql_errors(job.file, view.name):
            plan = plan_pipeline(view.sql, tables, **options)
        check_sink_key(job.file, view.name, view.sink.key, plan.layout.view)
        check_record(job.checkpoint_of(view.name), plan.pipeline.identity)
        changes = maintain(spark, view.sql, tables, **options)
        sink = _Sink(sink_function(view.name, view.sink, on_rows))
        writer = changes.writeStream.queryName(f"{job.name}.{view.name}").foreachBatch(sink)
        writer = writer.option("checkpointLocation", job.checkpoint_of(view.name))
        if job.trigger == AVAILABLE_NOW:
            query = writer.trigger(availableNow=True).start()
        else:
            query = writer.trigger(processingTime=job.trigger).start()
    except PipelineError:
        raise  # it names file and key, or what Spark lacks
    except (*SPARK_ERRORS, EverviewError) as error:
        raise why(job, view, error) from error
    logger.info("view %s: query %s started, checkpoint %s", view.name, query.id, job.checkpoint_of(view.name))
    return _Running(view, query, sink)


def _watch(job: Job, running: list[_Running], on_progress: Callable[[Progress], None]) -> None:
    """Report until all queries have ended; the first failure ends the watch."""
    while True:
        some_active = False
        for each in running:
            active, news, error = each.state()
            some_active |= active
            for progress in news:
                logger.debug("%s", progress)
                on_progress(progress)
            if error is not None:
                raise why(job, each.view, error, each.sink.raised) from error
        if not some_active:
            return
        time.sleep(_POLL_SECONDS)


def _stop(running: list[_Running]) -> None:
    for each in running:
        try:
            if each.query.isActive:
                logger.info("view %s: stopping", each.view.name)
                each.query.stop()
        except (*SPARK_ERRORS, OSError) as error:  # the others are to be stopped whatever happens to one
            logger.info("view %s did not stop well: %s", each.view.name, spark_message(error))


def end_session(session: SparkSession) -> None:
    """Stop a session, if Spark is still there: a signal to a process group ends it, too."""
    try:
        session.stop()
    except (*SPARK_ERRORS, OSError) as error:
        logger.info("Spark did not stop well: %s", spark_message(error))


def _did_something(progress: Mapping[str, Any]) -> bool:
    """Whether a batch ran: without new rows Spark reports the number of the batch that would be next."""
    return "addBatch" in progress["durationMs"]


def _progress(view: str, progress: Mapping[str, Any]) -> Progress:
    stages = read_metrics(progress)
    last = list(stages.values())[-1] if stages else {}

    def total(name: str) -> int:
        return int(sum(stage.get(name, 0) for stage in stages.values()))

    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    rows = int(progress["numInputRows"])
    return Progress(
        view=view,
        batch=int(progress["batchId"]),
        rows_in=rows,
        rows_per_second=rows / seconds if seconds else 0.0,
        seconds=seconds,
        rows_out=int(last.get("rows_out", 0)),
        state_rows=total("state_rows"),
        state_bytes=total("state_bytes"),
        held=total("held"),
        rebuilt=total("rebuilt"),
        stale_rows=total("stale_rows"),
        skew=float(stages.get("shard", {}).get("skew", 1.0)),
        warnings=tuple(read_warnings(progress)),
    )


def _set_aside(job: Job, view: str) -> int:
    directory = job.dead_letters_of(view)
    if directory is None or "://" in directory:
        return 0
    files = Path(re.sub("^file:", "", directory)).glob("batch=*/*.jsonl")
    return sum(file.read_bytes().count(b"\n") for file in files)


# ---- sinks -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Sink:
    """A sink that remembers what it raised: Spark passes on the text only."""

    write: SinkFunction
    raised: BaseException | None = field(default=None)

    def __call__(self, changes: DataFrame, batch_id: int) -> None:
        try:
            self.write(changes, batch_id)
        except BaseException as error:
            self.raised = error
            raise


def sink_function(view: str, sink: JobSink, on_rows: Callable[[str], None]) -> SinkFunction:
    """The function for ``foreachBatch`` of a view's sink."""
    try:
        return sink.writer(view, on_rows)
    except ImportError as error:
        raise PipelineError(
            "MISSING_PACKAGE",
            f"`views.{view}.sink.kind` is {sink.kind!r}, and the Python package {error.name} is not installed",
            hint=f"pip install 'everview[{sink.kind}]'",
        ) from error
