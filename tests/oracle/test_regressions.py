"""Every bug that random testing has found, as a minimal case."""

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
