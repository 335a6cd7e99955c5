"""Views of several blocks over shards: generated ones hold what a session holds, and fixed ones have the fragments they should."""

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from local_pipeline import batch_for
from watching import MODES, Comparison, Watched

from everview.layout.layout import lay_out
from everview.lower import lower_query
from everview.schema.datatype import BIGINT, INT
from everview.schema.table import Column, Table
from everview.shards.pipeline import hop_name
from everview.testing.sql_blocks import TABLES, blocks

PLAIN = [Table(name, tuple(Column(c, INT) for c in columns)) for name, columns in TABLES.items()]


@settings(max_examples=25)
@given(case=blocks(), data=st.data())
def test_shards_hold_what_a_session_holds(case, data):
    seed = data.draw(st.integers(0, 2**16))
    losses = data.draw(st.sampled_from([0.0, 0.5]))
    parts = data.draw(st.integers(1, 3))
    with Comparison(case.sql, PLAIN, seed=seed, shuffled=True) as found:
        layout = found.pipelines[7].run.layout
        event(f"{len(layout.fragments)} fragments")
        for batch in case.batches:
            found.step(list(batch), losses=losses, parts=parts, change_types=bool(seed % 2))
        found.empty()


ORDERS = Table("o", (Column("ok", BIGINT, False), Column("ck", BIGINT), Column("p", BIGINT)), ("ok",))
LINES = Table("l", (Column("ok", BIGINT), Column("q", BIGINT), Column("s", BIGINT)))
CUSTOMERS = Table("c", (Column("ck", BIGINT, False), Column("g", BIGINT)), ("ck",))
SHOP = {t.name: t for t in (ORDERS, LINES, CUSTOMERS)}
LARGE = "SELECT ok FROM l GROUP BY ok HAVING SUM(q) > 3"

FRAGMENTS = {  # with several shards
    "groups joined on their key": (
        "SELECT o.ok, d.n FROM o JOIN (SELECT ok, COUNT(*) AS n FROM l GROUP BY ok) d ON o.ok = d.ok",
        1,
    ),
    "IN a grouped query": (
        f"SELECT c.g, o.ok, SUM(l.q) AS q FROM c, o, l WHERE o.ok IN ({LARGE}) AND c.ck = o.ck AND o.ok = l.ok GROUP BY c.g, o.ok",
        1,
    ),
    "EXISTS": (
        "SELECT o.p, COUNT(*) AS n FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l.ok = o.ok AND l.s > 1) GROUP BY o.p",
        2,
    ),
    "NOT EXISTS": ("SELECT o.ok FROM o WHERE NOT EXISTS (SELECT 1 FROM l WHERE l.ok = o.ok)", 1),
    "NOT IN": ("SELECT o.ok FROM o WHERE o.p NOT IN (SELECT q FROM l)", 1),
    "LEFT JOIN": ("SELECT c.ck, COUNT(o.ok) AS n FROM c LEFT JOIN o ON c.ck = o.ck GROUP BY c.ck", 1),
    "groups of groups": (
        "SELECT n, COUNT(*) AS customers FROM (SELECT c.ck, COUNT(o.ok) AS n FROM c LEFT JOIN o ON c.ck = o.ck GROUP BY c.ck) GROUP BY n",
        2,
    ),
    "a group of all groups": ("SELECT SUM(n) AS n, COUNT(*) AS g FROM (SELECT g, COUNT(*) AS n FROM c GROUP BY g)", 2),
    "groups joined on what they count": (
        "SELECT d.n, c.g FROM (SELECT p, COUNT(*) AS n FROM o JOIN l ON o.ok = l.ok GROUP BY p) d JOIN c ON c.ck = d.n",
        3,
    ),
    "a total beside every row": (
        "WITH t AS (SELECT COUNT(*) AS n FROM o) SELECT c.ck, t.n FROM c CROSS JOIN t",
        3,
    ),
    "a union": ("SELECT ck AS k FROM c UNION ALL SELECT ck AS k FROM o", 1),
    "a union with a total": ("SELECT ck AS k FROM c UNION ALL SELECT COUNT(*) AS k FROM o", 2),
    "the first rows": ("SELECT ck, g FROM c ORDER BY g DESC, ck LIMIT 2 OFFSET 1", 2),
    "the first groups": ("SELECT ok, SUM(q) AS q FROM l GROUP BY ok ORDER BY q DESC LIMIT 3", 2),
    "the orders of the first customers": (
        "SELECT o.ok, d.ck FROM o JOIN (SELECT ck FROM c ORDER BY g LIMIT 2) d ON o.ck = d.ck",
        3,
    ),
    "EXCEPT": ("SELECT ck FROM c EXCEPT SELECT ck FROM o", 1),
    "INTERSECT ALL": ("SELECT ck FROM c INTERSECT ALL SELECT ck FROM o", 1),
    "constants joined": ("SELECT o.ok, v.y FROM o JOIN (VALUES (1, 2), (3, 4), (1, 5)) v(x, y) ON o.ck = v.x", 1),
    "groups of constants joined": (
        "SELECT o.ok, v.n FROM o JOIN (SELECT x, COUNT(*) AS n FROM VALUES (1), (3), (1) AS w(x) GROUP BY x) v ON o.ck = v.x",
        1,
    ),
    "constants forbidden": ("SELECT ok FROM o WHERE ck NOT IN (SELECT x FROM VALUES (1), (3) AS w(x))", 1),
    "constants beside all rows": ("SELECT c.ck, v.x FROM c CROSS JOIN (VALUES (1), (3)) v(x)", 1),
    "constants that keep their rows": ("SELECT v.x, o.ok FROM (VALUES (1), (3)) v(x) LEFT JOIN o ON o.ck = v.x", 2),
    "groups joined with constants": (
        "SELECT d.ok, d.n, v.y FROM (SELECT ok, COUNT(*) AS n FROM l GROUP BY ok) d JOIN (VALUES (1, 2), (3, 4)) v(x, y) ON d.ok = v.x",
        1,
    ),
    "constants in a union": ("SELECT ck FROM c UNION ALL SELECT 7", 2),
    "the first of each group": ("SELECT ok, q FROM l QUALIFY row_number() OVER (PARTITION BY ok ORDER BY q) = 1", 2),
    "the first of groups by key": (
        "SELECT d.ok, o.p FROM (SELECT ok, q FROM l QUALIFY row_number() OVER (PARTITION BY ok ORDER BY q DESC) <= 2) d JOIN o ON o.ok = d.ok",
        2,
    ),
    "numbered rows": ("SELECT ck, ok, row_number() OVER (PARTITION BY ck ORDER BY p, ok) AS n FROM o", 2),
    "numbered groups": ("SELECT ok, row_number() OVER (ORDER BY SUM(q), ok) AS n FROM l GROUP BY ok", 2),
    "a CTE used twice": (
        "WITH d AS (SELECT ck, SUM(p) AS p FROM o GROUP BY ck) SELECT x.ck, y.p FROM d x JOIN d y ON x.ck = y.p",
        2,
    ),
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments(name):
    sql, expected = FRAGMENTS[name]
    assert len(lay_out(lower_query("v", sql, SHOP), SHOP, 4).fragments) == expected
    assert len(lay_out(lower_query("v", sql, SHOP), SHOP, 1).fragments) == 1


@pytest.mark.parametrize("name", FRAGMENTS)
def test_every_engine_hears_of_every_batch(name):
    """Also those of a fragment that has more of them than the one before."""
    run = Watched(FRAGMENTS[name][0], list(SHOP.values()), 7).run
    run.step({source.table.name: batch_for(source.table, []) for source in run.pipeline.sources})
    expected = {(hop_name(hop), n) for hop, found in enumerate(run.pipeline.hops) for n in range(found.engines)}
    assert {store for store in run.stores if store[0] != "normalise"} == expected


@pytest.mark.parametrize("name", FRAGMENTS)
@settings(max_examples=2)
@given(data=st.data())
def test_fixed_queries(name, data):
    """With tables with and without a key, which reach later fragments past the first."""
    small = st.one_of(st.none(), st.integers(0, 4))
    modes = {t: data.draw(st.sampled_from(MODES)) for t in "oc"}
    with Comparison(FRAGMENTS[name][0], list(SHOP.values()), seed=data.draw(st.integers(0, 99)), modes=modes) as found:
        for _ in range(3):
            known = {n: {row[0] for row in held} for n, held in found.held.items()}
            changes = [("l", tuple(data.draw(small) for _ in range(3)), 1) for _ in range(data.draw(st.integers(0, 6)))]
            for table, width in (("o", 3), ("c", 2)):
                for key in data.draw(st.sets(st.integers(0, 6), max_size=4)) - known[table]:
                    changes.append((table, (key, *(data.draw(small) for _ in range(width - 1))), 1))
            for table, held in found.held.items():
                changes += [(table, row, -1) for row in held.elements() if data.draw(st.integers(0, 3)) == 0]
            found.step(changes, losses=0.3)
        found.empty()
