"""Hypothesis strategy: sessions whose views can fail, and batches of which some must be refused.

What: a ``Trial`` is a few tables, a few views over them with expressions that fail for some rows (a division by zero, an overflow, a text
that is no number) wherever SQL takes an expression, and batches over all tables. Nobody says which batches must be refused: ``refusals``
finds out from a session that is built anew.
Representation: a batch is a list of ``Card``s, which become changes only when the rows that the tables then hold are known, since those
depend on what was refused before.
Hypothesis draws one string of bytes: a seed from which everything is made, and a byte for each part of the trial, of which zero leaves the
part out. So examples have nothing in common (what is drawn piece by piece is mutated, mostly into what was seen before), and failures
shrink part by part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import strategies as st

from everview.schema.datatype import BIGINT, DOUBLE, INT, SMALLINT, STRING, TINYINT, DataType, decimal
from everview.schema.table import Column, Table
from everview.testing.oracle import Row
from everview.testing.strategies import QueryKind, create_table

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

NAN = math.nan  # always this object: rows with it are found in dictionaries
MONEY = decimal(6, 2)
LONG = decimal(38, 0)
# Values that no expression below fails for, as long as few rows meet; and values that many fail for, the worst ones twice.
HARMLESS: Mapping[DataType, Sequence[Any]] = {
    INT: (1, 2, 3, -1),
    BIGINT: (1, 2, -3),
    SMALLINT: (1, 2, -1),
    TINYINT: (1, 2, -1),
    MONEY: (Decimal("1.00"), Decimal("1.50"), Decimal("-2.25")),
    LONG: (Decimal(1), Decimal(2)),
    DOUBLE: (1.0, 0.5, -2.0, 0.1),
    STRING: ("1", "2", "10"),
}
HARMFUL: Mapping[DataType, Sequence[Any]] = {
    INT: (0, 0, 2**31 - 1, -(2**31), None),
    BIGINT: (0, 0, 2**63 - 1, -(2**63), 2**40, None),
    SMALLINT: (0, 0, 2**15 - 1, -(2**15), None),
    TINYINT: (0, 0, 2**7 - 1, -(2**7), None),
    MONEY: (Decimal("0.00"), Decimal("0.00"), Decimal("9999.99"), None),
    LONG: (Decimal(0), Decimal(0), Decimal(10**38 - 1), Decimal(1 - 10**38), None),
    DOUBLE: (0.0, 0.0, 1e300, NAN, math.inf, -1e300, None),
    STRING: ("x", "x", "0", "", "99999999999", None),
}
PAYLOADS = (INT, INT, STRING, BIGINT, DOUBLE, MONEY, SMALLINT, TINYINT, LONG)
KEYS = (1, 1, 2, 1, 2, 3)  # rows are to meet


class Act(StrEnum):
    """What a card does with its row. Only ``SPOIL`` may break a rule of the table itself."""

    INSERT = "insert"  # where the row's key is taken: replaces that row
    DELETE = "delete"  # the row if it is there, else another
    REPLACE = "replace"  # another row by this one
    EVADE = "evade"  # an insert, while what it would meet in other tables leaves: fails only if the batch is not taken as a whole
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


class Way(StrEnum):
    """How a batch is handed over."""

    DELTAS = "with deltas"
    SILENT = "without deltas"
    STREAM = "with deltas in pieces"
    LENIENT = "with deltas, absent rows ignored"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A batch that may be refused."""

    cards: tuple[Card, ...]
    way: Way = Way.DELTAS

    def changes(
        self, tables: Mapping[str, Table], rows: Mapping[str, Counter[Row]]
    ) -> dict[str, list[tuple[Row, int]]]:
        """The cards as changes (row, multiplicity) of tables that hold these rows."""
        held = {name: Counter(found) for name, found in rows.items()}
        found: dict[str, list[tuple[Row, int]]] = {}
        for card in self.cards:
            found.setdefault(card.table, []).extend(_played(card, tables[card.table], held[card.table]))
            if card.act is Act.EVADE:
                for name in tables.keys() - {card.table}:
                    met = [(row, -count) for row, count in held[name].items() if row[0] == card.row[0]]
                    found.setdefault(name, []).extend(met)
                    for row, _ in met:
                        del held[name][row]
        return found


@dataclass(frozen=True)
class Trial:
    """Tables, views and batches; ``windows`` says of how many rows a table is a FIFO window. ``late``: a view to create between batches."""

    tables: tuple[Table, ...]
    views: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    windows: Mapping[str, int]
    subscribed: bool = False
    late: str | None = None

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
            lines.append(f"batch {n} ({attempt.way}):")
            lines += [f"  {c.act} {c.table} {c.row} x{c.times} ({c.other})" for c in attempt.cards]
        return "\n".join([*lines, f"subscribed={self.subscribed} late={self.late}"])

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


# ---- making trials ---------------------------------------------------------------------------------------------------

T = TypeVar("T")
SEED, PARTS = 8, 80
WAYS = (Way.DELTAS, Way.DELTAS, Way.SILENT, Way.STREAM, Way.LENIENT)


ACTS = (Act.INSERT, Act.DELETE, Act.REPLACE, Act.EVADE, Act.INSERT, Act.DELETE, Act.REPLACE, Act.BLINK)


class _Dice:
    """Random choices from a seed. What the bytes say about parts never changes what is chosen for others."""

    def __init__(self, seed: bytes, parts: bytes) -> None:
        self.random = Random(seed)  # noqa: S311
        self._parts = iter(parts)

    def pick(self, values: Sequence[T]) -> T:
        return self.random.choice(values)

    def some(self, values: Sequence[T], least: int, most: int) -> list[T]:
        return self.random.choices(values, k=self.random.randint(least, most))

    def chance(self, one_in: int) -> bool:
        return not self.random.randrange(one_in)

    def kept(self, values: Sequence[T], least: int = 0) -> list[T]:
        """The values that are not left out; where that is too few, the first."""
        found = [v for v in values if next(self._parts, 1)]
        return found if len(found) >= least else list(values[:least])


@dataclass(frozen=True, slots=True)
class _Term:
    """An expression. ``owner`` is the alias of its table, None where it reads several."""

    text: str
    owner: str | None
    is_text: bool = False
    is_integer: bool = False


UNARY = (
    "(-{})",
    "ABS({})",
    "CAST({} AS TINYINT)",
    "CAST({} AS SMALLINT)",
    "CAST({} AS INT)",
    "CAST({} AS DECIMAL(3,1))",
    "ROUND({}, -2)",
)
OF_TEXT = ("CAST({} AS INT)", "CAST({} AS BIGINT)", "CAST({} AS DOUBLE)", "CAST({} AS DECIMAL(4,1))", "({} + 1)")
BINARY = ("({} / {})", "({} / {})", "({} / {})", "({} * {})", "({} + {})", "({} - {})", "({} % {})")
GUARDED = (
    "CASE WHEN {1} <> 0 THEN {0} / {1} END",
    "COALESCE({0}, {0} / {1})",
    "IF({1} = 0, 0, {0} % {1})",
    "NULLIF({0}, 1 / {1})",
)
OVER = ("1 / (COUNT(*) - 2)", "{} / {}", "CAST({} AS SMALLINT)", "{} * 4611686018427387904", "{} % (COUNT(*) - 3)")
TESTS = ("> 0", "IS NOT NULL", "<> 1")


def _fallible(dice: _Dice, terms: Sequence[_Term], depth: int = 1) -> _Term:
    """A number computed from these terms that fails for some values of them."""
    one = dice.pick(terms)
    numbers = [t for t in terms if not t.is_text]
    # A partner from another table is what makes an expression fail above the join and not at its leaves.
    strangers = [t for t in numbers if t.owner != one.owner]
    two = dice.pick(numbers if not strangers or dice.chance(4) else strangers)
    owner = one.owner if one.owner == two.owner else None
    form = dice.random.randrange(10)
    if one.is_text:
        found = _Term(dice.pick(OF_TEXT).format(one.text), one.owner)
    elif form < 6:
        found = _Term(dice.pick(BINARY).format(one.text, two.text), owner)
    elif form == 6:
        found = _Term(dice.pick(GUARDED).format(one.text, two.text), owner)
    elif form == 7 and one.is_integer and two.is_integer:
        found = _Term(f"({one.text} DIV {two.text})", owner)
    else:
        found = _Term(dice.pick(UNARY).format(one.text), one.owner)
    return _fallible(dice, [found, *terms], depth - 1) if depth and dice.chance(5) else found


def _aggregate(dice: _Dice, terms: Sequence[_Term]) -> str:
    if dice.chance(8):
        return "COUNT(*)"
    argument = dice.pick(terms) if dice.chance(6) else _fallible(dice, terms)
    functions = ("COUNT", "MIN", "MAX") if argument.is_text else ("SUM", "SUM", "COUNT", "AVG", "MIN", "MAX", "VAR_POP")
    distinct = "DISTINCT " if dice.chance(6) else ""
    return f"{dice.pick(functions)}({distinct}{argument.text})"


def _source(dice: _Dice, atoms: Sequence[tuple[str, Table]], terms: Mapping[str, Sequence[_Term]]) -> str:
    """FROM and WHERE. The joins follow a tree of the atoms, so that the query is acyclic."""
    text = f"{atoms[0][1].name} {atoms[0][0]}"
    for n, (alias, table) in enumerate(atoms[1:], 1):
        host, hosted = dice.pick(
            [*atoms[:n], atoms[n - 1]]
        )  # chains rather than stars: more of them are not q-hierarchical
        on = []
        for _ in range(dice.pick((1, 1, 1, 1, 2, 0))):
            left = f"{host}.k{dice.random.randrange(_width(hosted))}"
            right = f"{alias}.k{dice.random.randrange(_width(table))}"
            on.append(f"{left} = {_fallible(dice, terms[alias]).text if dice.chance(10) else right}")
        text += f" JOIN {table.name} {alias} ON {' AND '.join(on)}" if on else f" CROSS JOIN {table.name} {alias}"
    where = [f"{_fallible(dice, found).text} {dice.pick(TESTS)}" for found in terms.values() if dice.chance(6)]
    where = dice.kept(where)
    return text + (f" WHERE {' AND '.join(where)}" if where else "")


def _view(dice: _Dice, tables: Sequence[Table], kind: QueryKind, max_atoms: int) -> str:
    """A query of a kind; whether it is free-connex is left to chance."""
    count = min(max_atoms, dice.pick((1, 2, 2, 3, 3, 3)))
    atoms = [(f"a{n}", dice.pick(tables)) for n in range(count)]
    terms = {alias: _terms(alias, table) for alias, table in atoms}
    source = _source(dice, atoms, terms)
    every = [t for found in terms.values() for t in found]
    columns = [f"{a}.k{i}" for a, table in atoms for i in range(_width(table))]
    heads = [t.text for t in every] if kind is QueryKind.FULL else dice.some(columns, 0, 3)
    computed = [_fallible(dice, every).text for _ in range(dice.random.randint(0, 2))]
    distinct, grouping, having = "", "", ""
    if kind in (QueryKind.FULL, QueryKind.BAG, QueryKind.DISTINCT):
        items = dice.kept([*heads, *computed] or columns[:1], 1)
        distinct = "DISTINCT " if kind is QueryKind.DISTINCT else ""
    else:
        aggregates = dice.kept([_aggregate(dice, every) for _ in range(dice.random.randint(1, 3))], 1)
        over = dice.pick(OVER).format(dice.pick(aggregates), dice.pick(aggregates))
        items = []
        if kind is not QueryKind.GLOBAL:
            keys = list(dict.fromkeys([*heads, *computed[: dice.random.randint(0, 1)]]))
            items = dice.kept(keys or columns[:1], 1)
            grouping = f" GROUP BY {', '.join(items)}"
        if kind is QueryKind.HAVING:
            having = f" HAVING {over} {dice.pick(TESTS)}"
        items = items if having and dice.chance(2) else items + aggregates
        if kind is QueryKind.OVER or (kind is QueryKind.GLOBAL and dice.chance(4)):
            items.append(over)
    chosen = ", ".join(f"{item} AS o{n}" for n, item in enumerate(items))
    top = ""
    if dice.chance(5):
        key = dice.pick([f"o{n}" for n in range(len(items))])
        top = f" ORDER BY {key}{dice.pick(('', ' DESC'))} LIMIT {dice.pick((1, 2, 4))}{dice.pick(('', ' OFFSET 1'))}"
    return f"SELECT {distinct}{chosen} FROM {source}{grouping}{having}{top}"


def _width(table: Table) -> int:
    """The number of columns to join by; they come first."""
    return sum(c.name.startswith("k") for c in table.columns)


def _terms(alias: str, table: Table) -> list[_Term]:
    """The columns of an atom; those that expressions are to fail for come more often."""
    found = [_Term(f"{alias}.{c.name}", alias, c.type.is_string, c.type.is_integer) for c in table.columns]
    return [*found, *found[_width(table) :]]


def _table(dice: _Dice, name: str) -> Table:
    """One or two columns to join by, and one or two to compute with."""
    keyed = dice.chance(3)
    columns = [Column(f"k{i}", INT, nullable=i > 0 or not keyed) for i in range(dice.pick((1, 2, 2)))]
    columns += [Column(f"x{i}", t) for i, t in enumerate(dice.some(PAYLOADS, 1, 2))]
    return Table(name, tuple(columns), ("k0",) if keyed else ())


def _rows(dice: _Dice, table: Table, *, harmless: bool) -> list[Row]:
    """Rows of which no expression fails, as long as they meet their like; or such with a value that is not so."""
    rows = []
    width = _width(table)
    for _ in range(dice.random.randint(1, 4)):
        spoilt = -1 if harmless else dice.random.randrange(width, len(table.columns))
        values = [
            dice.pick(KEYS) if n < width else dice.pick((HARMFUL if n == spoilt else HARMLESS)[c.type])
            for n, c in enumerate(table.columns)
        ]
        if dice.chance(16) and table.columns[width - 1].nullable:
            values[width - 1] = None
        rows.append(tuple(values))
    return rows


def _attempt(dice: _Dice, pools: Mapping[str, Sequence[Row]], largest: int) -> Attempt:
    cards = []
    for _ in range(dice.random.randint(1, 6)):
        table = dice.pick(list(pools))
        act = Act.SPOIL if dice.chance(60) else dice.pick(ACTS)
        cards.append(
            Card(act, table, dice.pick(pools[table]), dice.pick((1, 1, 1, 2, largest)), dice.random.randrange(6))
        )
    return Attempt(tuple(dice.kept(cards)), dice.pick(WAYS))


def make_trial(
    seed: bytes, parts: bytes, kind: QueryKind, *, max_atoms: int = 3, max_views: int = 1, largest: int = 3
) -> Trial:
    """The trial of a seed, less some parts."""
    dice = _Dice(seed, parts)
    tables = tuple(_table(dice, f"t{n}") for n in range(dice.random.randint(1, 3)))
    views = dice.kept(
        [_view(dice, tables, k, max_atoms) for k in (kind, *dice.some(list(QueryKind), 0, max_views - 1))]
    )
    # Harmless rows are there from the start: most batches meet tables that are not empty.
    loaded = {t.name: _rows(dice, t, harmless=True) for t in tables}
    pools = {t.name: [*loaded[t.name], *_rows(dice, t, harmless=False)] for t in tables}
    first = [Card(Act.INSERT, name, row) for name, rows in loaded.items() for row in rows]
    attempts = [_attempt(dice, pools, largest) for _ in range(dice.random.randint(1, 6))]
    attempts = dice.kept([Attempt(tuple(dice.kept(first))), *attempts], 1)
    windows = {t.name: dice.random.randint(1, 4) for t in tables[:1] if not t.primary_key and dice.chance(8)}
    windows = windows if largest < 10 else {}
    late = dice.kept([_view(dice, tables, dice.pick(list(QueryKind)), 2)][: dice.chance(3)])
    return Trial(tables, tuple(views), tuple(attempts), windows, dice.chance(5), late[0] if late else None)


def trials(kind: QueryKind, *, max_atoms: int = 3, max_views: int = 1, largest: int = 3) -> SearchStrategy[Trial]:
    """Trials whose first view is of a kind. ``largest``: how often a row of a table without key may come at once."""

    def made(drawn: bytes) -> Trial:
        return make_trial(drawn[:SEED], drawn[SEED:], kind, max_atoms=max_atoms, max_views=max_views, largest=largest)

    return st.binary(min_size=SEED + PARTS, max_size=SEED + PARTS).map(made)
