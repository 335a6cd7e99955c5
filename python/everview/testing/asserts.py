"""Assertions about views: a view is its recomputation, and its deltas sum up to it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from everview.testing.oracle import MULTIPLICITY, Oracle, Row, Sql, bits, converted, difference, meaning, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from everview.session.session import Session
    from everview.session.view import View


def assert_view_equals(view: View, expected: Sequence[Row]) -> None:
    """The view holds these rows: listed, listed with multiplicities, and counted."""
    table = view.to_arrow()
    assert table.schema == view.schema, f"schema\n{table.schema}\nnot\n{view.schema}"
    table.validate(full=True)
    for field, column in zip(table.schema, table.columns, strict=True):
        assert field.nullable or not column.null_count, f"NULL in `{field.name}`, which is never NULL"
    found = rows_of(table)
    surplus, missing = difference(found, converted(expected, view.schema))
    assert not surplus, f"view `{view.name}` has {_shown(surplus)} too many and lacks {_shown(missing)}\n{view.sql}"
    assert not missing, f"view `{view.name}` lacks {_shown(missing)}\n{view.sql}"
    counted = _counted(view.to_arrow(multiplicity=True), "the result with multiplicities")
    assert all(m > 0 for m in counted.values()), f"a multiplicity is not positive: {counted}"
    assert counted == Counter(map(bits, found)), "the result with multiplicities is not the result"
    assert view.count() == len(found), f"count() is {view.count()} and there are {len(found)} rows"


def assert_view_is_recomputed(session: Session, view: View, oracle: Oracle, sql: str | Sql | None = None) -> None:
    """The view equals its query recomputed in DuckDB from the session's tables."""
    assert_view_equals(view, oracle.recompute(session, view.sql if sql is None else sql))


def assert_deltas_sum(initial: pa.Table, deltas: Iterable[pa.Table], view: View) -> None:
    """The initial result (with multiplicities) and the deltas sum up to the view's result, bit by bit."""
    total = DeltaSum(initial)
    for delta in deltas:
        total.add(delta)
    total.check(view)


class DeltaSum:
    """A running sum of deltas. Every step is checked: net, without zeros, removing only rows that were emitted before."""

    def __init__(self, initial: pa.Table) -> None:
        self.rows = _counted(initial, "the initial result")

    @classmethod
    def of(cls, view: View) -> DeltaSum:
        """Starts at the view's present result."""
        return cls(view.to_arrow(multiplicity=True))

    def add(self, delta: pa.Table) -> None:
        """Add a delta."""
        changes = _counted(delta, "a delta")
        for row, change in changes.items():
            held = self.rows[row] + change
            assert held >= 0, f"a delta removes {-change} of {row} (bits), of which {self.rows[row]} were emitted"
            if held:
                self.rows[row] = held
            else:
                del self.rows[row]

    def check(self, view: View) -> None:
        """The sum is the view's result, bit by bit."""
        found = _counted(view.to_arrow(multiplicity=True), "the result")
        assert self.rows == found, (
            f"the deltas of view `{view.name}` sum up to other rows than its result:\n"
            f"only in the sum: {_shown(list((self.rows - found).elements()))}\n"
            f"only in the result: {_shown(list((found - self.rows).elements()))}\n{view.sql}"
        )


def _counted(table: pa.Table, what: str) -> Counter[Row]:
    """Rows by their bits with multiplicities; each row once, none zero."""
    assert table.column_names[-1] == MULTIPLICITY, f"{what} has no `{MULTIPLICITY}`"
    found: Counter[Row] = Counter()
    means: set[Row] = set()
    for *values, count in rows_of(table):
        row = tuple(values)
        assert count, f"{what} has a multiplicity of zero: {row}"
        assert meaning(row) not in means, f"{what} has a row twice: {row}"
        means.add(meaning(row))
        found[bits(row)] = count
    return found


def _shown(rows: Sequence[Row]) -> str:
    return f"{len(rows)} rows {list(rows[:5])}{' ...' if len(rows) > 5 else ''}"
