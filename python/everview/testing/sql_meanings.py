"""Random queries as meanings: occurrences of tables, equalities, filters, a SELECT list, DISTINCT or groups.

A ``Meaning`` is written plainly for DuckDB here, over tables with plain names, and in a random shape for everview by ``sql_shapes``.
Invariant: the joins are acyclic, since the equalities form a tree over the occurrences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from everview.schema.datatype import INT, STRING, DataType
from everview.schema.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from hypothesis.strategies import DrawFn

_WORDS = "t u g orders T_1 x y id src derived derived_1 d_g c0 a_b"
_RESERVED_WORDS = "order select from Group table left natural using end case values date interval"
_ODD = 'a b|a.b|it\'s|say "hi"|back`tick|ä|日本|1st|-- no|/* no */|semi;colon|a\nb|(|*'
NAMES = (*_WORDS.split(), *_RESERVED_WORDS.split(), *_ODD.split("|"))
_TEXTS = "a|b||O'Brien  Jr|it''s|  |a\nb|tab\there|back\\slash|say \"hi\"|ä日|-- no|/*|%_|a;b|`"
TEXTS = tuple(_TEXTS.split("|"))
NUMBERS = (0, 1, 2, 3, -1)


@dataclass(frozen=True, slots=True)
class Named:
    """A table as everview knows it, under its odd names."""

    name: str
    columns: tuple[str, ...]
    types: tuple[DataType, ...]

    @property
    def ddl(self) -> str:
        columns = ", ".join(f"{quoted(n)} {str(t).upper()}" for n, t in zip(self.columns, self.types, strict=True))
        return f"CREATE TABLE {quoted(self.name)} ({columns})"

    def plain(self, index: int) -> Table:
        """The same table as DuckDB knows it."""
        return Table(f"s{index}", tuple(Column(f"c{i}", t) for i, t in enumerate(self.types)))


Key = tuple[int, int]
"""An occurrence and a column of its table, by position."""
Row = tuple[Any, ...]


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def duckdb_literal(value: int | str | None) -> str:
    """A constant in DuckDB's dialect."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a query over columns of occurrences; ``write`` gives its text from those of its columns and constants."""

    keys: tuple[Key, ...]
    constants: tuple[int | str | None, ...]
    template: str
    type: DataType = INT

    def write(self, column: Callable[[Key], str], literal: Callable[[Any], str]) -> str:
        return self.template.format(*map(column, self.keys), *map(literal, self.constants))


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a query means."""

    occurrences: tuple[int, ...]
    tables: tuple[Named, ...]
    conditions: tuple[Part, ...]
    items: tuple[Part, ...]
    keys: tuple[Part, ...]
    kind: str

    def type_of(self, key: Key) -> DataType:
        return self.tables[self.occurrences[key[0]]].types[key[1]]

    def plainly(self) -> str:
        """The text for DuckDB."""

        def column(key: Key) -> str:
            return f"o{key[0]}.c{key[1]}"

        items = [f"{i.write(column, duckdb_literal)} AS r{n}" for n, i in enumerate((*self.keys, *self.items))]
        source = ", ".join(f"s{t} AS o{n}" for n, t in enumerate(self.occurrences))
        select = "SELECT DISTINCT" if self.kind == "distinct" else "SELECT"
        text = f"{select} {', '.join(items)} FROM {source}"
        if self.conditions:
            text += " WHERE " + " AND ".join(f"({c.write(column, duckdb_literal)})" for c in self.conditions)
        if self.kind == "groups" and self.keys:
            text += " GROUP BY " + ", ".join(str(n + 1) for n in range(len(self.keys)))
        return text


@st.composite
def odd_tables(draw: DrawFn) -> tuple[Named, ...]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique_by=str.lower))
    found = []
    for name in names:
        columns = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique_by=str.lower))
        types = tuple(draw(st.sampled_from((INT, INT, STRING))) for _ in columns)
        found.append(Named(name, tuple(columns), types))
    return tuple(found)


def _filter(random: Random, key: Key, data_type: DataType) -> Part:
    values: Sequence[Any] = TEXTS if data_type == STRING else NUMBERS
    forms = (
        *(
            "{0} = {1}",
            "{0} <> {1}",
            "{0} < {1}",
            "{0} IN ({1}, {2})",
            "{0} NOT IN ({1}, {2})",
            "{0} IS NULL",
            "{0} IS NOT NULL",
        ),
        *(
            "{0} BETWEEN {1} AND {2}",
            "CASE WHEN {0} = {1} THEN TRUE ELSE {0} = {2} END",
            "{0} = {1} OR {0} IS NULL",
            "NOT {0} = {1}",
        ),
    )
    return Part((key,), (random.choice(values), random.choice(values)), random.choice(forms))


def _item(random: Random, meaning: Meaning, keys: Sequence[Key], *, whole: bool = False) -> Part:
    key = random.choice(keys)
    if whole or random.random() < 0.5:
        return Part((key,), (), "{0}", meaning.type_of(key))
    if meaning.type_of(key) == STRING:
        texts = ("{0} || {1}", "CASE WHEN {0} = {1} THEN {0} ELSE {1} END", "coalesce({0}, {1})", "{1}")
        return Part((key,), (random.choice(TEXTS),), random.choice(texts), STRING)
    forms = (
        "{0} + {1}",
        "({0} - {1}) * {0}",
        "CASE WHEN {0} = {1} THEN {0} ELSE {1} END",
        "coalesce({0}, {1})",
        "{1}",
        "-{0}",
    )
    return Part((key,), (random.choice(NUMBERS),), random.choice(forms))


def random_meaning(random: Random, tables: tuple[Named, ...], size: int) -> Meaning:
    occurrences = tuple(random.randrange(len(tables)) for _ in range(size))
    bare = Meaning(occurrences, tables, (), (), (), "bag")
    keys = [(n, c) for n, t in enumerate(occurrences) for c in range(len(tables[t].columns))]
    conditions = []
    for n in range(1, len(occurrences)):
        partner = random.randrange(n)
        pairs = [
            (a, b) for a in keys for b in keys if (a[0], b[0]) == (partner, n) and bare.type_of(a) == bare.type_of(b)
        ]
        chosen = random.sample(pairs, min(len(pairs), random.choice((0, 1, 1, 1, 2))))
        conditions += [Part(pair, (), "{0} = {1}") for pair in chosen]
    conditions += [_filter(random, k, bare.type_of(k)) for k in keys if random.random() < 0.15]
    kind = random.choice(("bag", "bag", "distinct", "groups"))
    group: list[Part] = []
    if kind == "groups":
        group = [_item(random, bare, keys, whole=random.random() < 0.7) for _ in range(random.randint(0, 3))]
        sums = [k for k in keys if bare.type_of(k) == INT]
        items = [Part((), (), "COUNT(*)")] + [Part((random.choice(keys),), (), "COUNT({0})")] * random.randint(0, 1)
        items += [Part((random.choice(sums),), (), "SUM({0})") for _ in range(random.randint(0, 2)) if sums]
    else:
        items = [_item(random, bare, keys) for _ in range(random.choice((1, 2, 3, 5, 30)))]
    return Meaning(occurrences, tables, tuple(conditions), tuple(items), tuple(group), kind)
