"""Benchmark figures as tables for people."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rich.table import Table

from benchmarks import latency, memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.contest import Evidence, Run
    from benchmarks.epinions import Figures
    from benchmarks.latency import Latency
    from benchmarks.memory import Memory
    from benchmarks.workloads import Workload

SUBJECT = "everview"
FLOOR = "C++ floor"


def ratio(runs: Mapping[str, Sequence[Run]], peer: str) -> float:
    """How many times everview's median time the peer's is."""
    return _median(runs[peer]) / _median(runs[SUBJECT])


def verdicts(workload: Workload, runs: Mapping[str, Sequence[Run]]) -> dict[str, bool]:
    """For every target of the workload whose peer ran: is it met?"""
    met = {peer: ratio(runs, peer) >= factor for peer, factor in workload.faster_than.items() if peer in runs}
    if workload.floor_factor is not None and FLOOR in runs:
        met[FLOOR] = 1 / ratio(runs, FLOOR) <= workload.floor_factor
    return met


def workload_table(workload: Workload, runs: Mapping[str, Sequence[Run]], evidence: Mapping[str, Evidence]) -> Table:
    table = Table(title=f"{workload.name}: {workload.title} ({workload.stream})", title_justify="left")
    for heading in (
        "contestant",
        "runs",
        "median s",
        "min s",
        "against everview",
        "target",
        "",
        "delta rows",
        "result rows",
        "checksum",
    ):
        table.add_column(heading, justify="left" if heading in ("contestant", "target", "") else "right")
    met = verdicts(workload, runs)
    for name, own in runs.items():
        proof = evidence[name]
        table.add_row(
            name,
            str(len(own)),
            f"{_median(own):.4f}",
            f"{min(run.seconds for run in own):.4f}",
            _against(runs, name),
            _target(workload, name),
            _verdict(met.get(name), name),
            f"{own[0].delta_rows:,}{' net' if proof.net_delta_rows is not None else ''}",
            f"{proof.rows:,}",
            f"{proof.checksum:016x}",
        )
    return table


def memory_table(small: Memory, large: Memory) -> Table:
    table = Table(title="Kernel state of W1's view", title_justify="left")
    for heading in (
        "window",
        "rows of g1, g2, g3",
        "state MB",
        "bytes per row",
        "target",
        "",
        "base store MB",
        "growth MB",
        "growth less base store, bytes per row",
    ):
        table.add_column(heading, justify="left" if heading in ("target", "") else "right")
    for figures in (small, large):
        table.add_row(
            f"{figures.edges:,} edges",
            f"{figures.rows:,}",
            f"{figures.state_bytes / 1e6:.1f}",
            f"{figures.per_row:.1f}",
            f"gate: <= {memory.TARGET}",
            _mark(figures.per_row <= memory.TARGET),
            f"{figures.table_bytes / 1e6:.1f}",
            "" if figures.growth is None else f"{figures.growth / 1e6:.1f}",
            "" if figures.growth_per_row is None else f"{figures.growth_per_row:.1f}",
        )
    return table


def latency_table(figures: Sequence[Latency]) -> Table:
    table = Table(title="One row per apply(), W1 steady state, deltas on", title_justify="left")
    for heading in ("calls that emit", "calls", "median us", "p99 us", "target", ""):
        table.add_column(heading, justify="left" if heading in ("calls that emit", "target", "") else "right")
    for own in figures:
        gate = own.most == 0
        what = "anything" if own.most is None else f"at most {own.most} rows" if own.most else "nothing"
        target = f"gate: median < {latency.TARGET}" if gate else "informational"
        row = (what, f"{own.calls:,}", f"{own.median:.1f}", f"{own.p99:.1f}", target)
        table.add_row(*row, _mark(own.median < latency.TARGET) if gate else "")
    return table


def epinions_table(figures: Sequence[Figures]) -> Table:
    table = Table(
        title="soc-Epinions1, FIFO window of 20 % (informational; the gate is that all finish and agree)",
        title_justify="left",
    )
    for heading in (
        "query",
        "batches",
        "updates",
        "deltas",
        "seconds",
        "updates/s",
        "deltas/s",
        "s without deltas",
        "final rows",
        "state MB",
        "base MB",
        "peak MB",
    ):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for own in figures:
        part = "" if own.complete else f" ({own.updates / own.events:.0%} of the stream)"
        table.add_row(
            own.query,
            str(own.batches),
            f"{own.updates:,}{part}",
            f"{own.deltas:,}",
            f"{own.seconds:.2f}",
            f"{own.updates / own.seconds:,.0f}",
            f"{own.deltas / own.seconds:,.0f}",
            f"{own.silent_seconds:.2f}",
            f"{own.count:,}",
            f"{own.state_bytes / 1e6:.1f}",
            f"{own.table_bytes / 1e6:.1f}",
            f"{own.peak_bytes / 1e6:.0f}",
        )
    return table


def _median(runs: Sequence[Run]) -> float:
    return median(run.seconds for run in runs)


def _against(runs: Mapping[str, Sequence[Run]], name: str) -> str:
    if name == SUBJECT:
        return "1"
    if name == FLOOR:
        return f"everview takes {1 / ratio(runs, name):.2f}x"
    return f"{ratio(runs, name):.2f}x slower"


def _target(workload: Workload, name: str) -> str:
    if name == FLOOR and workload.floor_factor is not None:
        return f"gate: <= {workload.floor_factor:g}x"
    if name in workload.faster_than:
        return f"gate: >= {workload.faster_than[name]:g}x"
    return ""


def _verdict(met: bool | None, name: str) -> str:
    if met is None:
        return "" if name == SUBJECT else "informational"
    return _mark(met)


def _mark(met: bool) -> str:
    return "[green]pass[/]" if met else "[red]FAIL[/]"
