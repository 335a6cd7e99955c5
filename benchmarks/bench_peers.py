"""Everview against differential-dataflow and dbsp, interleaved, with a check that all compute the same.

Exit code 1 if two contestants disagree, or, with ``--strict``, if a target is missed; 2 if the programs of the peers are not built.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks import generate, orders
from benchmarks.contest import Contestant, Evidence, Mismatch, Run
from benchmarks.orders import OrdersSpec
from benchmarks.peers.floor import Floor, build
from benchmarks.peers.rust_peers import DBSP, DIFFERENTIAL, RustPeer, missing
from benchmarks.report import FLOOR, SUBJECT
from benchmarks.run import agree, compete, kernel_fingerprint
from benchmarks.workloads import BATCHES, WORKLOADS, Everview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.generate import GraphSpec

REPEAT = 5
KEYED, KEEP_VIEWS = f"{SUBJECT}, keyed tables", f"{SUBJECT}, keep = views"
EARLY = ", projected early"

REVENUE = """
SELECT o.ok, o.od, o.sp, SUM(l.rv) AS rv
FROM customer c JOIN orders o ON c.ck = o.ck JOIN lineitem l ON l.ok = o.ok
WHERE c.seg = 0 AND o.od < 9204 AND l.sd > 9204
GROUP BY o.ok, o.od, o.sp"""
ORDERS = OrdersSpec(orders=150_000, seed=9)
KEYS = {"customer": "ck", "orders": "ok", "lineitem": "ok, ln"}


@dataclass(frozen=True)
class Target:
    """The best time of ``peer`` has to be at least ``factor`` times that of ``subject``."""

    peer: str
    factor: float
    subject: str = SUBJECT

    def ratio(self, runs: Mapping[str, Sequence[Run]]) -> float:
        return best(runs[self.peer]) / best(runs[self.subject])


GRAPH_TARGETS = [Target(DIFFERENTIAL, 3), Target(DBSP, 3)]
REVENUE_TARGETS = [
    Target(DIFFERENTIAL, 1.5, KEEP_VIEWS),
    Target(FLOOR, 1 / 4, KEEP_VIEWS),
    Target(DIFFERENTIAL, 1, KEYED),
]
PARTS = (*WORKLOADS, "q3")


def best(runs: Sequence[Run]) -> float:
    return min(run.seconds for run in runs)


def graph_contestants(query: str, sql: str, spec: GraphSpec, batches: int) -> list[Contestant]:
    """On a query of ``workloads.py``; where columns can be dropped before the joins, the peers also run with such a plan."""
    stream = generate.load(spec)
    field: list[Contestant] = [Everview.on_graph(sql, stream, batches)]
    field += [RustPeer(peer, query, stream, batches) for peer in (DIFFERENTIAL, DBSP)]
    if query == "three_hop_projected":
        field += [RustPeer(peer, f"{query}_early", stream, batches, EARLY) for peer in (DIFFERENTIAL, DBSP)]
    if build():
        field.append(Floor(query, stream))
    return field


def revenue_contestants(spec: OrdersSpec, batches: int) -> list[Contestant]:
    """On Q3; everview with tables that keep rows, that have keys too, and that keep nothing but what the view reads."""
    stream = orders.load(spec)
    changes = stream.record_batches(batches)
    kept = "".join(_table(name) for name in orders.COLUMNS)
    keyed = "".join(_table(name, f", PRIMARY KEY ({key})") for name, key in KEYS.items())
    streamed = "".join(_table(name, options=" TBLPROPERTIES ('everview.keep' = 'views')") for name in orders.COLUMNS)
    field: list[Contestant] = [
        Everview(REVENUE, kept, changes),
        Everview(REVENUE, keyed, changes, KEYED),
        Everview(REVENUE, streamed, changes, KEEP_VIEWS),
        *(RustPeer(peer, "revenue", stream, batches) for peer in (DIFFERENTIAL, DBSP)),
    ]
    if build():
        field.append(Floor("revenue", stream))
    return field


def _table(name: str, key: str = "", options: str = "") -> str:
    columns = ", ".join(f"{column} BIGINT NOT NULL" for column in orders.COLUMNS[name])
    return f"CREATE TABLE {name} ({columns}{key}){options};\n"


def table(title: str, runs: Mapping[str, Sequence[Run]], evidence: Mapping[str, Evidence]) -> Table:
    shown = Table(title=title, title_justify="left")
    for heading in ("contestant", "runs", "best s", "ratio to everview", "delta rows", "result rows", "checksum"):
        shown.add_column(heading, justify="left" if heading == "contestant" else "right")
    for name, own in runs.items():
        proof = evidence[name]
        shown.add_row(
            name,
            str(len(own)),
            f"{best(own):.4f}",
            f"{best(own) / best(runs[SUBJECT]):.2f}",
            f"{own[0].delta_rows:,}{' net' if proof.net_delta_rows is not None else ''}",
            f"{proof.rows:,}",
            f"{proof.checksum:016x}",
        )
    return shown


def run_part(part: str, repeat: int, console: Console) -> dict[str, Any]:
    """Runs one part, prints it and gives its figures, with the targets that were missed."""
    if part in WORKLOADS:
        workload = WORKLOADS[part]
        title = f"{part}: {workload.title} ({workload.stream})"
        field = graph_contestants(workload.query, workload.sql, workload.stream, BATCHES)
        targets = GRAPH_TARGETS
    else:
        title = f"{part}: revenue per order ({ORDERS})"
        field = revenue_contestants(ORDERS, BATCHES)
        targets = REVENUE_TARGETS
    runs = compete(field, repeat, float("inf"))
    evidence = agree(field)
    console.print(table(title, runs, evidence))
    missed = []
    for target in targets:
        if target.peer in runs:
            met = target.ratio(runs) >= target.factor
            said = f"{target.peer} / {target.subject} = {target.ratio(runs):.2f}, target at least {target.factor:g}"
            console.print(f"{said}: {'[green]pass[/]' if met else '[red]FAIL[/]'}", highlight=False)
            if not met:
                missed.append(said)
    seconds = {name: [run.seconds for run in own] for name, own in runs.items()}
    proofs = {name: asdict(proof) for name, proof in evidence.items()}
    return {"seconds": seconds, "evidence": proofs, "missed": missed, "load": os.getloadavg()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_peers", description=__doc__)
    parser.add_argument("--only", help=f"parts to run, separated by commas, of {', '.join(PARTS)}")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="interleaved runs of each (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    parser.add_argument("--strict", action="store_true", help="fail if a target is missed")
    arguments = parser.parse_args()
    parts = arguments.only.split(",") if arguments.only else PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if absent := missing():
        parser.error(f"not built: {', '.join(absent)}; `make bench-peers` builds them")

    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(
        f"kernel {kernel_fingerprint()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}", highlight=False
    )
    figures = {}
    try:
        for part in parts:
            console.print()
            figures[part] = run_part(part, arguments.repeat, console)
    except Mismatch as mismatch:
        console.print(f"[red]MISMATCH[/] {mismatch}", highlight=False)
        return 1
    console.print(f"\nload at the end: {os.getloadavg()[0]:.2f}", highlight=False)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 1 if arguments.strict and any(own["missed"] for own in figures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
