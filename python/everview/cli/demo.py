"""``everview demo``: on Spark in local mode, a join on which Spark's own state explodes, and a live revenue view proved against recomputation."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from everview.errors import InternalError, PipelineError

if TYPE_CHECKING:
    from everview.spark.demo import HotKey, Revenue


def run() -> None:
    """Run the demo on standard output."""
    console = Console(highlight=False)
    try:
        from everview.spark import demo
    except ImportError as error:
        raise PipelineError(
            "MISSING_SPARK",
            f"the demo runs on Spark, and {error.name} is not installed",
            hint="pip install 'everview[spark]'",
        ) from None
    if shutil.which("java") is None:
        raise PipelineError(
            "MISSING_SPARK", "Spark needs Java, and there is no `java` on the PATH", hint="install a Java 17 runtime"
        )
    folder = Path(tempfile.mkdtemp(prefix="everview-demo-"))
    with _Steps(console) as steps:
        steps.say("Spark starts in local mode")
        spark = demo.start(folder)
        try:
            console.print("\n1. A three-way join with one hot key", style="bold")
            console.print(f"   {demo.HOT_SQL}", markup=False, soft_wrap=True)
            _show_hot_key(console, demo.hot_key(spark, folder, steps.say))
            console.print("\n2. A revenue view over a stream of inserts, updates and deletes", style="bold")
            console.print(demo.REVENUE_SQL.strip(), markup=False, soft_wrap=True)
            live = demo.revenue(spark, folder, lambda seen: steps.count(seen, demo.REVENUE_BATCHES))
            steps.stop()
            _show_revenue(console, live)
        finally:
            steps.stop()
            spark.stop()
    shutil.rmtree(folder, ignore_errors=True)


def _show_hot_key(console: Console, found: HotKey) -> None:
    table = Table("", "everview", "Spark's own join")
    table.add_row(
        f"state after {found.rows:,} inserted rows", f"{found.everview_state:,} rows", f"{found.spark_state:,} rows"
    )
    table.add_row("seconds", f"{found.everview_seconds:.1f}", f"{found.spark_seconds:.1f}")
    after = f"{found.spark_state_after:,} rows: it cannot take a row back"
    table.add_row("state after all are deleted", f"{found.everview_state_after:,} rows", after)
    table.add_row("result then", f"{found.everview_result_after:,} rows", "")
    console.print(table)
    _check(
        found.everview_state_after == 0 and found.everview_result_after == 0, "an empty state after deleting everything"
    )


def _show_revenue(console: Console, live: Revenue) -> None:
    console.print(
        f"{live.rows_in:,} changes in {live.batches} micro-batches ({live.seconds:.1f} s), {live.rows_out:,} changes out,"
        f" {live.state_rows:,} rows of state"
    )
    table = Table("order", "date", "revenue", "items", title=f"the 10 largest of {live.result_rows:,} orders")
    for order, date, amount, items in live.largest:
        table.add_row(str(order), str(date), f"{amount:,.2f}", str(items))
    console.print(table)
    _check(live.summed_equal, "the sum of all changes")
    console.print(f"the sum of all changes equals the maintained table: {live.result_rows:,} rows")
    _check(live.only_maintained == live.only_recomputed == 0, "recomputation with Spark SQL")
    console.print(
        f"recomputation with Spark SQL equals the maintained table: {live.only_maintained} rows only here,"
        f" {live.only_recomputed} rows only there (EXCEPT ALL both ways)"
    )


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise InternalError("INTERNAL_ERROR", f"the maintained result differs from {what}", hint="please report this")


class _Steps:
    """On a terminal a live line with a bar, elsewhere a line per step."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Progress | None = None
        if console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._live = Progress(*columns, console=console, transient=True)
            self._task = self._live.add_task("", total=None)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove the live line."""
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """What is being done."""
        if self._live is None:
            self._console.print(f"   {text} ...")
        else:
            self._live.update(self._task, description=text, total=None)

    def count(self, seen: Revenue, total: int) -> None:
        """How far the stream is."""
        text = f"batch {seen.batches}/{total}: {seen.rows_in:,} changes in, {seen.rows_out:,} out, {seen.state_rows:,} rows of state"
        if self._live is None:
            self._console.print(f"   {text}")
        else:
            self._live.update(self._task, description=text, completed=seen.batches, total=total)
