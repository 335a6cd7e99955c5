"""EXCEPT, MINUS and INTERSECT: what is equal, what binds stronger, what a change does."""

import everview as ev
import pytest

DDL = "CREATE TABLE t (a INT, s STRING); CREATE TABLE u (a BIGINT, s STRING); CREATE TABLE w (a INT, s STRING)"


@pytest.fixture
def filled(db):
    db.execute(DDL)
    db.insert("t", [(1, "x"), (1, "x"), (2, None), (None, None), (None, None), (3, "z")])
    db.insert("u", [(1, "x"), (None, None), (4, "y")])
    db.insert("w", [(3, "z"), (4, "y")])
    return db


def read(view):
    return sorted((tuple(row.values()) for row in view.to_arrow().to_pylist()), key=repr)


def rows(*found):
    return sorted(found, key=repr)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t EXCEPT SELECT * FROM u", rows((2, None), (3, "z"))),
        ("SELECT * FROM t MINUS DISTINCT SELECT * FROM u", rows((2, None), (3, "z"))),
        ("SELECT * FROM t INTERSECT SELECT * FROM u", rows((1, "x"), (None, None))),
        ("SELECT a FROM t EXCEPT SELECT 1 FROM u", rows((2,), (3,), (None,))),
        ("SELECT a FROM u EXCEPT SELECT a FROM t UNION SELECT a FROM w", rows((3,), (4,))),
        ("SELECT a FROM w UNION SELECT a FROM u INTERSECT SELECT a FROM t", rows((1,), (3,), (4,), (None,))),
        ("(SELECT a FROM w UNION SELECT a FROM u) INTERSECT SELECT a FROM t", rows((1,), (3,), (None,))),
        ("SELECT a FROM t EXCEPT SELECT a FROM u EXCEPT SELECT a FROM w", rows((2,))),
        ("SELECT a FROM t EXCEPT (SELECT a FROM u EXCEPT SELECT a FROM u WHERE a = 1)", rows((1,), (2,), (3,))),
        ("SELECT a FROM t INTERSECT SELECT a FROM u ORDER BY a DESC LIMIT 1", rows((1,))),
        ("SELECT t.a FROM t JOIN w ON t.a = w.a EXCEPT SELECT a FROM u", rows((3,))),
        ("SELECT d.a, COUNT(*) AS n FROM (SELECT a FROM t EXCEPT SELECT a FROM u) d JOIN t ON t.a = d.a GROUP BY d.a", rows((2, 1), (3, 1))),
        ("WITH c AS (SELECT a FROM t MINUS SELECT a FROM w) SELECT a FROM c INTERSECT SELECT a FROM c", rows((1,), (2,), (None,))),
    ],
)  # fmt: skip
def test_results(filled, sql, expected):
    view = filled.create_view("v", sql)
    assert read(view) == expected


def test_types_are_those_in_common_under_the_names_of_the_first(filled):
    view = filled.create_view("v", "SELECT a AS k FROM t EXCEPT SELECT a FROM u")
    assert [(f.name, str(f.type)) for f in view.schema] == [("k", "int64")]
    with pytest.raises(ev.SchemaError, match="do not make an INTERSECT") as error:
        filled.create_view("x", "SELECT a, s FROM t INTERSECT SELECT a FROM u")
    assert error.value.code == "COLUMN_COUNT"


def test_deltas(db):
    db.execute(DDL)
    less = db.create_view("less", "SELECT a FROM t EXCEPT SELECT a FROM u")
    both = db.create_view("both", "SELECT a FROM t INTERSECT SELECT a FROM u")

    def change(**changes):
        deltas = db.apply(
            {name: [{"a": a, "s": s, "_multiplicity": n} for a, s, n in c] for name, c in changes.items()}
        )
        return [
            sorted(tuple(r.values()) for r in deltas[v].to_pylist()) if v in deltas else [] for v in ("less", "both")
        ]

    assert change(t=[(1, "p", 2), (1, "q", 1)]) == [[(1, 1)], []]
    assert change(u=[(1, "p", 1)]) == [[(1, -1)], [(1, 1)]]
    assert change(u=[(1, "q", 1)]) == [[], []]
    assert change(u=[(1, "p", -1)]) == [[], []]
    assert change(t=[(1, "p", -2)]) == [[], []]
    assert change(u=[(1, "q", -1)]) == [[(1, 1)], [(1, -1)]]
    assert change(t=[(1, "q", -1)]) == [[(1, -1)], []]
    assert (less.metrics().state_rows, both.metrics().state_rows) == (0, 0)


def test_a_side_of_one_table_is_an_edge_and_not_kept_twice(db):
    db.execute(DDL)
    view = db.create_view("v", "SELECT a, s FROM t EXCEPT SELECT a, s FROM w", on_warning="refuse")
    assert [type(stage).__name__ for stage in view.plan.view.stages] == ["Core"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM t EXCEPT ALL SELECT * FROM u", rows((1, "x"), (2, None), (None, None), (3, "z"))),
        ("SELECT * FROM u MINUS ALL SELECT * FROM t", rows((4, "y"))),
        ("SELECT * FROM t INTERSECT ALL SELECT * FROM u", rows((1, "x"), (None, None))),
        ("SELECT * FROM t INTERSECT ALL SELECT * FROM t", rows((1, "x"), (1, "x"), (2, None), (None, None), (None, None), (3, "z"))),
        ("SELECT a FROM t EXCEPT ALL VALUES (1), (1), (1)", rows((2,), (None,), (None,), (3,))),
        ("SELECT a, COUNT(*) AS n FROM (SELECT a FROM t EXCEPT ALL SELECT a FROM u) GROUP BY a", rows((1, 1), (2, 1), (None, 1), (3, 1))),
    ],
)  # fmt: skip
def test_all(filled, sql, expected):
    view = filled.create_view("v", sql)
    assert read(view) == expected
    assert view.count() == len(expected)


def test_deltas_of_all(db):
    db.execute(DDL)
    less = db.create_view("less", "SELECT a FROM t EXCEPT ALL SELECT a FROM u")
    both = db.create_view("both", "SELECT a FROM t INTERSECT ALL SELECT a FROM u")

    def change(**changes):
        deltas = db.apply({name: [{"a": a, "s": "", "_multiplicity": n} for a, n in c] for name, c in changes.items()})
        return [sorted(tuple(r.values()) for r in deltas[v].to_pylist()) for v in ("less", "both")]

    assert change(t=[(1, 3)]) == [[(1, 3)], []]
    assert change(u=[(1, 2)]) == [[(1, -2)], [(1, 2)]]
    assert change(u=[(1, 2)]) == [[(1, -1)], [(1, 1)]]
    assert change(t=[(1, 2)]) == [[(1, 1)], [(1, 1)]]
    assert change(t=[(1, -1)], u=[(1, -1)]) == [[], [(1, -1)]]
    assert change(t=[(1, -4)], u=[(1, -3)]) == [[(1, -1)], [(1, -3)]]
    assert (less.metrics().state_rows, both.metrics().state_rows) == (0, 0)
