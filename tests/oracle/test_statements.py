"""Random INSERT, UPDATE, DELETE and one-off SELECT statements, against DuckDB running the same on the same tables.

DuckDB's tables have no constraints (it refuses updates that swap keys): keys and NOT NULL are judged on its rows after the statement, which
is then rolled back. The generator leaves out where DuckDB is not Spark: bare arithmetic of small integers, division, remainders.
"""

import datetime as dt
import random
from collections import Counter

import duckdb
import pytest

import everview as ev

SCHEMA = """
CREATE TABLE k (id INT PRIMARY KEY, a TINYINT, s STRING NOT NULL, d DATE);
CREATE TABLE b (x BIGINT, y INT, t STRING)
"""
DUCKDB = """
CREATE TABLE k (id INTEGER, a TINYINT, s VARCHAR, d DATE);
CREATE TABLE b (x BIGINT, y INTEGER, t VARCHAR)
"""
VIEWS = {
    "joined": "SELECT k.id, k.s, b.y FROM k JOIN b ON k.id = b.x",
    "grouped": "SELECT t, COUNT(*) AS n, SUM(y) AS total FROM b GROUP BY t",
    "distinct_s": "SELECT DISTINCT s FROM k WHERE a IS NOT NULL",
    "lonely": "SELECT b.x, b.t FROM b WHERE NOT EXISTS (SELECT * FROM k WHERE k.id = b.x)",
    "padded": "SELECT k.id, b.t FROM k LEFT JOIN b ON k.id = b.x",
    "over": "SELECT g.n, k.id FROM grouped g JOIN k ON k.s = g.t",
}
COLUMNS = {
    "k": {"id": "int", "a": "int", "s": "text", "d": "date"},
    "b": {"x": "int", "y": "int", "t": "text"},
    "grouped": {"t": "text", "n": "int"},
    "joined": {"id": "int", "s": "text", "y": "int"},
}
WIDTH = {"id": "INT", "a": "INT", "y": "INT", "x": "BIGINT", "n": "BIGINT"}


class Text:
    """A statement in the making: the text for everview, with parameters, and the one for DuckDB, with literals."""

    def __init__(self, rng):
        self.rng = rng
        self.by_name = rng.random() < 0.5
        self.values = []

    def constant(self, kind):
        value = {
            "int": lambda: self.rng.choice([0, 1, 2, 3, 5, 60, 127, -128, None]),
            "text": lambda: self.rng.choice(["a", "b", "it's", "", "a?:x"]),
            "date": lambda: self.rng.choice([dt.date(2024, 2, 29), dt.date(1969, 12, 31), None]),
        }[kind]()
        literal = "NULL" if value is None else str(value)
        if kind == "text":
            literal = "'" + value.replace("'", "''") + "'"
        if kind == "date" and value is not None:
            literal = f"DATE'{value}'"
        if self.rng.random() < 0.5:
            return literal, literal
        self.values.append(value)
        return (f":p{len(self.values)}" if self.by_name else "\x00"), literal

    def finish(self, ours, theirs):
        """Both texts, and the parameters in the order of the text."""
        if self.by_name:
            return ours, {f"p{i}": v for i, v in enumerate(self.values, 1)} or None, theirs
        return ours.replace("\x00", "?"), self.values or None, theirs

    # What follows gives pairs of texts. Parts are made in the order in which they stand.

    def column(self, table, kind):
        found = [name for name, k in COLUMNS[table].items() if k == kind]
        return self.rng.choice(found) if found else None

    def value(self, table, kind, depth=2):
        name = self.column(table, kind)
        roll = self.rng.random()
        if name is None or roll < 0.35 or depth == 0 and roll < 0.5:
            return self.constant(kind)
        if depth == 0 or roll < 0.6:
            return f"{table}.{name}", f"{table}.{name}"
        if roll < 0.7:
            return join("CASE WHEN ", self.condition(table, 0), " THEN ", self.value(table, kind, depth - 1), " ELSE ",
                        self.value(table, kind, 0), " END")  # fmt: skip
        if kind == "int" and roll < 0.9:
            one = f"CAST({table}.{name} AS {WIDTH[name]})"
            operator = self.rng.choice(["+", "-", "*"])
            two = f"CAST({self.rng.choice([1, 2, 7])} AS {WIDTH[name]})"
            return f"({one} {operator} {two})", f"({one} {operator} {two})"
        if kind == "text" and roll < 0.9:
            return join("UPPER(", self.value(table, kind, depth - 1), ")")
        return join("COALESCE(", self.value(table, kind, depth - 1), ", ", self.value(table, kind, 0), ")")

    def condition(self, table, depth=2):
        roll = self.rng.random()
        kind = self.rng.choice(list(COLUMNS[table].values()))
        subject = f"{table}.{self.column(table, kind)}"
        if depth > 0 and roll < 0.25:
            other = self.rng.choice([t for t in COLUMNS if t != table])
            there = self.column(other, kind)
            if there is not None and self.rng.random() < 0.5:
                extra = self.condition(other, 0) if self.rng.random() < 0.5 else ("1 = 1", "1 = 1")
                return join(f"{subject} IN (SELECT {there} FROM {other} WHERE ", extra, ")")
            if there is not None:
                no = self.rng.choice(["", "NOT "])
                return join(
                    f"{no}EXISTS (SELECT * FROM {other} WHERE {other}.{there} = {subject} AND ",
                    self.condition(other, 0),
                    ")",
                )
        if depth > 0 and roll < 0.45:
            return join(
                "(", self.condition(table, depth - 1), self.rng.choice([" AND ", " OR "]), self.condition(table, 0), ")"
            )
        if roll < 0.55:
            no = self.rng.choice(["", "NOT "])
            return f"{subject} IS {no}NULL", f"{subject} IS {no}NULL"
        if roll < 0.65 and kind != "date":
            return join(f"{subject} IN (", self.constant(kind), ", ", self.constant(kind), ")")
        if roll < 0.72 and kind == "text":
            return f"{subject} LIKE 'a%'", f"{subject} LIKE 'a%'"
        operator = self.rng.choice(["=", "<>", "<", ">=", "IS NOT DISTINCT FROM"])
        ours = operator.replace("IS NOT DISTINCT FROM", "<=>")
        right = self.constant(kind) if kind == "date" else self.value(table, kind, 0)
        return f"{subject} {ours} {right[0]}", f"{subject} {operator} {right[1]}"

    def where(self, table):
        return ("", "") if self.rng.random() < 0.1 else join(" WHERE ", self.condition(table))

    def statement(self):
        table = self.rng.choice(["k", "b"])
        columns = COLUMNS[table]
        roll = self.rng.random()
        if roll < 0.4:
            chosen = [c for c in columns if self.rng.random() < 0.85] or list(columns)
            self.rng.shuffle(chosen)
            head = f"INSERT INTO {table} ({', '.join(chosen)}) "
            if self.rng.random() < 0.25:
                return self.rows(head, [columns[c] for c in chosen])
            if self.rng.random() < 0.6:
                rows = []
                for _ in range(self.rng.randint(1, 4)):
                    cells = [self.cell(columns[c], c) for c in chosen]
                    rows.append(join("(", commas(cells), ")"))
                return self.finish(*join(head + "VALUES ", commas(rows)))
            source = self.rng.choice(list(COLUMNS))
            values = [self.value(source, columns[c]) for c in chosen]
            named = [join("", v, f" AS c{i}") for i, v in enumerate(values)]
            return self.finish(*join(head + "SELECT ", commas(named), f" FROM {source}", self.where(source)))
        if roll < 0.75:
            chosen = self.rng.sample(list(columns), self.rng.randint(1, 2))
            sets = [join(f"{c} = ", self.value(table, columns[c])) for c in chosen]
            return self.finish(*join(f"UPDATE {table} SET ", commas(sets), self.where(table)))
        return self.finish(*join(f"DELETE FROM {table}", self.where(table)))

    def rows(self, head, kinds):
        """VALUES with rows of parameters."""
        given, literals = [], []
        for _ in range(self.rng.randint(1, 5)):
            self.values, self.by_name = [], False
            cells = []
            while len(self.values) < len(kinds):
                kind, count = kinds[len(self.values)], len(self.values)
                _, literal = self.constant(kind)
                cells += [literal] if len(self.values) > count else []
            given.append(tuple(self.values))
            literals.append(f"({', '.join(cells)})")
        places = ", ".join("?" * len(kinds))
        return f"{head}VALUES ({places})", given, f"{head}VALUES {', '.join(literals)}"

    def cell(self, kind, column):
        if column == "id" and self.rng.random() < 0.8:
            number = str(self.rng.randrange(40))
            return number, number
        return self.constant(kind)

    def select(self):
        table = self.rng.choice(list(COLUMNS))
        kinds = [self.rng.choice(["int", "text"]) for _ in range(self.rng.randint(1, 3))]
        items = commas([join("", self.value(table, kind), f" AS c{i}") for i, kind in enumerate(kinds)])
        order = ", ".join(
            f"c{i}{self.rng.choice(['', ' DESC'])} NULLS {self.rng.choice(['FIRST', 'LAST'])}"
            for i in range(len(kinds))
        )
        limit = self.rng.choice(["", f" LIMIT {self.rng.randint(0, 5)}"])
        distinct = self.rng.choice(["", "DISTINCT "])
        return self.finish(
            *join(f"SELECT {distinct}", items, f" FROM {table}", self.where(table), f" ORDER BY {order}{limit}")
        )


def join(*parts):
    pairs = [(part, part) if isinstance(part, str) else part for part in parts]
    return "".join(ours for ours, _ in pairs), "".join(theirs for _, theirs in pairs)


def commas(pairs):
    return ", ".join(ours for ours, _ in pairs), ", ".join(theirs for _, theirs in pairs)


def bag(table):
    return Counter(tuple(row.values()) for row in table.to_pylist())


def result(session, name):
    return bag(session.view(name).to_arrow())


class Both:
    """A session and DuckDB with the same tables."""

    def __init__(self, db):
        self.db = db
        db.execute(SCHEMA)
        self.other = duckdb.connect()
        self.other.execute(DUCKDB)
        for name, query in VIEWS.items():
            db.create_view(name, query)
            self.other.execute(f"CREATE VIEW {name} AS {query}")

    def rows(self, query):
        return Counter(self.other.execute(query).fetchall())

    def valid(self):
        broken = "SELECT COUNT(*) FROM k WHERE id IS NULL OR s IS NULL"
        twice = "SELECT COUNT(*) - COUNT(DISTINCT id) FROM k"
        return self.other.execute(broken).fetchone() == (0,) and self.other.execute(twice).fetchone() == (0,)

    def run_other(self, text):
        """The number of rows concerned; None if the statement is refused."""
        self.other.execute("BEGIN")
        try:
            (count,) = self.other.execute(text).fetchone()
        except (duckdb.ConversionException, duckdb.OutOfRangeException):
            count = None
        if count is None or not self.valid():
            self.other.execute("ROLLBACK")
            return None
        self.other.execute("COMMIT")
        return count

    def check(self):
        for table in ("k", "b"):
            found = Counter()
            for row in self.db.table_rows(table).to_pylist():
                *values, n = row.values()
                found[tuple(values)] += n
            assert found == self.rows(f"SELECT * FROM {table}")
        for name in VIEWS:
            assert result(self.db, name) == self.rows(f"SELECT * FROM {name}"), name


def step(both, rng):
    """One statement; whether it was refused, or None if it is of a form that is not supported."""
    ours, parameters, theirs = Text(rng).statement()
    before = {name: result(both.db, name) for name in VIEWS}
    version = both.db.version
    try:
        executed = both.db.execute(ours, parameters)
    except ev.UnsupportedQueryError:
        return None
    except ev.ChangeError as refusal:
        assert refusal.sql == ours and refusal.span is not None
        assert both.run_other(theirs) is None, (ours, parameters, str(refusal))
        assert both.db.version == version
        both.check()
        return True
    assert both.run_other(theirs) == executed.rows, (ours, parameters)
    both.check()
    for name, delta in executed.deltas.items():
        for row in delta.to_pylist():
            *values, n = row.values()
            before[name][tuple(values)] += n
        assert +before[name] == result(both.db, name), name
    return False


@pytest.mark.seeds(25)
def test_random_statements(seed):
    rng = random.Random(seed)
    with ev.connect() as db:
        both = Both(db)
        outcomes = Counter(step(both, rng) for _ in range(40))
        assert outcomes[False] > 5
        texts = db._state.kernel.texts_size()
        for _ in range(10):
            ours, parameters, theirs = Text(rng).select()
            try:
                found = db.sql(ours, parameters)
            except ev.UnsupportedQueryError:
                continue
            except ev.ChangeError:
                with pytest.raises((duckdb.ConversionException, duckdb.OutOfRangeException)):
                    both.other.execute(theirs).fetchall()
                continue
            assert [tuple(row) for row in found] == both.other.execute(theirs).fetchall(), (ours, parameters)
        assert db._state.kernel.texts_size()[0] == texts[0]
        both.check()
        db.execute("DELETE FROM k; DELETE FROM b")
        assert db._state.kernel.texts_size()[0] == 0
