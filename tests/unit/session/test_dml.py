"""INSERT, UPDATE and DELETE in execute(): what they change, what they return, and what they refuse."""

import datetime as dt
import threading
from collections import Counter
from decimal import Decimal

import pytest

import everview as ev
from everview.testing.store_assignment import ASSIGNED, NOON, STORED, is_code

SCHEMA = """
CREATE TABLE k (id INT PRIMARY KEY, g STRING NOT NULL, x BIGINT);
CREATE TABLE b (id INT, y INT)
"""


@pytest.fixture
def loaded(db):
    db.execute(SCHEMA)
    db.create_view("joined", "SELECT k.g, b.y FROM k JOIN b ON k.id = b.id")
    db.create_view("sums", "SELECT g, COUNT(*) AS n, SUM(x) AS total FROM k GROUP BY g")
    db.insert("k", [(1, "a", 10), (2, "a", 20), (3, "b", None)])
    db.insert("b", [(1, 5), (1, 5), (2, 6), (4, 7)])
    return db


def rows(db, table):
    found = Counter()
    for row in db.table_rows(table).to_pylist():
        *values, n = row.values()
        found[tuple(values)] += n
    return sorted(found.elements(), key=repr)


# statement, parameters: rows concerned, what the table has afterwards
CHANGES = {
    "INSERT": ("INSERT INTO b VALUES (9, 9)", None, 1, [(1, 5), (1, 5), (2, 6), (4, 7), (9, 9)]),
    "INSERT TABLE": ("INSERT INTO TABLE b VALUES (9, 9)", None, 1, [(1, 5), (1, 5), (2, 6), (4, 7), (9, 9)]),
    "INSERT of expressions": (
        "INSERT INTO b VALUES (1 + 2 * 3, LENGTH('abc'))",
        None,
        1,
        [(1, 5), (1, 5), (2, 6), (4, 7), (7, 3)],
    ),
    "INSERT without parentheses": (
        "INSERT INTO b (id) VALUES 8, 9",
        None,
        2,
        [(1, 5), (1, 5), (2, 6), (4, 7), (8, None), (9, None)],
    ),
    "INSERT of some columns": ("INSERT INTO b (Y) VALUES (?)", [9], 1, [(1, 5), (1, 5), (2, 6), (4, 7), (None, 9)]),
    "INSERT in another order": (
        "INSERT INTO b (y, id) VALUES (1, 9)",
        None,
        1,
        [(1, 5), (1, 5), (2, 6), (4, 7), (9, 1)],
    ),
    "INSERT of a duplicate": ("INSERT INTO b VALUES (4, 7), (4, 7)", None, 2, [(1, 5), (1, 5), (2, 6)] + [(4, 7)] * 3),
    "INSERT SELECT": (
        "INSERT INTO b SELECT id, x FROM k WHERE x > 10",
        None,
        1,
        [(1, 5), (1, 5), (2, 20), (2, 6), (4, 7)],
    ),
    "INSERT SELECT of itself": ("INSERT INTO b SELECT * FROM b", None, 4, sorted([(1, 5), (1, 5), (2, 6), (4, 7)] * 2)),
    "INSERT SELECT of a view": (
        "INSERT INTO b (y) SELECT n FROM sums",
        None,
        2,
        [(1, 5), (1, 5), (2, 6), (4, 7), (None, 1), (None, 2)],
    ),
    "INSERT BY NAME": (
        "INSERT INTO b BY NAME SELECT x AS y, id FROM k WHERE id = 1",
        None,
        1,
        [(1, 10), (1, 5), (1, 5), (2, 6), (4, 7)],
    ),
    "INSERT WITH": (
        "INSERT INTO b WITH w AS (SELECT id FROM k) SELECT id, id FROM w WHERE id = 3".replace("id, id", "id, id AS i"),
        None,
        1,
        [(1, 5), (1, 5), (2, 6), (3, 3), (4, 7)],
    ),
    "WITH INSERT": (
        "WITH w AS (SELECT id FROM k) INSERT INTO b (y) SELECT id FROM w WHERE id = 3",
        None,
        1,
        [(1, 5), (1, 5), (2, 6), (4, 7), (None, 3)],
    ),
    "INSERT of nothing": ("INSERT INTO b SELECT id, y FROM b WHERE id > 99", None, 0, [(1, 5), (1, 5), (2, 6), (4, 7)]),
    "UPDATE": ("UPDATE b SET y = y + 1 WHERE id < 4", None, 3, [(1, 6), (1, 6), (2, 7), (4, 7)]),
    "UPDATE of all": ("UPDATE b SET y = NULL", None, 4, [(1, None), (1, None), (2, None), (4, None)]),
    "UPDATE by the old values": ("UPDATE b SET y = id, id = y", None, 4, [(5, 1), (5, 1), (6, 2), (7, 4)]),
    "UPDATE with an alias": ("UPDATE b AS c SET c.y = 0 WHERE c.id = 2", None, 1, [(1, 5), (1, 5), (2, 0), (4, 7)]),
    "UPDATE of nothing": ("UPDATE b SET y = 0 WHERE id = 99", None, 0, [(1, 5), (1, 5), (2, 6), (4, 7)]),
    "UPDATE to the same": ("UPDATE b SET y = y", None, 4, [(1, 5), (1, 5), (2, 6), (4, 7)]),
    "UPDATE where NULL": ("UPDATE b SET y = 0 WHERE y = NULL", None, 0, [(1, 5), (1, 5), (2, 6), (4, 7)]),
    "UPDATE with IN": (
        "UPDATE b SET y = 0 WHERE id IN (SELECT id FROM k WHERE g = 'a')",
        None,
        3,
        [(1, 0), (1, 0), (2, 0), (4, 7)],
    ),
    "UPDATE with NOT EXISTS": (
        "UPDATE b SET y = 0 WHERE NOT EXISTS (SELECT * FROM k WHERE k.id = b.id)",
        None,
        1,
        [(1, 5), (1, 5), (2, 6), (4, 0)],
    ),
    "UPDATE with parameters": (
        "UPDATE b SET y = :new WHERE id = :id AND y < :new",
        {"id": 1, "new": 9},
        2,
        [(1, 9), (1, 9), (2, 6), (4, 7)],
    ),
    "UPDATE that makes rows equal": ("UPDATE b SET id = 0, y = 0", None, 4, [(0, 0)] * 4),
    "DELETE": ("DELETE FROM b WHERE id = 1", None, 2, [(2, 6), (4, 7)]),
    "DELETE of all": ("DELETE FROM b", None, 4, []),
    "DELETE with an alias": ("DELETE FROM b c WHERE c.y > 5", None, 2, [(1, 5), (1, 5)]),
    "DELETE with IN of a view": ("DELETE FROM b WHERE y IN (SELECT y FROM joined)", None, 3, [(4, 7)]),
    "DELETE with parameters": ("DELETE FROM b WHERE id IN (?, ?)", (2, 4), 2, [(1, 5), (1, 5)]),
}


@pytest.mark.parametrize(("sql", "parameters", "count", "expected"), CHANGES.values(), ids=CHANGES)
def test_changes(loaded, bag, sql, parameters, count, expected):
    before = {name: Counter(map(tuple, view)) for name, view in loaded.views.items()}
    version = loaded.version
    executed = loaded.execute(sql, parameters)
    assert executed.rows == count
    assert rows(loaded, "b") == sorted(expected, key=repr)
    assert loaded.version == version + 1
    for name, view in loaded.views.items():
        for row in executed.deltas[name].to_pylist():
            *values, n = row.values()
            before[name][tuple(values)] += n
        assert +before[name] == Counter(map(tuple, view))
        assert bag(view.to_arrow()) == bag(loaded.sql(view.sql).to_arrow())


def test_keys_may_be_swapped(loaded):
    assert loaded.execute("UPDATE k SET id = 3 - id WHERE id < 3").rows == 2
    assert rows(loaded, "k") == [(1, "a", 20), (2, "a", 10), (3, "b", None)]


def test_without_deltas(loaded):
    assert loaded.execute("DELETE FROM b WHERE id = 1", deltas=False) == ev.Executed(2, {})


def test_callbacks_hear_of_statements(loaded):
    seen = []
    loaded.view("joined").subscribe(lambda delta: seen.append(delta.num_rows))
    loaded.execute("UPDATE b SET y = 8 WHERE id = 1")
    assert seen == [2]


def test_statements_of_a_text_run_one_after_another(db):
    executed = db.execute("""
        CREATE TABLE t (x INT);
        INSERT INTO t VALUES (1), (2);
        CREATE VIEW v AS SELECT x FROM t;
        INSERT INTO t SELECT x + 2 FROM v;
        DELETE FROM t WHERE x = 1
    """)
    assert executed.rows == 5
    assert Counter(map(tuple, (r.values() for r in executed.deltas["v"].to_pylist()))) == {
        (3, 1): 1,
        (4, 1): 1,
        (1, -1): 1,
    }
    assert rows(db, "t") == [(2,), (3,), (4,)]
    with pytest.raises(ev.ChangeError) as caught:
        db.execute("INSERT INTO t VALUES (7); INSERT INTO t VALUES (1 DIV 0); INSERT INTO t VALUES (8)")
    assert caught.value.code == "DIVIDE_BY_ZERO"
    assert caught.value.sql[caught.value.span.start : caught.value.span.end] == "1 DIV 0"
    assert rows(db, "t") == [(2,), (3,), (4,), (7,)]  # what came before stands
    for wrong in ("DELETE FORM t", "DELETE FROM", "UPDATE t SET x = 1 FROM v", "INSERT OVERWRITE t VALUES (1)"):
        with pytest.raises((ev.SqlParseError, ev.UnsupportedQueryError)):
            db.execute(f"DELETE FROM t; {wrong}")
    assert db.sql("SELECT x FROM t").count() == 4  # a text that does not parse runs not at all


def test_deltas_of_a_view_that_is_replaced(loaded):
    executed = loaded.execute("""
        DELETE FROM b WHERE id = 1;
        CREATE OR REPLACE VIEW joined AS SELECT y FROM b;
        DELETE FROM b WHERE id = 2
    """)
    assert executed.rows == 3
    assert executed.deltas["joined"].to_pylist() == [{"y": 6, "_multiplicity": -1}]


# statement, parameters: the code, and the part of the text that the error points at
REFUSED = {
    "a key that is there": ("INSERT INTO k VALUES (9, 'z', 1), (1, 'z', 1)", None, "DUPLICATE_KEY", "1, 'z', 1"),
    "a key twice": ("UPDATE k SET id = 1", None, "DUPLICATE_KEY", None),
    "NULL in VALUES": ("INSERT INTO k VALUES (9, NULL, 1)", None, "NULL_NOT_ALLOWED", "9, NULL, 1"),
    "NULL by leaving out": ("INSERT INTO k (id) VALUES (9)", None, "NULL_NOT_ALLOWED", "9"),
    "NULL by UPDATE": ("UPDATE k SET g = NULL WHERE id = 1", None, "NULL_NOT_ALLOWED", None),
    "NULL by SELECT": ("INSERT INTO k SELECT y, CASE WHEN y > 6 THEN 'x' END, id FROM b WHERE id > 1", None, "NULL_NOT_ALLOWED", None),
    "NULL by parameter": ("INSERT INTO k VALUES (?, ?, ?)", [9, None, 1], "NULL_NOT_ALLOWED", "?, ?, ?"),
    "overflow in VALUES": ("INSERT INTO b VALUES (1, 3000000000)", None, "CAST_OVERFLOW", "3000000000"),
    "overflow of a parameter": ("INSERT INTO b VALUES (1, ?)", [3000000000], "CAST_OVERFLOW", "?"),
    "overflow by UPDATE": ("UPDATE b SET y = y * 1000000000", None, "ARITHMETIC_OVERFLOW", None),
    "overflow by store assignment": ("UPDATE b SET y = CAST(y AS BIGINT) * 1000000000", None, "CAST_OVERFLOW", None),
    "overflow by SELECT": ("INSERT INTO b (y) SELECT x * 1000000000 FROM k", None, "CAST_OVERFLOW", None),
    "division by zero": ("DELETE FROM b WHERE 1 / (id - 4) > 0", None, "DIVIDE_BY_ZERO", None),
    "a text for a number": ("INSERT INTO b VALUES (1, 'x')", None, "TYPE_MISMATCH", "'x'"),
    "a text for a number by UPDATE": ("UPDATE b SET y = 'x'", None, "TYPE_MISMATCH", "'x'"),
    "a text for a number by SELECT": ("INSERT INTO b SELECT id, g FROM k", None, "TYPE_MISMATCH", "g"),
    "a text parameter for a number": ("UPDATE b SET y = ?", ["1"], "TYPE_MISMATCH", "?"),
    "types that VALUES has not in common": ("INSERT INTO k VALUES (7, 'x', 1), (8, 'y', TRUE)", None, "TYPE_MISMATCH", "TRUE"),
    "a column in VALUES": ("INSERT INTO b VALUES (id, 1)", None, "UNKNOWN_COLUMN", "id"),
    "too few values": ("INSERT INTO b VALUES (1, 2), (3)", None, "COLUMN_COUNT", "3"),
    "too many columns": ("INSERT INTO b SELECT * FROM k", None, "COLUMN_COUNT", "SELECT * FROM k"),
    "an unknown column": ("INSERT INTO b (id, z) VALUES (1, 2)", None, "UNKNOWN_COLUMN", "z"),
    "an unknown column by name": ("INSERT INTO b BY NAME SELECT g FROM k", None, "UNKNOWN_COLUMN", "g"),
    "a column twice": ("INSERT INTO b (id, ID) VALUES (1, 2)", None, "DUPLICATE_COLUMN", None),
    "an unknown table": ("INSERT INTO bb VALUES (1)", None, "UNKNOWN_TABLE", "bb"),
    "a view": ("DELETE FROM sums", None, "UNKNOWN_TABLE", "sums"),
    "an unknown target": ("UPDATE b SET z = 1", None, "UNKNOWN_COLUMN", "z"),
    "another target": ("UPDATE b SET k.x = 1", None, "UNKNOWN_TABLE", "k.x"),
    "a target twice": ("UPDATE b SET y = 1, Y = 2", None, "DUPLICATE_COLUMN", None),
    "an unknown name": ("UPDATE b SET y = zz", None, "UNKNOWN_COLUMN", "zz"),
    "an unknown name in WHERE": ("DELETE FROM b WHERE zz = 1", None, "UNKNOWN_COLUMN", "zz"),
    "an aggregate in SET": ("UPDATE b SET y = SUM(y)", None, "MISPLACED_AGGREGATE", "SUM(y)"),
    "an aggregate in VALUES": ("INSERT INTO b VALUES (COUNT(*), 1)", None, "MISPLACED_AGGREGATE", "COUNT(*)"),
    "a window function in SET": ("UPDATE b SET y = RANK() OVER (ORDER BY id)", None, "WINDOW_FUNCTION", "RANK() OVER (ORDER BY id)"),
    "a condition that is none": ("DELETE FROM b WHERE id + 1", None, "TYPE_MISMATCH", "id + 1"),
    "a function of the clock": ("UPDATE k SET x = unix_timestamp()", None, "NONDETERMINISTIC_FUNCTION", "unix_timestamp()"),
    "OVERWRITE": ("INSERT OVERWRITE b SELECT * FROM b", None, "UNSUPPORTED_CLAUSE", "INSERT OVERWRITE"),
    "PARTITION": ("INSERT INTO b PARTITION (id = 1) VALUES (1)", None, "UNSUPPORTED_CLAUSE", None),
    "RETURNING": ("INSERT INTO b VALUES (1, 2) RETURNING id", None, "UNSUPPORTED_CLAUSE", "RETURNING"),
    "DEFAULT": ("INSERT INTO b VALUES (DEFAULT, 2)", None, "UNSUPPORTED_EXPRESSION", "DEFAULT"),
    "FROM in UPDATE": ("UPDATE b SET y = 1 FROM k WHERE k.id = b.id", None, "UNSUPPORTED_CLAUSE", None),
    "USING in DELETE": ("DELETE FROM b USING k WHERE k.id = b.id", None, "UNSUPPORTED_CLAUSE", "USING"),
    "LIMIT in DELETE": ("DELETE FROM b LIMIT 1", None, "UNSUPPORTED_CLAUSE", "LIMIT"),
    "two targets": ("UPDATE b, k SET y = 1", None, "UNSUPPORTED_CLAUSE", None),
    "aliases of columns": ("UPDATE b AS c(i, j) SET y = 1", None, "UNSUPPORTED_CLAUSE", None),
    "ORDER BY in DELETE": ("DELETE FROM b ORDER BY id LIMIT 1", None, "UNSUPPORTED_CLAUSE", None),
    "a qualified name": ("DELETE FROM main.b", None, "UNSUPPORTED_CLAUSE", "main.b"),
    "MERGE": ("MERGE INTO b USING k ON b.id = k.id WHEN MATCHED THEN DELETE", None, "UNSUPPORTED_STATEMENT", None),
    "SELECT": ("SELECT id FROM b", None, "UNSUPPORTED_STATEMENT", "SELECT id FROM b"),
    "too few parameters": ("UPDATE b SET y = ? WHERE id = ?", [1], "PARAMETER_COUNT", "?"),
    "parameters of nothing": ("DELETE FROM b", [1], "PARAMETER_COUNT", "DELETE FROM b"),
    "parameters of a definition": ("DROP TABLE b", [1], "PARAMETER_COUNT", "DROP TABLE b"),
    "parameters of several statements": ("DELETE FROM b WHERE y = ?; DELETE FROM k", [1], "PARAMETER_STYLE", None),
    "parameters by two ways": ("UPDATE b SET y = ? WHERE id = :a", [1, 2], "PARAMETER_STYLE", ":a"),
    "rows of parameters for UPDATE": ("UPDATE b SET y = ? WHERE id = ?", [(1, 2), (3, 4)], "PARAMETER_STYLE", None),
    "rows of parameters that differ": ("INSERT INTO b VALUES (?, ?)", [(1, 2), (3,)], "PARAMETER_COUNT", "?"),
    "no rows of parameters": ("INSERT INTO b VALUES (?, ?)", [], "PARAMETER_COUNT", "?"),
    "a row of parameters that is refused": ("INSERT INTO k VALUES (?, ?, 1)", [(7, "x"), (7, "y")], "DUPLICATE_KEY", None),
    "a value of a row of parameters": ("INSERT INTO b VALUES (?, ?)", [(1, 2), (3, "x")], "TYPE_MISMATCH", "?"),
    "a view that refuses": ("INSERT INTO k VALUES (9, 'a', 9223372036854775807)", None, "ARITHMETIC_OVERFLOW", None),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "parameters", "code", "text"), REFUSED.values(), ids=REFUSED)
def test_refused_statements_change_nothing(loaded, state, sql, parameters, code, text):
    before = state(loaded), loaded._state.kernel.texts_size()[0]
    with pytest.raises(ev.EverviewError) as caught:
        loaded.execute(sql, parameters)
    error = caught.value
    assert error.code == code
    assert error.sql == sql
    pointed = sql[error.span.start : error.span.end]
    assert pointed == text if text is not None else pointed
    assert (state(loaded), loaded._state.kernel.texts_size()[0]) == before


def test_a_refusal_of_what_was_read_names_no_row(loaded):
    with pytest.raises(ev.ChangeError) as caught:
        loaded.execute("UPDATE k SET g = NULL")
    assert caught.value.parameters == {"table": "k"}
    assert "row" not in caught.value.message


def test_rows_of_parameters(loaded):
    version = loaded.version
    assert loaded.execute("INSERT INTO b VALUES (?, ?)", [(i, None) for i in range(100)]).rows == 100
    assert loaded.version == version + 1
    named = [{"a": 5, "b": "x"}, {"a": 6, "b": "y"}]
    assert loaded.execute("INSERT INTO k (id, g) VALUES (:a, :b), (:a + 10, :b || '!')", named).rows == 4
    assert [tuple(r) for r in loaded.sql("SELECT id, g FROM k WHERE id > 4 ORDER BY id")] == [
        (5, "x"),
        (6, "y"),
        (15, "x!"),
        (16, "y!"),
    ]
    with pytest.raises(ev.SchemaError) as caught:
        loaded.execute("INSERT INTO b VALUES (?, ?)", [(1, 2), (3, object())])
    assert "row 1 of the parameters: parameter 2" in caught.value.message
    with pytest.raises(ev.ChangeError) as refused:
        loaded.execute("INSERT INTO b VALUES (?, ? * 2)", [(1, 2), (3, 2**30)])
    assert refused.value.code == "ARITHMETIC_OVERFLOW" and refused.value.parameters["row"] == 1


def test_rows_of_parameters_are_a_table_of_values(db):
    """They have the type that all have in common, as the rows of VALUES do, and come in order."""
    db.execute("CREATE TABLE t (s STRING, n DECIMAL(10, 3), x BIGINT, f FLOAT, d DATE, u TIMESTAMP)")
    day, moment = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC)
    given = [
        (1, Decimal("1.5"), 1, 1, day, moment),
        (2.5, Decimal("10"), 2**40, 0.5, None, None),
        (None, 1, None, None, day, day),
    ]
    db.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", given)
    assert [tuple(row) for row in db.sql("SELECT * FROM t ORDER BY x NULLS LAST")] == [
        ("1.0", Decimal("1.500"), 1, 1.0, day, moment),
        ("2.5", Decimal("10.000"), 2**40, 0.5, None, None),
        (None, Decimal("1.000"), None, None, day, dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
    ]
    db.execute("CREATE TABLE w (x INT) WITH (retain_rows = 3)")
    db.execute("INSERT INTO w VALUES (:a), (:b)", [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    assert rows(db, "w") == [(2,), (3,), (4,)]
    assert db.execute("INSERT INTO w VALUES (?)", [(None,), (None,)]).rows == 2


@pytest.mark.parametrize(("column", "expression", "expected"), ASSIGNED)
@pytest.mark.parametrize("way", ["values", "update", "select"])
def test_store_assignment(db, column, expression, expected, way):
    db.execute(STORED)
    db.execute("CREATE TABLE one (x INT); INSERT INTO one VALUES (1)")
    statement = {
        "values": f"INSERT INTO s ({column}) VALUES ({expression})",
        "update": f"UPDATE s SET {column} = {expression}",
        "select": f"INSERT INTO s ({column}) SELECT {expression} AS z FROM one",
    }[way]
    if way == "update":
        db.execute("INSERT INTO s (l) VALUES (1)")
    if is_code(expected):
        with pytest.raises(ev.EverviewError) as caught:
            db.execute(statement)
        assert caught.value.code == expected
        assert caught.value.sql == statement
    else:
        assert db.execute(statement).rows == 1
        assert db.table_rows("s")[column].to_pylist() == [expected]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("ti", 5),
        ("i", -(2**31)),
        ("l", 2**62),
        ("d", float("inf")),
        ("n", Decimal("-1.25")),
        ("t", "it's; DROP TABLE s --"),
        ("v", "äöü"),
        ("b", False),
        ("dt", dt.date(1, 1, 1)),
        ("dt", dt.date(9999, 12, 31)),
        ("ts", dt.datetime(1900, 1, 1, 1, 2, 3, 4, tzinfo=dt.UTC)),
        ("ntz", NOON),
        ("raw", b"\x00'\xff"),
        ("i", None),
    ],
)
def test_parameters_are_stored_as_they_are(db, column, value):
    db.execute(STORED)
    db.execute(f"INSERT INTO s ({column}) VALUES (?)", [value])
    assert db.sql(f"SELECT {column} FROM s").rows() == [(value,)]
    db.execute(f"UPDATE s SET {column} = :v", {"v": value})
    assert db.sql(f"SELECT COUNT(*) AS n FROM s WHERE {column} <=> ?", [value]).rows() == [(1,)]
    assert db.execute(f"DELETE FROM s WHERE {column} <=> ?", [value]).rows == 1


def test_values_take_the_type_they_have_in_common(db):
    """As Spark's inline tables: 1 among decimals is 1.0."""
    db.execute("CREATE TABLE t (s STRING)")
    db.execute("INSERT INTO t VALUES (1), (2.5)")
    db.execute("INSERT INTO t VALUES (1)")
    assert rows(db, "t") == [("1",), ("1.0",), ("2.5",)]


def test_a_window_has_room_for_what_is_updated(db):
    db.execute("CREATE TABLE w (x INT, y INT) WITH (retain_rows = 3)")
    db.execute("INSERT INTO w VALUES (1, 0), (2, 0), (3, 0), (4, 0)")
    assert rows(db, "w") == [(2, 0), (3, 0), (4, 0)]
    assert db.execute("UPDATE w SET y = 1 WHERE x > 2").rows == 2
    assert rows(db, "w") == [(2, 0), (3, 1), (4, 1)]
    assert db.execute("UPDATE w SET y = 2").rows == 3
    assert rows(db, "w") == [(2, 2), (3, 2), (4, 2)]


def test_tables_that_keep_no_rows(db):
    db.execute("CREATE TABLE p (x INT) TBLPROPERTIES ('everview.keep' = 'views')")
    db.create_view("v", "SELECT x, COUNT(*) AS n FROM p GROUP BY x")
    assert db.execute("INSERT INTO p VALUES (1), (1), (2)").rows == 3
    assert db.execute("INSERT INTO p SELECT x FROM v").rows == 2
    for sql in ("DELETE FROM p WHERE x = 1", "UPDATE p SET x = 2", "INSERT INTO p SELECT x FROM p"):
        with pytest.raises(ev.SchemaError) as caught:
            db.execute(sql)
        assert caught.value.code == "ROWS_NOT_KEPT"
    assert sorted(map(tuple, db.view("v"))) == [(1, 3), (2, 2)]


def test_in_a_callback_it_is_refused(loaded):
    loaded.view("sums").subscribe(lambda _: loaded.execute("DELETE FROM b"))
    with pytest.raises(ev.CallbackError) as caught:
        loaded.execute("DELETE FROM k WHERE id = 1")
    assert [e.code for e in caught.value.exceptions] == ["CHANGE_IN_CALLBACK"]
    assert len(rows(loaded, "b")) == 4 and len(rows(loaded, "k")) == 2


def test_no_update_is_lost_between_threads(db):
    db.execute("CREATE TABLE t (x INT); INSERT INTO t VALUES (0)")
    threads = [
        threading.Thread(target=lambda: [db.execute("UPDATE t SET x = x + 1") for _ in range(25)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(db, "t") == [(100,)]


def test_snapshots_have_what_statements_did(loaded, tmp_path, state):
    loaded.execute("UPDATE k SET g = g || '!' WHERE x IS NULL; DELETE FROM b WHERE id = 1")
    loaded.save(tmp_path / "s")
    with ev.restore(tmp_path / "s") as again:
        assert state(again) == state(loaded)
