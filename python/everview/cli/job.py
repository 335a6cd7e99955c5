"""``everview run`` and ``everview check``: a job file on Spark.

Exit codes: 0 done, or equal; 1 a view failed while the job ran, or differs from recomputation; 2 the job was not started; 130 interrupted.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import logging
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from everview.cli.job_display import Lines, LiveTable, difference_table
from everview.errors import EverviewError, PipelineError, SchemaError, SqlParseError, UnsupportedQueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everview.spark.check_job import ViewCheck
    from everview.spark.job import Job
    from everview.spark.run_job import Progress, ViewRun

FAILED, NOT_STARTED, INTERRUPTED, TERMINATED = 1, 2, 130, 143

JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="A job file (TOML).")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, one object per line.")]
Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="Tell more, with Spark's messages; -vv for all.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(run)
    app.command()(check)


def run(file: JobFile, as_json: AsJson = False, verbose: Verbose = 0) -> None:
    """Keep the views of a job up to date on Spark."""
    console = Console(highlight=False)
    with _exit_codes(), _spark_log(verbose) as log:
        job = _load(file, verbose)
        from everview.spark.run_job import run_job

        with _failures():
            if as_json:
                started, batch = _started, _json_line("batch")
                done = run_job(job, log=log, on_start=started, on_progress=batch, on_rows=_to_stderr)
                for view in done:
                    _json_line("done")(view)
                return
            with (LiveTable if console.is_terminal else Lines)(console, job.name) as display:
                done = run_job(job, log=log, on_start=display.start, on_progress=display.show, on_rows=display.say)
            _tell(console, job, done)


def check(file: JobFile, as_json: AsJson = False, verbose: Verbose = 0) -> None:
    """Compare the views of a job with what Spark SQL computes from its sources now."""
    console = Console(highlight=False, soft_wrap=True)
    equal = True
    with _exit_codes(), _spark_log(verbose) as log:
        job = _load(file, verbose)
        from everview.spark.check_job import check_job

        for found in check_job(job, log=log):
            equal = equal and found.equal
            if as_json:
                _json_line("check")(found)
            else:
                _tell_check(console, found)
    if not equal:
        raise typer.Exit(FAILED)


def _load(file: Path, verbose: int) -> Job:
    level = logging.WARNING if not verbose else logging.INFO if verbose == 1 else logging.DEBUG
    handler = logging.StreamHandler(sys.stderr)
    if not verbose:
        handler.addFilter(_is_not_of_the_gateway)
    logging.basicConfig(format="everview: %(levelname)s %(message)s", handlers=[handler])
    logging.getLogger("everview").setLevel(level)
    if importlib.util.find_spec("pyspark") is None:
        raise PipelineError(
            "MISSING_SPARK",
            "jobs run on Spark, and the Python package pyspark is not installed",
            hint="pip install 'everview[spark]'; Spark also needs a Java 17 runtime",
        )
    from everview.spark.job import load_job

    return load_job(file)


def _is_not_of_the_gateway(record: logging.LogRecord) -> bool:
    """Whether to show a message: when Spark's process ends, Py4J logs a traceback per call, as root; SPARK_LOST says it once."""
    return Path(record.pathname).parent.name != "py4j"


# ---- endings ---------------------------------------------------------------------------------------------------------


class _FailedError(Exception):
    """A job failed after it was started."""


@contextmanager
def _failures() -> Iterator[None]:
    """Tells what went wrong in the run from what kept it from starting."""
    try:
        yield
    except (PipelineError, SchemaError, SqlParseError, UnsupportedQueryError):
        raise
    except EverviewError as error:
        raise _FailedError(str(error)) from error


@contextmanager
def _exit_codes() -> Iterator[None]:
    terminated = False

    def terminate(*_: object) -> None:
        nonlocal terminated
        terminated = True
        sys.exit(TERMINATED)  # unwinds, so that queries are stopped

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        try:
            yield
        except BaseException:
            if terminated:  # whatever happened on the way: a signal to the process group ends Spark, too
                raise typer.Exit(TERMINATED) from None
            raise
    except _FailedError as error:
        typer.echo(f"everview: {error}", err=True)
        raise typer.Exit(FAILED) from None
    except (EverviewError, OSError, UnicodeDecodeError) as error:
        typer.echo(f"everview: {error}", err=True)
        raise typer.Exit(NOT_STARTED) from None
    except KeyboardInterrupt:
        typer.echo("everview: stopped; the next run goes on from here", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _spark_log(verbose: int) -> Iterator[Path | None]:
    """Where Spark's own messages go: away, unless asked for."""
    if verbose:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="everview-") as directory:
        yield Path(directory) / "spark.log"


# ---- what is told ----------------------------------------------------------------------------------------------------


def _started(view: str) -> None:
    typer.echo(json.dumps({"event": "started", "view": view}))
    sys.stdout.flush()


def _to_stderr(line: str) -> None:
    typer.echo(line, err=True)


def _json_line(event: str) -> Callable[[Progress | ViewRun | ViewCheck], None]:
    def write(told: Progress | ViewRun | ViewCheck) -> None:
        values: dict[str, Any] = {"event": event} | dataclasses.asdict(told)
        if event == "check":
            values["equal"] = values["missing"]["count"] == values["extra"]["count"] == 0
        typer.echo(json.dumps(values, default=str))
        sys.stdout.flush()

    return write


def _tell(console: Console, job: Job, done: list[ViewRun]) -> None:
    for view in done:
        target = job.views[view.view].sink.target
        text = f"{view.view}: {view.rows_in:,} rows in {view.batches:,} batches, {view.rows_out:,} changes to {target}"
        console.print(text, markup=False, soft_wrap=True)
        if view.set_aside:
            where = job.dead_letters_of(view.view)
            console.print(f"  {view.set_aside:,} rows are set aside in {where}", markup=False, soft_wrap=True)


def _tell_check(console: Console, found: ViewCheck) -> None:
    if found.equal:
        console.print(f"{found.view}: {found.rows:,} rows, equal to recomputation", markup=False)
        return
    missing, extra = found.missing.count, found.extra.count
    console.print(f"{found.view}: {found.rows:,} rows, {missing:,} missing and {extra:,} too many", markup=False)
    console.print(difference_table(found))
