"""Rows that an engine must refuse, found before it is asked, and written apart.

A delete of rows that are not there is the one thing that is wrong with a row only in the light of an engine's state; everything else is
judged where rows come in. The verdict depends on the table's content and the batch alone, so all engines that hold the row agree on it, and
only one of them reports it.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from everview.errors import ChangeError
from everview.interop.batch import MULTIPLICITY
from everview.layout.feeds import REST
from everview.shards.blob import Section
from everview.shards.carried import apart, shown_netted
from everview.shards.changes import net
from everview.shards.view_engine import SET_ASIDE, ViewEngine


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was set aside, and why."""

    table: str
    code: str
    reason: str
    row: Mapping[str, Any]

    def to_json(self, batch: int) -> str:
        """One line of a dead-letter file."""
        return json.dumps(
            {"table": self.table, "code": self.code, "reason": self.reason, "batch": batch, "row": dict(self.row)},
            default=_as_text,
        )


def _as_text(value: object) -> str:
    """A value that JSON lacks: bytes as Spark writes them, in base64."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def refused_row(table: str, code: str, reason: str, row: Mapping[str, Any]) -> ChangeError:
    """The refusal of a row, where bad rows are not set aside."""
    values = ", ".join(f"{name}={value!r}" for name, value in row.items())
    return ChangeError(code, f"table `{table}`: {reason}, in the row ({values})", hint=SET_ASIDE, table=table)


class Letters(Protocol):
    """Takes the bad rows of a batch."""

    def write(self, rows: Sequence[BadRow]) -> None:
        """Write all bad rows that one engine found in one batch; a replay writes the same again."""


class DeadLetterFile:
    """A file per batch and place (stage and engine), replaced as a whole when a batch is replayed."""

    def __init__(self, directory: str, place: str, current_batch: Callable[[], int]) -> None:
        self._directory = Path(directory)
        self._place = place
        self._current_batch = current_batch

    def write(self, rows: Sequence[BadRow]) -> None:
        batch = self._current_batch()
        path = self._directory / f"batch={batch:010d}" / f"{self._place}.jsonl"
        if not rows:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        waiting = path.with_name(f".{path.name}.{os.getpid()}")
        lines = sorted(row.to_json(batch) for row in rows)  # rows come in any order
        waiting.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        waiting.replace(path)


def input_place(table: str, part: int) -> str:
    """Where a table's rows come in: one place per partition of its source."""
    return f"input-{table}-{part:05d}"


def drop_other_parts(directory: str, batch: int, table: str, parts: Collection[int]) -> None:
    """Remove the files of a table's partitions other than these, which an attempt at the batch with more partitions has left."""
    wanted = {f"{input_place(table, part)}.jsonl" for part in parts}
    prefix = input_place(table, 0).removesuffix("00000")
    for path in (Path(directory) / f"batch={batch:010d}").glob("input-*.jsonl"):
        number = path.name.removeprefix(prefix).removesuffix(".jsonl")
        if path.name.startswith(prefix) and number.isdigit() and path.name not in wanted:
            path.unlink(missing_ok=True)


class BadRows:
    """Sorts deletes of absent rows out of a batch. ``reports``: per section whether this engine is the one to report them; None where all rows are valid."""

    def __init__(self, shown: Sequence[str], reports: Sequence[bool | None], letters: Letters) -> None:
        self._shown = shown
        self._reports = reports
        self.letters = letters

    def sort_out(
        self, engine: ViewEngine, rows: Mapping[int, pa.RecordBatch], *, report: bool
    ) -> tuple[dict[int, pa.RecordBatch], list[Section] | None, int]:
        """The rows to apply; as sections too, if they are not those given; and how many were found here to be bad."""
        kept: dict[int, pa.RecordBatch] = {}
        found: list[BadRow] = []
        changed = False
        for number, given in rows.items():
            batch, carried = apart(given)
            changed |= carried is not None
            if self._reports[number] is None:
                kept[number] = batch
                continue
            netted = net(batch)
            plain = netted.remove_column(netted.num_columns - 1)
            multiplicity = netted.column(netted.num_columns - 1).to_numpy()
            missing = multiplicity + engine.copies_of(number, plain).to_numpy()
            bad = np.flatnonzero(missing < 0)
            if not len(bad):
                kept[number] = batch
                continue
            changed = True
            if self._reports[number]:
                counts = -missing[bad]
                names = [name for name in plain.schema.names if name != REST]
                for at, row in shown_netted(netted.take(pa.array(bad)), counts, given, names):
                    reason = f"cannot delete it: {counts[at]} more than the table holds"
                    found.append(BadRow(self._shown[number], "ROW_NOT_FOUND", reason, row))
            rest = multiplicity - np.minimum(missing, 0)
            netted = netted.set_column(netted.num_columns - 1, MULTIPLICITY, pa.array(rest))
            kept[number] = netted.filter(pa.array(rest != 0))
        if report:
            self.letters.write(found)
        accepted = [(n, [b]) for n, b in kept.items()] if changed else None
        return {n: b for n, b in kept.items() if b.num_rows}, accepted, len(found)
