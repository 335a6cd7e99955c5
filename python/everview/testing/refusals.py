"""Runs a trial: a session that sees every batch beside a twin that never sees those that must be refused.

What decides whether a batch must be refused is a session built anew over the rows the tables hold after it: if every view can be created on
them, the batch is valid, however its changes are ordered; if one cannot, it is not. After every batch both sessions must show the same, by
every way there is to look at them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import everview
from everview.errors import ChangeError
from everview.plan.view_lookup import view_lookups
from everview.testing.asserts import DeltaSum
from everview.testing.fallible import NAN, Attempt, Trial, Way
from everview.testing.oracle import MULTIPLICITY, Row, bits, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everview.session.commit import OnMissing
    from everview.session.session import Session
    from everview.session.view import View

LISTABLE = 100_000
Changes = dict[str, list[dict[str, Any]]]


def observed(session: Session) -> dict[str, Any]:
    """All that a session shows: rows of tables that keep them; of each view rows, their number, lookups, and the rows it holds."""
    shown: dict[str, Any] = {
        "version": session.version,
        "tables": {name: bag(session.table_rows(name)) for name, t in session.tables.items() if t.keep == "rows"},
    }
    for name, view in session.views.items():
        rows = view.to_arrow(multiplicity=True)
        metrics = view.metrics()
        shown[f"{name}: rows"] = bag(rows)
        shown[f"{name}: count()"] = view.count()
        shown[f"{name}: metrics"] = (
            metrics.state_rows,
            tuple((n.name, n.rows) for n in metrics.nodes),
            tuple((o.name, o.rows) for o in metrics.operators),
        )
        assert view.count() == sum(rows.column(MULTIPLICITY).to_pylist()), f"count() of {name}"
        if view.count() <= LISTABLE:
            shown[f"{name}: lookups"] = _lookups(view, rows)
    return shown


def _lookups(view: View, rows: pa.Table) -> dict[Any, Counter[Row]]:
    """For each index: what is found under the values of some rows, each checked against the rows."""
    found: dict[Any, Counter[Row]] = {}
    for lookup in view_lookups(view.plan):
        if not lookup.columns:
            continue
        keys = rows_of(rows.select(list(lookup.columns)))
        for key in sorted(set(keys), key=repr)[:6]:  # whatever the order of enumeration
            if None in key:
                continue
            listed = view.lookup(**dict(zip(lookup.columns, key, strict=True)))
            found[lookup.columns, repr(key)] = Counter(map(bits, rows_of(listed)))
            same = [repr(k) == repr(key) for k in keys]
            expected = sum(n for n, s in zip(rows.column(MULTIPLICITY).to_pylist(), same, strict=True) if s)
            assert listed.num_rows == expected, f"lookup of {key} in {view.name} by {lookup.columns}"
    return found


def bag(table: pa.Table) -> Counter[Row]:
    bag: Counter[Row] = Counter()
    for *values, count in rows_of(table):
        bag[bits(tuple(values))] += count
    return bag


def applied(session: Session, changes: Changes, way: Way) -> dict[str, pa.Table]:
    """The deltas of the views, none where the way gives none. What is handed out in pieces belongs to a batch that stands."""
    if way is not Way.STREAM:
        missing: OnMissing = "ignore" if way is Way.LENIENT else "error"
        return session.apply(changes, deltas=way is not Way.SILENT, on_missing=missing)
    pieces: dict[str, list[pa.RecordBatch]] = {name: [] for name in session.views}
    version = session.version
    try:
        session.apply_stream(changes, lambda name, rows: pieces[name].append(rows))
    finally:
        assert session.version > version or not any(pieces.values()), "a refused batch handed something out"
    found = {}
    for name, view in session.views.items():
        schema = view.schema.append(pa.field(MULTIPLICITY, pa.int64(), nullable=False))
        found[name] = pa.Table.from_batches(pieces[name], schema)
    return found


class Trying:
    """One trial: ``tried`` sees every batch, ``spared`` only those that are valid."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.tables = {t.name: t for t in trial.tables}
        self.accepted: list[tuple[Changes, Way]] = []
        self.refused = 0
        self.tried = self._session()
        self.spared = self._session()
        self.heard: dict[Session, list[Any]] = {self.tried: [], self.spared: []}
        self.attempts = list(trial.attempts)
        try:
            self._create(self.tried)
        except ChangeError:  # a view that fails on empty tables, such as 1 / COUNT(*): it must leave no trace either
            self.accepted.append((self._handed_over(self.attempts.pop(0)), Way.DELTAS))
            applied(self.tried, *self.accepted[0])
            self._create(self.tried)
        for before in self.accepted:
            applied(self.spared, *before)
        self._create(self.spared)
        if trial.subscribed:
            self._subscribe(self.tried)
            self._subscribe(self.spared)
        self.totals = {name: DeltaSum.of(view) for name, view in self.tried.views.items()}

    def _session(self) -> Session:
        session = everview.connect()
        session.execute(self.trial.ddl)
        return session

    def _create(self, session: Session) -> None:
        """The views that are not there, by the same join trees in every session, whatever it has seen so far."""
        for n, sql in enumerate(self.trial.views):
            if f"v{n}" not in session.views:
                session.create_view(f"v{n}", sql, update_rates=dict.fromkeys(self.tables, 1))

    def _subscribe(self, session: Session) -> None:
        def hear(name: str, delta: pa.Table) -> None:
            self.heard[session].append((name, bag(delta)))

        for name, view in session.views.items():
            view.subscribe(partial(hear, name))

    def run(self) -> None:
        """All batches, then one that empties the tables, then the first again."""
        for attempt in self.attempts:
            self.attempt(self._handed_over(attempt), attempt.way)
            if self.trial.late is not None:
                self._create_late(self.trial.late)
        self.finish()
        self.attempt(self._handed_over(self.trial.attempts[0]))

    def finish(self) -> None:
        """A snapshot, and a batch that empties the tables."""
        if self.refused:
            self._check_snapshot()
        everything: Changes = {
            name: [row | {MULTIPLICITY: -row[MULTIPLICITY]} for row in self.tried.table_rows(name).to_pylist()]
            for name in self.tables
            if name not in self.trial.windows  # windows list copies one by one, and forget by themselves
        }
        self.attempt(everything)

    def _handed_over(self, attempt: Attempt) -> Changes:
        rows = {name: self._held(name) for name in self.tables}
        found: Changes = {}
        for name, changes in attempt.changes(self.tables, rows).items():
            columns = [c.name for c in self.tables[name].columns]
            found[name] = [dict(zip(columns, row, strict=True)) | {MULTIPLICITY: count} for row, count in changes]
        return found

    def _held(self, name: str) -> Counter[Row]:
        held: Counter[Row] = Counter()
        for *values, count in rows_of(self.tried.table_rows(name)):
            held[tuple(NAN if v != v else v for v in values)] += count  # noqa: PLR0124
        return held

    def _judged(self, changes: Changes, way: Way) -> tuple[Session | None, str]:
        """A session built anew over the rows after the batch, or None and the reason why there is none."""
        session = self._session()
        try:
            for before, its_way in [*self.accepted, (changes, way)]:
                session.apply(before, deltas=False, on_missing="ignore" if its_way is Way.LENIENT else "error")
            self._create(session)
        except ChangeError as error:
            session.close()
            return None, str(error)
        return session, ""

    def attempt(self, changes: Changes, way: Way = Way.DELTAS) -> None:
        """One batch: refused without a trace, or accepted with the right result."""
        expected, reason = self._judged(changes, way)
        try:
            found, refusal = applied(self.tried, changes, way), None
        except ChangeError as error:
            found, refusal = {}, error
        if refusal is not None:
            assert expected is None, f"refused, though the state after the batch is valid: {changes}\n{refusal}"
            self.refused += 1
            self._compare(f"a refused batch left a trace: {changes}\n{refusal}")
            return
        assert expected is not None, f"accepted, though the state after the batch is invalid: {changes}\n{reason}"
        other = applied(self.spared, changes, Way.DELTAS if way is Way.STREAM else way)
        self.accepted.append((changes, way))
        after = f"after {changes}"
        assert {n: bag(d) for n, d in found.items()} == {n: bag(d) for n, d in other.items()}, f"deltas {after}"
        for name, total in self.totals.items():
            if way is not Way.SILENT:
                total.add(found[name])
                total.check(self.tried.view(name))
            else:
                self.totals[name] = DeltaSum.of(self.tried.view(name))
        self._compare(after)
        _assert_same(_built(observed(self.tried)), _built(observed(expected)), f"not what is built anew {after}")
        expected.close()

    def _create_late(self, sql: str) -> None:
        """A view created between batches, and dropped again; or refused, without a trace either."""
        try:
            view = self.tried.create_view("late", sql)
        except ChangeError as error:
            self._compare(f"a refused view left a trace: {sql}\n{error}")
            return
        view.to_arrow(multiplicity=True)
        view.drop()
        self._compare(f"a dropped view left a trace: {sql}")

    def _compare(self, what: str) -> None:
        _assert_same(observed(self.tried), observed(self.spared), what)
        assert self.heard[self.tried] == self.heard[self.spared], f"callbacks: {what}"

    def _check_snapshot(self) -> None:
        with TemporaryDirectory() as directory:
            self.tried.save(f"{directory}/snapshot")
            with everview.restore(f"{directory}/snapshot") as restored:
                shown, again = observed(self.tried), observed(restored)
                # The trees of a restored session are chosen anew.
                for found in (shown, again):
                    for name in [n for n in found if n.endswith(("metrics", "lookups"))]:
                        del found[name]
                _assert_same(again, shown, "a snapshot taken after a refused batch")

    def close(self) -> None:
        """Free the sessions."""
        self.tried.close()
        self.spared.close()


def _built(shown: Mapping[str, Any]) -> dict[str, Any]:
    """What a session that is built anew must share."""
    return {name: found for name, found in shown.items() if name != "version"}


def _assert_same(found: Mapping[str, Any], expected: Mapping[str, Any], what: str) -> None:
    differing: Sequence[str] = [name for name in expected if found.get(name) != expected[name]]
    assert not differing, f"{what}\n" + "\n".join(f"{n}: {found.get(n)}, expected {expected[n]}" for n in differing)
