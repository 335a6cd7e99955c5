"""VALUES and SELECT without FROM: constant rows, alone and beside tables."""

import everview as ev
import pytest

DDL = "CREATE TABLE t (a INT, s STRING)"


def read(view):
    return sorted((tuple(row.values()) for row in view.to_arrow().to_pylist()), key=repr)


def rows(*found):
    return sorted(found, key=repr)


@pytest.fixture
def filled(db):
    db.execute(DDL)
    db.insert("t", [(1, "x"), (2, "y"), (2, "y"), (5, None)])
    return db


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1 AS a, 'x' AS b", [(1, "x")]),
        ("VALUES (1, 'a'), (2, NULL)", rows((1, "a"), (2, None))),
        ("VALUES 1, 2", rows((1,), (2,))),
        ("SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v(x, y)", rows((1, "a"), (2, None))),
        ("SELECT y + 1 AS z FROM VALUES (1, 2), (3, 4) AS v(x, y) WHERE x > 1", [(5,)]),
        ("SELECT col1 FROM VALUES (1), (1) AS v", rows((1,), (1,))),
        ("SELECT DISTINCT x FROM (VALUES (1), (1), (NULL)) v(x)", rows((1,), (None,))),
        ("SELECT COUNT(*) AS n, SUM(x) AS s FROM (VALUES (1), (1), (NULL)) v(x)", [(3, 2)]),
        ("SELECT COUNT(*) AS n", [(1,)]),
        ("SELECT 1 AS a WHERE 1 = 2", []),
        ("SELECT COUNT(*) AS n WHERE 1 = 2", [(0,)]),
        ("SELECT x FROM (VALUES (3), (1), (2)) v(x) ORDER BY x LIMIT 2", rows((1,), (2,))),
        ("SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT a FROM t WHERE a > 2", rows((1,), (2,), (5,))),
        ("SELECT a FROM t EXCEPT VALUES (2)", rows((1,), (5,))),
        ("SELECT t.a, v.y FROM t JOIN (VALUES (1, 'one'), (2, 'two')) v(x, y) ON t.a = v.x", rows((1, "one"), (2, "two"), (2, "two"))),
        ("SELECT v.x, t.a FROM (VALUES (1), (7)) v(x) LEFT JOIN t ON t.a = v.x", rows((1, 1), (7, None))),
        ("SELECT t.s, d.k FROM t, (SELECT 2 AS k) d WHERE t.a < d.k", [("x", 2)]),
        ("WITH c(k) AS (VALUES (1), (2)) SELECT k, COUNT(*) AS n FROM c JOIN t ON t.a = c.k GROUP BY k", rows((1, 1), (2, 2))),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 WHERE t.a > 2)", [(5,)]),
        ("SELECT a FROM t WHERE a NOT IN (SELECT x FROM VALUES (1), (2) AS v(x))", [(5,)]),
        ("SELECT x.a, y.b FROM (SELECT 1 AS a) x JOIN (SELECT 1 AS b) y ON x.a = y.b", [(1, 1)]),
    ],
)  # fmt: skip
def test_results(filled, sql, expected):
    view = filled.create_view("v", sql)
    assert read(view) == expected
    assert view.count() == len(expected)
    assert view.explain()


def test_types(filled):
    view = filled.create_view("v", "VALUES (1, 1, DATE '2020-01-01'), (2L, 1.5, NULL)")
    assert [(f.name, str(f.type)) for f in view.schema] == [
        ("col1", "int64"), ("col2", "decimal128(11, 1)"), ("col3", "date32[day]"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("VALUES (1), (2, 3)", "COLUMN_COUNT"),
        ("VALUES (1), ('a')", "TYPE_MISMATCH"),
        ("VALUES (1), ('7')", "TYPE_MISMATCH"),
        ("VALUES (1), (TRUE)", "TYPE_MISMATCH"),
        ("VALUES (a)", "UNKNOWN_COLUMN"),
        ("SELECT t.a, v.x FROM t JOIN (VALUES (t.a)) v(x) ON t.a = v.x", "UNKNOWN_TABLE"),
        ("SELECT *", "NO_FROM"),
        ("SELECT a", "UNKNOWN_COLUMN"),
        ("VALUES (1 / 0)", "DIVIDE_BY_ZERO"),
        ("VALUES (current_date())", "NONDETERMINISTIC_FUNCTION"),
    ],
)
def test_refusals(filled, sql, code):
    with pytest.raises(ev.EverviewError) as error:
        filled.create_view("v", sql)
    assert error.value.code == code
    assert "v" not in filled.views


def test_constants_are_there_from_the_start_and_no_delta_has_them(db):
    db.execute(DDL)
    view = db.create_view("v", "SELECT 7 AS a UNION ALL SELECT a FROM t")
    alone = db.create_view("alone", "VALUES (1), (2)")
    joined = db.create_view("joined", "SELECT t.a, w.x FROM t JOIN (VALUES (1), (1), (2)) w(x) ON t.a = w.x")
    over = db.create_view("over", "SELECT COUNT(*) AS n FROM alone JOIN t ON t.a = col1")
    assert (read(view), read(alone), read(joined), read(over)) == ([(7,)], rows((1,), (2,)), [], [(0,)])
    deltas = db.insert("t", [(1, "x")])
    assert deltas["v"].to_pylist() == [{"a": 1, "_multiplicity": 1}]
    assert deltas["joined"].to_pylist() == [{"a": 1, "x": 1, "_multiplicity": 2}]
    assert "alone" not in deltas or deltas["alone"].num_rows == 0
    assert read(over) == [(1,)]
    deltas = db.delete("t", [(1, "x")])
    assert deltas["v"].to_pylist() == [{"a": 1, "_multiplicity": -1}]
    assert read(alone) == rows((1,), (2,))
    assert alone.count() == 2


def test_many_rows_are_read_in_pieces(db):
    view = db.create_view("v", f"VALUES {', '.join(f'({i})' for i in range(3000))}")
    assert [a for (a,) in sorted(read(view))] == list(range(3000))
    assert [a for (a,) in view] == list(range(3000))


def test_a_snapshot_has_them(tmp_path):
    with ev.connect() as db:
        db.execute(DDL)
        db.create_view("v", "SELECT t.a, x FROM t, VALUES (1), (2) AS v(x)")
        db.insert("t", [(1, "x")])
        db.save(tmp_path / "state")
    with ev.restore(tmp_path / "state") as db:
        assert read(db.view("v")) == rows((1, 1), (1, 2))
