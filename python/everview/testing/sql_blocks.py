"""Random queries of several blocks: groups over groups, joins of grouped derived tables, unions, CTEs that are used twice, left joins, EXISTS and IN, LIMIT.

A query is built from the inside out. Every part is a SELECT over nullable integers, valid in Spark and in DuckDB with the same
meaning; its columns are named ``c0``, ``c1``, ... Joins compare by equality, and sometimes by more than that, or in a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from random import Random

    from hypothesis.strategies import DrawFn

TABLES = {"r": ("a", "b"), "s": ("a", "b", "c"), "u": ("a",)}
SAFE = "IS NOT DISTINCT FROM"  # as Spark and DuckDB both write <=>
VALUES = (None, 0, 1, 1, 2, 3, 7)
Row = tuple[int | None, ...]
Change = tuple[str, Row, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A SELECT and how many columns it has."""

    sql: str
    width: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """A query and batches of changes; every change is valid after those before it."""

    sql: str
    batches: tuple[tuple[Change, ...], ...]

    def __repr__(self) -> str:
        return "\n".join([self.sql, *(f"-- {batch}" for batch in self.batches)])


class _Writer:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.ctes: list[tuple[str, Part]] = []
        self.number = 0

    def part(self, depth: int) -> Part:
        if depth == 0:
            return self.scan()
        shape = self.random.choice(["select", "distinct", "group", "group", "join", "join", "outer", "union"])
        part: Part = getattr(self, shape)(depth)
        return self.top(part) if self.random.random() < 0.2 else part

    def top(self, part: Part) -> Part:
        """The first rows of a part. They are ordered by all columns in the end, so that all engines agree which these are."""
        width = self.random.randint(1, part.width)
        ways = ("NULLS FIRST", "NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST")
        keys = [f"{self.value('q', part.width)} {self.random.choice(ways)}" for _ in range(self.random.randint(0, 2))]
        keys += [f"{column} NULLS FIRST" for column in self.random.sample([f"c{i}" for i in range(width)], width)]
        limit = f" LIMIT {self.random.choice((0, 1, 1, 2, 2, 3, 5))}" if self.random.random() < 0.9 else ""
        offset = f" OFFSET {self.random.randint(1, 3)}" if self.random.random() < 0.3 or not limit else ""
        items = ", ".join(f"q.c{i}" for i in range(width))
        return Part(f"(SELECT {items} FROM ({part.sql}) q ORDER BY {', '.join(keys)}{limit}{offset})", width)

    def relation(self, depth: int, alias: str) -> tuple[str, int]:
        """An item of FROM with columns named as those of a part, and its width."""
        if self.ctes and self.random.random() < 0.3:
            name, part = self.random.choice(self.ctes)
            return f"{name} {alias}", part.width
        below = self.part(depth - 1)
        if depth > 1 and self.random.random() < 0.25:
            name = f"w{len(self.ctes)}"
            self.ctes.append((name, below))
            return f"{name} {alias}", below.width
        return f"({below.sql}) {alias}", below.width

    def scan(self) -> Part:
        table = self.random.choice(list(TABLES))
        columns = TABLES[table]
        return Part(f"SELECT {', '.join(f'{c} AS c{i}' for i, c in enumerate(columns))} FROM {table}", len(columns))

    def column(self, alias: str, width: int) -> str:
        return f"{alias}.c{self.random.randrange(width)}"

    def value(self, alias: str, width: int) -> str:
        column = self.column(alias, width)
        plain = [column, column, column, column, f"{column} + 1", f"coalesce({column}, 1)", f"-{column}"]
        other = self.column(alias, width)
        calls = (f"nullif({column}, 2)", f"greatest({column}, {other})", f"abs({column} - 2)", f"({column} & 3)")
        return self.random.choice([*plain, *calls])

    def equals(self) -> str:
        return self.random.choice(("=", "=", "=", SAFE))

    def condition(self, alias: str, width: int) -> str:
        one, two = self.column(alias, width), self.column(alias, width)
        return self.random.choice(
            [f"{one} > 1", f"{one} <> {two}", f"{one} IS NOT NULL", f"({one} IS NULL OR {two} = 1)"]
        )

    def subquery(self, alias: str, width: int, depth: int) -> str:
        """EXISTS or IN over something, correlated or not."""
        self.number += 1
        inner = f"q{self.number}"
        source, inner_width = self.relation(max(1, depth - 1), inner)
        equal = f"{self.column(inner, inner_width)} {self.equals()} {self.column(alias, width)}"
        conditions = [equal] * self.random.randint(0, 1)
        conditions += [self.condition(inner, inner_width)] * self.random.randint(0, 1)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        negation = self.random.choice(("", "NOT "))
        if self.random.random() < 0.5:
            limit = " LIMIT 1" if self.random.random() < 0.2 else ""
            return f"{negation}EXISTS (SELECT 1 FROM {source}{where}{limit})"
        tested = self.column(inner, inner_width)
        return f"{self.value(alias, width)} {negation}IN (SELECT {tested} FROM {source}{where})"

    def select(self, depth: int) -> Part:
        source, width = self.relation(depth, "x")
        count = self.random.randint(1, 3)
        items = ", ".join(f"{self.value('x', width)} AS c{i}" for i in range(count))
        conditions = [self.condition("x", width)] * (self.random.random() < 0.4)
        conditions += [self.subquery("x", width, depth) for _ in range(self.random.choice((0, 0, 1, 1, 2)))]
        where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
        return Part(f"SELECT {items} FROM {source}{where}", count)

    def outer(self, depth: int) -> Part:
        """Left joins, one after another."""
        sources = [("x", *self.relation(depth, "x"))]
        text = sources[0][1]
        for alias in ("y", "z")[: self.random.choice((1, 1, 2))]:
            source, width = self.relation(self.random.randint(1, depth), alias)
            other, _, other_width = self.random.choice(sources)
            conditions = [f"{self.value(other, other_width)} {self.equals()} {self.column(alias, width)}"]
            conditions += [self.condition(alias, width)] * (self.random.random() < 0.3)
            conditions += [f"{self.column('x', sources[0][2])} > 0"] * (self.random.random() < 0.2)
            text += f" LEFT JOIN {source} ON {' AND '.join(conditions)}"
            sources.append((alias, source, width))
        count = self.random.randint(1, 3)
        items = ", ".join(
            f"{self.value(*self.random.choice([(a, w) for a, _, w in sources]))} AS c{i}" for i in range(count)
        )
        where = f" WHERE {self.condition(*self.random.choice([(a, w) for a, _, w in sources]))}"
        return Part(f"SELECT {items} FROM {text}{where if self.random.random() < 0.3 else ''}", count)

    def distinct(self, depth: int) -> Part:
        part = self.select(depth)
        return Part(part.sql.replace("SELECT", "SELECT DISTINCT", 1), part.width)

    def group(self, depth: int) -> Part:
        source, width = self.relation(depth, "x")
        keys = [self.value("x", width) for _ in range(self.random.choice((0, 1, 1, 2)))]
        aggregates = self.random.sample(
            ["COUNT(*)", f"COUNT({self.column('x', width)})", f"CAST(SUM({self.value('x', width)}) AS INT)"],
            self.random.randint(0 if keys else 1, 2),
        )
        items = ", ".join(f"{e} AS c{i}" for i, e in enumerate([*keys, *aggregates]))
        where = f" WHERE {self.condition('x', width)}" if self.random.random() < 0.3 else ""
        by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        having = " HAVING COUNT(*) > 1" if self.random.random() < 0.3 else ""
        return Part(f"SELECT {items} FROM {source}{where}{by}{having}", len(keys) + len(aggregates))

    def join(self, depth: int) -> Part:
        aliases = ["x", "y", "z"][: self.random.choice((2, 2, 3))]
        sources = [(alias, *self.relation(self.random.randint(1, depth), alias)) for alias in aliases]
        conditions = []
        for n, (alias, _, width) in enumerate(sources[1:], 1):
            other, _, other_width = self.random.choice(sources[:n])
            conditions.append(f"{self.column(other, other_width)} {self.equals()} {self.column(alias, width)}")
        (one, _, first), (two, _, second) = self.random.sample(sources, 2)
        if self.random.random() < 0.4:
            conditions.append(
                f"{self.column(one, first)} {self.random.choice(('=', SAFE, '<', '<>', '<='))} {self.column(two, second)}"
            )
        count = self.random.randint(1, 3)
        items = ", ".join(
            f"{self.value(*self.random.choice([(a, w) for a, _, w in sources]))} AS c{i}" for i in range(count)
        )
        tables = ", ".join(source for _, source, _ in sources)
        return Part(f"SELECT {items} FROM {tables} WHERE {' AND '.join(conditions)}", count)

    def union(self, depth: int) -> Part:
        parts = [self.part(self.random.randint(0, depth - 1)) for _ in range(self.random.choice((2, 2, 3)))]
        width = min(p.width for p in parts)
        listed = ", ".join(f"c{i}" for i in range(width))
        kind = self.random.choice((" UNION ALL ", " UNION ALL ", " UNION "))
        return Part(kind.join(f"SELECT {listed} FROM ({p.sql}) q" for p in parts), width)

    def query(self, depth: int) -> str:
        part = self.part(depth)
        ctes = ", ".join(f"{name} AS ({cte.sql})" for name, cte in self.ctes)
        return f"WITH {ctes} {part.sql}" if ctes else part.sql


@st.composite
def blocks(draw: DrawFn) -> Blocks:
    """A random query of one to three levels, and random batches."""
    random = draw(st.randoms(use_true_random=True))
    sql = _Writer(random).query(draw(st.integers(1, 3)))
    held: dict[str, list[Row]] = {table: [] for table in TABLES}
    batches = []
    for _ in range(draw(st.integers(2, 4))):
        batch: list[Change] = []
        for table, columns in TABLES.items():
            for _ in range(random.randint(0, 3)):
                if held[table] and random.random() < 0.45:
                    batch.append((table, held[table].pop(random.randrange(len(held[table]))), -1))
                else:
                    row = tuple(random.choice(VALUES) for _ in columns)
                    held[table].append(row)
                    batch.append((table, row, 1))
        batches.append(tuple(batch))
    batches.append(tuple((table, row, -1) for table, rows in held.items() for row in rows))
    return Blocks(sql, tuple(batches))
