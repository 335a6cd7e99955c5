"""Refused batches that left a trace, and valid ones that were refused, each as a minimal case."""

from decimal import Decimal

import everview as ev
import pytest
from everview.testing.fallible import Trial, Way
from everview.testing.oracle import MULTIPLICITY
from everview.testing.refusals import Trying

ACCEPTED, REFUSED = "accepted", "refused"


def signed(tables, changes):
    """Changes as (table, row, multiplicity) in the form that batches have."""
    batch = {}
    for name, row, count in changes:
        names = [c.name for c in tables[name].columns]
        batch.setdefault(name, []).append(dict(zip(names, row, strict=True)) | {MULTIPLICITY: count})
    return batch


@pytest.fixture(params=Way, ids=lambda way: way.name.lower())
def check(request):
    """Runs batches over views in a session and its twin; each says what must become of it."""

    def run(ddl, views, *batches):
        with ev.connect() as db:
            db.execute(ddl)
            tables = db.tables
        trying = Trying(Trial(tuple(tables.values()), tuple(views), (), {}))
        try:
            for verdict, changes in batches:
                before = trying.refused
                trying.attempt(signed(tables, changes), request.param)
                assert (trying.refused > before) == (verdict == REFUSED), (verdict, changes)
            trying.finish()
        finally:
            trying.close()

    return run


@pytest.mark.parametrize(
    "aggregate", ["SUM(x / z)", "AVG(x / z)", "COUNT(x / z)", "SUM(x DIV z)", "SUM(CAST(x / z AS INT))"]
)
def test_a_row_moves_to_another_group_and_fails_there(check, aggregate):
    check(
        "CREATE TABLE t (id INT PRIMARY KEY, g STRING, x INT, z INT)",
        [f"SELECT g, {aggregate} AS s, COUNT(*) AS n FROM t GROUP BY g"],
        (ACCEPTED, [("t", (1, "a", 10, 1), 1)]),
        (REFUSED, [("t", (1, "a", 10, 1), -1), ("t", (1, "b", 10, 0), 1)]),
        (ACCEPTED, [("t", (1, "a", 10, 1), -1), ("t", (1, "b", 10, 2), 1)]),
    )


@pytest.mark.parametrize("verdict", [ACCEPTED, REFUSED])
@pytest.mark.parametrize("function", ["SUM", "AVG", "COUNT"])
def test_what_would_fail_leaves_in_the_same_batch(check, function, verdict):
    leaving = [("r", (1, 1, 10), -1)] if verdict == ACCEPTED else []
    check(
        "CREATE TABLE r (k INT, g INT, x INT); CREATE TABLE s (k INT, y INT)",
        [f"SELECT r.g, {function}(r.x / s.y) AS t FROM r JOIN s ON r.k = s.k GROUP BY r.g"],
        (
            ACCEPTED,
            [("r", (1, 1, 10), 1), ("r", (2, 1, 20), 1), ("r", (9, 9, 1), 2), ("s", (1, 5), 1), ("s", (2, 4), 1)],
        ),
        (verdict, [*leaving, ("s", (1, 0), 1)]),
        (ACCEPTED, [("r", (2, 1, 8), 1)]),
    )


@pytest.mark.parametrize("head", ["a0.k0, a2.x % a1.x AS o", "DISTINCT a0.k0, a2.x / a1.x AS o"])
def test_rows_that_come_and_go_within_a_batch_of_a_self_join_are_not_evaluated(check, head):
    check(
        "CREATE TABLE s (k0 INT, k1 INT, x DECIMAL(6,2)); CREATE TABLE t (k0 INT PRIMARY KEY, x DECIMAL(38,0))",
        [f"SELECT {head} FROM s a0 JOIN s a1 ON a0.k1 = a1.k0 JOIN t a2 ON a1.k1 = a2.k0"],
        (ACCEPTED, [("s", (1, 1, Decimal("1.50")), 1), ("t", (2, Decimal(1)), 1)]),
        (ACCEPTED, [("s", (1, 2, Decimal("0.00")), 2), ("s", (1, 1, Decimal("1.50")), -1)]),
        (REFUSED, [("s", (3, 1, Decimal("1.50")), 1)]),
    )


@pytest.mark.parametrize(
    "select",
    [
        "SELECT a.k FROM t a JOIN t b ON a.k = b.k",
        "SELECT a.k, b.x FROM t a JOIN t b ON a.k = b.k",
        "SELECT a.k, COUNT(*) AS n FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
        "SELECT COUNT(*) AS n FROM t a, t b",
    ],
)
def test_a_result_that_leaves_64_bits(check, select):
    """Accepted without deltas, and then every read failed; a view created on such rows could not be read."""
    check(
        "CREATE TABLE t (k INT, x INT)",
        [select],
        (ACCEPTED, [("t", (1, 1), 1)]),
        (REFUSED, [("t", (1, 1), 2**40)]),
        (ACCEPTED, [("t", (1, 2), 1)]),
    )


def test_a_result_that_leaves_64_bits_only_on_the_way(check):
    """Refused, though the batch that made the result possible took its partner away."""
    check(
        "CREATE TABLE t (k INT, x INT); CREATE TABLE u (k INT, y DOUBLE)",
        ["SELECT u.y FROM t a JOIN t b ON a.k = b.k JOIN u ON a.k = u.k"],
        (ACCEPTED, [("u", (1, 0.5), 1)]),
        (ACCEPTED, [("t", (1, 2), 2**40), ("u", (1, 0.5), -1)]),
        (REFUSED, [("u", (1, 0.5), 1)]),
        (ACCEPTED, [("t", (1, 2), 1 - 2**40), ("u", (1, 0.5), 1)]),
    )


@pytest.mark.parametrize("head", ["DISTINCT a.x % a.x AS o, a.y / b.x AS p", "a.x % a.x AS o, COUNT(*) AS n"])
def test_a_computed_negative_zero_is_zero(check, head):
    group = " GROUP BY a.x % a.x" if "COUNT" in head else ""
    check(
        "CREATE TABLE t (k INT, x DOUBLE, y INT)",
        [f"SELECT {head} FROM t a JOIN t b ON a.k = b.k{group}"],
        (ACCEPTED, [("t", (1, 1.0, 1), 1), ("t", (1, -2.0, 1), 1)]),
        (ACCEPTED, [("t", (1, 1.0, 1), 1)]),
        (ACCEPTED, [("t", (1, 1.0, 1), -2)]),
    )


def test_several_views_of_which_one_refuses(check):
    check(
        "CREATE TABLE t (k INT, x INT, y INT)",
        [
            "SELECT x / x AS o, COUNT(*) AS n FROM t GROUP BY x / x",
            "SELECT a.k, -a.x AS o, SUM(b.x - a.y) AS s FROM t a CROSS JOIN t b GROUP BY a.k, -a.x HAVING 1 / (COUNT(*) - 2) IS NOT NULL",
            "SELECT a.x, a.y, b.y AS z FROM t a JOIN t b ON a.k = b.k",
        ],
        (ACCEPTED, [("t", (1, 1, 1), 1)]),
        (REFUSED, [("t", (1, 1, 1), -1), ("t", (1, 2, -(2**31)), 2)]),
        (REFUSED, [("t", (1, 2, 1), 1)]),
        (ACCEPTED, [("t", (1, 1, 1), 2)]),
    )
