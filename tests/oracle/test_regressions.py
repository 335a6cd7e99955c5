"""Every bug that random testing has found, as a minimal case."""

from decimal import Decimal

import everview as ev
import pytest
from everview.testing.asserts import DeltaSum, assert_view_is_recomputed


@pytest.mark.parametrize(
    "select",
    [
        "SELECT a.x FROM t a, t b WHERE a.x = b.x",
        "SELECT a.x FROM t a, t b, t c WHERE a.x = b.x AND b.x = c.x",
        "SELECT COUNT(*) AS n FROM t a, t b WHERE a.x = b.x",
        "SELECT a.x, COUNT(*) AS n, SUM(a.y) AS s FROM t a, t b WHERE a.x = b.x GROUP BY a.x",
        "SELECT DISTINCT a.x FROM t a, t b WHERE a.x = b.x",
    ],
)
def test_multiplicities_of_equal_atoms_multiply(oracle, select):
    """Found while equal atoms were being merged: t(x), t(x) over n copies of a row gave n rows and not n * n."""
    with ev.connect() as db:
        db.execute("CREATE TABLE t (x BIGINT, y BIGINT)")
        view = db.create_view("v", select)
        total = DeltaSum.of(view)
        for rows in ([(0, 1), (0, 1), (None, 2)], [(0, 2), (1, 5)]):
            total.add(db.insert("t", rows)["v"])
            total.check(view)
            assert_view_is_recomputed(db, view, oracle)
        for rows in ([(0, 1)], [(0, 1), (0, 2), (None, 2), (1, 5)]):
            total.add(db.delete("t", rows)["v"])
            total.check(view)
            assert_view_is_recomputed(db, view, oracle)


@pytest.mark.parametrize(
    "select",
    [
        "SELECT CONCAT(r.s, u.s) AS k, COUNT(*) AS n FROM r JOIN u ON r.x = u.x GROUP BY CONCAT(r.s, u.s)",
        "SELECT COUNT(*) AS n FROM r JOIN u ON r.x = u.x GROUP BY r.x, r.x + u.x",
        "SELECT CONCAT(r.s, u.s) AS k, SUM(r.x) AS n FROM r JOIN u ON r.x = u.x GROUP BY CONCAT(r.s, u.s) HAVING COUNT(*) > 1",
    ],
)
def test_group_key_over_several_tables(oracle, select):
    """INVALID_PLAN: an aggregate stands directly above its core."""
    with ev.connect() as db:
        db.execute("CREATE TABLE r (x BIGINT, s STRING); CREATE TABLE u (x BIGINT, s STRING)")
        view = db.create_view("v", select)
        total = DeltaSum.of(view)
        for changes in (
            {"r": [(1, "a"), (1, "b"), (2, None)], "u": [(1, "c"), (1, "c"), (2, "d")]},
            {"r": [{"x": 1, "s": "a", "_multiplicity": -1}]},
        ):
            total.add(db.apply(changes)["v"])
            total.check(view)
            assert_view_is_recomputed(db, view, oracle)


@pytest.mark.parametrize("literal", ["'O''Brien  Jr'", "'O\\'Brien  Jr'", '"O\'Brien  Jr"', "'O''Brien' '  Jr'"])
def test_blanks_beside_a_doubled_quote(literal):
    """Blanks of a literal with '' were collapsed."""
    with ev.connect() as db:
        db.execute("CREATE TABLE t (n STRING)")
        view = db.create_view("v", f"SELECT n FROM t WHERE n = {literal}")
        db.insert("t", [("O'Brien  Jr",), ("O'Brien Jr",)])
        assert list(view) == [("O'Brien  Jr",)]


def test_two_atoms_of_one_name(oracle):
    """The atom of a derived table and one of a join in parentheses were taken for one: 2 rows instead of 4."""
    with ev.connect() as db:
        db.execute("CREATE TABLE g (src INT, dst INT); CREATE TABLE h (dst INT, x INT)")
        query = "SELECT d.src, g.dst, h.x FROM (SELECT src FROM g) d JOIN (g JOIN h ON g.dst = h.dst) ON d.src = g.src"
        view = db.create_view("v", query)
        db.apply({"g": [(1, 2), (1, 3)], "h": [(2, 5), (3, 6)]})
        assert view.count() == 4
        assert_view_is_recomputed(db, view, oracle)


def test_a_comma_binds_weaker_than_a_join(oracle):
    """NATURAL JOIN took the columns of what stands before the comma for its own."""
    with ev.connect() as db:
        db.execute("CREATE TABLE a (x INT, z INT); CREATE TABLE b (y INT); CREATE TABLE c (x INT, y INT)")
        view = db.create_view("v", "SELECT a.x AS ax, c.x AS cx, c.y FROM a, b NATURAL JOIN c")
        db.apply({"a": [(1, 0), (2, 0)], "b": [(7,)], "c": [(1, 7), (3, 7)]})
        assert view.count() == 4
        assert_view_is_recomputed(db, view, oracle)


def test_decimals_without_a_common_type():
    """The three columns were joined as DECIMAL(38,0), in which 1.4 is 1."""
    with ev.connect() as db:
        db.execute(
            "CREATE TABLE a (x DECIMAL(20,0)); CREATE TABLE b (x DECIMAL(38,18)); CREATE TABLE c (x DECIMAL(38,0))"
        )
        view = db.create_view("v", "SELECT a.x AS a, b.x AS b, c.x AS c FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x")
        db.apply({"a": [(1,), (2,)], "b": [(Decimal("1.4"),), (Decimal(2),)], "c": [(1,), (2,)]})
        assert list(view) == [(2, 2, 2)]


@pytest.mark.parametrize(
    "select",
    [
        "SELECT coalesce(s.y, 1) AS k, COUNT(*) AS n FROM r LEFT JOIN s ON r.x = s.x GROUP BY coalesce(s.y, 1)",
        "SELECT DISTINCT s.y IS NULL AS k FROM r LEFT JOIN s ON r.x = s.x",
        "SELECT x FROM r WHERE x NOT IN (SELECT s.y FROM r q LEFT JOIN s ON q.x = s.x)",
    ],
)
def test_what_is_computed_from_a_row_that_is_not_there(oracle, select):
    """Keys were computed from the rows of a left join's right side, and were NULL where it has none; NOT IN over it was refused."""
    with ev.connect() as db:
        db.execute("CREATE TABLE r (x INT); CREATE TABLE s (x INT, y INT)")
        view = db.create_view("v", select)
        for changes in ({"r": [(1,), (2,), (5,)]}, {"s": [(1, 1), (2, None), (5, 7)]}, {"s": [(2, 3)]}):
            db.apply(changes)
            assert_view_is_recomputed(db, view, oracle)
        db.delete("s", [(2, None), (1, 1)])
        assert_view_is_recomputed(db, view, oracle)
