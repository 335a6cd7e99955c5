"""Every aggregate function over shards: the rows of a group stand on several, and what they emit is merged."""

from collections import Counter
from random import Random

import everview as ev
import pytest
from everview.schema.datatype import BOOLEAN, DOUBLE, INT, STRING
from everview.schema.table import Column, Table
from everview.testing.oracle import meaning
from local_pipeline import LocalPipeline, add_up, batch_for

T = Table("t", (Column("g", INT), Column("x", INT), Column("d", DOUBLE), Column("s", STRING), Column("b", BOOLEAN)))
U = Table("u", (Column("g", INT), Column("y", INT)))
DDL = "CREATE TABLE t (g INT, x INT, d DOUBLE, s STRING, b BOOLEAN); CREATE TABLE u (g INT, y INT)"
CALLS = {
    "extrema": "MIN(t.x) AS a, MAX(t.d) AS b, MIN(t.s) AS c, MAX(t.b) AS e, COUNT(*) AS n",
    "conditions": "COUNT_IF(t.b) AS a, BOOL_AND(t.b) AS b, ANY(t.x > 2) AS c, MAX(t.s) FILTER (WHERE t.b) AS e",
    "distinct": "COUNT(*) AS n, COUNT(DISTINCT t.x) AS a, SUM(DISTINCT t.x) AS b, COUNT(DISTINCT t.s, t.b) AS c, MIN(DISTINCT t.s) AS e",
    "by": "MIN_BY(t.s, t.x) AS a, MAX_BY(t.x, t.d) AS b, MAX_BY(t.d, t.s) AS c",
    "moments": "VAR_POP(t.d) AS a, STDDEV(t.x) AS b, COVAR_SAMP(t.x, t.d) AS c, CORR(t.d, t.x) AS e, VAR_SAMP(DISTINCT t.x) AS f",
}
SHAPES = {
    "by a column": "SELECT t.x % 3 AS k, {} FROM t GROUP BY t.x % 3",
    "without groups": "SELECT {} FROM t",
    "over a join": "SELECT u.y, {} FROM t JOIN u ON t.g = u.g GROUP BY u.y HAVING COUNT(*) <> 2",
    "above groups": "SELECT q.n, MAX(q.a) AS m, COUNT(DISTINCT q.k) AS k FROM (SELECT t.g AS k, COUNT(*) AS n, MIN(t.x) AS a FROM t GROUP BY t.g) q "
    "GROUP BY q.n",
}


def row(table, rng):
    if table is U:
        return (rng.choice((None, 1, 2, 3)), rng.choice((None, 1, 2)))
    d = rng.choice((None, 1e9 + rng.random(), -rng.random(), 0.1, 0.1))
    return (
        rng.choice((None, 1, 2, 3)),
        rng.choice((None, 0, 1, 2, 3, 4)),
        d,
        rng.choice((None, "a", "b", "")),
        rng.choice((None, True, False)),
    )


@pytest.mark.seeds(2)
@pytest.mark.parametrize("shards", [2, 4])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("calls", CALLS)
def test_it_is_the_same_as_without_shards(seed, shape, calls, shards):
    rng = Random(f"{seed} {shape} {calls} {shards}")
    sql = SHAPES[shape].format(CALLS[calls])
    pipeline = LocalPipeline(sql, [T, U], shards, seed=seed)
    read = {name.lower() for name in pipeline.tables} & {s.table.name for s in pipeline.pipeline.sources}
    total, held = Counter(), {"t": [], "u": []}
    with ev.connect() as db:
        db.execute(DDL)
        view = db.create_view("v", sql)
        for last in (False, False, False, True):
            changes = {}
            for table in (T, U):
                rows = [(*r, -1) for r in held[table.name] if last or rng.random() < 0.4]
                for r in rows:
                    held[table.name].remove(r[:-1])
                new = [row(table, rng) for _ in range(0 if last else rng.randint(0, 8))]
                held[table.name] += new
                changes[table.name] = batch_for(table, [*rows, *((*r, 1) for r in new)])
            db.apply(changes)
            add_up(total, pipeline.step({name: batch for name, batch in changes.items() if name in read}))
            expected = Counter(meaning(tuple(r.values())) for r in view.to_arrow().to_pylist())
            assert Counter({meaning(r): n for r, n in total.items()}) == expected
