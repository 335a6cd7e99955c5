"""Replays a scenario through a session and checks its views after every commit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.errors import ChangeError
from everview.schema.datatype import DataType, Kind
from everview.session.session import Session
from everview.session.state import SessionState
from everview.testing.asserts import DeltaSum, assert_view_equals
from everview.testing.oracle import MULTIPLICITY, Oracle, Row, bits, difference, meaning, repeated, rows_of, table_of
from everview.testing.strategies import Scenario
from everview.testing.streams import Batch, Change

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everview.schema.table import Table
    from everview.session.view import View


@dataclass(slots=True)
class _Watched:
    view: View
    total: DeltaSum


class Replay:
    """One session over the tables of a scenario, with the rows its tables must hold."""

    def __init__(self, scenario: Scenario, oracle: Oracle) -> None:
        self.scenario = scenario
        self.oracle = oracle
        # every second query sees its texts in chunks of a few bytes
        self.session = Session(SessionState(text_bytes=8 if len(scenario.query.spark) % 2 else None))
        self.session.execute(scenario.ddl)
        self.tables = {t.name: t for t in scenario.tables}
        self.rows: dict[str, Counter[Row]] = {name: Counter() for name in self.tables}
        self.watched: list[_Watched] = []

    def watch(self, name: str) -> View:
        """Create a view of the scenario's query, and check it from now on."""
        view = self.session.create_view(name, self.scenario.query.spark, update_rates=self.scenario.rates)
        self.watched.append(_Watched(view, DeltaSum.of(view)))
        return view

    def run(self) -> View:
        """The whole scenario; returns the view that was there from the start. All tables are empty then."""
        scenario = self.scenario
        early = self.watch("early")
        self.check()
        for number, batch in enumerate(scenario.batches):
            if number == scenario.late:
                self.watch("late")
            self.commit(batch)
        if scenario.late == len(scenario.batches):
            self.watch("late")
            self.check()
        self.refuse()
        self.empty()
        return early

    def commit(self, batch: Batch) -> None:
        """One batch, in its form, with all checks after it."""
        touched = [name for name in self.tables if batch.rows(name)]
        if batch.form == "calls" and len(touched) == 1:
            for call in self._calls(touched[0], batch):
                self._step(call, deltas=batch.deltas)
            for change in batch.changes:
                self._note(change)
            self.check()
            return
        for change in batch.changes:
            self._note(change)
        changes = {name: hand_over(self.tables[name], batch.rows(name), batch.form) for name in touched}
        self._step(lambda: self.session.apply(changes, deltas=batch.deltas), deltas=batch.deltas)
        self.check()

    def _calls(self, name: str, batch: Batch) -> list[Callable[[], dict[str, pa.Table]]]:
        """The net change of one table through the convenient calls: deletes, then the rest."""
        table, session, deltas = self.tables[name], self.session, batch.deltas
        net: Counter[Row] = Counter()
        for change in batch.changes:
            net[change.row] += change.sign
        gone = [r for r, n in net.items() for _ in range(-n)]
        come = [r for r, n in net.items() for _ in range(n)]
        if not table.primary_key:
            return [
                lambda: session.delete(name, table_of(table, as_written(table, gone)), deltas=deltas),
                lambda: session.insert(name, table_of(table, as_written(table, come)), deltas=deltas),
            ]
        key = [i for i, c in enumerate(table.columns) if c.name in table.primary_key]
        coming = {meaning(tuple(r[i] for i in key)) for r in come}
        going = {meaning(tuple(r[i] for i in key)) for r in gone}
        keys = [k for k in (tuple(r[i] for i in key) for r in gone) if meaning(k) not in coming]
        only_keys = (
            table_of(table, as_written(table, gone))
            .select([table.columns[i].name for i in key])
            .filter(pa.array([meaning(tuple(r[i] for i in key)) not in coming for r in gone], type=pa.bool_()))
        )
        calls: list[Callable[[], dict[str, pa.Table]]] = []
        if keys:
            calls.append(lambda: session.delete(name, only_keys, deltas=deltas))
        if come and all(meaning(tuple(r[i] for i in key)) in going for r in come):
            calls.append(lambda: session.update(name, table_of(table, as_written(table, come)), deltas=deltas))
        else:
            calls.append(lambda: session.upsert(name, table_of(table, as_written(table, come)), deltas=deltas))
        return calls

    def _step(self, commit: Callable[[], dict[str, pa.Table]], *, deltas: bool) -> None:
        before = self.session.version
        found = commit()
        assert self.session.version == before + 1
        for watched in self.watched:
            if deltas:
                delta = found[watched.view.name]
                assert delta.schema == watched.view.schema.append(pa.field(MULTIPLICITY, pa.int64(), nullable=False))
                watched.total.add(delta)
                watched.total.check(watched.view)
            else:
                assert found == {}
                watched.total = DeltaSum.of(watched.view)

    def check(self) -> None:
        """Every view and every table is what it must be."""
        rows = {name: table_of(self.tables[name], held.elements()) for name, held in self.rows.items()}
        self.oracle.load(self.tables, rows)
        for name in self.tables:
            found = rows_of(repeated(self.session.table_rows(name)))
            assert difference(found, rows_of(rows[name])) == ([], []), f"table {name}"
        expected = self.oracle.run(self.scenario.query)
        for watched in self.watched:
            assert_view_equals(watched.view, expected)
        first, *others = (w.view.to_arrow(multiplicity=True) for w in self.watched)
        for other in others:
            assert Counter(map(bits, rows_of(first))) == Counter(map(bits, rows_of(other))), "views of one query differ"

    def refuse(self) -> None:
        """A batch with one bad row among good ones leaves everything as it was."""
        table = self.scenario.tables[0]
        held = next(iter(self.rows[table.name]), None)
        if held is None:
            return
        times = self.rows[table.name][held]
        changes = [Change(table.name, held, "delete")] * (times + 1)
        version = self.session.version
        try:
            self.session.apply({table.name: hand_over(table, changes, "multiplicity")})
        except ChangeError:
            assert self.session.version == version
        else:
            raise AssertionError("the delete of an absent row was not refused")
        for watched in self.watched:
            watched.total.check(watched.view)
        self.check()

    def empty(self) -> None:
        """Delete everything: all at once, table by table, or row by row."""
        everything = [Change(name, r, "delete") for name, held in self.rows.items() for r in held.elements()]
        if self.scenario.end == "at once":
            self.commit(Batch(tuple(everything)))
        elif self.scenario.end == "by table":
            for name in self.tables:
                self.commit(Batch(tuple(c for c in everything if c.table == name)))
        else:
            for change in everything[:-1]:
                batch = {change.table: hand_over(self.tables[change.table], [change], "change_type")}
                self._note(change)
                self._step(lambda batch=batch: self.session.apply(batch), deltas=True)  # type: ignore[misc]
            self.commit(Batch(tuple(everything[-1:]), "change_type"))
        for name in self.tables:
            assert self.session.table_rows(name).num_rows == 0

    def close(self) -> None:
        """Free the session."""
        self.session.close()

    def _note(self, change: Change) -> None:
        held = self.rows[change.table]
        held[change.row] += change.sign
        if not held[change.row]:
            del held[change.row]


def hand_over(table: Table, changes: Sequence[Change], form: str) -> Any:
    """Changes of one table as a batch: with ``_change_type``, with ``_multiplicity`` (as Arrow), or as dicts."""
    written = as_written(table, [c.row for c in changes])
    rows = table_of(table, written)
    if form == "change_type":
        return rows.append_column("_change_type", pa.array([c.type for c in changes], type=pa.string()))
    if form == "tuples" and all(c.sign == 1 for c in changes):
        return written
    if form == "tuples":
        names = [c.name for c in table.columns]
        return [
            dict(zip(names, row, strict=True)) | {MULTIPLICITY: c.sign} for row, c in zip(written, changes, strict=True)
        ]
    return rows.append_column(MULTIPLICITY, pa.array([c.sign for c in changes], type=pa.int64()))


def as_written(table: Table, rows: Sequence[Row]) -> list[Row]:
    """Rows, the first and every other one in another form that means the same.

    CHAR(n) without its padding, texts of full length with a blank more, timestamps without a zone.
    """
    types = [c.type for c in table.columns]
    return [
        row if n % 2 else tuple(_otherwise(v, t) for v, t in zip(row, types, strict=True)) for n, row in enumerate(rows)
    ]


def _otherwise(value: Any, data_type: DataType) -> Any:
    if value is None:
        return None
    if data_type.kind is Kind.TIMESTAMP:
        return value.replace(tzinfo=None)
    if data_type.kind is Kind.BINARY:
        return bytearray(value)
    if data_type.length and len(value.rstrip()) == data_type.length:
        return value + " "
    return value.rstrip() if data_type.kind is Kind.CHAR else value


def flattened(scenario: Scenario) -> list[Change]:
    """All changes of a scenario in order; cut anywhere, each part is a valid batch."""
    return [change for batch in scenario.batches for change in batch.changes]
