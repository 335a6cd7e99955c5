"""Queries written by hand, with constructs that the random ones lack, under random changes."""

import pytest
from everview.schema.datatype import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING
from everview.schema.table import Column, Table
from everview.testing.oracle import Sql, average, sql, to_duckdb
from everview.testing.replay import Replay
from everview.testing.strategies import Scenario
from everview.testing.streams import streams
from everview.testing.values import LONG, MONEY
from hypothesis import given, settings
from hypothesis import strategies as st

TABLES = (
    Table(
        "r",
        (Column("a", INT), Column("b", INT), Column("c", INT, nullable=False), Column("p", MONEY), Column("f", DOUBLE)),
    ),
    Table(
        "s",
        (
            Column("b", BIGINT),
            Column("c", INT),
            Column("d", INT, nullable=False),
            Column("q", MONEY),
            Column("g", DOUBLE),
        ),
    ),
    Table("w", (Column("d", INT, nullable=False), Column("e", INT), Column("a", BIGINT)), ("d",)),
    Table("x", (Column("k", STRING), Column("t", DATE), Column("z", BOOLEAN), Column("l", LONG))),
)
QUERIES = """
SELECT b, r.a, s.d FROM r JOIN s USING (b)
SELECT b, c, COUNT(*) AS n FROM r JOIN s USING (b, c) GROUP BY b, c
SELECT r.a, r.b FROM r JOIN s USING (b) JOIN w ON w.d = s.d
SELECT r.a, s.g FROM r JOIN s ON r.f = s.g
SELECT r.a, s.g, r.f FROM r JOIN s ON r.a = s.g
SELECT DISTINCT r.f FROM r JOIN s ON r.f = s.g
SELECT r.f, COUNT(*) AS n, SUM(s.g) AS g FROM r JOIN s ON r.b = s.b GROUP BY r.f
SELECT r.p, s.q FROM r JOIN s ON r.p = s.q
SELECT r.a, s.q FROM r JOIN s ON r.a = s.q
SELECT r.a, s.q, w.e FROM r JOIN s ON r.a = s.q JOIN w ON w.a = r.a
SELECT r.a, s.c AS sc FROM r JOIN s ON r.a = s.b AND r.b = s.b
SELECT r.a, s.b AS sb, w.a AS wa FROM r, s, w WHERE r.a = s.b AND s.b = w.a AND r.a = w.d
SELECT r.a, s.b FROM r, s WHERE r.b + 1 = s.b * 1 AND r.a = s.d
SELECT r.a, y.a AS a2 FROM r, r y WHERE r.b = y.b AND r.c = y.c
SELECT r.a, y.a AS a2 FROM r, r y WHERE r.a = y.b
SELECT r.a, COUNT(*) AS n, SUM(y.c) AS m FROM r, r y WHERE r.a = y.a GROUP BY r.a
SELECT r.a FROM r, r y, r z WHERE r.a = y.a AND y.a = z.a
SELECT COUNT(*) AS n, SUM(r.c) AS m FROM r, r y WHERE r.a = y.a AND r.b = y.b
SELECT r.a, SUM(r.c) AS m, SUM(y.c) AS o, SUM(CAST(r.c AS BIGINT) * y.c) AS q FROM r, r y WHERE r.a = y.a GROUP BY r.a
SELECT SUM(CAST(r.a AS BIGINT) * y.a) AS q, COUNT(r.b) AS n FROM r, r y WHERE r.a = y.a
SELECT 'k' AS k, COUNT(*) AS n FROM r WHERE a > 2 GROUP BY 'k'
SELECT 1 AS one FROM r, s WHERE r.b = s.b AND r.a = 1 AND s.d BETWEEN 0 AND 2
SELECT DISTINCT 1 AS one FROM r, s WHERE r.b = s.b
SELECT r.a AS x, r.a AS y, r.a + 0 AS z FROM r WHERE NOT (r.b = 1 OR r.c = 2)
SELECT SUM(r.a) AS s1, SUM(r.a) + 1 AS s2 FROM r HAVING COUNT(*) > 0
SELECT COUNT(*) AS n FROM r HAVING COUNT(*) > 3
SELECT DISTINCT COUNT(*) AS n FROM r GROUP BY a
SELECT DISTINCT SUM(r.c) AS n, COUNT(s.c) AS m FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.d
SELECT a, b, SUM(c) + COUNT(*) * 2 AS z FROM r GROUP BY a, b HAVING SUM(c) > 1 AND b IS NOT NULL
SELECT r.a, r.b FROM r GROUP BY r.a, r.b
SELECT r.a FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.d
SELECT CASE WHEN a > 1 THEN 'x' WHEN a IS NULL THEN 'n' ELSE 'y' END AS k, SUM(CASE WHEN b IN (1, 2) THEN c ELSE 0 END) AS z FROM r GROUP BY 1
SELECT z, d FROM (SELECT a + 1 AS z, b FROM r WHERE c > 0) k JOIN (SELECT b, d FROM s WHERE d < 3) l ON k.b = l.b
WITH k AS (SELECT a, b FROM r), l AS (SELECT k.a, s.d FROM k JOIN s ON k.b = s.b) SELECT l.a, m.d FROM l JOIN l m ON l.d = m.d
SELECT x.k, x.t, x.z, x.l, y.l AS m FROM x JOIN x y ON x.k = y.k AND x.t = y.t AND x.z = y.z
SELECT DISTINCT UPPER(x.k) AS k, YEAR(y.t) AS t FROM x JOIN x y ON x.z = y.z
SELECT x.l, COUNT(*) AS n, SUM(y.l) AS s FROM x JOIN x y ON x.l = y.l GROUP BY x.l
SELECT x.k, SUM(s.g) AS g, SUM(r.f * s.g) AS fg, AVG(r.f) AS f FROM r JOIN s ON r.b = s.b JOIN x ON x.l = r.p GROUP BY x.k
SELECT COUNT(*) AS n, COUNT(r.f) AS f, SUM(r.f) AS sf, AVG(s.g) AS g FROM r, s
SELECT r.a, COUNT(r.a + s.c) AS n, SUM(r.p + s.q) AS t, SUM(r.a * s.c) AS u FROM r JOIN s ON r.b = s.b GROUP BY r.a
SELECT w.d, w.e, r.c, s.d AS sd FROM w JOIN r ON w.d = r.a JOIN s ON w.e = s.b
SELECT w.e, COUNT(*) AS n, SUM(w.a) AS m FROM w JOIN r ON w.d = r.a JOIN s ON w.d = s.d GROUP BY w.e
SELECT DISTINCT r.c, w.e FROM w JOIN r ON w.d = r.a JOIN s ON w.d = s.d
SELECT r.a, s.d, w.e FROM r CROSS JOIN s CROSS JOIN w
SELECT r.a, COUNT(*) AS n, SUM(w.e) AS e FROM r CROSS JOIN s CROSS JOIN w GROUP BY r.a
SELECT r.a % 2 AS k, COUNT(*) AS n FROM r JOIN s ON r.a % 2 = s.b % 2 GROUP BY r.a % 2
""".strip().splitlines()
AVERAGE = average(Sql("r.p", "r.p", MONEY))
PAIRS = [Sql(text, to_duckdb(text)) for text in QUERIES] + [
    sql("SELECT r.a, {} AS m FROM r JOIN s ON r.b = s.b GROUP BY r.a", AVERAGE),
    sql("SELECT {} AS m, {} AS n FROM r, x", AVERAGE, average(Sql("x.l", "x.l", LONG))),
]

FEWER = settings(max_examples=max(1, settings().max_examples // 2))


@pytest.mark.parametrize("query", PAIRS, ids=repr)
@FEWER
@given(data=st.data())
def test_written_query(query, oracle, data):
    tables = tuple(t for t in TABLES if f" {t.name} " in f"{query.spark} ".replace(",", " ").replace(")", " "))
    batches = data.draw(streams(tables, limit=12 if len(tables) < 3 else 7, max_batches=3))
    scenario = Scenario(
        tables,
        query,
        tuple(batches),
        data.draw(st.integers(0, len(batches))),
        data.draw(st.sampled_from(["at once", "by table", "by row"])),
    )
    run = Replay(scenario, oracle)
    try:
        view = run.run()
        assert view.metrics().state_rows <= ("GROUP BY" not in query.spark)
    finally:
        run.close()
