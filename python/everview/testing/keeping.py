"""A session whose tables keep nothing but what views read, beside one whose tables keep all rows: whatever is valid gives the same.

A batch that the tables with rows refuse because a deleted row is not there is another matter: the other session refuses it and is as it was,
or it does not notice, and is as it was once the inverse batch has been applied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everview.errors import ChangeError, SchemaError
from everview.session.session import Session
from everview.session.state import SessionState
from everview.testing.fallible import Way
from everview.testing.oracle import MULTIPLICITY
from everview.testing.refusals import Changes, applied, bag, observed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everview.schema.table import Table

KEEP_VIEWS = " TBLPROPERTIES ('everview.keep' = 'views')"


def without_keys(tables: Sequence[Table]) -> tuple[Table, ...]:
    """The tables as they may be declared when they keep no rows."""
    return tuple(replace(table, primary_key=(), retention=None) for table in tables)


class KeptTwice:
    """The two sessions. ``queries`` are the views by name, each of which may read those before it."""

    def __init__(self, ddl: Sequence[str], queries: Mapping[str, str], text_bytes: int | None = None) -> None:
        self.rows = Session(SessionState(text_bytes=text_bytes))
        self.views = Session(SessionState(text_bytes=text_bytes))
        self.unnoticed = self.refused = 0
        self.rows.execute(";\n".join(ddl))
        self.views.execute(";\n".join(text + KEEP_VIEWS for text in ddl))
        for session in (self.rows, self.views):
            for name, sql in queries.items():
                session.create_view(name, sql, update_rates=dict.fromkeys(session.tables, 1))

    def apply(self, changes: Mapping[str, Any], way: Way = Way.DELTAS) -> None:
        """One batch in both sessions, with all that must hold."""
        before = observed(self.views)
        try:
            expected = applied(self.rows, dict(changes), way)
        except ChangeError as error:
            if error.code == "ROW_NOT_FOUND":
                self._apply_invalid(changes, before)
            else:
                self._refuse(changes, way, before, error.code)
            return
        found = applied(self.views, dict(changes), way)
        assert {n: bag(d) for n, d in found.items()} == {n: bag(d) for n, d in expected.items()}, f"deltas of {changes}"
        self.check()

    def check(self) -> None:
        """The views of both sessions show the same."""
        shown, expected = (
            {name: seen for name, seen in observed(session).items() if name.endswith(("rows", "count()", "lookups"))}
            for session in (self.views, self.rows)
        )
        assert shown == expected

    def _refuse(self, changes: Mapping[str, Any], way: Way, before: dict[str, Any], code: str) -> None:
        found = ""
        try:
            applied(self.views, dict(changes), way)
        except (ChangeError, SchemaError) as error:
            found = error.code
        assert found == code, f"refused by {found or 'nothing'}, not by {code}: {changes}"
        self.refused += 1
        assert observed(self.views) == before, "a refused batch left a trace"

    def _apply_invalid(self, changes: Mapping[str, Any], before: dict[str, Any]) -> None:
        try:
            self.views.apply(changes)
        except ChangeError:
            self.refused += 1
            assert observed(self.views) == before, "a refused batch left a trace"
            return
        self.unnoticed += 1
        self.views.apply(_inverse(changes))
        after = observed(self.views)
        assert {n: s for n, s in after.items() if n != "version"} == {n: s for n, s in before.items() if n != "version"}

    def close(self) -> None:
        """Free the sessions."""
        self.rows.close()
        self.views.close()


def _inverse(changes: Mapping[str, Any]) -> Changes:
    return {name: [row | {MULTIPLICITY: -row.get(MULTIPLICITY, 1)} for row in rows] for name, rows in changes.items()}
