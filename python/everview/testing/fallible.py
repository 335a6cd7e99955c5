"""Hypothesis strategy: sessions whose views can fail, and batches of which some must be refused.

What: a ``Trial`` is a few tables, a few views over them with expressions that fail for some rows (a division by zero, an overflow, a text
that is no number) wherever SQL takes an expression, and batches over all tables. Nobody says which batches must be refused: ``refusals``
finds out from a session that is built anew.
Representation: a batch is a list of ``Card``s, which become changes only when the rows that the tables then hold are known, since those
depend on what was refused before. Rows are drawn value by value, harmless ones first, so that failures shrink.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from everview.schema.datatype import BIGINT, DOUBLE, INT, SMALLINT, STRING, DataType, decimal
from everview.schema.table import Column, Table
from everview.testing.oracle import Row
from everview.testing.strategies import QueryKind, create_table

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

NAN = math.nan  # always this object: rows with it are found in dictionaries
MONEY = decimal(6, 2)
LONG = decimal(38, 0)
# Values that no expression below fails for, as long as few rows meet; and values that many fail for.
HARMLESS: Mapping[DataType, Sequence[Any]] = {
    INT: (1, 2, 3, -1),
    BIGINT: (1, 2, -3),
    SMALLINT: (1, 2, -1),
    MONEY: (Decimal("1.00"), Decimal("1.50"), Decimal("-2.25")),
    LONG: (Decimal(1), Decimal(2)),
    DOUBLE: (1.0, 0.5, -2.0, 0.1),
    STRING: ("1", "2", "10"),
}
HARMFUL: Mapping[DataType, Sequence[Any]] = {
    INT: (0, 2**31 - 1, -(2**31), None),
    BIGINT: (0, 2**63 - 1, -(2**63), 2**40, None),
    SMALLINT: (0, 2**15 - 1, -(2**15), None),
    MONEY: (Decimal("0.00"), Decimal("9999.99"), None),
    LONG: (Decimal(0), Decimal(10**38 - 1), Decimal(1 - 10**38), None),
    DOUBLE: (0.0, 1e300, NAN, math.inf, -1e300, None),
    STRING: ("x", "0", "", "99999999999", None),
}
PAYLOADS = (INT, INT, STRING, BIGINT, DOUBLE, MONEY, SMALLINT, LONG)
KEYS = (1, 1, 2, 1, 2, 3)  # rows are to meet


class Act(StrEnum):
    """What a card does with its row. Only ``SPOIL`` may break a rule of the table itself."""

    INSERT = "insert"  # where the row's key is taken: replaces that row
    DELETE = "delete"  # the row if it is there, else another
    REPLACE = "replace"  # another row by this one
    BLINK = "blink"  # in and out again within the batch
    SPOIL = "spoil"  # insert although the key is taken, or delete although the row is not there


@dataclass(frozen=True, slots=True)
class Card:
    """One step of a batch."""

    act: Act
    table: str
    row: Row
    times: int = 1
    other: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A batch that may be refused."""

    cards: tuple[Card, ...]
    deltas: bool = True

    def changes(
        self, tables: Mapping[str, Table], rows: Mapping[str, Counter[Row]]
    ) -> dict[str, list[tuple[Row, int]]]:
        """The cards as changes (row, multiplicity) of tables that hold these rows."""
        held = {name: Counter(found) for name, found in rows.items()}
        found: dict[str, list[tuple[Row, int]]] = {}
        for card in self.cards:
            found.setdefault(card.table, []).extend(_played(card, tables[card.table], held[card.table]))
        return found


@dataclass(frozen=True)
class Trial:
    """Tables, views and batches; ``windows`` says of how many rows a table is a FIFO window."""

    tables: tuple[Table, ...]
    views: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    windows: Mapping[str, int]
    subscribed: bool = False

    @property
    def ddl(self) -> str:
        """The statements that create the tables."""
        return ";\n".join(
            create_table(t) + (f" WITH (retain_rows = {self.windows[t.name]})" if t.name in self.windows else "")
            for t in self.tables
        )

    def __repr__(self) -> str:
        lines = [self.ddl, *self.views]
        for n, attempt in enumerate(self.attempts):
            lines.append(f"batch {n} (deltas={attempt.deltas}):")
            lines += [f"  {c.act} {c.table} {c.row} x{c.times} ({c.other})" for c in attempt.cards]
        return "\n".join([*lines, f"subscribed={self.subscribed}"])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


def _played(card: Card, table: Table, held: Counter[Row]) -> list[tuple[Row, int]]:
    """A card as changes, valid after those before it unless it is to spoil the batch; ``held`` follows."""
    key = [i for i, c in enumerate(table.columns) if c.name in table.primary_key]
    present = sorted(held, key=repr)
    other = present[card.other % len(present)] if present else None
    rival = next((r for r in present if key and all(r[i] == card.row[i] for i in key)), None)
    times = 1 if key else card.times
    steps: list[tuple[Row, int]] = []
    match card.act:
        case Act.SPOIL:
            steps = [(card.row, times)] if card.other % 2 else [(card.row, -1 - held[card.row])]
        case Act.BLINK:
            steps = [(card.row, times), (card.row, -times)]
        case Act.DELETE:
            gone = card.row if held[card.row] else rival or other
            steps = [] if gone is None else [(gone, -min(times, held[gone]))]
        case _:
            if rival is not None:
                steps = [] if rival == card.row else [(rival, -1), (card.row, 1)]
            elif card.act is Act.REPLACE and other is not None:
                steps = [(other, -1), (card.row, 1)]
            else:
                steps = [(card.row, times)]
    for row, count in steps:
        held[row] += count
        if not held[row]:
            del held[row]
    return steps


# ---- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Term:
    """An expression. ``kind`` is "number" or "text"; ``owner`` the alias of its table, or None where it reads several."""

    text: str
    kind: str
    owner: str | None
    integer: bool = False


UNARY = ("-{}", "ABS({})", "CAST({} AS SMALLINT)", "CAST({} AS INT)", "CAST({} AS DECIMAL(3,1))", "ROUND({}, -2)")
OF_TEXT = ("CAST({} AS INT)", "CAST({} AS BIGINT)", "CAST({} AS DOUBLE)", "CAST({} AS DECIMAL(4,1))", "({} + 1)")
BINARY = ("({} / {})", "({} * {})", "({} + {})", "({} - {})", "({} % {})")
GUARDED = (
    "CASE WHEN {1} <> 0 THEN {0} / {1} END",
    "COALESCE({0}, {0} / {1})",
    "IF({1} = 0, 0, {0} % {1})",
    "NULLIF({0}, 1 / {1})",
)


@st.composite
def _fallible(draw: DrawFn, terms: Sequence[_Term], depth: int = 1) -> _Term:
    """A number computed from these terms that fails for some values of them."""
    one = draw(st.sampled_from(terms))
    if one.kind == "text":
        found = _Term(draw(st.sampled_from(OF_TEXT)).format(one.text), "number", one.owner)
    else:
        numbers = [t for t in terms if t.kind == "number"]
        # A partner from another table is what makes an expression fail above the join and not at its leaves.
        strangers = [t for t in numbers if t.owner != one.owner]
        two = draw(st.sampled_from(strangers if strangers and draw(st.integers(0, 3)) else numbers))
        owner = one.owner if one.owner == two.owner else None
        form = draw(st.integers(0, 9))
        if form < 6:
            form_text = draw(st.sampled_from(BINARY))
            found = _Term(form_text.format(one.text, two.text), "number", owner)
        elif form == 6:
            found = _Term(draw(st.sampled_from(GUARDED)).format(one.text, two.text), "number", owner)
        elif form == 7 and one.integer and two.integer:
            found = _Term(f"({one.text} DIV {two.text})", "number", owner)
        else:
            found = _Term(draw(st.sampled_from(UNARY)).format(one.text), "number", one.owner)
    if depth and draw(st.integers(0, 4)) == 4:
        return draw(_fallible([found, *terms], depth - 1))
    return found


# ---- views -----------------------------------------------------------------------------------------------------------


@st.composite
def _views(draw: DrawFn, tables: Sequence[Table], kind: QueryKind, max_atoms: int) -> str:
    """A query whose joins follow a tree of its atoms, so that it is acyclic; whether it is free-connex is left to chance."""
    count = draw(st.integers(1, max_atoms))
    atoms = [(f"a{n}", draw(st.sampled_from(tables))) for n in range(count)]
    terms = {alias: _terms(alias, table) for alias, table in atoms}
    source, where = f"{atoms[0][1].name} a0", []
    for n, (alias, table) in enumerate(atoms[1:], 1):
        host = draw(st.integers(0, n - 1))
        on = []
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 0]))):
            left = f"a{host}.k{draw(st.integers(0, _width(atoms[host][1]) - 1))}"
            right = f"{alias}.k{draw(st.integers(0, _width(table) - 1))}"
            if draw(st.integers(0, 7)) == 7:
                right = draw(_fallible(terms[alias])).text
            on.append(f"{left} = {right}")
        source += f" JOIN {table.name} {alias} ON {' AND '.join(on)}" if on else f" CROSS JOIN {table.name} {alias}"
    for alias, _ in atoms:
        if draw(st.integers(0, 4)) == 4:
            where.append(
                f"{draw(_fallible(terms[alias])).text} {draw(st.sampled_from(['> 0', 'IS NOT NULL', '<> 1']))}"
            )
    every = [t for found in terms.values() for t in found]
    columns = [f"{a}.k{i}" for a, table in atoms for i in range(_width(table))]
    if kind is QueryKind.FULL:
        heads = [t.text for t in every]
    else:
        heads = draw(st.lists(st.sampled_from(columns), max_size=3, unique=True))
    group: list[str] | None = None
    having = None
    items = list(heads)
    if kind in (QueryKind.FULL, QueryKind.BAG, QueryKind.DISTINCT):
        items += [t.text for t in draw(st.lists(_fallible(every), min_size=1 if not items else 0, max_size=2))]
    else:
        if kind is QueryKind.GLOBAL:
            items = []
        else:
            if draw(st.integers(0, 3)) == 3 or not items:
                items.append(draw(_fallible(every)).text)
            group = list(items)
        aggregates = draw(st.lists(_aggregates(every), min_size=1, max_size=3))
        items += aggregates
        if kind is QueryKind.OVER or (kind is QueryKind.GLOBAL and draw(st.integers(0, 4)) == 4):
            items.append(draw(_over(aggregates)))
        if kind is QueryKind.HAVING:
            having = f"{draw(_over(aggregates))} {draw(st.sampled_from(['> 0', 'IS NOT NULL', '<> 1']))}"
            if group and draw(st.booleans()):
                items = list(group)
    chosen = ", ".join(f"{item} AS o{n}" for n, item in enumerate(items))
    text = f"SELECT {'DISTINCT ' if kind is QueryKind.DISTINCT else ''}{chosen} FROM {source}"
    text += f" WHERE {' AND '.join(where)}" if where else ""
    text += f" GROUP BY {', '.join(group)}" if group else ""
    return text + (f" HAVING {having}" if having else "")


def _width(table: Table) -> int:
    """The number of columns to join by; they come first."""
    return sum(c.name.startswith("k") for c in table.columns)


def _terms(alias: str, table: Table) -> list[_Term]:
    """The columns of an atom, those that expressions are to fail for first."""
    ordered = sorted(table.columns, key=lambda c: c.name.startswith("k"))
    return [
        _Term(f"{alias}.{c.name}", "text" if c.type.is_string else "number", alias, c.type.is_integer) for c in ordered
    ]


@st.composite
def _aggregates(draw: DrawFn, terms: Sequence[_Term]) -> str:
    form = draw(st.integers(0, 5))
    if form == 0:
        return "COUNT(*)"
    argument = draw(_fallible(terms)) if form < 5 else draw(st.sampled_from(terms))
    function = draw(st.sampled_from(["SUM", "SUM", "COUNT", "AVG"]))
    return f"{'COUNT' if argument.kind == 'text' else function}({argument.text})"


@st.composite
def _over(draw: DrawFn, aggregates: Sequence[str]) -> str:
    """An expression over aggregates that fails for some groups."""
    one, two = draw(st.sampled_from(aggregates)), draw(st.sampled_from(aggregates))
    forms = ["1 / (COUNT(*) - 2)", "{} / {}", "CAST({} AS SMALLINT)", "{} * 4611686018427387904", "{} % (COUNT(*) - 3)"]
    return draw(st.sampled_from(forms)).format(one, two)


# ---- rows and batches ------------------------------------------------------------------------------------------------


@st.composite
def _tables(draw: DrawFn, number: int) -> Table:
    """Two columns to join by, and one to three to compute with."""
    width = draw(st.integers(1, 2))
    columns = [Column(f"k{i}", INT) for i in range(width)]
    payloads = draw(st.lists(st.sampled_from(PAYLOADS), min_size=1, max_size=3))
    columns += [Column(f"x{i}", t) for i, t in enumerate(payloads)]
    keyed = draw(st.integers(0, 2)) == 2
    if keyed:
        columns[0] = Column("k0", INT, nullable=False)
    return Table(f"t{number}", tuple(columns), ("k0",) if keyed else ())


@st.composite
def _rows(draw: DrawFn, table: Table, *, harmless: bool) -> Row:
    """A row of which no expression fails, as long as it meets its like; or one with values that are not so."""
    width = _width(table)
    values: list[Any] = [draw(st.sampled_from(KEYS)) for _ in range(width)]
    spoilt = -1 if harmless else draw(st.integers(0, len(table.columns) - width - 1))
    for n, column in enumerate(table.columns[width:]):
        choice = HARMFUL if n == spoilt or (not harmless and draw(st.integers(0, 2)) == 2) else HARMLESS
        values.append(draw(st.sampled_from(choice[column.type])))
    if draw(st.integers(0, 15)) == 15 and table.columns[width - 1].nullable:
        values[width - 1] = None
    return tuple(values)


ACTS = (Act.INSERT, Act.DELETE, Act.INSERT, Act.DELETE, Act.REPLACE, Act.REPLACE, Act.BLINK)


@st.composite
def _cards(draw: DrawFn, pools: Mapping[str, Sequence[Row]], largest: int) -> Card:
    table = draw(st.sampled_from(list(pools)))
    act = Act.SPOIL if draw(st.integers(0, 50)) == 50 else draw(st.sampled_from(ACTS))
    times = draw(st.sampled_from([1, 1, 1, 2, largest]))
    return Card(act, table, draw(st.sampled_from(pools[table])), times, draw(st.integers(0, 5)))


@st.composite
def trials(draw: DrawFn, kind: QueryKind, *, max_atoms: int = 3, max_views: int = 1, largest: int = 3) -> Trial:
    """Trials whose first view is of a kind. ``largest``: how often a row of a table without key may come at once."""
    tables = tuple(draw(_tables(n)) for n in range(draw(st.integers(1, 3))))
    kinds = [kind, *draw(st.lists(st.sampled_from(QueryKind), max_size=max_views - 1))]
    views = tuple(draw(_views(tables, k, max_atoms)) for k in kinds)
    # Harmless rows are there from the start: most batches meet tables that are not empty.
    loaded = {t.name: draw(st.lists(_rows(t, harmless=True), min_size=1, max_size=4)) for t in tables}
    pools = {
        t.name: [*loaded[t.name], *draw(st.lists(_rows(t, harmless=False), min_size=1, max_size=4))] for t in tables
    }
    attempts = [Attempt(tuple(Card(Act.INSERT, name, row) for name, rows in loaded.items() for row in rows))]
    for _ in range(draw(st.integers(1, 6))):
        cards = draw(st.lists(_cards(pools, largest), min_size=1, max_size=6))
        attempts.append(Attempt(tuple(cards), deltas=draw(st.integers(0, 3)) < 3))
    windows = {}
    if draw(st.integers(0, 7)) == 7 and largest < 10:
        windows = {t.name: draw(st.integers(1, 4)) for t in tables[:1] if not t.primary_key}
    return Trial(tables, views, tuple(attempts), windows, draw(st.integers(0, 4)) == 4)
