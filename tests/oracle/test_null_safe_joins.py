"""Joins by ``<=>``: NULL is a key like any other, unless ``=`` or a column that is never NULL forbids it."""

from decimal import Decimal

import everview as ev
import pytest
from everview.testing.asserts import DeltaSum, assert_view_equals

DDL = """
CREATE TABLE r (x INT, y INT);
CREATE TABLE s (x BIGINT, y INT);
CREATE TABLE t (x DECIMAL(10, 2), y INT);
CREATE TABLE p (x INT PRIMARY KEY, y INT)
"""
ROWS = [(None, 1), (None, 1), (0, 2), (1, None), (None, None), (2, 3)]
QUERIES = [
    "SELECT r.x, r.y, s.y AS z FROM r JOIN s ON r.x <=> s.x",
    "SELECT r.y, s.y AS z FROM r, s WHERE r.x <=> s.x AND r.y <=> s.y",
    "SELECT r.x, s.x AS sx, t.x AS tx FROM r, s, t WHERE r.x <=> s.x AND s.x <=> t.x",
    "SELECT r.x, t.y FROM r, s, t WHERE r.x = s.x AND s.x <=> t.x",
    "SELECT r.x, t.y FROM r, s, t WHERE r.x <=> s.x AND s.x = t.x AND t.y <=> r.y",
    "SELECT r.x, p.y FROM r JOIN p ON r.x <=> p.x",
    "SELECT a.x, b.y FROM r a, r b WHERE a.x <=> b.x",
    "SELECT a.x FROM r a, r b WHERE a.x <=> b.x",
    "SELECT a.x, COUNT(*) AS n, SUM(b.y) AS s FROM r a, s b WHERE a.x <=> b.x GROUP BY a.x",
    "SELECT COUNT(*) AS n FROM r a, r b WHERE a.x <=> b.x",
    "SELECT DISTINCT r.y FROM r, s WHERE r.x <=> s.x AND r.x <=> s.y",
    "SELECT r.y, s.y AS z FROM r, s WHERE r.x + 1 <=> s.x",
    "SELECT x, y FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.x <=> r.x)",
    "SELECT x, y FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.x <=> r.x AND s.y > 1)",
    "SELECT x, y FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.x <=> r.x AND s.y = r.x)",
    "SELECT x, y FROM r WHERE y IN (SELECT s.y FROM s WHERE s.x <=> r.x)",
    "SELECT x, y FROM r WHERE y NOT IN (SELECT s.y FROM s WHERE s.x <=> r.x)",
    "SELECT r.x, r.y, s.x AS sx, s.y AS sy FROM r LEFT JOIN s ON r.x <=> s.x",
    "SELECT r.x, s.y, t.y AS z FROM r LEFT JOIN s ON r.x = s.x LEFT JOIN t ON s.y <=> t.y",
    "SELECT r.x, s.y, t.y AS z FROM r LEFT JOIN s ON r.x <=> s.x LEFT JOIN t ON coalesce(s.y, 1) = t.y",
    "SELECT r.x, COUNT(s.y) AS n FROM r LEFT JOIN s ON r.x <=> s.x GROUP BY r.x",
    "SELECT r.x, d.n FROM r JOIN (SELECT x, COUNT(*) AS n FROM s GROUP BY x) d ON r.x <=> d.x",
    "SELECT x, y FROM r LEFT SEMI JOIN s ON r.x <=> s.x",
    "SELECT x, y FROM r LEFT ANTI JOIN s ON r.x <=> s.x",
    "SELECT r.x, p.y FROM r JOIN p ON r.x <=> p.x JOIN s ON p.y <=> s.y",
]


def changed(db, total, view, table, rows, sign):
    names = [c.name for c in db.tables[table].columns]
    batch = [dict(zip(names, row, strict=True), _multiplicity=sign) for row in rows]
    total.add(db.apply({table: batch})["v"])
    total.check(view)


@pytest.mark.parametrize("sql", QUERIES)
def test_null_safe_joins(oracle, sql):
    plain = sql.replace("<=>", "IS NOT DISTINCT FROM").replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", sql)
        total = DeltaSum.of(view)
        for rows in (ROWS, ROWS[:3]):
            for table in "rst":
                changed(db, total, view, table, rows, 1)
                assert_view_equals(view, oracle.recompute(db, plain))
        changed(db, total, view, "p", [(0, 2), (1, None)], 1)
        assert_view_equals(view, oracle.recompute(db, plain))
        for table in "tsr":
            changed(db, total, view, table, ROWS[:4], -1)
            expected = oracle.recompute(db, plain)
            assert_view_equals(view, expected)
            assert_view_equals(db.create_view("late", sql, replace=True), expected)
        assert not any("is checked on every result" in w for w in view.plan.view.warnings), "`<=>` is an edge"


@pytest.mark.parametrize(("sql", "kept"), [(QUERIES[0], True), (QUERIES[3], False), (QUERIES[5], False)])
def test_where_nulls_are_kept(sql, kept):
    with ev.connect() as db:
        db.execute(DDL)
        (core,) = db.create_view("v", sql, on_warning="refuse").plan.plan.stages[:1]
        joined = {c.variable for c in core.atoms[0].columns} & {c.variable for c in core.atoms[1].columns}
        dropped = [c.not_null for atom in core.atoms[:2] for c in atom.columns if c.variable in joined]
        assert dropped == [not kept] * 2


def test_decimals_without_a_common_type():
    with ev.connect() as db:
        db.execute("CREATE TABLE w (x DECIMAL(38, 0)); CREATE TABLE n (x DECIMAL(38, 30))")
        view = db.create_view("v", "SELECT w.x, n.x AS nx FROM w JOIN n ON w.x <=> n.x")
        db.apply({"w": [(None,), (10**37,), (3,)], "n": [(None,), (Decimal("0.5"),), (Decimal(3),)]})
        assert sorted(view, key=str) == [(Decimal(3), Decimal(3)), (None, None)]
