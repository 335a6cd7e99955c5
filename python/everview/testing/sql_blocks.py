"""Random queries of several blocks: groups over groups, joins of grouped derived tables, unions, EXCEPT and INTERSECT, VALUES, CTEs that are
used twice, outer and lateral joins, subqueries, LIMIT, row_number().

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
SET_OPERATIONS = ("EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "UNION")
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
        self.reads_tables = False

    def part(self, depth: int) -> Part:
        if depth == 0:
            return self.scan()
        shape = self.random.choice(
            ["select", "distinct", "group", "group", "join", "join", "outer", "lateral", "union", "sets", "numbered"]
        )
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

    def constants(self) -> Part:
        """VALUES, or a SELECT without FROM. The first row has no NULL, so that columns have a type."""
        width = self.random.randint(1, 3)
        rows: list[list[int | None]] = [[self.random.choice(VALUES[1:]) for _ in range(width)]]
        if self.random.random() < 0.4:
            return Part(f"SELECT {', '.join(f'{v} AS c{i}' for i, v in enumerate(rows[0]))}", width)
        rows += [[self.random.choice(VALUES) for _ in range(width)] for _ in range(self.random.randint(0, 3))]
        written = [f"({', '.join('NULL' if v is None else str(v) for v in row)})" for row in rows]
        named = ", ".join(f"c{i}" for i in range(width))
        return Part(f"SELECT {named} FROM (VALUES {', '.join(written)}) AS v({named})", width)

    def scan(self) -> Part:
        if self.random.random() < 0.12:
            return self.constants()
        self.reads_tables = True
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

    def correlated(self, alias: str, width: int, depth: int) -> tuple[str, str, int]:
        """Something with an alias of its own, conditions that may compare it with a row around it, and how many columns it has."""
        self.number += 1
        inner = f"q{self.number}"
        source, inner_width = self.relation(max(1, depth - 1), inner)
        conditions = []
        if self.random.random() < 0.7:
            by = self.random.choice((self.equals(), self.equals(), self.equals(), "<", "<>", ">="))
            conditions.append(f"{self.column(inner, inner_width)} {by} {self.column(alias, width)}")
        conditions += [self.condition(inner, inner_width)] * self.random.randint(0, 1)
        if depth > 1 and self.random.random() < 0.25:
            outer = self.random.choice(((alias, width), (inner, inner_width)))
            conditions.append(self.subquery(*outer, depth - 1))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return inner, f"{source}{where}", inner_width

    def subquery(self, alias: str, width: int, depth: int) -> str:
        """A condition with EXISTS, IN, ANY, ALL or a scalar subquery, correlated or not."""
        inner, rows, inner_width = self.correlated(alias, width, depth)
        negation = self.random.choice(("", "NOT "))
        kind = self.random.choice(("exists", "exists", "in", "in", "pair", "any", "scalar"))
        tested = self.column(inner, inner_width)
        if kind == "exists":
            limit = " LIMIT 1" if self.random.random() < 0.2 else ""
            return f"{negation}EXISTS (SELECT 1 FROM {rows}{limit})"
        if kind == "scalar":
            return (
                f"{self.value(alias, width)} {self.random.choice(('=', '<', '>='))} {self.scalar(alias, width, depth)}"
            )
        if kind == "any":
            by = self.random.choice(("=", "<>", "<", "<=", ">", ">="))
            return f"{self.value(alias, width)} {by} {self.random.choice(('ANY', 'ALL'))} (SELECT {tested} FROM {rows})"
        if kind == "pair":  # which DuckDB takes where it is not correlated
            source, inner_width = self.relation(max(1, depth - 1), inner)
            operands = f"({self.column(alias, width)}, {self.value(alias, width)})"
            return f"{operands} {negation}IN (SELECT {inner}.c0, {self.value(inner, inner_width)} FROM {source})"
        grouped = f" GROUP BY {tested}" if self.random.random() < 0.2 else ""
        return f"{self.value(alias, width)} {negation}IN (SELECT {tested} FROM {rows}{grouped})"

    def scalar(self, alias: str, width: int, depth: int) -> str:
        """A scalar subquery, of an aggregate, so that it has one row."""
        inner, rows, inner_width = self.correlated(alias, width, depth)
        column = self.column(inner, inner_width)
        value = self.random.choice(
            ["COUNT(*)", f"COUNT({column})", f"SUM({column})", f"SUM({column}) + COUNT(*)", f"COUNT(*) + {alias}.c0"]
        )
        having = " HAVING COUNT(*) > 1" if self.random.random() < 0.15 else ""
        return f"(SELECT CAST({value} AS INT) FROM {rows}{having})"

    def tested(self, alias: str, width: int, depth: int) -> str:
        """A condition with subqueries, some of them below OR, NOT or CASE."""
        first = self.subquery(alias, width, depth)
        other = self.condition(alias, width)
        shape = self.random.choice(
            ("{0}", "{0}", "{0}", "({0}) OR ({1})", "NOT ({0})", "CASE WHEN {0} THEN {1} ELSE TRUE END")
        )
        return shape.format(first, other)

    def item(self, alias: str, width: int, depth: int) -> str:
        """A column that is computed, now and then by a subquery."""
        chance = self.random.random()
        if chance < 0.08:
            return self.scalar(alias, width, depth)
        if chance < 0.14:
            return f"CAST({self.subquery(alias, width, depth)} AS INT)"
        return self.value(alias, width)

    def select(self, depth: int) -> Part:
        source, width = self.relation(depth, "x")
        count = self.random.randint(1, 3)
        items = ", ".join(f"{self.item('x', width, depth)} AS c{i}" for i in range(count))
        conditions = [self.condition("x", width)] * (self.random.random() < 0.4)
        conditions += [self.tested("x", width, depth) for _ in range(self.random.choice((0, 0, 1, 1, 2)))]
        where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
        return Part(f"SELECT {items} FROM {source}{where}", count)

    def outer(self, depth: int) -> Part:
        """Outer joins, one after another."""
        sources = [("x", *self.relation(depth, "x"))]
        text = sources[0][1]
        for alias in ("y", "z")[: self.random.choice((1, 1, 2))]:
            source, width = self.relation(self.random.randint(1, depth), alias)
            other, _, other_width = self.random.choice(sources)
            kind = self.random.choice(("LEFT", "LEFT", "LEFT", "RIGHT", "FULL"))
            by = self.equals()
            if kind != "FULL" and self.random.random() < 0.15:
                by = self.random.choice(("<", "<>", ">="))
            conditions = [f"{self.value(other, other_width)} {by} {self.column(alias, width)}"]
            if kind != "FULL":
                conditions += [self.condition(alias, width)] * (self.random.random() < 0.3)
                conditions += [f"{self.column('x', sources[0][2])} > 0"] * (self.random.random() < 0.2)
            text += f" {kind} JOIN {source} ON {' AND '.join(conditions)}"
            sources.append((alias, source, width))
        count = self.random.randint(1, 3)
        items = ", ".join(
            f"{self.value(*self.random.choice([(a, w) for a, _, w in sources]))} AS c{i}" for i in range(count)
        )
        where = f" WHERE {self.condition(*self.random.choice([(a, w) for a, _, w in sources]))}"
        return Part(f"SELECT {items} FROM {text}{where if self.random.random() < 0.3 else ''}", count)

    def lateral(self, depth: int) -> Part:
        """A join with a subquery that is computed for every row before it."""
        source, width = self.relation(depth, "x")
        inner, rows, inner_width = self.correlated("x", width, depth)
        column = self.column(inner, inner_width)
        shape = self.random.choice(("rows", "rows", "groups", "one"))
        if shape == "rows":
            right = f"SELECT {column} AS c0, {self.value('x', width)} AS c1 FROM {rows}"
        elif shape == "groups":
            right = f"SELECT {column} AS c0, CAST(COUNT(*) AS INT) AS c1 FROM {rows} GROUP BY {column}"
        else:
            right = f"SELECT CAST(SUM({column}) AS INT) AS c0, CAST(COUNT(*) AS INT) AS c1 FROM {rows}"
        join = self.random.choice((f", LATERAL ({right}) y", f" LEFT JOIN LATERAL ({right}) y ON TRUE"))
        return Part(f"SELECT {self.column('x', width)} AS c0, y.c0 AS c1, y.c1 AS c2 FROM {source}{join}", 3)

    def distinct(self, depth: int) -> Part:
        part = self.select(depth)
        return Part(part.sql.replace("SELECT", "SELECT DISTINCT", 1), part.width)

    def aggregates(self, alias: str, width: int) -> list[str]:
        """One call of each aggregate function."""

        def value() -> str:
            return self.value(alias, width)

        return [
            "COUNT(*)",
            f"COUNT({self.column(alias, width)})",
            f"CAST(SUM({value()}) AS INT)",
            f"MIN({value()})",
            f"MAX({value()})",
            f"CAST({self.random.choice(('COUNT', 'SUM', 'MIN'))}(DISTINCT {value()}) AS INT)",
            f"COUNT(DISTINCT {value()}) FILTER (WHERE {self.condition(alias, width)})",
            f"{self.random.choice(('COUNT(*)', f'MAX({value()})'))} FILTER (WHERE {self.condition(alias, width)})",
            f"CASE WHEN {self.random.choice(('VAR_POP', 'STDDEV_SAMP'))}({value()}) > 0.7123 THEN 1 ELSE 0 END",
            f"CAST({self.random.choice(('BOOL_AND', 'BOOL_OR'))}({self.condition(alias, width)}) AS INT)",
        ]

    def group(self, depth: int) -> Part:
        source, width = self.relation(depth, "x")
        keys = [self.value("x", width) for _ in range(self.random.choice((0, 1, 1, 2)))]
        aggregates = self.random.sample(self.aggregates("x", width), self.random.randint(0 if keys else 1, 2))
        items = ", ".join(f"{e} AS c{i}" for i, e in enumerate([*keys, *aggregates]))
        where = f" WHERE {self.condition('x', width)}" if self.random.random() < 0.3 else ""
        by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
        conditions = ("COUNT(*) > 1", f"MAX({self.column('x', width)}) > 1")
        having = f" HAVING {self.random.choice(conditions)}" if self.random.random() < 0.3 else ""
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

    def sets(self, depth: int) -> Part:
        """EXCEPT and INTERSECT, also in chains, where INTERSECT binds stronger."""
        parts = [self.part(self.random.randint(0, depth - 1)) for _ in range(self.random.choice((2, 2, 3)))]
        width = min(p.width for p in parts)
        listed = ", ".join(f"c{i}" for i in range(width))
        text = f"SELECT {listed} FROM ({parts[0].sql}) q"
        for part in parts[1:]:
            text += f" {self.random.choice(SET_OPERATIONS)} SELECT {listed} FROM ({part.sql}) q"
        return Part(text, width)

    def numbered(self, depth: int) -> Part:
        """row_number() in QUALIFY, in a derived table, or shown. Rows are ordered by all columns in the end, so that only copies are equal."""
        source, width = self.relation(depth, "x")
        columns = [f"x.c{i}" for i in range(width)]
        by = self.random.sample(columns, self.random.randint(0, min(2, width)))
        partition = f"PARTITION BY {', '.join(by)} " if by else ""
        ways = ("NULLS FIRST", "NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST")
        keys = [f"{self.value('x', width)} {self.random.choice(ways)}" for _ in range(self.random.randint(0, 1))]
        keys += [f"{column} {self.random.choice(ways)}" for column in self.random.sample(columns, width)]
        number = f"row_number() OVER ({partition}ORDER BY {', '.join(keys)})"
        condition = self.random.choice(("= 1", "= 1", "<= 2", "< 3", "BETWEEN 2 AND 3", "> 1", "<> 2"))
        items = ", ".join(f"{column} AS c{i}" for i, column in enumerate(columns))
        shape = self.random.choice(("qualify", "derived", "shown", "all"))
        if shape == "qualify":
            also = f" AND {self.condition('x', width)}" if self.random.random() < 0.3 else ""
            return Part(f"SELECT {items} FROM {source} QUALIFY {number} {condition}{also}", width)
        inner = f"SELECT {items}, CAST({number} AS INT) AS c{width} FROM {source}"
        if shape == "all":
            return Part(inner, width + 1)
        shown = width + (shape == "shown")
        listed = ", ".join(f"q.c{i}" for i in range(shown))
        return Part(f"SELECT {listed} FROM ({inner}) q WHERE q.c{width} {condition}", shown)

    def query(self, depth: int) -> str:
        part = self.part(depth)
        if not self.reads_tables:
            part = Part(f"SELECT c0 FROM ({part.sql}) q UNION ALL SELECT a AS c0 FROM u", 1)
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
