"""Hypothesis strategy: tables of many columns, with NULLs wherever a mask of NULLs may end, and queries over all of them.

As in ``fallible``, one string of bytes is drawn: a seed, and a byte per change, of which zero leaves the change out.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from everview.schema.datatype import BIGINT, BOOLEAN, DOUBLE, INT, STRING, DataType
from everview.schema.table import Column, Table
from everview.testing.oracle import Row, Sql
from everview.testing.strategies import Scenario
from everview.testing.streams import Batch, Change
from everview.testing.values import LONG, VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hypothesis.strategies import SearchStrategy

EDGES = (0, 1, 31, 32, 62, 63, 64, 65, 66, 126, 127, 128, 129, 191, 192, 255, 256, 511, 512)
TYPES: Sequence[DataType] = (INT, BIGINT, STRING, INT, LONG, DOUBLE, BOOLEAN)
SEED, CHANGES = 8, 24

# By name: from the tables' columns, of which the first are to join by, to a query.
QUERIES: Mapping[str, Callable[[list[str], list[str]], str]] = {
    "all columns of one table": lambda _a, _b: "SELECT * FROM a",
    "all columns of both": lambda a, b: f"SELECT * FROM a JOIN b ON {a[0]} = {b[0]}",
    "distinct": lambda a, b: f"SELECT DISTINCT {', '.join(a[1:] + b[1:])} FROM a JOIN b ON {a[0]} = {b[0]}",
    "groups of one table": lambda a, _b: f"SELECT {', '.join(a)}, COUNT(*) AS n FROM a GROUP BY {', '.join(a)}",
    "groups of both": lambda a, b: (
        f"SELECT {', '.join(a + b)}, COUNT(*) AS n FROM a JOIN b ON {a[0]} = {b[0]} GROUP BY {', '.join(a + b)}"
    ),
    "groups above the join": lambda a, b: (
        f"SELECT {', '.join(a[1:] + b[1:])}, COUNT(*) AS n, SUM({a[0]}) AS s FROM a JOIN b ON {a[0]} = {b[0]} "
        f"GROUP BY {', '.join(a[1:] + b[1:])}"
    ),
    "counts": lambda a, b: (
        f"SELECT {b[1]}, {', '.join(f'COUNT({c}) AS n{c}' for c in a)} FROM a JOIN b ON {a[0]} = {b[0]} GROUP BY {b[1]}"
    ),
}


def _table(random: Random, name: str, width: int) -> Table:
    offset = random.randrange(len(TYPES))
    columns = [Column(f"{name}0", INT), *(Column(f"{name}{i}", TYPES[(i + offset) % 7]) for i in range(1, width))]
    return Table(name, tuple(columns), ())


def _row(random: Random, table: Table) -> Row:
    """Equal to others but for a NULL or two, most often where a word of a mask begins or ends."""
    values: list[Any] = [VALUES[c.type][1] for c in table.columns]
    values[0] = random.choice((1, 1, 2))
    places = [p for p in (*EDGES, len(values) - 1) if p < len(values)]
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        values[random.choice((*places, random.randrange(len(values))))] = None
    return tuple(values)


def make_wide(name: str, seed: bytes | int, parts: bytes, widths: Sequence[int]) -> Scenario:
    """A scenario over two tables of some of these widths."""
    random = Random(seed)  # noqa: S311
    tables = [_table(random, n, random.choice(widths)) for n in ("a", "b")]
    text = QUERIES[name]([c.name for c in tables[0].columns], [c.name for c in tables[1].columns])
    tables = [t for t in tables if f" {t.name} " in f"{text} "]
    held: list[tuple[Table, Row]] = []
    changes = []
    for _ in range(CHANGES):
        if held and random.random() < 0.35:
            table, row = held.pop(random.randrange(len(held)))
            changes.append(Change(table.name, row, "delete"))
        else:
            table = random.choice(tables)
            held.append((table, _row(random, table)))
            changes.append(Change(table.name, held[-1][1], "insert"))
    kept: list[Change] = []
    rows: list[tuple[str, Row]] = []
    for change, part in zip(changes, parts, strict=True):
        if part and change.sign > 0:
            rows.append((change.table, change.row))
            kept.append(change)
        elif part and (change.table, change.row) in rows:
            rows.remove((change.table, change.row))
            kept.append(change)
    size = random.choice((5, 12, CHANGES))
    batches = tuple(Batch(tuple(kept[at : at + size])) for at in range(0, len(kept), size))
    return Scenario(tuple(tables), Sql(text, text), batches, random.randrange(len(batches) + 1))


def wide_scenarios(name: str, widths: Sequence[int]) -> SearchStrategy[Scenario]:
    """Scenarios with one of ``QUERIES``."""

    def made(drawn: bytes) -> Scenario:
        return make_wide(name, drawn[:SEED], drawn[SEED:], widths)

    return st.binary(min_size=SEED + CHANGES, max_size=SEED + CHANGES).map(made)
