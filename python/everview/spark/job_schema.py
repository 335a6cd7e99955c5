"""What can be said of a job's tables and views before Spark runs: columns from DDL text, and whether the SQL fits them.

Spark itself parses DDL in its JVM only, and starting that takes seconds. Here the same text goes through everview's own parser, column by column;
a column of a type that everview lacks is left out, as ``inputs.declare`` does. What is not known here (a table without a schema, a column left
out) is not judged: Spark has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from everview.errors import EverviewError, SchemaError, SqlParseError, UnsupportedQueryError
from everview.layout.layout import lay_out
from everview.lower import lower_query
from everview.plan.output_key import is_key, output_key
from everview.query.logical_view import LogicalView
from everview.schema.datatype import Kind
from everview.schema.table import Column, Table
from everview.spark.job_keys import job_error
from everview.sql import CreateTable, parse_statements
from everview.sql.mentions import tables_mentioned
from everview.sql.reject import close_matches

_COLUMN = re.compile(r"\s*(`(?:[^`]|``)+`|[^\s:`]+)\s*(?::|\s)\s*(\S.*)", re.DOTALL)
_TYPES = (
    *(
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal",
        "string",
        "binary",
        "date",
        "timestamp",
    ),
    *("timestamp_ntz", "array", "map", "struct"),
)


class SchemaTextError(ValueError):
    """A schema text that is not a list of columns; ``hint`` is a way out."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table as its schema text has it. ``unread``: names of columns whose types everview lacks, in lower case."""

    table: Table
    unread: frozenset[str]

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.table.columns] + sorted(self.unread)

    def has(self, column: str) -> bool:
        return column.lower() in {name.lower() for name in self.names}

    def keyed(self, key: Sequence[str]) -> KnownTable:
        """The table with a primary key, as far as the types of its columns are known."""
        names = {c.name.lower(): c.name for c in self.table.columns}
        if not key or any(part.lower() not in names for part in key):
            return self
        return replace(self, table=replace(self.table, primary_key=tuple(names[part.lower()] for part in key)))


def read_schema(name: str, text: str) -> KnownTable:
    """The columns of a DDL text such as ``id BIGINT, name STRING``."""
    columns: list[Column] = []
    unread: set[str] = set()
    for part in _parts(text):
        found = _COLUMN.fullmatch(part)
        if found is None:
            raise SchemaTextError(
                f"has {part.strip()!r}, which is not a column", "write it like 'id BIGINT, name STRING'"
            )
        column, kind = found[1].strip("`").replace("``", "`"), found[2].strip()
        if column.lower() in {c.name.lower() for c in columns} | unread:
            raise SchemaTextError(f"has the column `{column}` twice", "leave one of them out")
        try:
            (statement,) = parse_statements(f"CREATE TABLE t (`{column.replace('`', '``')}` {kind})")
        except UnsupportedQueryError:
            unread.add(column.lower())
            continue
        except (EverviewError, ValueError):
            word = re.match(r"\w*", kind)
            hint = close_matches("" if word is None else word[0], _TYPES) or "use a type of Spark SQL"
            raise SchemaTextError(f"gives the column `{column}` the type {kind!r}", hint) from None
        assert isinstance(statement, CreateTable)
        declared = statement.table.columns[0]
        if declared.type.kind in (Kind.CHAR, Kind.VARCHAR) or kind.upper() == "VARCHAR":
            raise SchemaTextError(f"has {part.strip()!r}: sources have no such type in Spark", "use STRING")
        columns.append(Column(declared.name, declared.type, nullable=True))
    return KnownTable(Table(name, tuple(columns)), frozenset(unread))


def _parts(text: str) -> Iterator[str]:
    """A list split at its commas, those within brackets and quotes left alone."""
    depth, quote, start = 0, "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'\"":
            quote = char
        elif char in "(<":
            depth += 1
        elif char in ")>":
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def check_sql(
    file: Path, name: str, sql: str, tables: Mapping[str, KnownTable | None], *, shards: int
) -> LogicalView | None:
    """A view, or the error that its SQL has; None if a table it may read is not known (``None`` in ``tables``)."""
    with sql_errors(file, name):
        mentioned = tables_mentioned(sql)
    if any(known is None and t.lower() in mentioned for t, known in tables.items()):
        return None
    known = {t.lower(): k for t, k in tables.items() if k is not None}
    given = {t: k.table for t, k in known.items()}
    try:
        with sql_errors(file, name):
            view = lower_query(name, sql, given)
            lay_out(view, given, shards)
    except SchemaError as error:
        left_out = {column for k in known.values() for column in k.unread}
        if error.code == "UNKNOWN_COLUMN" and any(f"`{column}`" in error.message.lower() for column in left_out):
            return None
        raise
    return view


@contextmanager
def sql_errors(file: Path, view: str) -> Iterator[None]:
    """Errors of a view's SQL say where it is."""
    try:
        yield
    except (SqlParseError, SchemaError, UnsupportedQueryError) as error:
        message = f"{file.name}: the SQL of `views.{view}`: {error.message}"
        parameters = error.parameters | {"file": str(file), "key": f"views.{view}"}
        raise type(error)(error.code, message, hint=error.hint, sql=error.sql, span=error.span, **parameters) from None


def check_sink_key(file: Path, name: str, key: tuple[str, ...] | None, view: LogicalView) -> None:
    """Refuse a sink's key that does not identify a row of a view whose key is known. Where none is, the data may still have one."""
    known = output_key(view)
    if key is None or known is None or is_key(view, key):
        return
    message = f"is {', '.join(key)}, which does not identify a row of the view"
    hint = f"the key of the view is {', '.join(known)}" if known else "the view has one row: leave the key out"
    raise job_error("JOB_INVALID_VALUE", file, f"views.{name}.sink.key", message, hint)
