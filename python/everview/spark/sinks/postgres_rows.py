"""The rows of a PostgreSQL table, changed by a batch.

The net change is copied into a temporary table; rows are then updated, deleted and inserted by statements over all of it. Those that update or
delete must touch exactly as many rows as were staged for them, or the batch fails with the row that is not there.

NULL is equal to NULL here, but PostgreSQL has neither index scans nor hash joins for ``IS NOT DISTINCT FROM``. Rows are therefore matched per
*null pattern*, the set of their matched columns that are NULL: these with IS NULL, all others with ``=``, and a statement per pattern of
the batch. Most keys have one pattern. With a key, the unique index finds the rows: O(batch). A bag is scanned once per pattern of the rows
that leave, unless the table has an index that helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, LiteralString

import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import SinkError
from everview.spark.sinks.changes import MULTIPLICITY, above_one, first_row
from everview.spark.sinks.progress import missing_row, repeated_key

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg.sql import Composable, Composed, Identifier

DELETED, OLD, NEW, INSERTED = range(4)  # kinds of staged rows
Pattern = tuple[bool, ...]  # per matched column: is it NULL


def run_sql(connection: Connection[tuple[Any, ...]], template: LiteralString, *parts: Any) -> Cursor[tuple[Any, ...]]:
    """Run a query with parts filled in, quoted as names or literals. There are no parameters: names may contain ``%``."""
    return connection.execute(_filled(template, *parts))


def _filled(template: LiteralString, *parts: Any) -> Composed:
    from psycopg.sql import SQL, Composable, Literal

    return SQL(template).format(*(part if isinstance(part, Composable) else Literal(part) for part in parts))


@dataclass(frozen=True, slots=True)
class Staged:
    """A net change as rows of the temporary table."""

    rows: pa.Table
    kinds: list[int]
    numbers: list[int]  # unique, but shared by OLD and NEW of an update
    copies: list[int]
    patterns: list[Pattern]

    def expected(self, kind: int) -> Counter[Pattern]:
        """How many rows of the table a kind concerns, by pattern."""
        found: Counter[Pattern] = Counter()
        for each, copies, pattern in zip(self.kinds, self.copies, self.patterns, strict=True):
            if each == kind:
                found[pattern] += copies
        return found


def staged(net: pa.Table, key: tuple[str, ...] | None) -> Staged:
    """Sort a net change into kinds: with a key, a row that left and one that came with the same key are an update."""
    rows, multiplicities = net.drop_columns([MULTIPLICITY]), net[MULTIPLICITY].to_pylist()
    kinds = [DELETED if m < 0 else INSERTED for m in multiplicities]
    numbers = list(range(len(kinds)))
    if key is not None:
        numbered = net.select(list(key)).append_column(MULTIPLICITY, pa.array(numbers, pa.int64()))
        by_key = numbered.group_by(list(key), use_threads=False).aggregate(
            [(MULTIPLICITY, "min"), (MULTIPLICITY, "max")]
        )
        for one, other in zip(*(by_key[f"{MULTIPLICITY}_{f}"].to_pylist() for f in ("min", "max")), strict=True):
            if one != other:
                numbers[other] = one
                kinds[one], kinds[other] = (OLD, NEW) if multiplicities[one] < 0 else (NEW, OLD)
    nulls = [pc.is_null(rows[name]).to_pylist() for name in key or rows.column_names]
    return Staged(rows, kinds, numbers, [abs(m) for m in multiplicities], list(zip(*nulls, strict=True)))


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table within a transaction."""

    connection: Connection[tuple[Any, ...]]
    name: Identifier
    label: str
    types: dict[str, str]
    key: tuple[str, ...] | None

    def apply(self, net: pa.Table) -> None:
        """Change the rows by a net change that is not empty."""
        from psycopg.errors import UniqueViolation

        self._check_keys(net)
        batch = staged(net, self.key)
        numbers = {pattern: n for n, pattern in enumerate(dict.fromkeys(batch.patterns))}
        self._copy(batch, numbers)
        try:
            with (
                self.connection.transaction()
            ):  # a savepoint: the staged rows survive, to look for the row that is missing
                for pattern, count in batch.expected(OLD).items():
                    _check_count(count, self._update(pattern, numbers[pattern]))
                for pattern, count in batch.expected(DELETED).items():
                    _check_count(count, self._delete(pattern, numbers[pattern]))
                self._insert()
        except WrongCountError:
            raise missing_row(self.label, self._missing(batch, numbers)) from None
        except UniqueViolation as error:
            detail = error.diag.message_detail or str(error)
            message = f"{self.label} would have several rows with one key: {detail}"
            raise SinkError("SINK_DUPLICATE_KEY", message, hint="name more columns in key, or leave it out") from error

    def _check_keys(self, net: pa.Table) -> None:
        """Refuse a batch that has two rows for one key: no row can come of it, whatever the table holds."""
        if self.key is None:
            return
        sizes = net.set_column(net.num_columns - 1, MULTIPLICITY, pc.abs(net[MULTIPLICITY]))
        for side in (pc.greater(net[MULTIPLICITY], 0), pc.less(net[MULTIPLICITY], 0)):
            twice = above_one(sizes.filter(side), self.key)
            if twice.num_rows:
                raise repeated_key(self.label, first_row(twice))

    # ---- statements --------------------------------------------------------------------------------------------------

    def _copy(self, batch: Staged, numbers: dict[Pattern, int]) -> None:
        from psycopg import DataError
        from psycopg.sql import SQL

        columns = [SQL("{} ").format(self._staged(name)) + SQL(kind) for name, kind in self.types.items()]
        run_sql(
            self.connection,
            "CREATE TEMPORARY TABLE everview_changes ({}, kind smallint, number bigint, copies bigint, pattern integer) ON COMMIT DROP",
            SQL(", ").join(columns),
        )
        try:
            values = [column.to_pylist() for column in batch.rows.columns]
            patterns = [numbers[pattern] for pattern in batch.patterns]
            with self.connection.cursor().copy("COPY pg_temp.everview_changes FROM STDIN") as copy:
                for row in zip(*values, batch.kinds, batch.numbers, batch.copies, patterns, strict=True):
                    copy.write_row(row)
        except (DataError, ValueError, OverflowError) as error:
            message = f"{self.label} cannot hold a value: {error}"
            raise SinkError("SINK_VALUE", message, hint="replace such values in the view") from error
        self.connection.execute("ANALYZE pg_temp.everview_changes")

    def _update(self, pattern: Pattern, number: int) -> int:
        others = [name for name in self.types if name not in (self.key or ())]
        return run_sql(
            self.connection,
            "UPDATE {} t SET {} FROM pg_temp.everview_changes s JOIN pg_temp.everview_changes n USING (number)"
            " WHERE s.kind = {} AND n.kind = {} AND s.pattern = {} AND {}",
            self.name,
            _joined(", ", (_filled("{} = n.{}", _named(name), self._staged(name)) for name in others)),
            OLD,
            NEW,
            number,
            self._same(pattern),
        ).rowcount

    def _delete(self, pattern: Pattern, number: int) -> int:
        """Delete as many copies as are to leave of each row; a row's place is unique within its partition only."""
        return run_sql(
            self.connection,
            "DELETE FROM {} t USING (SELECT t.tableoid AS part, t.ctid AS place, s.copies,"
            " row_number() OVER (PARTITION BY s.number) AS copy FROM {} t JOIN pg_temp.everview_changes s ON {}"
            " WHERE s.kind = {} AND s.pattern = {}) found"
            " WHERE found.copy <= found.copies AND t.tableoid = found.part AND t.ctid = found.place",
            self.name,
            self.name,
            self._same(pattern),
            DELETED,
            number,
        ).rowcount

    def _insert(self) -> None:
        run_sql(
            self.connection,
            "INSERT INTO {} ({}) SELECT {} FROM pg_temp.everview_changes s, generate_series(1, s.copies) WHERE s.kind = {}",
            self.name,
            _joined(", ", map(_named, self.types)),
            _joined(", ", (_filled("s.{}", self._staged(name)) for name in self.types)),
            INSERTED,
        )

    def _missing(self, batch: Staged, numbers: dict[Pattern, int]) -> dict[str, Any]:
        """A staged row that the table does not hold as often as it is to lose it."""
        for pattern, kind in chain(
            zip(batch.expected(OLD), repeat(OLD)), zip(batch.expected(DELETED), repeat(DELETED))
        ):
            found = run_sql(
                self.connection,
                "SELECT s.number FROM pg_temp.everview_changes s LEFT JOIN {} t ON {} WHERE s.kind = {} AND s.pattern = {}"
                " GROUP BY s.number, s.copies HAVING count(t.ctid) < s.copies LIMIT 1",
                self.name,
                self._same(pattern),
                kind,
                numbers[pattern],
            ).fetchone()
            if found is not None:
                places = zip(batch.kinds, batch.numbers, strict=True)
                place = next(n for n, here in enumerate(places) if here == (kind, found[0]))
                return first_row(batch.rows.slice(place, 1))
        return {}

    def _same(self, pattern: Pattern) -> Composed:
        """The condition that a row t of the table is the staged row s, whose matched columns have this null pattern."""
        matched = self.key or tuple(self.types)
        terms = []
        for name, is_null in zip(matched, pattern, strict=True):
            here = _named(name)
            terms.append(_filled("t.{} IS NULL", here) if is_null else _filled("t.{} = s.{}", here, self._staged(name)))
        others = [name for name in self.types if name not in matched]
        terms += [_filled("t.{} IS NOT DISTINCT FROM s.{}", _named(name), self._staged(name)) for name in others]
        return _joined(" AND ", terms)

    def _staged(self, name: str) -> Identifier:
        """The staged column for a column of the view; its name cannot clash with the others of the temporary table."""
        return _named(f"c{list(self.types).index(name)}")


class WrongCountError(Exception):
    """A statement touched fewer or more rows than were staged for it."""


def _check_count(expected: int, found: int) -> None:
    if expected != found:
        raise WrongCountError


def _named(name: str) -> Identifier:
    from psycopg.sql import Identifier

    return Identifier(name)


def _joined(separator: LiteralString, parts: Iterable[Composable]) -> Composed:
    from psycopg.sql import SQL

    return SQL(separator).join(parts)
