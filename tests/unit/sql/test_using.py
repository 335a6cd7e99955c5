"""USING and NATURAL: which columns ``*`` shows, in which order, and what the names stand for. As in Spark."""

import pytest

import everview as ev

DDL = "CREATE TABLE t (a INT, k INT, j INT); CREATE TABLE u (j BIGINT, b INT, k INT); CREATE TABLE w (c INT, k INT)"
STARS = {
    "SELECT * FROM t JOIN u USING (k)": None,  # j twice
    "SELECT * FROM t JOIN u USING (k, j)": "k j a b",
    "SELECT * FROM t JOIN u USING (j, k)": "j k a b",
    "SELECT * FROM t LEFT JOIN u USING (j, k)": "j k a b",
    "SELECT * FROM t LEFT SEMI JOIN u USING (k)": "k a j",
    "SELECT * FROM t LEFT ANTI JOIN u USING (j, k)": "j k a",
    "SELECT * FROM t NATURAL JOIN u": "k j a b",
    "SELECT * FROM u NATURAL JOIN t": "j k b a",
    "SELECT * FROM t NATURAL LEFT JOIN u": "k j a b",
    "SELECT * FROM t JOIN u USING (k, j) JOIN w USING (k)": "k j a b c",
    "SELECT * FROM t JOIN (u JOIN w USING (k)) USING (k, j)": "k j a b c",
    "SELECT t.*, b FROM t JOIN u USING (k, j)": "a k j b",
    "SELECT u.* FROM t LEFT JOIN u USING (k, j)": "j b k",
    "SELECT * EXCEPT (j) FROM t JOIN u USING (k, j)": "k a b",
    "SELECT * FROM (SELECT a AS x FROM t) q NATURAL JOIN w": "x c k",
}


@pytest.fixture
def db():
    with ev.connect() as session:
        session.execute(DDL)
        yield session


@pytest.mark.parametrize(("sql", "columns"), STARS.items(), ids=STARS)
def test_what_a_star_shows(db, sql, columns):
    if columns is None:
        with pytest.raises(ev.SchemaError, match=r"two columns of the result are named `j` \(of `t` and `u`\)"):
            db.create_view("v", sql)
    else:
        assert db.create_view("v", sql).schema.names == columns.split()


def test_the_key_is_that_of_the_left_side_and_both_have_names(db):
    view = db.create_view("v", "SELECT k, t.k AS tk, u.k AS uk, b FROM t LEFT JOIN u USING (k)")
    db.apply({"t": [(0, 1, 0), (0, 2, 0), (0, None, 0)], "u": [(0, 7, 1), (0, 8, None)]})
    assert sorted(view, key=str) == [(1, 1, 1, 7), (2, 2, None, None), (None, None, None, None)]
    assert [str(t) for t in db.create_view("j", "SELECT j FROM t JOIN u USING (j)").schema.types] == ["int32"]


def test_conditions_after_it_see_the_key_once(db):
    sql = "SELECT k, COUNT(*) AS n FROM t JOIN u USING (k) JOIN w USING (k) WHERE k > 1 GROUP BY k ORDER BY k"
    view = db.create_view("v", sql)
    db.apply({"t": [(0, 1, 0), (0, 2, 0)], "u": [(0, 7, 1), (0, 8, 2)], "w": [(5, 1), (6, 2), (7, 2)]})
    assert list(view) == [(2, 2)]
