"""One-off queries: db.sql() gives what a view would hold, and leaves nothing behind."""

import datetime as dt
import threading
from decimal import Decimal

import pyarrow as pa
import pytest

import everview as ev

SCHEMA = """
CREATE TABLE k (id INT PRIMARY KEY, g STRING, x BIGINT, at TIMESTAMP, raw BINARY);
CREATE TABLE b (id INT, y DECIMAL(6,2), d DATE, f DOUBLE, ok BOOLEAN, local TIMESTAMP_NTZ)
"""


@pytest.fixture
def loaded(db):
    db.execute(SCHEMA)
    db.create_view("sums", "SELECT g, COUNT(*) AS n, SUM(x) AS total FROM k GROUP BY g")
    db.create_view("top", "SELECT id, x FROM k ORDER BY x DESC LIMIT 2")
    noon = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
    db.insert(
        "k",
        [(1, "a", 10, noon, b"\x00"), (2, "a", 20, None, None), (3, "b", None, noon, b"\xff"), (4, "c", 5, noon, b"")],
    )
    local = dt.datetime(2024, 5, 1, 12)
    db.insert(
        "b",
        [
            (1, Decimal("1.50"), dt.date(2024, 5, 1), 0.5, True, local),
            (1, Decimal("1.50"), dt.date(2024, 5, 1), 0.5, True, local),
            (3, None, None, float("nan"), False, None),
        ],
    )
    return db


QUERIES = {
    "all rows": "SELECT * FROM k",
    "duplicates": "SELECT id, y FROM b",
    "a join": "SELECT k.g, b.y FROM k JOIN b ON k.id = b.id",
    "groups": "SELECT g, COUNT(*) AS n FROM k GROUP BY g HAVING COUNT(*) > 1",
    "a global aggregate": "SELECT COUNT(*) AS n, SUM(x) AS total FROM k",
    "a global aggregate of nothing": "SELECT COUNT(*) AS n, SUM(x) AS total FROM k WHERE id > 99",
    "a view": "SELECT * FROM sums",
    "a view and a table": "SELECT s.n, k.id FROM sums s JOIN k ON k.g = s.g",
    "a view with LIMIT": "SELECT id FROM top WHERE x > 1",
    "a union": "SELECT id FROM k UNION ALL SELECT id FROM b",
    "EXISTS": "SELECT id FROM k WHERE EXISTS (SELECT * FROM b WHERE b.id = k.id)",
    "a CTE": "WITH w AS (SELECT id FROM b) SELECT DISTINCT id FROM w",
    "no rows": "SELECT id FROM k WHERE id < 0",
    "LEFT JOIN": "SELECT k.id, b.y FROM k LEFT JOIN b ON k.id = b.id",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_query_gives_what_a_view_holds(loaded, bag, query):
    found = loaded.sql(query)
    view = loaded.create_view("v", query)
    assert bag(found.to_arrow()) == bag(view.to_arrow())
    assert found.schema == view.schema
    assert found.count() == view.count() == len(found)
    assert sorted(map(repr, found)) == sorted(map(repr, view))


def test_reading_a_result(loaded):
    found = loaded.sql("SELECT id, y FROM b ORDER BY id DESC")
    assert found.rows() == [(3, None), (1, Decimal("1.50")), (1, Decimal("1.50"))]
    assert [row.id for row in found] == [row.id for row in found] == [3, 1, 1]
    assert found.sql == "SELECT id, y FROM b ORDER BY id DESC"
    assert pa.table(found).equals(found.to_arrow())
    assert list(found.to_pandas()["id"]) == [3, 1, 1]
    assert [b.num_rows for b in found.batches(2)] == [2, 1]
    assert found.schema.names == ["id", "y"] and str(found.schema.field("y").type) == "decimal128(6, 2)"
    assert repr(found) == "<Result(id int32, y decimal128(6, 2)): 3 rows>"
    html = found._repr_html_()
    assert "<caption>SELECT id, y FROM b ORDER BY id DESC</caption>" in html and html.count("<tr>") == 4
    many = loaded.sql("SELECT a.id FROM b a JOIN b c ON a.ok <=> c.ok JOIN k ON 1 = 1")
    assert "the first 10 of 20 rows" in many._repr_html_()


def test_a_result_stays_as_it_was(loaded):
    found = loaded.sql("SELECT id FROM k ORDER BY id")
    loaded.execute("DELETE FROM k")
    assert [row.id for row in found] == [1, 2, 3, 4]
    assert loaded.sql("SELECT id FROM k").rows() == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id, x FROM k ORDER BY x, id", [3, 4, 1, 2]),
        ("SELECT id, x FROM k ORDER BY x DESC NULLS FIRST", [3, 2, 1, 4]),
        ("SELECT id FROM k ORDER BY id DESC LIMIT 2", [4, 3]),
        ("SELECT id FROM k ORDER BY g DESC, id LIMIT 2 OFFSET 1", [3, 1]),
        ("SELECT f, id FROM b ORDER BY f DESC LIMIT 1", ["nan"]),
    ],
)
def test_order(loaded, query, expected):
    found = loaded.sql(query)
    values = found.to_arrow().column(0).to_pylist()
    assert [str(v) if v != v else v for v in values] == expected  # noqa: PLR0124 NaN


def everything(db, state, tmp_path):
    """All that can be seen of a session: rows, results, metrics, texts, its snapshot."""
    db.save(tmp_path / "snapshot")
    nodes = {name: (v.metrics().state_rows, v.metrics().state_bytes) for name, v in db.views.items()}
    tables = {name: repr(db.table_metrics(name)) for name in db.tables}
    texts = db._state.kernel.texts_size()[0]
    return repr(state(db)), nodes, tables, texts, (tmp_path / "snapshot").read_bytes()


@pytest.mark.parametrize(
    "query",
    [
        *QUERIES.values(),
        "SELECT 10 DIV (id - 2) AS z FROM k",
        "SELECT UPPER(g) AS u, 1 / x AS z FROM k ORDER BY u",
        "SELECT g || 'new text' AS t FROM k",
        "SELECT nothing FROM k",
    ],
)
def test_nothing_is_left_behind(loaded, state, tmp_path, query):
    before = everything(loaded, state, tmp_path)
    open_rows = iter(loaded.view("sums"))
    next(open_rows)
    try:
        loaded.sql(query)
    except ev.EverviewError as error:
        assert error.code in ("DIVIDE_BY_ZERO", "UNKNOWN_COLUMN")
        assert error.sql == query and error.span is not None
    assert len(list(open_rows)) == 2  # an open iterator is not stale
    assert everything(loaded, state, tmp_path) == before
    loaded.execute("DROP VIEW top; DROP VIEW sums; DROP TABLE k")  # nothing reads them


def test_a_window_is_queried_as_it_is(db):
    db.execute("CREATE TABLE w (x INT) WITH (retain_rows = 2)")
    db.insert("w", [(1,), (2,), (3,)])
    assert db.sql("SELECT x FROM w ORDER BY x").rows() == [(2,), (3,)]


def test_tables_that_keep_no_rows(db):
    db.execute("CREATE TABLE p (x INT) TBLPROPERTIES ('everview.keep' = 'views')")
    db.create_view("v", "SELECT x, COUNT(*) AS n FROM p GROUP BY x")
    for _ in range(2):
        with pytest.raises(ev.SchemaError) as caught:
            db.sql("SELECT x FROM p")
        assert caught.value.code == "ROWS_NOT_KEPT"
        assert "`p`" in caught.value.message and "query a view" in caught.value.hint
        db.execute("INSERT INTO p VALUES (1), (1)")
    assert db.sql("SELECT n FROM v WHERE x = 1").rows() == [(4,)]


def test_in_a_callback_it_sees_the_batch(loaded):
    seen = []
    loaded.view("sums").subscribe(lambda _: seen.append(loaded.sql("SELECT COUNT(*) AS n FROM k").rows()))
    loaded.execute("DELETE FROM k WHERE id = 1")
    assert seen == [[(3,)]]


def test_while_a_batch_is_applied_it_is_refused(db):
    db.execute("CREATE TABLE g (a INT, b INT)")
    db.create_view("hop", "SELECT x.a, x.b, y.b AS c FROM g x JOIN g y ON x.b = y.a")
    codes = []

    def receive(*_):
        try:
            db.sql("SELECT a FROM g")
        except ev.SessionError as error:
            codes.append(error.code)

    db.apply_stream({"g": [(1, 2), (2, 3)]}, receive)
    assert codes in (["READ_IN_STREAM"], [])


def test_a_closed_session(loaded):
    loaded.close()
    with pytest.raises(ev.SessionError) as caught:
        loaded.sql("SELECT id FROM k")
    assert caught.value.code == "SESSION_CLOSED"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("DROP TABLE k", "NO_QUERY"),
        ("DELETE FROM k", "NO_QUERY"),
        ("INSERT INTO k (id) VALUES (9)", "NO_QUERY"),
        ("CREATE TABLE t (x INT)", "NO_QUERY"),
        ("SELECT id FROM k; SELECT id FROM k", "SYNTAX_ERROR"),
        ("", "SYNTAX_ERROR"),
        ("SELECT id AS _multiplicity FROM k", "RESERVED_NAME"),
        ("SELECT id, id FROM k", "DUPLICATE_COLUMN"),
        ("SELECT id FROM nowhere", "UNKNOWN_TABLE"),
    ],
)
def test_what_is_no_query(loaded, state, text, code):
    before = repr(state(loaded))  # NaN is NaN
    with pytest.raises(ev.EverviewError) as caught:
        loaded.sql(text)
    assert caught.value.code == code
    assert repr(state(loaded)) == before


def test_queries_beside_definitions(loaded):
    """Views and tables come and go in another thread: a query sees them before or after."""
    stop, failures = threading.Event(), []

    def define():
        while not stop.is_set():
            loaded.execute("CREATE TABLE z (x INT); CREATE VIEW zv AS SELECT x FROM z; INSERT INTO z VALUES (1)")
            loaded.execute("DROP VIEW zv; DROP TABLE z")

    thread = threading.Thread(target=define)
    thread.start()
    try:
        for _ in range(200):
            try:
                rows = loaded.sql("SELECT z.x FROM z JOIN zv ON z.x = zv.x").rows()
                assert rows in ([], [(1,)])
            except ev.SchemaError as error:
                failures.append(error.code)
    finally:
        stop.set()
        thread.join()
    assert set(failures) <= {"UNKNOWN_TABLE"}


# ---- parameters ----------------------------------------------------------------------------------------------------------


class Zone(dt.tzinfo):
    def utcoffset(self, _):
        return dt.timedelta(hours=2)


VALUES = {
    "int": ("k", "x", 20, [2]),
    "negative": ("k", "-x", -20, [2]),
    "bigint": ("k", "x + 9000000000000000000", 9000000000000000005, [4]),
    "wider than bigint": ("k", "CAST(x AS DECIMAL(38,0)) + 99999999999999999999", 99999999999999999999 + 20, [2]),
    "str": ("k", "g", "b", [3]),
    "decimal": ("b", "y", Decimal("1.5"), [1, 1]),
    "decimal with an exponent": ("b", "y * 1000", Decimal("15E+2"), [1, 1]),
    "float": ("b", "f", 0.5, [1, 1]),
    "nan": ("b", "f", float("nan"), [3]),
    "bool": ("b", "ok", True, [1, 1]),
    "date": ("b", "d", dt.date(2024, 5, 1), [1, 1]),
    "datetime with a zone": ("k", "at", dt.datetime(2024, 5, 1, 14, tzinfo=Zone()), [1, 3, 4]),
    "datetime without a zone": ("b", "local", dt.datetime(2024, 5, 1, 12), [1, 1]),
    "datetime without a zone as UTC": ("k", "at", dt.datetime(2024, 5, 1, 12), [1, 3, 4]),
    "bytes": ("k", "raw", b"\xff", [3]),
    "no bytes": ("k", "raw", b"", [4]),
    "bytearray": ("k", "raw", bytearray(b"\x00"), [1]),
    "none": ("k", "x", None, []),
    "a text that looks like SQL": ("k", "g", "a' OR '1' = '1", []),
}


@pytest.mark.parametrize(("table", "subject", "value", "expected"), VALUES.values(), ids=VALUES)
def test_values_of_parameters(loaded, table, subject, value, expected):
    by_position = loaded.sql(f"SELECT id FROM {table} WHERE {subject} = ? ORDER BY id", [value])
    by_name = loaded.sql(f"SELECT id FROM {table} WHERE {subject} = :v ORDER BY id", {"v": value})
    assert [row.id for row in by_position] == [row.id for row in by_name] == expected


def test_numpy_and_pandas_values(loaded):
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    query = "SELECT id FROM k WHERE x <=> ? ORDER BY id"
    assert loaded.sql(query, [np.int64(20)]).rows() == [(2,)]
    assert loaded.sql(query, [np.float32(20)]).rows() == [(2,)]
    assert loaded.sql(query, [pd.NA]).rows() == loaded.sql(query, [pd.NaT]).rows() == [(3,)]
    assert loaded.sql("SELECT DISTINCT id FROM b WHERE ok = ?", [np.bool_(True)]).rows() == [(1,)]
    assert loaded.sql(
        "SELECT id FROM k WHERE at >= ? ORDER BY id LIMIT 1", [pd.Timestamp("2024-05-01", tz="UTC")]
    ).rows() == [(1,)]


def test_types_of_parameters(loaded):
    values = [
        None,
        True,
        1,
        2**31,
        2**63,
        1.5,
        Decimal("1.50"),
        "a",
        b"a",
        dt.date(2024, 1, 1),
        dt.datetime(2024, 1, 1),
    ]
    items = ", ".join(f"? AS c{i}" for i in range(1, len(values)))
    found = loaded.sql(f"SELECT {items} FROM k WHERE id = 1", values[1:])
    assert [str(t) for t in found.schema.types] == [
        "bool",
        "int32",
        "int64",
        "decimal128(19, 0)",
        "double",
        "decimal128(3, 2)",
        "string",
        "binary",
        "date32[day]",
        "timestamp[us]",
    ]
    assert list(found.rows()[0]) == values[1:]


@pytest.mark.parametrize(
    ("query", "parameters", "expected"),
    [
        ("SELECT id FROM k WHERE x BETWEEN ? AND ? ORDER BY id", [5, 10], [1, 4]),
        ("SELECT id FROM k WHERE id IN (?, ?, ?) AND g LIKE ? ORDER BY id", (1, 3, 9, "a%"), [1]),
        ("SELECT id FROM k WHERE id = :a OR x = :b OR id = :a ORDER BY id", {"a": 1, "b": 5}, [1, 4]),
        ("SELECT id FROM k ORDER BY id LIMIT ? OFFSET ?", [2, 1], [2, 3]),
        ("SELECT id FROM k WHERE id = -? + ?", [1, 3], [2]),
        (
            "SELECT id FROM k WHERE at > CAST(? AS TIMESTAMP) + INTERVAL 1 HOUR ORDER BY id",
            ["2024-05-01 10:30:00"],
            [1, 3, 4],
        ),
        ("SELECT id FROM k WHERE EXISTS (SELECT * FROM b WHERE b.id = k.id AND y < ?) AND id > ?", [2, 0], [1]),
        ("SELECT id FROM k WHERE CASE WHEN x > ? THEN g ELSE ? END = ? ORDER BY id", [15, "z", "z"], [1, 3, 4]),
        ("SELECT id FROM k WHERE g = 'a?' OR g = ':b' OR id = ? -- and ?", [1], [1]),
        ("SELECT id FROM k WHERE id = 1", [], [1]),
        ("SELECT id FROM k WHERE id = 1", {}, [1]),
        ("SELECT g, COUNT(*) AS n FROM k GROUP BY g HAVING COUNT(*) > :n", {"n": 1}, ["a"]),
    ],
)
def test_places_of_parameters(loaded, query, parameters, expected):
    assert [row[0] for row in loaded.sql(query, parameters)] == expected


@pytest.mark.parametrize(
    ("query", "parameters", "code", "text"),
    [
        ("SELECT id FROM k WHERE id = ?", None, "PARAMETER_COUNT", "?"),
        ("SELECT id FROM k WHERE id = :a", None, "PARAMETER_COUNT", ":a"),
        ("SELECT id FROM k WHERE id = ? AND x = ?", [1], "PARAMETER_COUNT", "?"),
        ("SELECT id FROM k WHERE id = ?", [1, 2], "PARAMETER_COUNT", "?"),
        ("SELECT id FROM k", [1], "PARAMETER_COUNT", "SELECT id FROM k"),
        ("SELECT id FROM k WHERE id = :a", {}, "PARAMETER_NAME", ":a"),
        ("SELECT id FROM k WHERE id = :a", {"A": 1}, "PARAMETER_NAME", ":a"),
        ("SELECT id FROM k WHERE id = :a", {"a": 1, "b": 1}, "PARAMETER_NAME", "SELECT id FROM k WHERE id = :a"),
        ("SELECT id FROM k WHERE id = :a AND x = ?", [1, 2], "PARAMETER_STYLE", ":a"),
        ("SELECT id FROM k WHERE id = :a AND x = ?", {"a": 1}, "PARAMETER_STYLE", "?"),
        ("SELECT id FROM k WHERE id = :a", [1], "PARAMETER_STYLE", ":a"),
        ("SELECT id FROM k WHERE id = ?", {"a": 1}, "PARAMETER_STYLE", "?"),
        ("SELECT id FROM k WHERE id = ? AND x = ?", [1, [2]], "PARAMETER_TYPE", "?"),
        ("SELECT id FROM k WHERE id = ?", [object()], "PARAMETER_TYPE", "?"),
        ("SELECT id FROM k WHERE id = ?", [Decimal("NaN")], "PARAMETER_TYPE", "?"),
        ("SELECT id FROM k WHERE id = ?", [Decimal("1E+50")], "PARAMETER_TYPE", "?"),
        ("SELECT id FROM k WHERE id = ?", [10**5000], "PARAMETER_TYPE", "?"),
        ("SELECT id FROM k WHERE id = ?", ["\ud800"], "PARAMETER_TYPE", "?"),
        ("SELECT id FROM k WHERE id = ?", [dt.time(1)], "PARAMETER_TYPE", "?"),
        ("SELECT id FROM k WHERE id = ?", 5, "PARAMETER_TYPE", "SELECT id FROM k WHERE id = ?"),
        ("SELECT id FROM k WHERE id = ?", "5", "PARAMETER_TYPE", "SELECT id FROM k WHERE id = ?"),
        ("SELECT id FROM k LIMIT ?", ["5"], "LIMIT", "LIMIT ?"),
        ("SELECT id FROM k LIMIT ?", [-1], "LIMIT", "LIMIT ?"),
        ("SELECT id FROM k LIMIT ?", [True], "LIMIT", "LIMIT ?"),
        ("SELECT id FROM ?", ["k"], "SYNTAX_ERROR", "?"),
        ("SELECT id :x FROM k", {"x": 1}, "SYNTAX_ERROR", ":x"),
        ("SELECT id FROM k WHERE ok = ?", [1], "UNKNOWN_COLUMN", "ok"),
        ("SELECT id FROM b WHERE ok = ?", [1], "TYPE_MISMATCH", "ok = ?"),
    ],
)
def test_wrong_parameters(loaded, query, parameters, code, text):
    with pytest.raises(ev.EverviewError) as caught:
        loaded.sql(query, parameters)
    error = caught.value
    assert error.code == code
    assert query[error.span.start : error.span.end] == text
    assert error.hint or code == "TYPE_MISMATCH"


@pytest.mark.parametrize(
    "define",
    [
        lambda db: db.create_view("v", "SELECT id FROM k WHERE id = ?"),
        lambda db: db.create_view("v", "SELECT id FROM k LIMIT :n"),
        lambda db: db.execute("CREATE VIEW v AS SELECT id FROM k WHERE id = :a", {"a": 1}),
        lambda db: db.execute("CREATE VIEW v AS SELECT id FROM k WHERE id = ?", [1]),
    ],
)
def test_definitions_have_no_parameters(loaded, define):
    with pytest.raises(ev.UnsupportedQueryError) as caught:
        define(loaded)
    error = caught.value
    assert error.code == "PARAMETER_IN_DEFINITION"
    assert error.sql[error.span.start : error.span.end] in ("?", ":a", ":n")
    assert "v" not in loaded.views


# ---- rows picked by key --------------------------------------------------------------------------------------------------

KEYS = {
    "INT": [1, -1, 2**31 - 1],
    "BIGINT": [1, 2**40],
    "STRING": ["", "a", "it's"],
    "CHAR(3)": ["a  ", "ab ", "abc"],
    "VARCHAR(3)": ["a", "abc"],
    "DECIMAL(6,2)": [Decimal("1.50"), Decimal("-2.00")],
    "DOUBLE": [0.0, 1.5, float("inf")],
    "FLOAT": [0.0, 1.5],
    "BOOLEAN": [True, False],
    "DATE": [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    "TIMESTAMP": [dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC)],
    "TIMESTAMP_NTZ": [dt.datetime(1969, 2, 28, 1)],
    "BINARY": [b"", b"\x00", b"a"],
}
OTHERS = [
    0,
    1.5,
    -0.0,
    float("nan"),
    "a",
    "a ",
    "abcd",
    "1",
    Decimal("1.5"),
    Decimal("1.505"),
    2**33,
    None,
    b"a",
    True,
    dt.date(2024, 2, 29),
]


@pytest.mark.parametrize(("kind", "keys"), KEYS.items(), ids=KEYS)
def test_rows_picked_by_key(db, kind, keys):
    """A condition on the key finds its row as a scan would, whatever it is compared with."""
    db.execute(f"CREATE TABLE t (k {kind} PRIMARY KEY, x INT)")
    db.insert("t", [(key, i) for i, key in enumerate(keys)])
    for value in [*keys, *OTHERS]:
        for condition in ("k = ?", "? = k", "k <=> ?", "x >= 0 AND (k = ? AND x < 99)"):
            try:
                scanned = db.sql(f"SELECT x FROM t WHERE ({condition}) OR x < 0", [value]).rows()
            except ev.EverviewError as error:
                with pytest.raises(type(error)):
                    db.sql(f"SELECT x FROM t WHERE {condition}", [value])
                continue
            assert db.sql(f"SELECT x FROM t WHERE {condition}", [value]).rows() == scanned, (condition, value)
    for i, key in enumerate(keys):
        assert db.sql("SELECT x FROM t WHERE k = ?", [key]).rows() == [(i,)]
        assert db.execute("UPDATE t SET x = x + 100 WHERE k = ?", [key]).rows == 1
    assert sorted(db.table_rows("t")["x"].to_pylist()) == [100 + i for i in range(len(keys))]


def test_a_key_of_several_columns(db):
    db.execute("CREATE TABLE t (a INT, b STRING, x INT, PRIMARY KEY (b, a)); CREATE TABLE u (a INT, x INT)")
    db.execute("INSERT INTO t VALUES (1, 'x', 10), (1, 'y', 0), (2, 'x', 30); INSERT INTO u VALUES (1, 7)")
    assert db.sql("SELECT x FROM t WHERE a = 1 AND b = 'x'").rows() == [(10,)]
    assert db.sql("SELECT x FROM t WHERE a = 1 AND b = 'x' AND a = 2").rows() == []
    assert db.sql("SELECT x FROM t WHERE a = 1 ORDER BY x").rows() == [(0,), (10,)]
    assert db.sql("SELECT x FROM t WHERE a = 1 AND b = 'nowhere'").rows() == []
    assert db.sql("SELECT t.x, u.x AS y FROM t JOIN u ON t.a = u.a WHERE t.a = 1 AND b = 'x'").rows() == [(10, 7)]
    twice = "SELECT p.x, q.x AS y FROM t p JOIN t q ON p.b = q.b WHERE p.a = 1 AND p.b = 'x' ORDER BY y"
    assert db.sql(twice).rows() == [(10, 10), (10, 30)]
    # rows with other keys are not looked at: one of them could not be
    assert db.sql("SELECT 100 DIV x AS z FROM t WHERE 100 DIV x > 0 AND a = 1 AND b = 'x'").rows() == [(10,)]
    assert db.execute("DELETE FROM t WHERE b = ? AND a = ?", ["y", 1]).rows == 1
    assert db._state.kernel.texts_size()[0] == 1
