"""Calls of aggregates: FILTER, DISTINCT, GROUP BY ALL, HAVING, and functions that are others in disguise."""

import everview as ev
import pytest
from everview.testing.asserts import DeltaSum, assert_view_equals

DDL = "CREATE TABLE t (g INT, x INT, y INT, b BOOLEAN); CREATE TABLE u (g INT, z INT)"
T = [
    (1, 1, 1, True),
    (1, 1, 2, None),
    (1, 2, 2, False),
    (1, None, 3, True),
    (2, 5, None, True),
    (2, 5, 5, True),
    (None, 4, 4, False),
    (None, 4, None, False),
    (3, None, None, None),
]
U = [(1, 7), (1, 8), (2, 7), (None, 7), (4, 1)]

QUERIES = {
    "filter": "SELECT g, COUNT(*) FILTER (WHERE x > 1) AS n, SUM(x) FILTER (WHERE b) AS s, MAX(x) FILTER (WHERE y > 1) AS m "
    "FROM t GROUP BY g",
    "filter without groups": "SELECT COUNT(*) FILTER (WHERE b) AS n, AVG(x) FILTER (WHERE x < 0) AS a FROM t",
    "filter over a join": "SELECT u.z, COUNT(t.x) FILTER (WHERE u.g < t.y) AS n FROM t JOIN u ON t.g = u.g GROUP BY u.z",
    "conditions": "SELECT g, COUNT_IF(x > 1) AS n, BOOL_AND(b) AS a, EVERY(x > 0) AS e, BOOL_OR(b) AS o, ANY(x > 4) AS y, SOME(b) AS s "
    "FROM t GROUP BY g",
    "conditions without groups": "SELECT COUNT_IF(b) AS n, BOOL_AND(b) AS a, BOOL_OR(b) AS o, BOOL_OR(b) FILTER (WHERE x > 9) AS f FROM t",
    "distinct": "SELECT g, COUNT(DISTINCT x) AS n FROM t GROUP BY g",
    "distinct without groups": "SELECT COUNT(DISTINCT x) AS n, SUM(DISTINCT x) AS s, AVG(DISTINCT x) AS a FROM t",
    "several distinct": "SELECT g, COUNT(*) AS n, COUNT(DISTINCT x) AS x, SUM(DISTINCT y) AS y, MIN(DISTINCT y) AS m FROM t GROUP BY g",
    "several without groups": "SELECT COUNT(*) AS n, COUNT(DISTINCT x) AS x, SUM(DISTINCT y) + 1 AS y, MAX(DISTINCT y) AS m FROM t",
    "distinct over a join": "SELECT u.z, COUNT(DISTINCT t.x) AS n, COUNT(DISTINCT u.g) AS k FROM t JOIN u ON t.g = u.g GROUP BY u.z",
    "distinct rows": "SELECT g, COUNT(DISTINCT x, y) AS n, COUNT(x, y) AS p FROM t GROUP BY g",
    "distinct and filter": "SELECT g, COUNT(DISTINCT x) FILTER (WHERE y > 1) AS n, COUNT(DISTINCT x) AS m FROM t GROUP BY g",
    "distinct in having": "SELECT g FROM t GROUP BY g HAVING COUNT(DISTINCT x) > 1 AND COUNT(*) > 1 ORDER BY COUNT(DISTINCT y) DESC LIMIT 5",
    "distinct above and below": "SELECT n, COUNT(DISTINCT g) AS k FROM (SELECT g, COUNT(DISTINCT x) AS n FROM t GROUP BY g) q GROUP BY n",
    "group by all": "SELECT g, x + 1 AS k, COUNT(*) AS n, MAX(y) + COUNT(*) AS m FROM t GROUP BY ALL",
    "group by all without aggregates": "SELECT g, y FROM t GROUP BY ALL",
    "group by all of aggregates": "SELECT COUNT(*) AS n FROM t GROUP BY ALL",
    "having without groups": "SELECT MAX(x) AS m FROM t HAVING COUNT(DISTINCT g) > 1",
    "having on a condition": "SELECT g FROM t GROUP BY g HAVING BOOL_OR(b) AND NOT BOOL_AND(b)",
    "variances": "SELECT g, VAR_POP(x) AS a, VAR_SAMP(x) AS b, STDDEV_POP(y) AS c, STDDEV(x + y) AS d, STD(x) AS e, VARIANCE(y) AS f "
    "FROM t GROUP BY g",
    "variances without groups": "SELECT VAR_SAMP(x) AS a, STDDEV_POP(DISTINCT x) AS b, VAR_POP(x) FILTER (WHERE b) AS c FROM t",
    "covariances": "SELECT g, COVAR_POP(x, y) AS a, COVAR_SAMP(x, y) AS b FROM t GROUP BY g",
    "covariances over a join": "SELECT ROUND(COVAR_POP(t.x, u.z), 9) AS a, STDDEV_SAMP(t.x * u.z) AS b FROM t JOIN u ON t.g = u.g",
    "correlation": "SELECT CORR(x, y) AS a, CORR(x, 1) AS c FROM t",
    "by another": "SELECT g, MIN_BY(x, y) AS a, MAX_BY(x, y) AS b, MAX_BY(y, x) FILTER (WHERE b) AS c FROM t GROUP BY g",
    "by another without groups": "SELECT MIN_BY(b, y) AS a, MAX_BY(t.x, u.z) AS b FROM t JOIN u ON t.g = u.g",
    "any value": "SELECT g, ANY_VALUE(x) AS x FROM t GROUP BY g",
}
OTHERWISE = {
    "variances": "SELECT g, VAR_POP(x) AS a, VAR_SAMP(x) AS b, STDDEV_POP(y) AS c, STDDEV(x + y) AS d, STDDEV(x) AS e, VARIANCE(y) AS f "
    "FROM t GROUP BY g",
    "correlation": "SELECT CASE WHEN NOT isnan(CORR(x, y)) THEN CORR(x, y) END AS a, CAST(NULL AS DOUBLE) AS c FROM t",
    "by another": "SELECT g, (SELECT x FROM t AS o WHERE o.g IS NOT DISTINCT FROM t.g AND y IS NOT NULL ORDER BY y, x LIMIT 1) AS a, "
    "(SELECT x FROM t AS o WHERE o.g IS NOT DISTINCT FROM t.g AND y IS NOT NULL ORDER BY y DESC, x LIMIT 1) AS b, "
    "(SELECT y FROM t AS o WHERE o.g IS NOT DISTINCT FROM t.g AND x IS NOT NULL AND b ORDER BY x DESC, y LIMIT 1) AS c FROM t GROUP BY g",
    "by another without groups": "SELECT (SELECT b FROM t JOIN u ON t.g = u.g WHERE y IS NOT NULL ORDER BY y, b LIMIT 1) AS a, "
    "(SELECT x FROM t JOIN u ON t.g = u.g WHERE z IS NOT NULL ORDER BY z DESC, x LIMIT 1) AS b",
    "distinct rows": "SELECT g, COUNT(DISTINCT CASE WHEN x IS NOT NULL AND y IS NOT NULL THEN (x, y) END) AS n, "
    "COUNT(CASE WHEN x IS NOT NULL THEN y END) AS p FROM t GROUP BY g",
    "conditions without groups": "SELECT COUNT(CASE WHEN b THEN 1 END) AS n, BOOL_AND(b) AS a, BOOL_OR(b) AS o, "
    "BOOL_OR(b) FILTER (WHERE x > 9) AS f FROM t",
    "conditions": "SELECT g, COUNT(*) FILTER (WHERE x > 1) AS n, BOOL_AND(b) AS a, BOOL_AND(x > 0) AS e, BOOL_OR(b) AS o, BOOL_OR(x > 4) AS y, BOOL_OR(b) AS s "
    "FROM t GROUP BY g",
    "any value": "SELECT g, MIN(x) AS x FROM t GROUP BY g",
}
"""How DuckDB is asked where it speaks otherwise."""


@pytest.fixture
def db():
    with ev.connect() as session:
        yield session


@pytest.mark.parametrize("name", QUERIES)
def test_it_is_recomputation_after_every_batch(db, oracle, name):
    sql = QUERIES[name]
    db.execute(DDL)
    view = db.create_view("v", sql)
    total = DeltaSum.of(view)
    batches = [({"t": T[:4], "u": U[:2]}, 1), ({"t": T[4:], "u": U[2:]}, 1), ({"t": T[1:6:2], "u": U[:1]}, -1)]
    batches += [({"t": T[:1] * 2}, 1), ({"t": [*T[:1], *T[0:9:2]], "u": U[1:]}, -1), ({"t": T[:1] + T[7:8]}, -1)]
    for changes, sign in batches:
        names = {"t": "gxyb", "u": "gz"}
        rows = {
            table: [dict(zip(names[table], row, strict=True), _multiplicity=sign) for row in given]
            for table, given in changes.items()
        }
        total.add(db.apply(rows)["v"])
        total.check(view)
        expected = oracle.recompute(db, OTHERWISE.get(name, sql))
        assert_view_equals(view, expected)
        assert_view_equals(db.create_view("late", sql, replace=True), expected)
    assert db.table_rows("t").num_rows == 0


def test_rows_that_a_filter_leaves_out_are_not_evaluated(db):
    db.execute(DDL)
    view = db.create_view("v", "SELECT SUM(10 / x) FILTER (WHERE x <> 0) AS s FROM t")
    db.apply({"t": [(1, 0, 1, True), (1, 5, 1, True)]})
    assert view.to_arrow().to_pylist() == [{"s": 2.0}]


def test_what_group_by_all_cannot_mean(db):
    db.execute(DDL)
    with pytest.raises(ev.SchemaError) as refusal:
        db.create_view("v", "SELECT g, x + COUNT(*) AS n FROM t GROUP BY ALL")
    assert refusal.value.code == "NOT_GROUPED"
