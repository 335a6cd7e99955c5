"""One engine of a fragment: tables, views over them, and the commit of what arrives."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from everview.engine import Database, KernelError, translate
from everview.interop.batch import MULTIPLICITY
from everview.machine import default_delta_limit
from everview.schema.datatype import parse_type
from everview.schema.table import Column, Table
from everview.shards.beside import beside
from everview.shards.blob import Section, slices

if TYPE_CHECKING:
    import pyarrow as pa

_HIDDEN = re.compile(r"(, )?\b_(rest|unread_\w+) ?[=:] ?-?\d+")
_SNAPSHOT_ROWS = 1 << 16

SET_ASIDE = "correct the input, or let such rows be set aside with on_bad_rows='quarantine'"
"""The way out for who meets a bad row."""


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What an engine is made of. ``shown``: the names by which users know the tables. ``exports``: positions of the views whose changes leave."""

    tables: tuple[Table, ...]
    shown: tuple[str, ...]
    plans: tuple[str, ...]
    exports: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        tables = [[t.name, [[c.name, str(c.type), c.nullable] for c in t.columns]] for t in self.tables]
        return {
            "tables": tables,
            "shown": list(self.shown),
            "plans": list(self.plans),
            "exports": list(self.exports),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> EngineSpec:
        """The inverse of ``to_json``."""
        tables = tuple(
            Table(name, tuple(Column(column, parse_type(kind), nullable) for column, kind, nullable in columns))
            for name, columns in found["tables"]
        )
        return cls(tables, tuple(found["shown"]), tuple(found["plans"]), tuple(found["exports"]))


class ViewEngine:
    """A kernel with some views. Sections that come in are numbered by table, those that leave by export; rows carry ``_multiplicity``.

    ``threads``: how many may enumerate deltas.
    """

    def __init__(self, spec: EngineSpec, threads: int = 1) -> None:
        self.spec = spec
        self._kernel = Database(threads, default_delta_limit())
        self._shown = {t.name: shown for t, shown in zip(spec.tables, spec.shown, strict=True)}
        self._tables = [
            self._kernel.create_table(t.name, [(c.name, str(c.type), c.nullable) for c in t.columns], [])
            for t in spec.tables
        ]
        self._made: list[int] = []

    def _views(self) -> list[int]:
        """The views, made when they are first needed: rows of a snapshot are loaded before, so that they never see a part of them."""
        if not self._made:
            self._made = [self._kernel.create_view(plan) for plan in self.spec.plans]
        return self._made

    def load(self, rows: Mapping[int, pa.RecordBatch]) -> None:
        """Commit rows by section number; the changes of the views are not asked for."""
        self._commit(rows, None)

    def apply(self, rows: Mapping[int, pa.RecordBatch]) -> Generator[Section, None, float]:
        """Commit rows by section number, and yield the net changes of what is exported in pieces, as they are found.

        Nothing is yielded before the rows are accepted. The commit goes on beside the reader, and is complete at the end of the iteration;
        returned are the seconds of processor time it took.
        """
        self._views()
        seconds = 0.0

        def work(hand_over: Callable[[Section], None]) -> None:
            nonlocal seconds
            self._commit(rows, hand_over)
            seconds = time.thread_time()  # the thread has done nothing else

        yield from beside(work)
        return seconds

    def _commit(self, rows: Mapping[int, pa.RecordBatch], hand_over: Callable[[Section], None] | None) -> None:
        views = self._views()
        exported = {views[at]: number for number, at in enumerate(self.spec.exports)}
        changes: list[Any] = [(self._tables[number], "rows", batch) for number, batch in rows.items()]

        def pieces(view: int, piece: pa.RecordBatch) -> None:
            if hand_over is not None and view in exported and piece.num_rows:
                hand_over((exported[view], [piece]))

        try:
            rest = self._kernel.commit(changes, hand_over is not None, False, None if hand_over is None else pieces)
        except KernelError as error:
            raise self.refusal(error) from None
        for view, batches in rest:
            for piece in batches:
                pieces(view, piece)

    def refusal(self, error: KernelError) -> Exception:
        """A refusal under the name by which users know the table. Positions of rows mean nothing to them here."""
        code, message, table, _, hint = error.args
        if code == "ROW_NOT_FOUND":
            hint = SET_ASIDE
        message = _HIDDEN.sub("", message)
        return translate(KernelError(code, message, self._shown.get(table, table), None, hint))

    def copies_of(self, number: int, rows: pa.RecordBatch) -> pa.Array:
        """How many copies of each row a table holds."""
        return self._kernel.copies_of(self._tables[number], rows)

    def result(self, export: int, rows: int = _SNAPSHOT_ROWS) -> Iterator[pa.RecordBatch]:
        """The full result of an exported view with ``_multiplicity``."""
        cursor = self._kernel.open(self._views()[self.spec.exports[export]])
        while (batch := cursor.read(rows)) is not None:
            yield batch

    def snapshot(self) -> Iterator[Section]:
        """All rows of all tables, in sections that fit a blob."""
        for number, table in enumerate(self._tables):
            for batch in self._kernel.table_rows(table):
                for rows in slices(batch):
                    yield number, [rows]

    def restore(self, sections: Sequence[Section]) -> None:
        """Load rows of a snapshot."""
        for number, batches in sections:
            for batch in batches:
                self._kernel.commit([(self._tables[number], "rows", batch)], False, False)

    def size(self) -> tuple[int, int]:
        """Rows and bytes held, of tables and view."""
        rows = bytes_ = 0
        for table in self._tables:
            _, held, used = self._kernel.table_size(table)
            rows, bytes_ = rows + held, bytes_ + used
        bytes_ += self._kernel.texts_size()[1]
        for metrics in map(self._kernel.metrics, self._views()):
            bytes_ += sum(size[-1] for size in chain(*metrics["nodes"], metrics["operators"]))
        return rows, bytes_


def with_multiplicity(rows: pa.RecordBatch, multiplicities: pa.Array) -> pa.RecordBatch:
    """Rows with ``_multiplicity`` last."""
    return rows.append_column(MULTIPLICITY, multiplicities)
