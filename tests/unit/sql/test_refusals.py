"""Every refusal: its code and the text it points at."""

import pytest

from everview.errors import EverviewError, SchemaError, SqlParseError, UnsupportedQueryError
from everview.schema.datatype import BIGINT
from everview.schema.table import Column, Table
from everview.lower import lower_query
from everview.sql import parse_statements
from everview.sql.reject import REASONS

UNSUPPORTED = [
    ("JOIN_CONDITION", "SELECT t.x FROM t LEFT JOIN u ON t.id = u.id AND t.x < u.x", "t.x < u.x"),
    ("JOIN_CONDITION", "SELECT x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x > t.x)", "u.x > t.x"),
    ("OUTER_JOIN", "SELECT t.x FROM t\n  RIGHT  OUTER JOIN u ON t.id = u.id", "RIGHT  OUTER JOIN"),
    ("OUTER_JOIN", "SELECT t.x FROM t FULL JOIN u USING (id)", "FULL JOIN"),
    ("SET_OPERATION", "SELECT x FROM t UNION ALL BY NAME SELECT x FROM t", "UNION"),
    ("SET_OPERATION", "SELECT x FROM t MINUS BY NAME SELECT x FROM t", "MINUS"),
    ("ORDER_BY_NOT_SELECTED", "SELECT x FROM t ORDER BY x, y + 1 DESC", "y + 1"),
    ("ORDER_BY_NOT_SELECTED", "SELECT x FROM t UNION ALL SELECT x FROM t ORDER BY y", "y"),
    ("ORDER_BY", "SELECT x FROM t SORT BY x", "SORT BY x"),
    ("ORDER_BY_NOT_SELECTED", "SELECT DISTINCT x FROM t ORDER BY x, y LIMIT 3", "y"),
    ("ORDER_BY_NOT_SELECTED", "(SELECT x FROM t) ORDER BY y LIMIT 3", "y"),
    ("ORDER_BY_NOT_SELECTED", "SELECT x FROM t UNION ALL SELECT x FROM t ORDER BY t.x LIMIT 3", "t.x"),
    ("LIMIT", "SELECT x FROM t LIMIT x", "LIMIT x"),
    ("LIMIT", "SELECT x FROM (SELECT x FROM t LIMIT -3) d", "LIMIT -3"),
    ("LIMIT", "SELECT x FROM t LIMIT 3000000000", "LIMIT 3000000000"),
    ("LIMIT", "SELECT x FROM t OFFSET 1 + 1", "OFFSET 1 + 1"),
    ("LIMIT", "SELECT x FROM t ORDER BY x FETCH FIRST 3 ROWS ONLY", "FETCH FIRST 3 ROWS ONLY"),
    ("WINDOW_FUNCTION", "SELECT x, SUM(x) OVER (PARTITION BY y) AS z FROM t", "SUM(x) OVER (PARTITION BY y)"),
    ("WINDOW_FUNCTION", "SELECT row_number() AS z FROM t", "row_number()"),
    ("WINDOW_FUNCTION", "SELECT rank() OVER (ORDER BY x) AS z FROM t", "rank() OVER (ORDER BY x)"),
    ("WINDOW_FUNCTION", "SELECT row_number() OVER (PARTITION BY x) AS z FROM t", "row_number() OVER (PARTITION BY x)"),
    ("WINDOW_FUNCTION", "SELECT x FROM t WHERE row_number() OVER (ORDER BY x) = 1", "row_number() OVER (ORDER BY x)"),
    ("WINDOW_FUNCTION", "SELECT row_number() OVER w AS z FROM t WINDOW w AS (ORDER BY x)", "AS (ORDER BY x)"),
    (
        "WINDOW_FUNCTION",
        "SELECT x FROM t QUALIFY row_number() OVER (ORDER BY row_number() OVER (ORDER BY x)) = 1",
        "row_number() OVER (ORDER BY x)",
    ),
    ("SUBQUERY_EXPRESSION", "SELECT x FROM t WHERE y = 1 OR x IN (SELECT tid FROM u)", "x IN (SELECT tid FROM u)"),
    ("SUBQUERY_EXPRESSION", "SELECT EXISTS (SELECT 1 FROM u) AS e FROM t", "EXISTS (SELECT 1 FROM u)"),
    ("SUBQUERY_EXPRESSION", "SELECT x FROM t WHERE x = (SELECT 1 FROM u)", "(SELECT 1 FROM u)"),
    ("TOO_MANY_TABLES", f"SELECT 1 AS x FROM {', '.join(f't t{i}' for i in range(101))}", "t t100"),
    ("RECURSIVE_CTE", "WITH RECURSIVE r AS (SELECT x FROM t) SELECT x FROM r", "WITH RECURSIVE r AS (SELECT x FROM t)"),
    ("NO_FROM", "SELECT *", "*"),
    ("TABLE_EXPRESSION", "SELECT * FROM range(10)", "range(10)"),
    ("TABLE_EXPRESSION", "SELECT x FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE (10 PERCENT)"),
    ("TABLE_EXPRESSION", "SELECT x FROM t LATERAL VIEW explode(x) e AS z", "LATERAL VIEW explode(x) e AS z"),
    ("GROUPING_SETS", "SELECT x FROM t GROUP BY ROLLUP(x)", "ROLLUP(x)"),
    ("GROUPING_SETS", "SELECT x FROM t GROUP BY CUBE(x, y)", "CUBE(x, y)"),
    ("GROUPING_SETS", "SELECT x FROM t GROUP BY GROUPING SETS ((x), (y))", "GROUPING SETS ((x), (y))"),
    ("GROUPING_SETS", "SELECT x FROM t GROUP BY x WITH ROLLUP", "GROUP BY x WITH ROLLUP"),
    ("UNSUPPORTED_FUNCTION", "SELECT SUM(DISTINCT x, y) AS z FROM t", "SUM(DISTINCT x, y)"),
    ("AGGREGATE_FUNCTION", "SELECT kurtosis(x) AS z FROM t", "kurtosis(x)"),
    ("AGGREGATE_FUNCTION", "SELECT first(x) AS z FROM t", "first(x)"),
    ("AGGREGATE_FILTER", "SELECT abs(x) FILTER (WHERE y > 1) AS z FROM t", "abs(x) FILTER (WHERE y > 1)"),
    ("MISPLACED_AGGREGATE", "SELECT SUM(x) FILTER (WHERE COUNT(*) > 1) AS z FROM t", "COUNT(*)"),
    ("MISPLACED_AGGREGATE", "SELECT x FROM t WHERE SUM(x) > 1", "SUM(x)"),
    ("MISPLACED_AGGREGATE", "SELECT SUM(COUNT(*)) AS z FROM t", "COUNT(*)"),
    ("MISPLACED_AGGREGATE", "SELECT COUNT(*) AS n FROM t GROUP BY n", "n"),
    ("MISPLACED_AGGREGATE", "SELECT COUNT(*) AS n FROM t GROUP BY 1", "1"),
    ("NONDETERMINISTIC_FUNCTION", "SELECT rand() AS z FROM t", "rand()"),
    ("NONDETERMINISTIC_FUNCTION", "SELECT x FROM t WHERE d < current_date", "current_date"),
    ("NONDETERMINISTIC_FUNCTION", "SELECT x FROM t WHERE ts < now()", "now()"),
    ("UNSUPPORTED_FUNCTION", "SELECT uper(s) AS z FROM t", "uper(s)"),
    ("UNSUPPORTED_FUNCTION", "SELECT upper(s, s) AS z FROM t", "upper(s, s)"),
    ("UNSUPPORTED_FUNCTION", "SELECT TRY_CAST(s AS INT) AS z FROM t", "TRY_CAST(s AS INT)"),
    ("UNSUPPORTED_EXPRESSION", "SELECT x FROM t WHERE (x, y) IN ((1, 2))", "(x, y)"),
    ("PARAMETER_IN_DEFINITION", "SELECT x FROM t WHERE x = :p", ":p"),
    ("INTERVAL_VALUE", "SELECT d - d AS z FROM t", "d - d"),
    ("INTERVAL_VALUE", "SELECT ts - ts AS z FROM t", "ts - ts"),
    ("INTERVAL_VALUE", "SELECT INTERVAL 1 DAY AS z FROM t", "INTERVAL 1 DAY"),
    ("UNSUPPORTED_TYPE", "SELECT CAST(x AS ARRAY<INT>) AS z FROM t", "ARRAY<INT>"),
    ("UNSUPPORTED_EXPRESSION", "SELECT 0x1F AS z FROM t", "0x1F"),
    ("UNSUPPORTED_CLAUSE", "SELECT DISTINCT ON (x) y FROM t", "DISTINCT ON"),
]

SCHEMA = [
    ("UNKNOWN_TABLE", "SELECT x FROM custmer", "custmer", "did you mean `customer`?"),
    ("UNKNOWN_TABLE", "SELECT x FROM db.t", "db.t", "did you mean `t`?"),
    ("UNKNOWN_TABLE", "SELECT w.x FROM t", "w.x", "known are `t`"),
    ("UNKNOWN_COLUMN", "SELECT t.idd FROM t", "t.idd", "did you mean `id`?"),
    ("UNKNOWN_COLUMN", "SELECT x FROM t WHERE xx = 1", "xx", "did you mean `x`?"),
    ("UNKNOWN_COLUMN", "SELECT t.x FROM t JOIN u USING (n)", "n", None),
    ("AMBIGUOUS_COLUMN", "SELECT id FROM t, u WHERE t.id = u.id", "id", "write `t.id` or `u.id`"),
    ("DUPLICATE_ALIAS", "SELECT 1 AS z FROM g, g", "g", "give each occurrence of a table its own alias"),
    ("DUPLICATE_COLUMN", "SELECT x, y AS X FROM t", "y AS X", "give one of them another name with AS"),
    (
        "DUPLICATE_COLUMN",
        "SELECT * FROM g a JOIN g b ON a.src = b.src AND a.dst = b.dst",
        "*",
        "list the columns in place of `*` and name them: `a.src AS a_src`, `b.src AS b_src`, `a.dst AS a_dst`, `b.dst AS b_dst`; or, where "
        "they are joined by equality, write `JOIN ... USING (src, dst)`, which shows each once",
    ),
    (
        "DUPLICATE_COLUMN",
        "SELECT a.src, b.src FROM g a JOIN g b USING (dst)",
        "b.src",
        "give them names of their own: `a.src AS a_src`, `b.src AS b_src`",
    ),
    ("COLUMN_COUNT", "SELECT a FROM (SELECT x FROM t) AS d(a, b)", "(SELECT x FROM t) AS d(a, b)", None),
    (
        "NOT_GROUPED",
        "SELECT x, COUNT(*) AS n FROM t",
        "x",
        "add `x` to GROUP BY, or aggregate it, with MIN for example",
    ),
    (
        "NOT_GROUPED",
        "SELECT x + y AS z FROM t GROUP BY x",
        "x + y AS z",
        "add `y` to GROUP BY, or aggregate it, with MIN for example",
    ),
    ("NOT_GROUPED", "SELECT x FROM t GROUP BY x HAVING y > 1", "HAVING y > 1", None),
    ("GROUP_BY_POSITION", "SELECT x FROM t GROUP BY 7", "7", None),
    ("TYPE_MISMATCH", "SELECT x FROM t WHERE x", "x", None),
    ("TYPE_MISMATCH", "SELECT x FROM t WHERE y = 1 AND d = 'hello'", "d = 'hello'", None),
    ("TYPE_MISMATCH", "SELECT DATE '2020-13-01' AS z FROM t", "DATE '2020-13-01'", None),
    ("TYPE_MISMATCH", "SELECT x + TRUE AS z FROM t", "x + TRUE", None),
    ("TYPE_MISMATCH", "SELECT '1' + '2' AS z FROM t", "'1' + '2'", None),
    ("TYPE_MISMATCH", "SELECT SUM(d) AS z FROM t", "SUM(d)", None),
    ("TYPE_MISMATCH", "SELECT CAST(d AS INT) AS z FROM t", "CAST(d AS INT)", None),
    ("TYPE_MISMATCH", "SELECT d + INTERVAL x DAY AS z FROM t", "d + INTERVAL x DAY", None),
    (
        "TYPE_MISMATCH",
        "SELECT d + (INTERVAL 1 MONTH + INTERVAL 1 DAY) AS z FROM t",
        "d + (INTERVAL 1 MONTH + INTERVAL 1 DAY)",
        None,
    ),
    ("TYPE_MISMATCH", "SELECT f DIV 2 AS z FROM t", "f DIV 2", None),
    ("TYPE_MISMATCH", "SELECT ROUND(p, x) AS z FROM t", "ROUND(p, x)", None),
    ("TYPE_MISMATCH", "SELECT date_trunc('eon', ts) AS z FROM t", "date_trunc('eon', ts)", None),
    ("INVALID_TYPE", "SELECT CAST(x AS DECIMAL(39,0)) AS z FROM t", "DECIMAL(39,0)", None),
]

STATEMENTS = [
    ("UNSUPPORTED_STATEMENT", "TRUNCATE TABLE t", "TRUNCATE TABLE t"),
    ("UNSUPPORTED_STATEMENT", "DROP VIEW v; SELECT x FROM t", "SELECT x FROM t"),
    ("UNSUPPORTED_STATEMENT", "CREATE TABLE t AS SELECT 1", "CREATE TABLE t AS SELECT 1"),
    ("UNSUPPORTED_STATEMENT", "SHOW TABLES", "SHOW TABLES"),
    ("UNSUPPORTED_STATEMENT", "ALTER TABLE t ADD COLUMN x INT", "ALTER TABLE t ADD COLUMN x INT"),
    ("UNSUPPORTED_STATEMENT", "CREATE SCHEMA s", "CREATE SCHEMA s"),
    ("UNSUPPORTED_STATEMENT", "DROP SCHEMA s", "DROP SCHEMA s"),
    ("UNSUPPORTED_CLAUSE", "CREATE OR REPLACE TABLE t (a INT)", "OR REPLACE"),
    ("UNSUPPORTED_CLAUSE", "DROP TABLE t CASCADE", "CASCADE"),
    ("UNSUPPORTED_CLAUSE", "CREATE TEMPORARY VIEW v AS SELECT x FROM t", "TEMPORARY"),
    ("UNSUPPORTED_CLAUSE", "CREATE VIEW v (a, b) AS SELECT x, y FROM t", "a, b"),
    ("UNSUPPORTED_CLAUSE", "CREATE TABLE t (a INT UNIQUE)", "UNIQUE"),
    ("UNSUPPORTED_CLAUSE", "CREATE TABLE t (a INT, CHECK (a > 1))", "CHECK (a > 1)"),
    ("UNSUPPORTED_CLAUSE", "CREATE TABLE t (a INT) USING parquet", "USING parquet"),
    ("UNSUPPORTED_CLAUSE", "CREATE TABLE s.t (a INT)", "s.t"),
    ("UNSUPPORTED_TYPE", "CREATE TABLE t (a ARRAY<INT>)", "ARRAY<INT>"),
    ("UNSUPPORTED_TYPE", "CREATE TABLE t (a INT, b TIME)", "TIME"),
    ("INVALID_TYPE", "CREATE TABLE t (a DECIMAL(40,2))", "DECIMAL(40,2)"),
    ("INVALID_TYPE", "CREATE TABLE t (a DECIMAL(4,5))", "DECIMAL(4,5)"),
    ("INVALID_TYPE", "CREATE TABLE t (a CHAR)", "CHAR"),
    ("DUPLICATE_COLUMN", "CREATE TABLE t (a INT, A STRING)", "A STRING"),
    ("DUPLICATE_COLUMN", "CREATE TABLE t (a INT, PRIMARY KEY (a, a))", "PRIMARY KEY (a, a)"),
    ("DUPLICATE_PRIMARY_KEY", "CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "PRIMARY KEY"),
    ("UNKNOWN_COLUMN", "CREATE TABLE t (a INT, PRIMARY KEY (b))", "b"),
    ("COLUMN_COUNT", "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (x, y))", None),
    ("NO_COLUMNS", "CREATE TABLE t", "CREATE TABLE t"),
    ("UNKNOWN_OPTION", "CREATE TABLE t (a INT) WITH (retian = 3)", "retian = 3"),
    ("DUPLICATE_OPTION", "CREATE TABLE t (a INT) WITH (retain_rows = 3, retain_rows = 4)", "retain_rows = 4"),
    ("RETENTION", "CREATE TABLE t (a INT) WITH (retain_rows = 0)", "retain_rows = 0"),
    ("RETENTION", "CREATE TABLE t (a INT) WITH (retain = INTERVAL 1 HOUR)", "retain = INTERVAL 1 HOUR"),
    ("RETENTION", "CREATE TABLE t (a INT) WITH (retain = INTERVAL 1 HOUR, time_column = a)", "time_column = a"),
    (
        "RETENTION",
        "CREATE TABLE t (a DATE) WITH (retain = INTERVAL 1 MONTH, time_column = a)",
        "retain = INTERVAL 1 MONTH",
    ),
    ("RETENTION", "CREATE TABLE t (a DATE) WITH (retain = 'soon', time_column = a)", "retain = 'soon'"),
    ("RETENTION", "CREATE TABLE t (a DATE) WITH (retain_rows = 3, time_column = a)", "time_column = a"),
]


def pointed(error: EverviewError) -> str:
    assert error.sql is not None
    assert error.span is not None
    return error.sql[error.span.start : error.span.end]


@pytest.mark.parametrize(("code", "sql", "text"), UNSUPPORTED, ids=[s for _, s, _ in UNSUPPORTED])
def test_unsupported_queries(tables, code: str, sql: str, text: str) -> None:
    with pytest.raises(UnsupportedQueryError) as caught:
        lower_query("v", sql, tables)
    assert (caught.value.code, pointed(caught.value)) == (code, text)
    assert caught.value.hint
    assert f"[{code}]" in str(caught.value)


@pytest.mark.parametrize(("code", "sql", "text", "hint"), SCHEMA, ids=[s for _, s, _, _ in SCHEMA])
def test_schema_errors(tables, code: str, sql: str, text: str, hint: str | None) -> None:
    with pytest.raises(SchemaError) as caught:
        lower_query("v", sql, tables)
    assert (caught.value.code, pointed(caught.value)) == (code, text)
    if hint is not None:
        assert caught.value.hint == hint


@pytest.mark.parametrize(("code", "sql", "text"), STATEMENTS, ids=[s for _, s, _ in STATEMENTS])
def test_statements(code: str, sql: str, text: str | None) -> None:
    with pytest.raises(EverviewError) as caught:
        parse_statements(sql)
    assert caught.value.code == code
    if text is not None:
        assert pointed(caught.value) == text


def test_every_reason_is_tested() -> None:
    assert {code for code, *_ in UNSUPPORTED} | {code for code, *_ in STATEMENTS} >= set(REASONS)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT x FROM t WHERE (x = 1", "1"),
        ("SELECT a b c FROM t", "c"),
        ("SELECT 'abc", None),
        ("", ""),
        ("SELECT x FROM t; SELECT 1", None),
    ],
)
def test_syntax_errors(tables, sql: str, text: str | None) -> None:
    with pytest.raises(SqlParseError) as caught:
        lower_query("v", sql, tables)
    assert caught.value.code == "SYNTAX_ERROR"
    if text is not None:
        assert pointed(caught.value) == text


def test_a_syntax_error_at_a_long_token_is_readable(tables) -> None:
    with pytest.raises(SqlParseError) as caught:
        lower_query("v", f"SELECT x FROM {'9' * 5000}", tables)
    assert "Token" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_the_message_points_into_the_text(tables) -> None:
    with pytest.raises(UnsupportedQueryError) as caught:
        lower_query("v", "SELECT t.x\nFROM t, u\nWHERE t.id = u.id\n  AND t.x < ANY (SELECT x FROM u)", tables)
    assert str(caught.value).splitlines()[:3] == [
        "[SUBQUERY_EXPRESSION] ANY/ALL (subquery) is not supported: of subqueries in expressions, EXISTS and IN are maintained, as conditions of WHERE",
        "  line 4:   AND t.x < ANY (SELECT x FROM u)",
        "                      ^^^^^^^^^^^^^^^^^^^^^",
    ]
