"""The aggregate behind scalar subqueries: the value of the only row of a group. No SQL text calls it, so the tests give it a name."""

import everview as ev
import pytest
from everview.aggregates import FUNCTIONS, SPELLINGS

CODE = "SCALAR_SUBQUERY_TOO_MANY_ROWS"


@pytest.fixture
def called(db, monkeypatch):
    monkeypatch.setitem(SPELLINGS, "single", FUNCTIONS["single"])
    db.execute("CREATE TABLE t (g INT, x INT); CREATE TABLE u (g INT)")
    return db


def read(view):
    return sorted((tuple(row.values()) for row in view.to_arrow().to_pylist()), key=repr)


def rows(*given, sign=1):
    return [{"g": g, "x": x, "_multiplicity": sign} for g, x in given]


def refused(db, batch):
    with pytest.raises(ev.ChangeError) as refusal:
        db.apply(batch)
    assert refusal.value.code == CODE
    assert refusal.value.hint


def test_no_sql_text_reaches_it(db):
    db.execute("CREATE TABLE t (x INT)")
    with pytest.raises(ev.UnsupportedQueryError):
        db.create_view("v", "SELECT single(x) AS x FROM t")


def test_global(called):
    view = called.create_view("v", "SELECT single(x) AS x FROM t")
    assert read(view) == [(None,)]
    called.apply({"t": rows((1, 5))})
    assert read(view) == [(5,)]
    refused(called, {"t": rows((1, 6))})
    refused(called, {"t": rows((1, 5))})
    refused(called, {"t": rows((1, None))})
    assert read(view) == [(5,)]
    called.apply({"t": [*rows((2, 7)), *rows((1, 5), sign=-1)]})
    assert read(view) == [(7,)], "a batch that replaces the row"
    called.apply({"t": [*rows((2, None)), *rows((2, 7), sign=-1)]})
    assert read(view) == [(None,)]
    refused(called, {"t": rows((1, 6))})
    called.apply({"t": rows((2, None), sign=-1)})
    assert read(view) == [(None,)]
    assert called.create_view("late", "SELECT single(x) AS x FROM t").count() == 1


def test_by_group_below_a_join_and_late(called):
    sql = "SELECT u.g, q.x FROM u LEFT JOIN (SELECT g, single(x) AS x FROM t GROUP BY g) q ON u.g = q.g"
    view = called.create_view("v", sql)
    called.apply({"u": [{"g": 1}, {"g": 2}], "t": rows((1, 5), (3, 5))})
    assert read(view) == [(1, 5), (2, None)]
    refused(called, {"t": rows((3, 5)), "u": [{"g": 3}]})
    assert read(view) == [(1, 5), (2, None)]
    called.execute("DROP VIEW v")
    called.apply({"t": rows((3, 6))})
    with pytest.raises(ev.EverviewError) as refusal:
        called.create_view("v", sql)
    assert refusal.value.code == CODE
    called.apply({"t": rows((3, 6), sign=-1)})
    assert read(called.create_view("v", sql)) == [(1, 5), (2, None)]


def test_over_a_join_and_over_groups(called):
    joined = called.create_view("joined", "SELECT t.g, single(t.x + 1) AS x FROM t JOIN u ON t.g = u.g GROUP BY t.g")
    above = called.create_view("above", "SELECT single(n) AS n FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) q")
    called.apply({"t": rows((1, 5)), "u": [{"g": 1}]})
    assert (read(joined), read(above)) == ([(1, 6)], [(1,)])
    refused(called, {"u": [{"g": 1}]})
    refused(called, {"t": rows((2, 0))})
    assert (read(joined), read(above)) == ([(1, 6)], [(1,)])
