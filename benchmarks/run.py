"""Runs the benchmarks: everview and its peers in one invocation, interleaved, and compares what they computed.

Exit code 1 if two contestants disagree, or, with ``--strict``, if a target is missed.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from benchmarks import epinions, latency, memory, report
from benchmarks.contest import Contestant, Evidence, Mismatch, Run
from benchmarks.generate import Stream, load
from benchmarks.peers.duckdb_diff import DuckdbDiff
from benchmarks.peers.floor import Floor, build
from benchmarks.peers.python_crown import python_crown
from benchmarks.peers.python_tight import python_tight
from benchmarks.workloads import BATCHES, WORKLOADS, Everview, Workload
from everview import _kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS = (*WORKLOADS, "memory", "latency", "epinions")
REPEAT = 5
PEER_SECONDS = 600.0


def contestants(workload: Workload, stream: Stream, batches: int) -> list[Contestant]:
    """Everview and all peers of a workload that can run here."""
    found: list[Contestant | None] = [
        Everview.on_graph(workload.sql, stream, batches),
        python_crown(workload.query, stream),
        python_tight(workload.query, stream),
        Floor(workload.query, stream) if build() else None,
        DuckdbDiff(workload.sql, stream, batches),
    ]
    return [one for one in found if one is not None]


def compete(field: Sequence[Contestant], repeat: int, peer_seconds: float) -> dict[str, list[Run]]:
    """Interleaved runs. One that has used up ``peer_seconds`` sits out the remaining rounds."""
    runs: dict[str, list[Run]] = {one.name: [] for one in field}
    for _ in range(repeat):
        for one in field:
            own = runs[one.name]
            if sum(run.seconds for run in own) < peer_seconds:
                gc.collect()
                own.append(one.run())
    return runs


def agree(field: Sequence[Contestant]) -> dict[str, Evidence]:
    """What each computed, after a check that it is the same for all."""
    evidence = {one.name: one.evidence() for one in field}
    results = {(proof.rows, proof.checksum) for proof in evidence.values()}
    nets = {proof.net_delta_rows for proof in evidence.values()} - {None}
    if len(results) > 1 or len(nets) > 1:
        lines = (f"{name}: {proof}" for name, proof in evidence.items())
        raise Mismatch("the results differ\n  " + "\n  ".join(lines))
    return evidence


def kernel_fingerprint() -> str:
    """Which build of the kernel is installed."""
    return hashlib.sha256(Path(_kernel.__file__).read_bytes()).hexdigest()[:12]


class Benchmark:
    """One invocation: prints as it goes, and collects figures and missed targets."""

    def __init__(self, console: Console, repeat: int, peer_seconds: float) -> None:
        self._console = console
        self._repeat = repeat
        self._peer_seconds = peer_seconds
        self.figures: dict[str, Any] = {}
        self.missed: list[str] = []

    def machine(self) -> None:
        self._kernel = kernel_fingerprint()
        machine = {
            "kernel": self._kernel,
            "system": platform.platform(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": [round(load, 2) for load in os.getloadavg()],
        }
        self.figures["machine"] = machine
        self._console.print(", ".join(f"{name} {value}" for name, value in machine.items()), highlight=False)
        if machine["load"][0] > 1:
            self._console.print("[yellow]the machine is busy: expect noise[/]")
        if build() is None:
            self._console.print("[yellow]no g++: the C++ floor is left out[/]")

    def end(self) -> None:
        self.figures["load at the end"] = os.getloadavg()
        self._console.print(f"\nload at the end: {os.getloadavg()[0]:.2f}", highlight=False)
        self.figures["rebuilt"] = kernel_fingerprint() != self._kernel
        if self.figures["rebuilt"]:
            self._console.print("[red]the kernel was rebuilt during the run: these figures are of two builds[/]")
        missed = ", ".join(self.missed)
        self._console.print(f"[red]targets missed: {missed}[/]" if missed else "[green]all targets met[/]")

    def workload(self, workload: Workload) -> None:
        field = contestants(workload, load(workload.stream), BATCHES)
        runs = compete(field, self._repeat, self._peer_seconds)
        evidence = agree(field)
        self._console.print(report.workload_table(workload, runs, evidence))
        net = next(proof.net_delta_rows for proof in evidence.values() if proof.net_delta_rows is not None)
        self._console.print(
            f"verified: {net:,} net delta rows = DuckDB's; rows and checksum of all {len(field)} contestants equal; "
            "everview's deltas sum up to its result",
            highlight=False,
        )
        met = report.verdicts(workload, runs)
        self.missed += [f"{workload.name} against {peer}" for peer, good in met.items() if not good]
        self.figures[workload.name] = {
            name: {"seconds": [run.seconds for run in own], "delta_rows": own[0].delta_rows, **asdict(evidence[name])}
            for name, own in runs.items()
        } | {"met": met, "load": os.getloadavg()}

    def memory(self) -> None:
        small, large = memory.steady_state(), memory.large_window()
        self._console.print(report.memory_table(small, large))
        reported = large.state_bytes + large.table_bytes
        self._console.print(
            f"verified: the process grew by {large.growth / reported:.0%} of the {reported / 1e6:.0f} MB that the session reports",
            highlight=False,
        )
        if max(small.per_row, large.per_row) > memory.TARGET:
            self.missed.append("memory per row")
        if large.growth > reported * memory.TOLERANCE:
            self.missed.append("memory: the process grew by more than is reported")
        self.figures["memory"] = [asdict(small), asdict(large)]

    def latency(self) -> None:
        figures = latency.measure()
        self._console.print(report.latency_table(figures))
        if figures[0].median >= latency.TARGET:
            self.missed.append("latency of a single row")
        self.figures["latency"] = [asdict(own) for own in figures]

    def epinions(self) -> None:
        if not epinions.data_file().exists():
            self._console.print(f"[yellow]epinions is left out: there is no {epinions.data_file()}[/]", soft_wrap=True)
            return
        figures = [epinions.run(name) for name in epinions.QUERIES]
        self._console.print(report.epinions_table(figures))
        for own in figures:
            if not own.complete:
                self._console.print(
                    f"{own.query}: all its deltas take longer than {epinions.DELTA_SECONDS:.0f} s; they were read for the first "
                    f"{own.updates:,} of {own.events:,} updates, and the whole stream was run without deltas"
                )
        self._console.print(
            "verified: every final result equals DuckDB's; where all deltas were read, they sum up to count()"
        )
        self.figures["epinions"] = [asdict(own) for own in figures]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Benchmarks of everview; see benchmarks/README.md."
    )
    parser.add_argument("--only", help=f"parts to run, separated by commas, of {', '.join(PARTS)}")
    parser.add_argument(
        "--repeat", type=int, default=REPEAT, help="interleaved runs per contestant (default %(default)s)"
    )
    parser.add_argument(
        "--peer-seconds",
        type=float,
        default=PEER_SECONDS,
        help="a contestant whose runs have taken this long in a workload is not repeated further (default %(default)g)",
    )
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    parser.add_argument("--strict", action="store_true", help="fail if a target is missed")
    arguments = parser.parse_args()
    parts = arguments.only.split(",") if arguments.only else PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")

    console = Console(width=None if sys.stdout.isatty() else 180)
    benchmark = Benchmark(console, arguments.repeat, arguments.peer_seconds)
    benchmark.machine()
    try:
        for part in parts:
            console.print()
            if part in WORKLOADS:
                benchmark.workload(WORKLOADS[part])
            else:
                getattr(benchmark, part)()
    except Mismatch as mismatch:
        console.print(f"[red]MISMATCH[/] {mismatch}", highlight=False)
        return 1
    benchmark.end()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(benchmark.figures | {"missed": benchmark.missed}, file, indent=2)
    return 1 if arguments.strict and benchmark.missed else 0


if __name__ == "__main__":
    sys.exit(main())
