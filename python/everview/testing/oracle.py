"""Recomputation in DuckDB: what a view must hold, by another engine.

What: the rows of the base tables are loaded into DuckDB, the query is run there, and bags of rows are compared.
Representation: a query is a text in Spark's dialect and, where DuckDB's meaning or spelling differs, another for DuckDB (``Sql``).
Rows are tuples of Python values. Two forms of a row serve as dictionary keys: its meaning (``meaning``: -0.0 is 0.0, NaN is NaN) and
its bits (``bits``: doubles by their representation).
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import duckdb
import pyarrow as pa

from everview.schema.arrow import arrow_schema
from everview.schema.datatype import BIGINT, DOUBLE, DataType, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from everview.schema.table import Table
    from everview.session.session import Session

MULTIPLICITY = "_multiplicity"
RELATIVE = 1e-9
Row = tuple[Any, ...]
_NAN = "\x00NaN"
_WIDEST = 20  # above the length of every CHAR(n) and literal that tests compare


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL in both dialects; ``type`` is Spark's."""

    spark: str
    duckdb: str
    type: DataType = BIGINT

    def __repr__(self) -> str:
        return self.spark


def sql(template: str, *parts: Sql, type: DataType = BIGINT, duckdb: str | None = None) -> Sql:  # noqa: A002
    """``template`` (and ``duckdb`` where it differs) with the parts put into its braces."""
    return Sql(
        template.format(*(p.spark for p in parts)),
        (template if duckdb is None else duckdb).format(*(p.duckdb for p in parts)),
        type,
    )


def widened(part: Sql, type: DataType) -> Sql:  # noqa: A002
    """``part`` where Spark takes it for a ``type``: FLOAT with any other number is DOUBLE, a small integer with a bare number INT; not in DuckDB."""
    return Sql(part.spark, f"CAST({part.duckdb} AS {str(type).upper()})", type)


def padded(*operands: Sql) -> tuple[Sql, ...]:
    """Operands of a comparison or of IN. Spark pads CHAR(n) columns and literals among themselves, so that padding does not count.

    Literals to be compared with a CHAR(n) have that type here. BETWEEN, LIKE and functions see the padding, as they do in DuckDB.
    """
    if any(o.type.kind is not Kind.CHAR for o in operands):
        return operands
    return tuple(Sql(o.spark, f"RPAD({o.duckdb}, {_WIDEST}, ' ')", o.type) for o in operands)


def compared(operator: str, one: Sql, two: Sql) -> Sql:
    """A comparison. A text that is compared with bytes is its UTF-8; DuckDB would read escapes in it."""
    if Kind.BINARY in (one.type.kind, two.type.kind):
        one, two = (Sql(o.spark, f"ENCODE({o.duckdb})", o.type) if o.type.is_string else o for o in (one, two))
    return sql(f"{{}} {operator} {{}}", *padded(one, two), type=DataType(Kind.BOOLEAN))


def total(argument: Sql) -> Sql:
    """SUM with Spark's type. A FLOAT is added up as a DOUBLE."""
    data_type = argument.type
    if data_type.kind is Kind.DECIMAL:
        return sql("SUM({})", argument, type=DataType(Kind.DECIMAL, min(38, data_type.precision + 10), data_type.scale))
    if data_type.is_floating:
        return sql("SUM({})", widened(argument, DOUBLE), type=DOUBLE)
    return sql("SUM({})", argument)


def average(argument: Sql) -> Sql:
    """AVG. Spark's of a decimal is a decimal with four digits more, rounded half up; DuckDB's is a double."""
    if argument.type.kind is not Kind.DECIMAL:
        return sql("AVG({})", widened(argument, DOUBLE) if argument.type.is_floating else argument, type=DOUBLE)
    precision, scale = argument.type.precision, argument.type.scale
    total = f"SUM(CAST({{0}} * {10**scale} AS HUGEINT))"
    rounded = f"(SIGN({total}) * ((ABS({total}) * 20000 + COUNT({{0}})) // NULLIF(2 * COUNT({{0}}), 0)))"
    unit = f"CAST('0.{'0' * (scale + 3)}1' AS DECIMAL({scale + 4},{scale + 4}))"
    precision, scale = min(38, precision + 4), scale + 4
    exact = f"CAST(CAST({rounded} AS DECIMAL({38 - scale},0)) * {unit} AS DECIMAL({precision},{scale}))"
    return sql("AVG({0})", argument, type=DataType(Kind.DECIMAL, precision, scale), duckdb=exact)


_RULES = (
    (re.compile(r"\bSTRING\b", re.IGNORECASE), "VARCHAR"),
    (re.compile(r"\bdate_add\(([^(),]+),([^(),]+)\)", re.IGNORECASE), r"(\1 + \2)"),
    (re.compile(r"\bconcat\(([^(),]+),([^(),]+)\)", re.IGNORECASE), r"(\1 || \2)"),
    (re.compile(r"\bsubstring\(([^(),]+), *0 *,", re.IGNORECASE), r"substring(\1, 1,"),
    (re.compile(r"\bDIV\b", re.IGNORECASE), "//"),
    (re.compile("`"), '"'),
)


def to_duckdb(text: str) -> str:
    """Spark SQL written by hand in DuckDB's dialect: names of types and functions.

    AVG and division of decimals mean different things in both and cannot be told from the text: give both texts (``Sql``) for these.

    >>> to_duckdb("SELECT CAST(a AS STRING) AS x, date_add(d, 1) AS y FROM t")
    'SELECT CAST(a AS VARCHAR) AS x, (d + 1) AS y FROM t'
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def _column_type(data_type: DataType) -> str:
    """Texts as they are stored, CHAR(n) padded; timestamps without a zone, all of them being in UTC."""
    other = {Kind.BINARY: "BLOB", Kind.TIMESTAMP_NTZ: "TIMESTAMP"}.get(data_type.kind)
    return "VARCHAR" if data_type.is_string else other or str(data_type).upper()


def _without_zones(rows: pa.Table) -> pa.Table:
    fields = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(fields))


class Oracle:
    """A DuckDB database that is loaded anew for every recomputation."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": 1})
        self._created: dict[str, Table] = {}

    def load(self, tables: Mapping[str, Table], rows: Mapping[str, pa.Table]) -> None:
        """Put these rows, duplicates repeated, into these tables; other tables are left as they are."""
        for name, table in tables.items():
            if self._created.get(name) != table:
                columns = ", ".join(f'"{c.name}" {_column_type(c.type)}' for c in table.columns)
                self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" ({columns})')
                self._created[name] = table
            else:
                self._connection.execute(f'TRUNCATE "{name}"')
            if rows[name].num_rows:
                self._connection.from_arrow(_without_zones(rows[name])).insert_into(name)

    def run(self, query: str | Sql) -> list[Row]:
        """The rows of a query over the loaded tables."""
        text = query.duckdb if isinstance(query, Sql) else to_duckdb(query)
        return self._connection.execute(text).fetchall()

    def recompute(self, session: Session, query: str | Sql) -> list[Row]:
        """The rows of a query over the tables of a session as they are now."""
        self.load(session.tables, {name: repeated(session.table_rows(name)) for name in session.tables})
        return self.run(query)

    def close(self) -> None:
        """Free the database."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# ---- rows ------------------------------------------------------------------------------------------------------------


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table as tuples."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def repeated(table: pa.Table) -> pa.Table:
    """Rows with ``_multiplicity`` (its last column) as rows repeated."""
    counts = table.column(MULTIPLICITY).to_pylist()
    indices = [i for i, count in enumerate(counts) for _ in range(count)]
    return table.select(table.column_names[:-1]).take(pa.array(indices, type=pa.int64()))


def table_of(table: Table, rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table with the table's schema."""
    return pa.Table.from_pylist(
        [dict(zip((c.name for c in table.columns), r, strict=True)) for r in rows], arrow_schema(table)
    )


def meaning(row: Row) -> Row:
    """The row as SQL compares it: -0.0 is 0.0, NaN is NaN, NULL is NULL."""
    return tuple(_meaning(v) if isinstance(v, float) else v for v in row)


def bits(row: Row) -> Row:
    """The row bit by bit."""
    return tuple(
        struct.pack(">d", v) if isinstance(v, float) else (str(v) if isinstance(v, Decimal) else v) for v in row
    )


def _meaning(value: float) -> float | str:
    return _NAN if math.isnan(value) else value + 0.0


def converted(rows: Iterable[Row], schema: pa.Schema) -> list[Row]:
    """Rows of DuckDB as values of the view's types: its numbers are of other types, of the same value, and its timestamps lack the zone."""
    converters = [_converter(t) for t in schema.types]
    if not any(converters):
        return list(rows)
    return [
        tuple(c(v) if c is not None and v is not None else v for v, c in zip(row, converters, strict=True))
        for row in rows
    ]


def _converter(kind: pa.DataType) -> Callable[[Any], Any] | None:
    if pa.types.is_floating(kind):
        return float
    return (lambda v: v.replace(tzinfo=UTC)) if pa.types.is_timestamp(kind) and kind.tz is not None else None


def difference(found: Sequence[Row], expected: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of each bag that the other lacks; doubles are equal within 1e-9 relative."""
    one, two = Counter(map(meaning, found)), Counter(map(meaning, expected))
    left, right = list((one - two).elements()), list((two - one).elements())
    for row in list(left):
        partner = next((other for other in right if is_close(row, other)), None)
        if partner is not None:
            left.remove(row)
            right.remove(partner)
    return left, right


def is_close(one: Row, two: Row) -> bool:
    """Whether two rows differ in doubles only, and by no more than 1e-9 relative."""
    return len(one) == len(two) and all(_is_close(a, b) for a, b in zip(one, two, strict=True))


def _is_close(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=RELATIVE)
    return a == b and isinstance(a, bool) == isinstance(b, bool)
