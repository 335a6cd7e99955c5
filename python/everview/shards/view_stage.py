"""What a fragment does with a batch: rows in by feed, the changes of its exports out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from everview.shards.bad_rows import BadRows
from everview.shards.blob import Section, by_number, concat
from everview.shards.changes import net
from everview.shards.durable import Applied
from everview.shards.returning import Returning
from everview.shards.view_engine import EngineSpec, ViewEngine

if TYPE_CHECKING:
    import pyarrow as pa


class ViewStage:
    """An engine whose delta is that of its exports. With ``bad_rows``, rows that it must refuse are set aside there."""

    def __init__(self, spec: EngineSpec, bad_rows: BadRows | None = None, threads: int = 1) -> None:
        self.engine = ViewEngine(spec, threads)
        self._bad_rows = bad_rows

    def apply(self, sections: Sequence[Section], *, deltas: bool) -> Applied:
        rows = by_number(sections)
        count = sum(batch.num_rows for batch in rows.values())
        accepted, bad = None, 0
        if self._bad_rows is not None:
            rows, accepted, bad = self._bad_rows.sort_out(self.engine, rows, report=deltas)
        applied = Applied((), count, accepted, {"bad": bad})
        if rows and deltas:
            applied.delta = self._changes(rows, applied)
        elif rows:
            self.engine.load(rows)
        return applied

    def _changes(self, rows: Mapping[int, pa.RecordBatch], applied: Applied) -> Iterator[Section]:
        changes = Returning(self.engine.apply(rows))
        yield from changes
        applied.seconds = changes.returned

    def begin(self, delta: Sequence[Section]) -> Sequence[Section]:
        empty = ViewEngine(self.engine.spec)
        found = []
        for export in range(len(self.engine.spec.exports)):
            held = [b for b in empty.result(export) if b.num_rows]
            changed = [b for number, batches in delta if number == export for b in batches]
            if held:
                changed = [net(concat([*held, *changed]))]
            if changed:
                found.append((export, changed))
        return found

    def snapshot(self) -> Iterator[Section]:
        return self.engine.snapshot()

    def restore(self, sections: Sequence[Section]) -> None:
        self.engine.restore(sections)

    def size(self) -> tuple[int, int]:
        return self.engine.size()

    def result(self, export: int) -> Iterator[pa.RecordBatch]:
        """The full result of an export with ``_multiplicity``."""
        return self.engine.result(export)
