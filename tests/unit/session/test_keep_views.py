"""Tables that keep nothing but what views read: what they refuse, what they notice, and what they do not keep."""

import everview as ev
import pyarrow as pa
import pytest

KEEP = "TBLPROPERTIES ('everview.keep' = 'views')"


@pytest.fixture
def db():
    with ev.connect() as session:
        session.execute(f"CREATE TABLE r (a INT, b STRING) {KEEP}; CREATE TABLE s (a INT, n BIGINT) {KEEP}")
        yield session


def refused(code, call, *arguments, **options):
    with pytest.raises(ev.EverviewError) as found:
        call(*arguments, **options)
    assert found.value.code == code
    assert found.value.hint
    return found.value


@pytest.mark.parametrize("option", [KEEP, "WITH ('keep' = views)", "TBLPROPERTIES ('keep' = 'VIEWS')"])
def test_the_option_in_sql(option):
    with ev.connect() as db:
        db.execute(f"CREATE TABLE t (a INT) {option}; CREATE TABLE u (a INT) WITH ('keep' = 'rows')")
        assert (db.tables["t"].keep, db.tables["u"].keep) == ("views", "rows")


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ("a INT PRIMARY KEY", "'keep' = 'views'"),
        ("a INT, b INT, PRIMARY KEY (a, b)", "'keep' = 'views'"),
        ("a INT", "'keep' = 'views', retain_rows = 5"),
        ("a INT, t TIMESTAMP", "'keep' = 'views', retain = INTERVAL 1 HOUR, time_column = t"),
        ("a INT", "'keep' = 'nothing'"),
        ("a INT", "'keep' = 1"),
    ],
)
def test_options_that_do_not_go_together(columns, options):
    with ev.connect() as db:
        error = refused("KEEP", db.execute, f"CREATE TABLE t ({columns}) WITH ({options})")
        assert error.span is not None
        assert db.tables == {}


def test_views_come_before_the_first_change(db):
    db.create_view("v", "SELECT a FROM r")
    db.create_view("w", "SELECT r.a, s.n FROM r JOIN s ON r.a = s.a")
    db.insert("r", [(1, "x")])
    error = refused("ROWS_NOT_KEPT", db.create_view, "late", "SELECT b FROM r")
    assert "`late`" in str(error)
    assert "`r`" in str(error)
    refused("ROWS_NOT_KEPT", db.create_view, "v", "SELECT b FROM r", replace=True)
    assert set(db.views) == {"v", "w"}
    db.create_view("of_s", "SELECT n FROM s")  # s has received nothing
    over = db.create_view("over", "SELECT a, COUNT(*) AS n FROM v GROUP BY a")  # reads a view, not the table
    assert over.to_arrow().to_pylist() == [{"a": 1, "n": 1}]


def test_a_batch_without_rows_is_no_change(db):
    db.apply({"r": []})
    db.create_view("v", "SELECT a FROM r")
    db.insert("r", [(1, "x")])
    assert db.view("v").count() == 1


def test_a_refused_batch_is_no_change(db):
    db.create_view("v", "SELECT 1 / a AS q FROM r")
    refused("DIVIDE_BY_ZERO", db.insert, "r", [(0, "x")])
    db.create_view("w", "SELECT b FROM r")
    db.insert("r", [(1, "x")])
    assert db.view("w").count() == 1


def test_what_needs_the_rows(db, tmp_path):
    db.create_view("v", "SELECT a, b FROM r")
    db.insert("r", [(1, "x")])
    refused("ROWS_NOT_KEPT", db.table_rows, "r")
    refused("ROWS_NOT_KEPT", db.upsert, "r", [(1, "y")])
    refused("ROWS_NOT_KEPT", db.update, "r", [(1, "y")])
    refused("ROWS_NOT_KEPT", db.save, tmp_path / "snapshot")
    refused("ROWS_NOT_KEPT", db.delete, "r", [(1, "x")], on_missing="ignore")
    refused("ROWS_NOT_KEPT", db.apply, {"r": [{"a": 1, "b": "x", "_multiplicity": -1}]}, on_missing="ignore")
    assert not list(tmp_path.iterdir())
    assert db.insert("r", [(2, "x")])["v"].num_rows == 1
    refused("COLUMN_COUNT", db.delete, "r", [(1,)])  # no key to delete by
    assert sorted(row["a"] for row in db.view("v").to_arrow().to_pylist()) == [1, 2]
    assert db.version == 2


def test_nothing_is_kept_of_rows_that_no_view_reads(db):
    db.create_view("v", "SELECT n FROM s WHERE a > 5")
    db.insert("r", [(n, f"text {n}") for n in range(100)])
    db.insert("s", [(n, n) for n in range(10)])
    metrics = db.table_metrics("r")
    assert (metrics.rows, metrics.distinct_rows, metrics.bytes) == (0, 0, 0)
    assert db._state.kernel.texts_size()[0] == 0
    assert db.view("v").count() == 4


def test_texts_of_rows_that_a_filter_drops_are_not_encoded(db):
    db.create_view("v", "SELECT b FROM r WHERE a = 1")
    db.insert("r", [(1, "kept"), (2, "dropped")])
    assert db._state.kernel.texts_size()[0] == 1
    db.view("v").drop()
    assert db._state.kernel.texts_size()[0] == 0


def test_texts_live_as_long_as_a_view_has_them(db):
    v = db.create_view("v", "SELECT r.b, s.n FROM r JOIN s ON r.a = s.a")
    w = db.create_view("w", "SELECT b, COUNT(*) AS n FROM r GROUP BY b")
    x = db.create_view("x", "SELECT s.n FROM s WHERE EXISTS (SELECT 1 FROM r WHERE r.a = s.a AND r.b = 'x')")
    db.apply({"r": [(1, "x"), (1, "y"), (2, "y")], "s": [(1, 10)]})
    assert {row["b"] for row in v.to_arrow().to_pylist()} == {"x", "y"}
    db.apply({"r": [{"a": 1, "b": "y", "_multiplicity": -1}, {"a": 2, "b": "z", "_multiplicity": 1}]})
    assert {row["b"] for row in w.to_arrow().to_pylist()} == {"x", "y", "z"}
    w.drop()
    assert {row["b"] for row in v.to_arrow().to_pylist()} == {"x"}
    v.drop()
    x.drop()
    assert db._state.kernel.texts_size()[0] == 0


@pytest.mark.parametrize(
    ("sql", "is_noticed"),
    [
        ("SELECT a, n FROM s", True),
        ("SELECT a, SUM(n) AS n FROM s GROUP BY a", True),
        ("SELECT r.b, SUM(s.n) AS n FROM r JOIN s ON r.a = s.a GROUP BY r.b", True),  # a leaf without rows
        ("SELECT r.b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a)", True),  # a count without rows
        ("SELECT a, n FROM s WHERE a <> 7", False),
    ],
)
def test_deletes_of_absent_rows(db, sql, is_noticed):
    v = db.create_view("v", sql)
    db.apply({"r": [(1, "x")], "s": [(1, 10), (1, 20)]})
    before, metrics = v.to_arrow(), v.metrics().state_rows
    batch = {"s": [{"a": 7, "n": 1, "_multiplicity": -1}, {"a": 1, "n": 5, "_multiplicity": 1}]}
    if is_noticed:
        error = refused("ROW_NOT_FOUND", db.apply, batch)
        assert error.parameters["table"] == "s"
        assert "a=7" in str(error)
        assert "view `v`" in str(error)
        assert v.to_arrow().equals(before)
        assert v.metrics().state_rows == metrics
        assert db.version == 1
    else:
        db.apply(batch)
        assert db.version == 2


def test_a_noticed_delete_leaves_other_views_as_they_were(db):
    first = db.create_view("first", "SELECT r.b, s.n FROM r JOIN s ON r.a = s.a")
    db.create_view("second", "SELECT a, n FROM s")
    db.apply({"r": [(1, "x"), (2, "y")], "s": [(1, 10)]})
    pieces = []
    batch = {"s": pa.table({"a": [2, 3], "n": [1, 1], "_multiplicity": [1, -1]}), "r": [(3, "z")]}
    with pytest.raises(ev.ChangeError, match="cannot delete"):
        db.apply_stream(batch, lambda _, rows: pieces.append(rows))
    assert pieces == []
    assert first.to_arrow().to_pylist() == [{"b": "x", "n": 10}]
    assert db.insert("s", [(2, 1)])["first"].to_pylist() == [{"b": "y", "n": 1, "_multiplicity": 1}]


def test_rows_that_a_batch_brings_and_takes_away_are_not_evaluated(db):
    v = db.create_view("v", "SELECT a FROM r WHERE b <> 'no' AND 1 / a > 0")
    both = [{"a": 0, "b": "x", "_multiplicity": n} for n in (-1, 1)]
    assert db.apply({"r": [*both, {"a": 2, "b": "x", "_multiplicity": 1}]})["v"].num_rows == 1
    error = refused("DIVIDE_BY_ZERO", db.apply, {"r": [(1, "no"), (5, "x"), (0, "x")]})
    assert error.parameters["row"] == 2
    error = refused(
        "DIVIDE_BY_ZERO",
        db.apply,
        {"r": [*both, *({"a": a, "b": b, "_multiplicity": 1} for a, b in ((3, "no"), (0, "y")))]},
    )
    assert error.parameters["row"] == 3
    assert v.count() == 1


def test_batches_are_checked_like_those_of_other_tables():
    with ev.connect() as db:
        db.execute(f"CREATE TABLE t (a INT NOT NULL, c CHAR(3), v VARCHAR(2), d DOUBLE) {KEEP}")
        v = db.create_view("v", "SELECT * FROM t")
        assert (
            refused("NULL_NOT_ALLOWED", db.insert, "t", [(1, "x", "y", 1.0), (None, "x", "y", 1.0)]).parameters["row"]
            == 1
        )
        assert refused("EXCEED_LIMIT_LENGTH", db.insert, "t", [(1, "x", "too long", 1.0)]).parameters["table"] == "t"
        refused("TOO_MANY_ROWS", db.apply, {"t": [{"a": 1, "c": "x", "v": "y", "d": 1.0, "_multiplicity": 2**62 + 1}]})
        db.insert("t", [(1, "x", "y", -0.0)])
        assert str(v.to_arrow().to_pylist()) == str([{"a": 1, "c": "x  ", "v": "y", "d": 0.0}])
        db.delete("t", [(1, "x  ", "y", 0.0)])
        assert v.count() == 0


def test_texts_in_every_layout(db):
    v = db.create_view("v", "SELECT b FROM r WHERE UPPER(b) <> 'NO'")
    texts = pa.array(["x", None, "no", "y"])
    for layout in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        given = texts.cast(layout) if not pa.types.is_dictionary(layout) else texts.dictionary_encode()
        db.apply({"r": pa.table({"a": pa.array([1, 2, 3, 4], pa.int32()), "b": given})})
    assert sorted(row["b"] for row in v.to_arrow().to_pylist()) == ["x", "x", "x", "y", "y", "y"]


def test_self_joins_and_unions_over_one_table(db):
    paths = db.create_view("paths", "SELECT x.a, y.n FROM s x JOIN s y ON x.n = y.a")
    both = db.create_view("both", "SELECT a FROM s UNION ALL SELECT CAST(n AS INT) FROM s")
    db.apply({"s": [(1, 2), (2, 3)]})
    assert paths.to_arrow().to_pylist() == [{"a": 1, "n": 3}]
    assert sorted(row["a"] for row in both.to_arrow().to_pylist()) == [1, 2, 2, 3]
    db.apply({"s": [{"a": 2, "n": 3, "_multiplicity": -1}, {"a": 2, "n": 4, "_multiplicity": 1}]})
    assert paths.to_arrow().to_pylist() == [{"a": 1, "n": 4}]


def test_a_table_that_keeps_no_rows_can_be_dropped(db):
    db.create_view("v", "SELECT a FROM r")
    db.insert("r", [(1, "x")])
    refused("TABLE_IN_USE", db.execute, "DROP TABLE r")
    db.execute("DROP VIEW v; DROP TABLE r")
    db.execute("CREATE TABLE r (a INT)")
    db.insert("r", [(1,)])
    assert db.table_rows("r").num_rows == 1
