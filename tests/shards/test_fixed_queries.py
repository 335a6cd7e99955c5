"""Queries written by hand over several numbers of shards, compared with a session after every batch."""

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import pytest
from local_pipeline import LocalPipeline, add_up, batch_for
from watching import MODES, SHARDS, Comparison, Watched

from everview.errors import ChangeError
from everview.schema.datatype import BIGINT, DATE, DOUBLE, INT, STRING, decimal, parse_type
from everview.schema.table import Column, Table

MONEY = decimal(12, 2)
TIMESTAMP = parse_type("timestamp")
CUSTOMER = Table("customer", (Column("ck", BIGINT, False), Column("name", STRING), Column("nation", STRING)), ("ck",))
ORDERS = Table(
    "orders",
    (Column("ok", BIGINT, False), Column("ck", BIGINT), Column("day", DATE), Column("at", TIMESTAMP)),
    ("ok",),
)
LINEITEM = Table(
    "lineitem",
    (
        Column("ok", BIGINT, False),
        Column("line", INT, False),
        Column("qty", INT),
        Column("price", MONEY),
        Column("weight", DOUBLE),
        Column("note", STRING),
    ),
    ("ok", "line"),
)
T = Table("t", (Column("g", INT), Column("x", BIGINT), Column("s", STRING)))
U = Table("u", (Column("g", BIGINT), Column("y", BIGINT), Column("p", MONEY), Column("f", DOUBLE)))

TPCH = {
    "join": "SELECT c.name, o.day, l.price FROM customer c, orders o, lineitem l WHERE c.ck = o.ck AND o.ok = l.ok",
    "keys in the output": "SELECT o.ok, l.line, c.name, l.note FROM customer c, orders o, lineitem l WHERE c.ck = o.ck AND o.ok = l.ok",
    "revenue by customer": "SELECT c.ck, c.name, SUM(l.price * l.qty) AS revenue, COUNT(*) AS n FROM customer c, orders o, lineitem l "
    "WHERE c.ck = o.ck AND o.ok = l.ok GROUP BY c.ck, c.name",
    "revenue by nation and year": "SELECT c.nation, YEAR(o.day) AS y, SUM(l.price) AS p, AVG(l.price) AS ap, AVG(l.qty) AS aq, AVG(l.weight) AS aw "
    "FROM customer c, orders o, lineitem l WHERE c.ck = o.ck AND o.ok = l.ok GROUP BY c.nation, YEAR(o.day)",
    "revenue": "SELECT SUM(l.price) AS p, COUNT(l.note) AS n FROM lineitem l",
    "having": "SELECT o.ck, COUNT(*) AS n FROM orders o, lineitem l WHERE o.ok = l.ok GROUP BY o.ck HAVING SUM(l.qty) > 3",
    "distinct": "SELECT DISTINCT c.nation, o.day FROM customer c, orders o WHERE c.ck = o.ck AND c.nation <> 'none'",
    "orders of the same moment": "SELECT a.ok, b.ok AS other, a.at FROM orders a, orders b WHERE a.at = b.at",
    "sold with each other": "SELECT a.note, b.note AS other, COUNT(*) AS n FROM lineitem a, lineitem b WHERE a.ok = b.ok AND a.qty > 1 GROUP BY a.note, b.note",
    "late orders": "SELECT o.day, COUNT(*) AS n, MONTH(o.day) AS m FROM orders o JOIN customer c ON o.ck = c.ck "
    "WHERE o.day > DATE '2024-01-15' GROUP BY o.day",
}


def tpch_row(table, rng):
    day = date(2024, rng.randint(1, 3), rng.randint(1, 28))
    if table is CUSTOMER:
        return (rng.randint(1, 6), rng.choice(["ann", "bob", None]), rng.choice(["se", "de", "none", None]))
    if table is ORDERS:
        moment = datetime(2024, 1, 1, rng.randint(0, 3), 0, 0, rng.randint(0, 1), tzinfo=UTC)
        return (rng.randint(1, 12), rng.choice([1, 2, 3, 4, None]), rng.choice([day, None]), rng.choice([moment, None]))
    price = rng.choice([None, Decimal(rng.randint(-500, 99999)) / 100])
    return (
        rng.randint(1, 12),
        rng.randint(1, 3),
        rng.choice([None, 1, 2, 3]),
        price,
        rng.choice([None, 0.5, 1.25]),
        rng.choice(["a", "b", None]),
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("query", TPCH)
def test_customers_orders_and_lineitems(query, mode, seed):
    tables = [t for t in (CUSTOMER, ORDERS, LINEITEM) if f"{t.name} " in f"{TPCH[query]} "]
    seed += sorted(TPCH).index(query) * 4 + MODES.index(mode)
    rng = Random(seed)
    shards = (1, 3) if seed % 2 else (2, 4)
    with Comparison(TPCH[query], tables, shards, seed=seed, modes={t.name: mode for t in tables}) as run:
        for _ in range(4):
            changes = []
            held = {t.name: {tuple(r[: len(t.primary_key)]): r for r in run.held[t.name]} for t in tables}
            touched = set()
            for _ in range(20):
                table = rng.choice(tables)
                row = tpch_row(table, rng)
                key = row[: len(table.primary_key)]
                if (table.name, key) in touched:
                    continue
                touched.add((table.name, key))
                old = held[table.name].get(key)
                changes += [(table.name, old, -1)] if old else []
                changes += [(table.name, row, 1)] if not old or rng.random() < 0.7 else []
            run.step(changes, losses=0.3, parts=2, change_types=rng.random() < 0.5)
        run.empty()


QUERIES = """
SELECT t.x, u.y FROM t CROSS JOIN u
SELECT COUNT(*) AS n, SUM(t.x) AS x, SUM(u.y) AS y FROM t CROSS JOIN u
SELECT g, x, s FROM t
SELECT s FROM t WHERE x > 1
SELECT DISTINCT g FROM t
SELECT COUNT(*) AS n FROM t
SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t
SELECT COUNT(*) AS n FROM t HAVING COUNT(*) > 1
SELECT SUM(x) + 1 AS s FROM t WHERE g = 1
SELECT SUM(x) AS s FROM t GROUP BY g
SELECT COUNT(*) AS n FROM t JOIN u ON t.g = u.g GROUP BY t.s, u.y
SELECT DISTINCT COUNT(*) AS n FROM t GROUP BY g
SELECT DISTINCT SUM(t.x) AS n, COUNT(*) AS m FROM t JOIN u ON t.g = u.g GROUP BY t.s
SELECT t.x, u.y FROM t JOIN u ON t.g + 1 = u.g
SELECT t.s, COUNT(*) AS n FROM t JOIN u ON t.x % 2 = u.y % 2 GROUP BY t.s
SELECT t.s, SUM(u.p) AS p, AVG(u.p) AS ap, SUM(u.f) AS f, AVG(u.f) AS af, AVG(t.x) AS ax FROM t JOIN u ON t.x = u.y GROUP BY t.s
SELECT AVG(u.p) AS ap, AVG(u.f) AS af, AVG(t.x) AS ax, SUM(u.f) AS f, COUNT(u.f) AS n FROM t JOIN u ON t.g = u.g
SELECT t.s, SUM(t.x * u.y) AS xy, SUM(u.f * t.x) AS f FROM t JOIN u ON t.g = u.g GROUP BY t.s HAVING COUNT(*) > 1
SELECT t.s, u.p FROM t JOIN u ON t.x = u.p
SELECT a.x, b.x AS y FROM t a, t b WHERE a.g = b.x
SELECT a.x, b.s, c.s AS z FROM t a, t b, t c WHERE a.g = b.g AND b.x = c.x
SELECT DISTINCT UPPER(t.s) AS s, u.f FROM t JOIN u ON t.g = u.g
SELECT 'k' AS k, COUNT(*) AS n FROM t GROUP BY 'k'
SELECT 1 AS one FROM t, u WHERE t.g = u.g
SELECT u.f, COUNT(*) AS n FROM t JOIN u ON t.g = u.g GROUP BY u.f
SELECT t.x, u.y FROM t JOIN u ON t.g <=> u.g
SELECT t.s, SUM(u.y) AS n FROM t JOIN u ON t.g <=> u.g AND t.x <=> u.y GROUP BY t.s
""".strip().splitlines()


def rows_of_t(rng, n):
    return [
        (rng.choice([None, 0, 1, 2]), rng.choice([None, 0, 1, 2, 3]), rng.choice([None, "", "a", "A", "ä"]))
        for _ in range(n)
    ]


def rows_of_u(rng, n):
    money = [None, Decimal("1.00"), Decimal("2.50"), Decimal("-0.01")]
    double = [None, 0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf")]
    return [
        (rng.choice([None, 0, 1, 2, 3]), rng.choice([0, 1, 2, 3]), rng.choice(money), rng.choice(double))
        for _ in range(n)
    ]


@pytest.mark.parametrize("sql", QUERIES)
def test_written_query(sql, seed):
    seed += QUERIES.index(sql)
    rng = Random(seed)
    used = f"{sql} ".replace(",", " ")
    tables = [t for t in (T, U) if f" {t.name} " in used]
    rows = {"t": rows_of_t(rng, 24), "u": rows_of_u(rng, 24)}
    with Comparison(sql, tables, seed=seed) as run:
        run.step([])
        for at in range(0, 24, 8):
            changes = [(t.name, r, 1) for t in tables for r in rows[t.name][at : at + 8]]
            changes += [(t.name, r, -1) for t in tables for r in rows[t.name][: at // 2]]
            changes += [(t.name, r, 1) for t in tables for r in rows[t.name][: at // 2]]
            changes += [(t.name, r, -1) for t in tables for r in rows[t.name][at : at + 3]]
            rng.shuffle(changes)
            run.step(changes, losses=0.3, parts=3, change_types=at == 8)
        run.empty()


@pytest.mark.parametrize("shards", SHARDS)
def test_an_aggregate_without_groups_has_its_row_from_the_first_batch_on(shards):
    run = Watched("SELECT COUNT(*) AS n, SUM(t.x) AS s, SUM(u.f) AS f FROM t JOIN u ON t.g = u.g", [T, U], shards)
    assert run.run.pipeline.shards == shards
    run.step([])
    assert run.rows == [(0, None, None)]
    assert run.step([]) == []
    run.step([("t", (1, 2, None), 1), ("u", (1, 1, None, 0.5), 1)])
    assert run.rows == [(1, 2, 0.5)]


BIG = 2**62


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(t.x) AS s FROM t JOIN u ON t.g = u.g",
        "SELECT t.s, SUM(t.x) AS x FROM t JOIN u ON t.g = u.g GROUP BY t.s",
    ],
)
def test_partial_sums_may_leave_bigint_where_the_sum_does_not(sql, shards):
    run = Watched(sql, [T, U], shards)
    assert (len(run.run.layout.fragments) == 1) == (shards == 1)
    signs = {g: 1 if g % 2 else -1 for g in range(20)}
    changes = [("t", (g, sign * BIG, "a"), 1) for g, sign in signs.items() for _ in range(3)]
    run.step([*changes, ("t", (1, 5, "a"), 1), *(("u", (g, 0, None, None), 1) for g in signs)])
    assert [row[-1] for row in run.rows] == [5]
    parts = [c.as_py() for e in run.run.engines("shard") for b in e.result(0) for c in b.column(b.num_columns - 2)]
    assert shards == 1 or max(map(abs, parts)) >= 2**63, "the test is meant to have larger parts"


@pytest.mark.parametrize("shards", SHARDS)
def test_a_sum_that_leaves_bigint_is_refused_and_changes_nothing(shards):
    run = Watched("SELECT SUM(t.x) AS s FROM t JOIN u ON t.g = u.g", [T, U], shards)
    run.step([("u", (g, 0, None, None), 1) for g in range(9)])
    run.step([("t", (1, BIG, "a"), 1)])
    with pytest.raises(ChangeError) as caught:
        run.step([("t", (g, BIG, "a"), 1) for g in range(2, 9)])
    assert caught.value.code == "ARITHMETIC_OVERFLOW"
    assert run.rows == [(BIG,)]
    run.step([("t", (2, 3, "a"), 1)])
    assert run.rows == [(BIG + 3,)]


@pytest.mark.parametrize("shards", SHARDS)
def test_copies_add_up_over_shards(shards):
    run = Watched("SELECT t.s FROM t JOIN u ON t.g = u.g", [T, U], shards)
    leaving = run.step([("t", (g, 0, "a"), 1) for g in range(20)] + [("u", (g, 0, None, None), 1) for g in range(20)])
    assert [b.to_pydict() for b in leaving] == [{"s": ["a"], "_multiplicity": [20]}]
    assert [b.num_rows for b in run.step([("t", (3, 0, "a"), -1)], change_types=True)] == [1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT 1 AS one FROM t JOIN u ON t.g = u.g",
        "SELECT DISTINCT 1 AS one, 'a' AS a FROM t JOIN u ON t.g = u.y",
    ],
)
def test_distinct_constants(sql):
    with Comparison(sql, [T, U]) as run:
        run.insert(t=[(g, 0, None) for g in range(5)], u=[(g, g, None, None) for g in range(5)])
        assert len(run.view.to_arrow()) == 1
        run.empty()


GUARDED = [
    "SELECT 100 / x AS k, COUNT(*) AS n FROM t WHERE x <> 0 GROUP BY 100 / x",
    "SELECT t.s, u.p FROM t JOIN u ON 6 DIV t.x = u.y WHERE t.x <> 0",
]


@pytest.mark.parametrize("sql", GUARDED)
def test_what_where_keeps_out_is_not_evaluated(sql):
    with Comparison(sql, [T, U] if "u.p" in sql else [T]) as run:
        run.insert(t=[(1, 0, "a"), (1, 3, "b")])
        run.empty()


def test_an_error_in_a_join_key_is_refused_under_its_code():
    run = Watched("SELECT t.s, u.y FROM t JOIN u ON t.x + 1 = u.y", [T, U], 2)
    with pytest.raises(ChangeError) as caught:
        run.step([("t", (1, 2**63 - 1, "a"), 1)])
    assert caught.value.code == "ARITHMETIC_OVERFLOW"
    assert caught.value.parameters["table"] == "t"


@pytest.mark.parametrize(("group", "engines"), [("t.s", {0, 1, 2}), (None, {0})])
def test_merging_engines_hear_of_every_batch(group, engines):
    """So that what they tell of their state is all there is. Without groups there is one result, and one engine for it."""
    counted = "COUNT(*) AS n FROM t JOIN u ON t.x = u.y"
    run = LocalPipeline(f"SELECT {group}, {counted} GROUP BY {group}" if group else f"SELECT {counted}", [T, U], 3)
    told = []
    one = run.run
    run.run = lambda stage, number, blobs: told.append((stage, number)) or one(stage, number, blobs)
    rows = [(g, g, str(g), 1) for g in range(20)]
    first = {"t": batch_for(T, rows), "u": batch_for(U, [(g, g, None, None, 1) for g in range(20)])}
    for changes in (first, {"t": batch_for(T, [(1, 1, "1", -1)])}, {"t": batch_for(T, [])}):
        told.clear()
        run.step(changes)
        assert {number for stage, number in told if stage == "merge"} == engines
    run.lose_workers()
    change = add_up(Counter(), run.step({"t": batch_for(T, [(1, 1, "1", 1)])}))
    assert change == ({("1", 1): 1} if group else {(19,): -1, (20,): 1})
