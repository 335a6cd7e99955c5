"""Written queries with subqueries, outer and lateral joins, under random changes, against DuckDB; and scalar subqueries of two rows."""

from random import Random

import everview as ev
import pytest
from everview.testing.asserts import DeltaSum, assert_view_equals
from everview.testing.sql_blocks import TABLES, VALUES

DDL = ";\n".join(f"CREATE TABLE {name} ({', '.join(f'{c} INT' for c in columns)})" for name, columns in TABLES.items())

QUERIES = """
SELECT a, b FROM r WHERE a IN (SELECT a FROM u) OR b = 1
SELECT a, b FROM r WHERE a NOT IN (SELECT a FROM u) OR b = 1
SELECT a, EXISTS (SELECT 1 FROM s WHERE s.a = r.a) AS e FROM r
SELECT a, a IN (SELECT b FROM s WHERE s.c = r.b) AS e FROM r
SELECT a, a NOT IN (SELECT b FROM s) AS e FROM r
SELECT a, (a, b) IN (SELECT a, b FROM s) AS x FROM r
SELECT a FROM r WHERE (a, b) NOT IN (SELECT a, b FROM s)
SELECT a FROM r WHERE a > ANY (SELECT b FROM s)
SELECT a FROM r WHERE a > ALL (SELECT b FROM s WHERE s.a = r.b)
SELECT a FROM r WHERE a = ALL (SELECT b FROM s)
SELECT a, a >= ANY (SELECT b FROM s) AS x, a <= ALL (SELECT a FROM u) AS y FROM r
SELECT a, (SELECT COUNT(*) FROM s WHERE s.a = r.a) AS n FROM r
SELECT a, (SELECT SUM(s.b) + COUNT(*) FROM s WHERE s.a > r.a) AS n FROM r
SELECT a, (SELECT COUNT(*) + r.b FROM s WHERE s.a = r.a HAVING COUNT(*) > 1) AS n FROM r
SELECT a, (SELECT COUNT(DISTINCT b) FROM s WHERE s.a > r.a) AS n FROM r
SELECT a, (SELECT COUNT(*) FILTER (WHERE c > 1) FROM s WHERE s.a = r.a) AS m FROM r
SELECT a, (SELECT MAX(s.b) FROM s WHERE s.a < r.a) AS m FROM r
SELECT a, (SELECT DISTINCT 1 FROM s WHERE s.a = r.a) AS n FROM r
SELECT a, (SELECT s.a FROM s WHERE s.a = r.a GROUP BY s.a) AS n FROM r
SELECT a, (SELECT s.b FROM s WHERE s.a = r.a ORDER BY s.b NULLS FIRST LIMIT 1) AS n FROM r
SELECT a, (SELECT s.b FROM s WHERE s.a < r.a ORDER BY s.b DESC NULLS LAST LIMIT 1) AS n FROM r
SELECT a FROM r WHERE b > (SELECT AVG(c) FROM s WHERE s.a = r.a)
SELECT a FROM r WHERE b < (SELECT SUM(c) FROM s)
SELECT a FROM r WHERE b = (SELECT MAX(a) FROM u)
SELECT a, b FROM r x WHERE b = (SELECT MIN(b) FROM r y WHERE y.a = x.a)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a < r.a)
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a < r.a AND s.b = r.b)
SELECT a FROM r WHERE EXISTS (SELECT SUM(b) FROM s WHERE s.a = r.a HAVING COUNT(*) > 1)
SELECT a FROM r WHERE EXISTS (SELECT * FROM (SELECT b, COUNT(*) AS n FROM s WHERE s.a = r.a GROUP BY b) t WHERE t.n > 1)
SELECT a FROM r WHERE b IN (SELECT t.n FROM (SELECT COUNT(*) AS n FROM s WHERE s.a = r.a) t)
SELECT a FROM r WHERE a IN (SELECT a FROM u UNION ALL SELECT b FROM s WHERE s.a = r.b)
SELECT a FROM r WHERE a IN (SELECT a FROM u EXCEPT SELECT b FROM s WHERE s.a = r.b)
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND EXISTS (SELECT 1 FROM u WHERE u.a = r.b AND u.a = s.b))
SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND NOT EXISTS (SELECT 1 FROM u WHERE u.a = r.b))
SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM u WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b = u.a))
SELECT a FROM r WHERE CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.a = r.a) THEN b > 1 ELSE b < 2 END
SELECT a FROM r ORDER BY (SELECT COUNT(*) FROM u WHERE u.a = r.a), a NULLS FIRST, b NULLS FIRST LIMIT 2
SELECT r.a, COUNT(*) AS n FROM r GROUP BY r.a HAVING COUNT(*) > (SELECT COUNT(*) FROM u WHERE u.a = r.a)
SELECT r.a, (SELECT COUNT(*) FROM u WHERE u.a = r.a) AS n FROM r GROUP BY r.a
SELECT (SELECT COUNT(*) FROM u WHERE u.a = r.a) AS k, COUNT(*) AS n FROM r GROUP BY k
SELECT SUM((SELECT COUNT(*) FROM u WHERE u.a = r.a)) AS n FROM r
SELECT r.a, s.b FROM r JOIN s ON r.a = s.a AND r.b IN (SELECT a FROM u)
SELECT r.a, s.b FROM r LEFT JOIN s ON r.a = s.a AND s.b IN (SELECT a FROM u)
SELECT r.a, s.b FROM r RIGHT JOIN s ON r.a = s.a
SELECT r.a, s.b FROM r FULL JOIN s ON r.a = s.a AND s.b > 1
SELECT r.a, s.b, u.a AS c FROM r FULL JOIN s ON r.a = s.a FULL JOIN u ON u.a = s.b
SELECT a, r.b FROM r FULL JOIN u USING (a)
SELECT a, r.b, s.c FROM r FULL JOIN u USING (a) FULL JOIN s USING (a)
SELECT a, r.b FROM r RIGHT JOIN u USING (a)
SELECT r.a, s.b FROM r LEFT JOIN s ON r.a < s.a
SELECT r.a, s.b FROM r LEFT JOIN s ON r.a = s.a AND r.b <> s.b
SELECT r.a, s.b FROM r FULL JOIN s ON r.a > s.a
SELECT r.a FROM r LEFT JOIN s ON r.a = s.a WHERE s.b > 1
SELECT r.a, t.n FROM r, LATERAL (SELECT COUNT(*) AS n FROM s WHERE s.a = r.a) t
SELECT r.a, t.x FROM r, LATERAL (SELECT s.b + r.b AS x FROM s WHERE s.a = r.a) t
SELECT r.a, t.x FROM r LEFT JOIN LATERAL (SELECT s.b AS x FROM s WHERE s.a = r.a AND s.c > r.b) t ON TRUE
SELECT r.a, t.x FROM r LEFT JOIN LATERAL (SELECT s.b AS x, COUNT(*) AS n FROM s WHERE s.a = r.a GROUP BY s.b) t ON t.n > 1
SELECT r.a, t.b FROM r, LATERAL (SELECT b FROM s WHERE s.a = r.a ORDER BY b NULLS FIRST, c NULLS FIRST LIMIT 2) t
SELECT a, (SELECT COUNT(*) FROM s LEFT JOIN u ON s.b = u.a WHERE s.a = r.a) AS n FROM r
SELECT a, (SELECT COUNT(*) FROM s LEFT JOIN u ON s.b = u.a AND u.a = r.b) AS n FROM r
SELECT a, (SELECT COUNT(*) FROM s FULL JOIN u ON s.b = u.a WHERE s.a = r.a) AS n FROM r
"""


def batches(rng):
    held = {table: [] for table in TABLES}
    for _ in range(7):
        batch = {}
        for table, columns in TABLES.items():
            for _ in range(rng.randint(0, 3)):
                if held[table] and rng.random() < 0.45:
                    row, count = held[table].pop(rng.randrange(len(held[table]))), -1
                else:
                    row, count = tuple(rng.choice(VALUES) for _ in columns), 1
                    held[table].append(row)
                batch.setdefault(table, []).append(dict(zip(columns, row, strict=True), _multiplicity=count))
        yield batch


@pytest.mark.parametrize("sql", QUERIES.strip().splitlines())
@pytest.mark.seeds(2)
def test_written_queries(sql, seed, oracle):
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", sql)
        total = DeltaSum.of(view)
        for batch in batches(Random(seed)):
            total.add(db.apply(batch)["v"])
            total.check(view)
            assert_view_equals(view, oracle.recompute(db, sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, (SELECT b FROM s WHERE s.a = r.a) AS x FROM r",
        "SELECT a FROM r WHERE b = (SELECT b FROM s WHERE s.a = r.a)",
        "SELECT a FROM r WHERE b = (SELECT b FROM s)",
        "SELECT a, (SELECT s.b FROM s WHERE s.a >= r.a AND s.c = 1) AS x FROM r",
    ],
)
def test_a_scalar_subquery_of_two_rows_refuses_the_batch(sql, oracle):
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", sql)
        total = DeltaSum.of(view)
        total.add(db.apply({"r": [(1, 2), (2, 3)], "s": [(1, 2, 1)]})["v"])
        before = view.to_arrow().to_pylist()
        for rows in ([(1, 5, 1)], [(1, 2, 1)]):
            with pytest.raises(ev.ChangeError) as caught:
                db.apply({"s": rows, "u": [(1,)]})
            assert caught.value.code == "SCALAR_SUBQUERY_TOO_MANY_ROWS"
            assert view.to_arrow().to_pylist() == before
            assert db.table_rows("u").num_rows == 0
        replaced = [{"a": 1, "b": 2, "c": 1, "_multiplicity": -1}, {"a": 1, "b": 7, "c": 1, "_multiplicity": 1}]
        total.add(db.apply({"s": replaced})["v"])
        total.check(view)
        assert_view_equals(view, oracle.recompute(db, sql))
