"""Statements and table definitions."""

import pytest

from everview.schema.table import Column, ForeignKey, Retention, Table
from everview.sql import CreateTable, CreateView, DropTable, DropView, parse_statements


def table(sql: str) -> Table:
    (statement,) = parse_statements(sql)
    assert isinstance(statement, CreateTable)
    return statement.table


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("BOOLEAN", "boolean"),
        ("TINYINT", "tinyint"),
        ("BYTE", "tinyint"),
        ("SMALLINT", "smallint"),
        ("INT", "int"),
        ("INTEGER", "int"),
        ("BIGINT", "bigint"),
        ("LONG", "bigint"),
        ("FLOAT", "float"),
        ("REAL", "float"),
        ("DOUBLE", "double"),
        ("DECIMAL", "decimal(10,0)"),
        ("DECIMAL(5)", "decimal(5,0)"),
        ("DECIMAL(12,2)", "decimal(12,2)"),
        ("NUMERIC(38,38)", "decimal(38,38)"),
        ("STRING", "string"),
        ("TEXT", "string"),
        ("VARCHAR", "string"),
        ("VARCHAR(10)", "varchar(10)"),
        ("CHAR(3)", "char(3)"),
        ("DATE", "date"),
        ("TIMESTAMP", "timestamp"),
        ("TIMESTAMP_LTZ", "timestamp"),
        ("TIMESTAMP_NTZ", "timestamp_ntz"),
        ("BINARY", "binary"),
    ],
)
def test_types(written: str, expected: str) -> None:
    assert str(table(f"CREATE TABLE t (a {written})").columns[0].type) == expected


def test_keys_and_nullability() -> None:
    found = table(
        """CREATE TABLE Orders (Id BIGINT, line INT, cust BIGINT NOT NULL REFERENCES customer(c_id), note STRING COMMENT 'free',
           PRIMARY KEY (id, LINE), CONSTRAINT fk FOREIGN KEY (cust, line) REFERENCES other (a, b))"""
    )
    assert found.name == "Orders"
    assert found.primary_key == ("Id", "line")  # in the case of their declaration
    assert [c.nullable for c in found.columns] == [False, False, False, True]
    assert found.foreign_keys == (
        ForeignKey(("cust",), "customer", ("c_id",)),
        ForeignKey(("cust", "line"), "other", ("a", "b")),
    )


def test_inline_primary_key() -> None:
    found = table("CREATE TABLE t (a BIGINT PRIMARY KEY, b INT REFERENCES u)")
    assert found.primary_key == ("a",)
    assert isinstance(found.columns[0], Column)
    assert not found.columns[0].nullable
    assert found.foreign_keys == (ForeignKey(("b",), "u", ()),)


HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", None),
        ("WITH (retain_rows = 1000)", Retention(rows=1000)),
        ("TBLPROPERTIES ('everview.retain_rows' = '1000')", Retention(rows=1000)),
        ("WITH (retain = INTERVAL 1 HOUR, time_column = ts)", Retention(micros=HOUR, time_column="ts")),
        ("WITH (retain = INTERVAL '2' DAYS, time_column = TS)", Retention(micros=48 * HOUR, time_column="ts")),
        (
            "TBLPROPERTIES ('everview.retain' = 'INTERVAL 1 HOUR', 'everview.time_column' = 'ts')",
            Retention(micros=HOUR, time_column="ts"),
        ),
        (
            "TBLPROPERTIES ('everview.retain' = '90 minutes', 'everview.time_column' = 'ts')",
            Retention(micros=HOUR * 3 // 2, time_column="ts"),
        ),
    ],
)
def test_retention(options: str, expected: Retention | None) -> None:
    assert table(f"CREATE TABLE t (a INT, ts TIMESTAMP) {options}").retention == expected


def test_several_statements() -> None:
    sql = """-- a script
    CREATE TABLE IF NOT EXISTS t (a INT);
    CREATE OR REPLACE VIEW v AS SELECT a  -- kept
      FROM t WHERE a > ';';;
    CREATE MATERIALIZED VIEW IF NOT EXISTS w AS WITH c AS (SELECT a FROM t) SELECT a FROM c;
    DROP VIEW IF EXISTS v; DROP MATERIALIZED VIEW w; DROP TABLE t; DROP TABLE IF EXISTS t
    """
    create, view, with_cte, *drops = parse_statements(sql)
    assert isinstance(create, CreateTable)
    assert create.if_not_exists
    assert isinstance(view, CreateView)
    assert (view.name, view.or_replace, view.if_not_exists) == ("v", True, False)
    assert view.sql_of_query == "SELECT a  -- kept\n      FROM t WHERE a > ';'"
    assert sql[view.span.start : view.span.end] == view.sql_of_query
    assert isinstance(with_cte, CreateView)
    assert (with_cte.or_replace, with_cte.if_not_exists) == (False, True)
    assert with_cte.sql_of_query == "WITH c AS (SELECT a FROM t) SELECT a FROM c"
    assert [(type(d), d.name, d.if_exists) for d in drops] == [
        (DropView, "v", True),
        (DropView, "w", False),
        (DropTable, "t", False),
        (DropTable, "t", True),
    ]


def test_quoted_names() -> None:
    found = table("CREATE TABLE `my table` (`a b` INT, `select` STRING)")
    assert found.name == "my table"
    assert [c.name for c in found.columns] == ["a b", "select"]


def test_nothing() -> None:
    assert parse_statements(" ; -- nothing\n ;") == ()
