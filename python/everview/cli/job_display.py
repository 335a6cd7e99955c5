"""What a running job shows: a live table on a terminal, elsewhere a line per batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress import Progress as Bars
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from everview.spark.check_job import ViewCheck
    from everview.spark.run_job import Progress

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class LiveTable:
    """A row per view: its last batch and what it has taken in so far."""

    def __init__(self, console: Console, name: str) -> None:
        self._bars = Bars(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console)
        self._task = self._bars.add_task(f"{name}: Spark starts", total=None)
        self._name = name
        self._last: dict[str, Progress] = {}
        self._rows_in: dict[str, int] = {}
        self._live = Live(self._bars, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def start(self, view: str) -> None:
        """The query of a view was started."""
        self._bars.update(self._task, description=f"{self._name}: the first batch of {view} runs")

    def show(self, progress: Progress) -> None:
        """Take in a batch."""
        for warning in progress.warnings:
            self.say(warned(progress, warning))
        self._last[progress.view] = progress
        self._rows_in[progress.view] = self._rows_in.get(progress.view, 0) + progress.rows_in
        self._bars.update(self._task, description=f"{self._name}: {sum(self._rows_in.values()):,} rows in")
        self._live.update(Group(self._table(), self._bars))

    def say(self, line: str) -> None:
        """A line above the table; comes from other threads."""
        self._live.console.print(line, markup=False, soft_wrap=True)

    def _table(self) -> Table:
        names = ("view", "batch", "rows in", "rows/s", "changes out", "state rows", "state", "skew", "engines")
        table = Table(*names)
        for view, last in self._last.items():
            table.add_row(
                Text(view),
                str(last.batch),
                f"{self._rows_in[view]:,}",
                f"{last.rows_per_second:,.0f}",
                f"{last.rows_out:,}",
                f"{last.state_rows:,}",
                size(last.state_bytes),
                f"{last.skew:.2f}",
                engines(last),
            )
        return table


class Lines:
    """A line per batch."""

    def __init__(self, console: Console, name: str) -> None:
        self._console = console
        self._name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, view: str) -> None:
        """The query of a view was started."""
        self.say(f"{view}: started, its first batch runs")

    def show(self, progress: Progress) -> None:
        """Take in a batch."""
        for warning in progress.warnings:
            self.say(warned(progress, warning))
        stale = f", {progress.stale_rows:,} stale" if progress.stale_rows else ""
        self.say(
            f"{progress.view} batch {progress.batch}: {progress.rows_in:,} rows in{stale}, {progress.rows_out:,} changes out,"
            f" {progress.seconds:.1f} s, state {progress.state_rows:,} rows ({size(progress.state_bytes)}),"
            f" skew {progress.skew:.2f}, engines {engines(progress)}"
        )

    def say(self, line: str) -> None:
        """Any line; comes from other threads."""
        self._console.print(line, markup=False, soft_wrap=True)


def warned(progress: Progress, warning: str) -> str:
    """A warning of a batch for people."""
    return f"warning: {progress.view} batch {progress.batch}: {warning}"


def engines(progress: Progress) -> str:
    """How the engines of a batch were found: in memory, or rebuilt from the state."""
    return f"{progress.held} held, {progress.rebuilt} rebuilt"


def size(count: float) -> str:
    """Bytes for people."""
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} {_UNITS[-1]}"


def difference_table(found: ViewCheck) -> Table:
    """The first rows that differ, each way."""
    sides = (("missing", found.missing), ("too many", found.extra))
    columns = next(list(row) for _, side in sides for row in side.rows)
    table = Table("", *map(escape, columns))
    for what, side in sides:
        for row in side.rows:
            table.add_row(what, *(Text("NULL" if value is None else str(value)) for value in row.values()))
        if side.count > len(side.rows):
            table.add_row(what, f"and {side.count - len(side.rows):,} more")
    return table
