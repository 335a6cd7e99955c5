"""Definitions as a session takes them: names, options, and errors that point into the text that was given."""

from datetime import UTC, datetime

import everview as ev
import pytest

TABLES = "CREATE TABLE t (id INT PRIMARY KEY, x INT, ts TIMESTAMP);\nCREATE TABLE u (id INT, y INT);\n"


@pytest.fixture
def db():
    with ev.connect() as found:
        found.execute(TABLES)
        yield found


BAD_QUERIES = {
    "an unknown column": ("SELECT x,\n    nope\nFROM t", "nope"),
    "a join that is refused": ("SELECT t.x FROM t FULL JOIN u ON t.id = u.id", "FULL JOIN"),
    "a text that nests": (f"SELECT x, {'(' * 150}1{')' * 150} AS y FROM t", "("),
    "a function": ("SELECT x\nFROM t\nWHERE rand() > 1", "rand()"),
    "types": ("SELECT x + ts AS s FROM t", "x + ts"),
    "two columns of one name": ("SELECT x,\n  id AS x FROM t", "id AS x"),
}


@pytest.mark.parametrize(("query", "place"), BAD_QUERIES.values(), ids=BAD_QUERIES)
@pytest.mark.parametrize("head", ["CREATE VIEW v AS", "CREATE OR REPLACE MATERIALIZED VIEW `v`\nAS\n"])
def test_errors_point_into_the_script(query, place, head, db):
    script = f"CREATE TABLE first (a INT);\n\n/* it's ; a comment */\n{head} {query};\nDROP TABLE first"
    with pytest.raises(ev.EverviewError) as caught:
        db.execute(script)
    error = caught.value
    assert error.sql == script
    assert script[error.span.start : error.span.end] == place
    line = script.count("\n", 0, error.span.start) + 1
    assert f"\n  line {line}: " in str(error)


def test_a_view_may_read_views_but_not_itself(db):
    db.create_view("Totals", "SELECT x, COUNT(*) AS n FROM t GROUP BY x")
    for number, read in enumerate(("totals", "`TOTALS` z", "t JOIN totals ON t.x = totals.x")):
        assert list(db.create_view(f"w{number}", f"SELECT 1 AS one FROM {read}")) == []
    assert list(db.create_view("w", "WITH totals AS (SELECT x FROM t) SELECT x FROM totals")) == []
    db.create_view("alone", "SELECT x FROM t")
    with pytest.raises(ev.SchemaError) as caught:
        db.execute("CREATE OR REPLACE VIEW alone AS SELECT x FROM alone")
    assert caught.value.code == "UNKNOWN_TABLE"


@pytest.mark.parametrize("name", [None, 5, "", "  ", "\n", "a\0b", "\x01", b"v", ("v",)])
def test_names_are_texts(name, db):
    with pytest.raises(ev.SchemaError) as caught:
        db.create_view(name, "SELECT x FROM t")
    assert caught.value.code == "INVALID_NAME"
    assert db.views == {}


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE `` (a INT)",
        "CREATE TABLE ` ` (a INT)",
        "CREATE TABLE n (`` INT)",
        "CREATE TABLE n (a INT, `b\0c` INT)",
        "CREATE VIEW `` AS SELECT x FROM t",
        "CREATE VIEW v AS SELECT x AS `` FROM t",
        "CREATE VIEW v AS SELECT x FROM t AS ``",
        "CREATE VIEW v AS SELECT `\x01`.x FROM t AS `\x01`",
        "DROP TABLE ``",
        "CREATE VIEW v AS SELECT x FROM t AS \0",
        "CREATE VIEW v AS SELECT x FROM t AS 'a\0b'",
        "CREATE VIEW v AS SELECT x AS '' FROM t",
    ],
)
def test_names_in_a_text(statement, db):
    with pytest.raises(ev.SchemaError) as caught:
        db.execute(statement)
    assert caught.value.code == "INVALID_NAME"
    assert statement[caught.value.span.start] in "`'\0"


@pytest.mark.parametrize(
    "name", ["order", "a b", "a.b", "ä日", "a`b", "a'b", 'a"b', "1", "a\nb", "SELECT", "-- x", "/*"]
)
def test_other_names_are_fine(name, db):
    quoted = f"`{name.replace('`', '``')}`"
    db.execute(f"CREATE TABLE {quoted} ({quoted} INT, other INT)")
    view = db.create_view(f"view {name}", f"SELECT {quoted}.{quoted}, other FROM {quoted}")
    db.insert(name, [(1, 2)])
    assert view.to_arrow().to_pylist() == [{name: 1, "other": 2}]


@pytest.mark.parametrize("sql", [None, 5, b"SELECT x FROM t", ["SELECT x FROM t"]])
def test_sql_is_a_text(sql, db):
    for refused in (lambda: db.execute(sql), lambda: db.create_view("v", sql)):
        with pytest.raises(ev.SchemaError) as caught:
            refused()
        assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "option",
    [
        *(
            f"retain_rows = {n}"
            for n in ("0", "-1", "99999999999999999999", "9" * 5000, "1.5", "1e3", "'²'", "'x'", str(2**62 + 1))
        ),
        *(
            f"retain = INTERVAL {n}, time_column = ts"
            for n in ("0 HOUR", "-1 DAY", "99999999999999999999 DAY", "1 MONTH")
        ),
        f"retain = INTERVAL {'9' * 5000} SECOND, time_column = ts",
        "retain = '1 fortnight', time_column = ts",
    ],
)
def test_retention_that_cannot_be(option, db):
    with pytest.raises(ev.SchemaError) as caught:
        db.execute(f"CREATE TABLE r (ts TIMESTAMP) WITH ({option})")
    assert caught.value.code == "RETENTION"


def test_the_largest_retention(db):
    db.execute(f"CREATE TABLE r (ts TIMESTAMP) WITH (retain_rows = {2**62})")
    db.execute("CREATE TABLE s (ts TIMESTAMP) WITH (retain = INTERVAL 100000000 DAY, time_column = ts)")


HINTS = {
    "SELECT x FROM t WHERE x = 1 OR EXISTS (SELECT 1 FROM u WHERE u.id = t.id)": (
        "subquery",
        "combined with others by AND",
    ),
    "SELECT x FROM t WHERE id <> ALL (SELECT id FROM u)": ("ALL", "rows without a partner"),
    "SELECT x, (SELECT COUNT(*) FROM u) AS n FROM t": ("scalar", "table of one row"),
    "SELECT x FROM t WHERE x > (SELECT AVG(y) FROM u)": ("scalar", "table of one row"),
}


@pytest.mark.parametrize(("query", "said"), HINTS.items(), ids=HINTS)
def test_hints_lead_somewhere(query, said, db):
    with pytest.raises(ev.UnsupportedQueryError) as caught:
        db.create_view("v", query)
    assert said[0] in caught.value.message
    assert said[1] in caught.value.hint
    assert caught.value.code != "NONDETERMINISTIC_FUNCTION"


def test_what_a_hint_says_works(db):
    view = db.create_view("v", "SELECT CAST(ts AS BIGINT) AS s FROM t")
    db.insert("t", [(1, 2, datetime(2024, 1, 1, tzinfo=UTC))])
    assert list(view) == [(1704067200,)]
    with pytest.raises(ev.UnsupportedQueryError) as caught:
        db.create_view("w", "SELECT unix_timestamp() AS s FROM t")
    assert caught.value.code == "NONDETERMINISTIC_FUNCTION"
