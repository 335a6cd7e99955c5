"""Hypothesis strategies: schemas and acyclic queries of a chosen class and kind over them, with a stream of changes.

A ``Scenario`` is a schema, a query over it in both dialects, and a valid stream of batches; ``scenarios(query_class, kind)`` draws them.
Everything reaches everview as SQL text and rows, through the public API.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from everview.analysis.classification import QueryClass
from everview.schema.datatype import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Kind,
    decimal,
)
from everview.schema.table import Column, Table
from everview.testing.oracle import Sql, average, compared, padded, sql, total, widened
from everview.testing.shapes import Shape, shapes
from everview.testing.streams import Batch, streams
from everview.testing.values import CHAR, LONG, MONEY, VALUES, VARCHAR, WIDE_CHAR

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn


class QueryKind(StrEnum):
    """What a query does with its join."""

    FULL = "full join"
    BAG = "bag projection"
    DISTINCT = "distinct"
    GROUP = "group by"
    GLOBAL = "global aggregate"
    OVER = "expressions over aggregates"
    HAVING = "having"


TYPES = (
    *(BIGINT, INT, STRING, DOUBLE, MONEY, DATE, BOOLEAN, LONG, SMALLINT, FLOAT, TIMESTAMP, CHAR, VARCHAR),
    *(TINYINT, BINARY, TIMESTAMP_NTZ),
)
SMALL = (TINYINT, SMALLINT)
# Columns of one family are joined with each other; the first family comes most often, which makes self-joins likely.
FAMILIES = (
    (BIGINT, INT, BIGINT, MONEY, SMALLINT, TINYINT),
    (STRING, STRING, VARCHAR),
    (DATE,),
    (MONEY, LONG),
    (DOUBLE,),
    (BOOLEAN,),
    (SMALLINT,),
    (TINYINT,),
    (BINARY,),
    (FLOAT, FLOAT, DOUBLE),
    (TIMESTAMP, TIMESTAMP, DATE),
    (TIMESTAMP_NTZ, TIMESTAMP_NTZ, DATE, TIMESTAMP),
    (BINARY, STRING),
    (CHAR, CHAR, WIDE_CHAR, VARCHAR),
)
# From here on a join of two types of the family is one of computed values: a column widened or padded is a variable beside the column itself,
# which may change the class of the query and, with a third table, even make it cyclic.
UNEQUAL = 9


@dataclass(frozen=True)
class Scenario:
    """Tables, a query and a stream; ``late`` is the number of batches after which a second view is created."""

    tables: tuple[Table, ...]
    query: Sql
    batches: tuple[Batch, ...]
    late: int = 0
    end: str = "at once"
    rates: Mapping[str, int] | None = field(default=None)

    @property
    def ddl(self) -> str:
        """The statements that create the tables."""
        return ";\n".join(create_table(t) for t in self.tables)

    def __repr__(self) -> str:
        lines = [self.ddl, self.query.spark]
        for n, batch in enumerate(self.batches):
            lines.append(f"batch {n} ({batch.form}, deltas={batch.deltas}):")
            lines += [f"  {c.table} {c.type} {c.row}" for c in batch.changes]
        return "\n".join([*lines, f"late={self.late} end={self.end!r} rates={self.rates}"])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


def create_table(table: Table) -> str:
    """CREATE TABLE, in Spark's dialect."""
    columns = [f"{c.name} {str(c.type).upper()}{'' if c.nullable else ' NOT NULL'}" for c in table.columns]
    key = [f"PRIMARY KEY ({', '.join(table.primary_key)})"] if table.primary_key else []
    return f"CREATE TABLE {table.name} ({', '.join(columns + key)})"


# ---- schemas that fit a shape ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Occurrence:
    """An atom: its alias, its table, and the column of each variable."""

    alias: str
    table: _Draft
    columns: dict[int, int]


@dataclass(slots=True)
class _Draft:
    name: str
    types: list[DataType]


def _column(occurrence: _Occurrence, index: int) -> Sql:
    name = f"{occurrence.alias}.c{index}"
    return Sql(name, name, occurrence.table.types[index])


@st.composite
def _occurrences(draw: DrawFn, shape: Shape, numeric: frozenset[int], *, exact: bool) -> list[_Occurrence]:
    """Tables for the atoms of a shape; an atom takes a table that is there if its columns fit (a self-join)."""
    uses = Counter(v for atom in shape.atoms for v in atom)
    family: dict[int, tuple[DataType, ...]] = {}
    for v in sorted(uses):
        index = 0 if v in numeric else max(0, draw(st.integers(-7 if exact else -4, len(FAMILIES) - 1)))
        family[v] = FAMILIES[index]
        if index >= UNEQUAL and (exact or uses[v] != 2):
            family[v] = (draw(st.sampled_from(family[v])),)
    drafts: list[_Draft] = []
    found: list[_Occurrence] = []
    for number, atom in enumerate(shape.atoms):
        fitting = [(d, c) for d in drafts if (c := _fit(d, [family[v] for v in atom])) is not None]
        reuse = draw(st.booleans())
        if fitting and reuse:
            draft, columns = draw(st.sampled_from(fitting))
        else:
            types = [draw(st.sampled_from(family[v])) for v in atom]
            columns = list(range(len(types)))
            types += draw(st.lists(st.sampled_from(TYPES), max_size=2))
            draft = _Draft(f"t{len(drafts)}", types)
            drafts.append(draft)
        found.append(_Occurrence(f"x{number}", draft, dict(zip(atom, columns, strict=True))))
    return found


def _fit(draft: _Draft, families: Sequence[Sequence[DataType]]) -> list[int] | None:
    """Different columns of a table, one per family, the last ones first (so that self-joins are not on equal columns only)."""
    taken: list[int] = []
    for members in families:
        free = [i for i in reversed(range(len(draft.types))) if i not in taken and draft.types[i] in members]
        if not free:
            return None
        taken.append(free[0])
    return taken


@st.composite
def _table(draw: DrawFn, draft: _Draft) -> Table:
    count = len(draft.types)
    key: list[int] = []
    if draw(st.integers(0, 2)) == 2:
        key = sorted(draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=2)))
    columns = tuple(
        Column(f"c{i}", t, nullable=i not in key and draw(st.integers(0, 3)) > 0) for i, t in enumerate(draft.types)
    )
    return Table(draft.name, columns, tuple(f"c{i}" for i in key))


# ---- expressions -----------------------------------------------------------------------------------------------------


def _literal(value: Any, data_type: DataType) -> Sql:
    if data_type in SMALL:
        return Sql(f"{value}{'Y' if data_type is TINYINT else 'S'}", f"CAST({value} AS {data_type.kind})", data_type)
    if data_type is BINARY:
        return Sql(f"X'{value.hex()}'", f"from_hex('{value.hex()}')", data_type)
    if data_type is TIMESTAMP_NTZ:
        return Sql(f"TIMESTAMP_NTZ '{value}'", f"TIMESTAMP '{value}'", data_type)
    text = str(value).upper()
    if data_type.is_string:
        text = f"'{value.rstrip() if data_type.kind is Kind.CHAR else value}'"
    elif data_type is DATE:
        text = f"DATE '{value}'"
    elif data_type is TIMESTAMP:
        text = f"TIMESTAMP '{value.replace(tzinfo=None)}'"
    elif data_type.is_floating:
        text = f"CAST('{value}' AS {str(data_type).upper()})"
    return Sql(text, text, data_type)


@st.composite
def _conditions(draw: DrawFn, columns: Sequence[Sql], depth: int = 2) -> Sql:
    """A condition over columns of one table."""
    column = draw(st.sampled_from(columns))
    values = [_literal(v, column.type) for v in VALUES[column.type][:4]]
    form = draw(st.integers(0, 7 if depth else 5))
    match form:
        case 0:
            operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
            return compared(operator, column, draw(st.sampled_from(values)))
        case 1:
            return sql(draw(st.sampled_from(["{} IS NULL", "{} IS NOT NULL"])), column)
        case 2:
            membership = draw(st.sampled_from(["{} IN ({}, {})", "{} NOT IN ({}, {})"]))
            return sql(membership, *padded(column, values[0], values[1]))
        case 3:
            return sql("{} BETWEEN {} AND {}", column, values[0], values[-1])
        case 4:
            equal = [c for c in columns if c.type == column.type or {c.type.kind, column.type.kind} == {Kind.CHAR}]
            return compared("=", column, draw(st.sampled_from(equal)))
        case 5:
            if column.type.is_string and draw(st.integers(0, 3)):
                return sql(
                    draw(st.sampled_from(["{} LIKE 'a%'", "{} LIKE '%b'", "LENGTH({}) < 2", "{} LIKE '_'"])), column
                )
            if column.type.is_integer:
                return sql("{} % 2 = {}", column, _literal(draw(st.integers(0, 1)), INT))
            return sql("COALESCE({}, {}) = {}", column, values[0], values[0])
        case 6:
            return sql("NOT ({})", draw(_conditions(columns, depth - 1)))
        case _:
            word = draw(st.sampled_from(["OR", "OR", "AND"]))
            return sql(
                f"({{}} {word} {{}})", draw(_conditions(columns, depth - 1)), draw(_conditions(columns, depth - 1))
            )


@st.composite
def _computed(draw: DrawFn, column: Sql) -> Sql:
    """A value computed from one column."""
    kind = column.type.kind
    if column.type in SMALL:
        if draw(st.integers(0, 2)) == 2:
            form = draw(st.sampled_from(["({} % {})", "COALESCE({}, {})", "CASE WHEN {0} > 1 THEN {1} ELSE {0} END"]))
            return sql(form, column, _literal(2, column.type), type=column.type)
        # A sum that leaves the type is an error; with a bare number, which is an INT, these are INT.
        form = draw(st.sampled_from(["({} + 1)", "({} * 2)", "ABS({} + 0)", "({} % 2)", "-({} - 1)"]))
        return sql(form, widened(column, INT), type=INT)
    if kind in (Kind.BIGINT, Kind.INT):
        form = draw(
            st.sampled_from(
                ["({} + 1)", "({} * 2)", "ABS({})", "({} % 2)", "CASE WHEN {0} > 1 THEN 10 ELSE {0} END", "-{}"]
            )
        )
        return sql(form, column, type=column.type)
    if column.type.is_string:
        form = draw(
            st.sampled_from(
                ["UPPER({})", "LOWER({})", "SUBSTRING({}, 1, 1)", "TRIM({})", "CONCAT({}, 'z')", "COALESCE({}, 'null')"]
            )
        )
        return sql(form, column, type=STRING, duckdb="({} || 'z')" if form.startswith("CONCAT") else None)
    if kind is Kind.BINARY:
        found = {"({} || {})": BINARY, "COALESCE({}, {})": BINARY, "CASE WHEN {0} > {1} THEN {1} ELSE {0} END": BINARY}
        form = draw(st.sampled_from(["LENGTH({})", *found]))
        if form not in found:
            return sql(form, column, type=INT, duckdb="CAST(OCTET_LENGTH({}) AS INT)")
        return sql(form, column, _literal(b"\xff", BINARY), type=BINARY)
    if column.type.is_datetime:
        found = dict.fromkeys(["YEAR({})", "MONTH({})", "DAY({})"], INT)
        if kind is not Kind.DATE:
            found |= dict.fromkeys(["HOUR({})", "SECOND({})"], INT) | {"CAST({} AS DATE)": DATE}
            found |= dict.fromkeys(["DATE_TRUNC('WEEK', {})", "DATE_TRUNC('MINUTE', {})"], TIMESTAMP)
            # Python knows no year 10000.
            found["CASE WHEN YEAR({0}) < 9999 THEN {0} + INTERVAL 1 DAY END"] = column.type
        else:
            found["CAST({} AS TIMESTAMP)"] = TIMESTAMP
        form = draw(st.sampled_from(list(found)))
        return sql(form, column, type=found[form])
    if kind is Kind.DECIMAL:
        return sql(draw(st.sampled_from(["ABS({})", "COALESCE({}, 0.5)", "-{}"])), column, type=column.type)
    if kind is Kind.FLOAT and draw(st.integers(0, 2)) == 2:
        return sql(draw(st.sampled_from(["({0} + {0})", "ABS({})", "-{}"])), column, type=FLOAT)
    if column.type.is_floating:
        form = draw(st.sampled_from(["({} * 2)", "COALESCE({}, CAST('1.5' AS DOUBLE))", "({} / 2)", "({} + 1)"]))
        return sql(form, widened(column, DOUBLE), type=DOUBLE)
    return sql(draw(st.sampled_from(["(NOT {})", "COALESCE({}, FALSE)", "({} IS NULL)"])), column, type=BOOLEAN)


# Digits before the point: what Spark's type of a sum with a MONEY depends on.
DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20, Kind.DECIMAL: 4}


@st.composite
def _combined(draw: DrawFn, columns: Sequence[Sql]) -> Sql:
    """A value computed from several columns, of whatever tables."""
    numbers = [c for c in columns if c.type.is_numeric and c.type is not LONG]
    texts = [c for c in columns if c.type.is_string]
    if len(numbers) > 1 and (not texts or draw(st.booleans())):
        one, two = draw(st.permutations(numbers))[:2]
        form = draw(st.sampled_from(["({} + {})", "({} - {})"]))
        if one.type.is_floating or two.type.is_floating:
            if one.type == two.type:
                return sql(form, one, two, type=one.type)
            return sql(form, *(widened(c, DOUBLE) if c.type is FLOAT else c for c in (one, two)), type=DOUBLE)
        if one.type in SMALL and two.type in SMALL:
            return sql(form, sql("CAST({} AS INT)", one), two, type=INT)
        digits = [DIGITS[c.type.kind] for c in (one, two)]
        result = decimal(max(digits) + 3, 2) if MONEY in (one.type, two.type) else BIGINT
        return sql(form, one, two, type=result)
    if len(texts) > 1:
        one, two = draw(st.permutations(texts))[:2]
        return sql("CONCAT({}, {})", one, two, type=STRING, duckdb="({} || {})")
    one, two = draw(st.sampled_from(columns)), draw(st.sampled_from(columns))
    result = STRING if two.type.is_string else two.type
    return sql("CASE WHEN {} IS NULL THEN {} END", one, two, type=result)


def _columns_of(occurrence: _Occurrence) -> list[Sql]:
    return [_column(occurrence, i) for i in range(len(occurrence.table.types))]


@st.composite
def _argument(draw: DrawFn, occurrences: Sequence[_Occurrence], *, exact: bool) -> Sql | None:
    """A number to sum. ``exact``: one that factors over the tables, so that the class of the query stays as it is."""
    columns = [
        c for o in occurrences for c in _columns_of(o) if c.type.is_numeric and not (exact and c.type.is_floating)
    ]
    if not columns:
        return None
    column = draw(st.sampled_from(columns))
    form = draw(st.integers(0, 5))
    if form == 5 and not exact and len(columns) > 1:
        return draw(_combined(columns))
    if form == 4:
        other = draw(st.sampled_from([c for c in columns if c.type == column.type]))
        if column.type is MONEY:
            return sql("({} * {})", column, other, type=decimal(13, 4))
        if column.type in (INT, *SMALL):
            return sql("(CAST({} AS BIGINT) * {})", column, other)
    if form == 3 and not column.type.is_floating:
        return draw(_computed(column))
    if form == 2:
        result = {TINYINT: INT, SMALLINT: INT, FLOAT: DOUBLE}.get(column.type, column.type)
        return sql("CASE WHEN {0} > 0 THEN {0} ELSE 0 END", column, type=result)
    return column


@st.composite
def _aggregate(draw: DrawFn, occurrences: Sequence[_Occurrence], *, exact: bool) -> Sql:
    form = draw(st.integers(0, 6))
    if form == 0:
        return Sql("COUNT(*)", "COUNT(*)")
    if form == 1:
        return sql("COUNT({})", draw(st.sampled_from([c for o in occurrences for c in _columns_of(o)])))
    argument = draw(_argument(occurrences, exact=exact))
    if argument is None:
        return Sql("COUNT(*)", "COUNT(*)")
    if form == 2:
        return average(argument)
    if form > 4:
        return sql("MIN({})" if form == 5 else "MAX({})", argument, type=argument.type)
    return total(argument)


@st.composite
def _over_aggregates(draw: DrawFn, keys: Sequence[Sql], aggregates: Sequence[Sql]) -> Sql:
    one, two = draw(st.sampled_from(aggregates)), draw(st.sampled_from(aggregates))
    form = draw(st.integers(0, 4))
    if form == 0 and not any(a.type.kind is Kind.DECIMAL and a.type.precision > 30 for a in (one, two)):
        return sql("({} + {})", one, two)
    if form == 1:
        return sql("CASE WHEN COUNT(*) > 1 THEN {} END", one)
    if form == 2:
        return sql("(CAST({} AS DOUBLE) / 4)", one)
    if form == 3 and keys:
        key = draw(st.sampled_from(keys))
        return sql("CASE WHEN {} IS NULL THEN -1 ELSE COUNT(*) END", key)
    return sql("({} IS NULL)", one)


@st.composite
def _having(draw: DrawFn, keys: Sequence[Sql], aggregates: Sequence[Sql]) -> Sql:
    form = draw(st.integers(0, 3))
    if form == 0:
        return Sql("COUNT(*) > 1", "COUNT(*) > 1")
    if form == 1 and keys:
        return sql("{} IS NOT NULL AND COUNT(*) < 4", draw(st.sampled_from(keys)))
    if form == 2:
        return sql("{} IS NULL OR COUNT(*) = 2", draw(st.sampled_from(aggregates)))
    return sql("{} > 1", draw(st.sampled_from(aggregates)))


# ---- queries ---------------------------------------------------------------------------------------------------------


@st.composite
def _from_and_where(draw: DrawFn, occurrences: Sequence[_Occurrence]) -> tuple[Sql, dict[int, Sql]]:
    """FROM and WHERE, and for each variable a column that holds it."""
    terms: dict[int, list[tuple[str, Sql]]] = {}
    for occurrence in occurrences:
        for v, column in occurrence.columns.items():
            term = _column(occurrence, column)
            if terms.get(v) and draw(st.integers(0, 5)) == 5:  # a computed key, joined with a bare one
                if term.type.is_integer:
                    wide = widened(term, INT) if term.type in SMALL else term
                    term = sql(draw(st.sampled_from(["({} + 1)", "({} % 2)", "({} * 2)"])), wide, type=wide.type)
                elif term.type.is_string:
                    term = sql(draw(st.sampled_from(["LOWER({})", "TRIM({})"])), term, type=STRING)
                elif term.type.is_timestamp:  # of the same type: a cast would make another variable of the bare one
                    form = f"CAST(DATE_TRUNC('DAY', {{}}) AS {term.type.kind})"
                    term = sql(form, term, type=term.type, duckdb="DATE_TRUNC('DAY', {})")
            terms.setdefault(v, []).append((occurrence.alias, term))
    equalities: list[tuple[str, Sql]] = []  # by the alias that comes last
    for members in terms.values():
        for n, (alias, term) in enumerate(members[1:], 1):
            partner = members[draw(st.integers(0, n - 1))][1]
            pair = (partner, term) if draw(st.booleans()) else (term, partner)
            equalities.append((alias, compared("=", *pair)))
    filters = [draw(_conditions(_columns_of(o))) for o in occurrences if draw(st.integers(0, 6)) == 6]
    words = ["", ""]
    style = draw(st.integers(0, 1))
    for dialect in (0, 1):
        parts = [f"{o.table.name} {o.alias}" for o in occurrences]
        where = [(f.spark, f.duckdb)[dialect] for f in filters]
        if style:
            text = parts[0]
            for occurrence, part in zip(occurrences[1:], parts[1:], strict=True):
                on = [(e.spark, e.duckdb)[dialect] for alias, e in equalities if alias == occurrence.alias]
                text += f" JOIN {part} ON {' AND '.join(on)}" if on else f" CROSS JOIN {part}"
        else:
            text = ", ".join(parts)
            where = [(e.spark, e.duckdb)[dialect] for _, e in equalities] + where
        words[dialect] = f"FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else "")
    return Sql(words[0], words[1]), {v: members[0][1] for v, members in terms.items()}


@st.composite
def _queries(
    draw: DrawFn, shape: Shape, occurrences: Sequence[_Occurrence], kind: QueryKind, *, exact: bool, spanning: bool
) -> Sql:
    source, bare = draw(_from_and_where(occurrences))
    uses = Counter(v for atom in shape.atoms for v in atom)
    heads = [bare[v] for v in shape.head]
    aggregates: list[Sql] = []
    group = having = None
    items = list(heads)
    if kind in (QueryKind.FULL, QueryKind.BAG, QueryKind.DISTINCT):
        if kind is QueryKind.DISTINCT:  # what one table alone holds may be computed; it is then a variable of its own
            items = [
                draw(_computed(bare[v])) if uses[v] == 1 and draw(st.integers(0, 3)) == 3 else bare[v]
                for v in shape.head
            ]
        if heads and kind is not QueryKind.DISTINCT and draw(st.integers(0, 3)) == 3:
            items.append(draw(_computed(draw(st.sampled_from(heads)))))
        if len(heads) > 1 and draw(st.integers(0, 3)) == 3:
            combined = draw(_combined(heads))
            # Under DISTINCT a value of one table alone is a variable of its own, which may change the class.
            if kind is not QueryKind.DISTINCT or len(set(re.findall(r"\bx\d+\.", combined.spark))) > 1:
                items.append(combined)
        if not exact and kind is QueryKind.DISTINCT and draw(st.booleans()):
            items.append(draw(_combined([c for o in occurrences for c in _columns_of(o)])))
        items = items or [_literal(1, INT)]
    else:
        if kind is not QueryKind.GLOBAL:
            items = [
                draw(_computed(bare[v])) if uses[v] == 1 and draw(st.integers(0, 3)) == 3 else bare[v]
                for v in shape.head
            ]
            if spanning:
                items.append(draw(_combined([c for o in occurrences for c in _columns_of(o)])))
            group = list(items)
        else:
            items = []
        aggregates += draw(st.lists(_aggregate(occurrences, exact=exact), min_size=1, max_size=3))
        if kind is QueryKind.GLOBAL and shape.head:  # the head is what this sum reads: it does not factor
            terms = [sql("CAST({} AS INT)", h) if h.type in SMALL else h for h in heads]
            aggregates.append(sql("SUM(" + " + ".join(["{}"] * len(terms)) + ")", *terms))
        keys = list(items)
        items += aggregates
        if kind is QueryKind.OVER:
            mixed: list[Sql] = draw(st.permutations(items))
            with_keys: bool = draw(st.booleans())
            items = [*(mixed if with_keys else aggregates), draw(_over_aggregates(keys, aggregates))]
        if kind is QueryKind.HAVING or (kind is QueryKind.GLOBAL and draw(st.integers(0, 4)) == 4):
            having = draw(_having(keys, aggregates))
            only_keys: bool = draw(st.booleans())
            items = keys if keys and only_keys else items
    return _select(items, source, group, having, distinct=kind is QueryKind.DISTINCT)


def _select(
    items: Sequence[Sql], source: Sql, group: Sequence[Sql] | None, having: Sql | None, *, distinct: bool
) -> Sql:
    texts = []
    for dialect in ("spark", "duckdb"):
        chosen = ", ".join(f"{getattr(item, dialect)} AS o{n}" for n, item in enumerate(items))
        text = f"SELECT {'DISTINCT ' if distinct else ''}{chosen} {getattr(source, dialect)}"
        if group is not None:
            text += " GROUP BY " + ", ".join(getattr(key, dialect) for key in group)
        if having is not None:
            text += " HAVING " + getattr(having, dialect)
        texts.append(text)
    return Sql(texts[0], texts[1])


# ---- scenarios -------------------------------------------------------------------------------------------------------


@st.composite
def scenarios(
    draw: DrawFn,
    query_class: QueryClass | None,
    kind: QueryKind,
    *,
    spanning: bool = False,
    max_batches: int = 4,
    max_atoms: int = 4,
) -> Scenario:
    """Scenarios whose query is of a class (None: of any; then more expressions are drawn) and of a kind.

    ``spanning`` adds a group key that may read several tables.
    """
    exact = query_class is not None
    if query_class is None:
        full = kind in (QueryKind.FULL, QueryKind.GLOBAL)
        query_class = draw(st.sampled_from(list(QueryClass)[1 if full else 0 :]))
        query_class = QueryClass.Q_HIERARCHICAL if query_class is QueryClass.HIERARCHICAL else query_class
    heads = {QueryKind.FULL: "all", QueryKind.GLOBAL: "none", QueryKind.BAG: "any", QueryKind.DISTINCT: "any"}
    shape = draw(shapes(query_class, head=heads.get(kind, "some"), max_atoms=max_atoms))
    numeric = frozenset(shape.head) if kind is QueryKind.GLOBAL else frozenset[int]()
    occurrences = draw(_occurrences(shape, numeric, exact=exact))
    query = draw(_queries(shape, occurrences, kind, exact=exact, spanning=spanning))
    drafts = {o.table.name: o.table for o in occurrences}
    tables = tuple(draw(_table(d)) for d in drafts.values())
    limit = {1: 20, 2: 14, 3: 9}.get(len(shape.atoms), 6)
    summed = re.search("SUM|AVG", query.spark) is not None
    batches = draw(streams(tables, limit=limit, max_batches=max_batches, summed=summed))
    rates = None
    if draw(st.booleans()):
        rates = {t.name: draw(st.sampled_from([1, 10, 1000])) for t in tables}
    late = draw(st.integers(0, len(batches)))
    return Scenario(
        tables, query, tuple(batches), late, draw(st.sampled_from(["at once", "by table", "by row"])), rates
    )
