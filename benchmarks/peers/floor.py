"""The native floor: ``floor.cpp``, compiled for this machine, as a contestant."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.contest import Evidence, Mismatch, Run

if TYPE_CHECKING:
    from benchmarks.generate import Stream

SOURCE = Path(__file__).with_name("floor.cpp")
BUILD = Path(__file__).parents[1] / "build"


@cache
def build() -> Path | None:
    """The compiled floor, or None without a g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    program = BUILD / "floor"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [compiler, "-std=c++20", "-O3", "-march=native", "-Wall", "-Wextra", "-o", program, SOURCE], check=True
        )
    return program


class Floor:
    """The peer, for one of the queries of ``floor.cpp``; every run is a fresh process that times itself."""

    name = "C++ floor"

    def __init__(self, query: str, stream: Stream) -> None:
        program = build()
        if program is None:
            raise FileNotFoundError("g++")
        self._command = [str(program), query, str(stream.raw_file())]
        self._runs: set[Evidence] = set()

    def run(self) -> Run:
        done = subprocess.run(self._command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        self._runs.add(Evidence(found["rows"], found["checksum"]))
        return Run(found["seconds"], found["deltas"])

    def evidence(self) -> Evidence:
        if len(self._runs) != 1:
            raise Mismatch(f"the runs of {self.name} differ: {self._runs}")
        return next(iter(self._runs))
