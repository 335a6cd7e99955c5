"""Views of several blocks on Spark: subqueries, outer joins, groups of groups, unions, over 1, 2, 4 and 7 shards, against Spark SQL."""

from functools import partial

import pytest
from stream_changes import EMPTY, fill, tables
from stream_runs import Scenario, side_by_side

from everview.errors import UnsupportedQueryError
from everview.spark import explain, read_metrics

SIZES = [14, 8, EMPTY, 10]
LARGE = "SELECT ok FROM lineitem GROUP BY ok HAVING SUM(qty) > 2"
QUERIES = {  # with the numbers of shards, and how many hops there are with the last of them
    "EXISTS below groups": (
        "SELECT c.nation, COUNT(*) AS n FROM customer c JOIN orders o ON c.ck = o.ck"
        " WHERE EXISTS (SELECT 1 FROM lineitem l WHERE l.ok = o.ok AND l.qty > 1) GROUP BY c.nation",
        (1, 4),
        3,
    ),
    "NOT IN with NULLs, and a LEFT JOIN": (
        "SELECT c.ck, c.name, o.ok, o.day FROM customer c LEFT JOIN orders o ON c.ck = o.ck AND o.day > DATE'2022-06-01'"
        " WHERE c.ck NOT IN (SELECT a FROM edge WHERE b > 4)",
        (2, 7),
        2,
    ),
    "groups of groups": (
        "SELECT n, COUNT(*) AS customers FROM"
        " (SELECT c.ck, COUNT(o.ok) AS n FROM customer c LEFT JOIN orders o ON c.ck = o.ck GROUP BY c.ck) GROUP BY n",
        (1, 2),
        3,
    ),
    "groups joined on what they count": (
        f"SELECT e.a, d.n FROM (SELECT ck, COUNT(*) AS n FROM orders WHERE ok IN ({LARGE}) GROUP BY ck) d JOIN edge e ON e.b = d.n",
        (2, 4),
        4,
    ),
    "a union of a total": (
        "SELECT a AS k FROM edge WHERE b IS NULL UNION ALL SELECT COUNT(*) AS k FROM orders",
        (1, 7),
        3,
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_view(spark, streaming, tmp_path, name):
    sql, shards, hops = QUERIES[name]
    read = [t for t in ("edge", "customer", "orders", "lineitem") if f" {t}" in sql]
    given = Scenario(spark, streaming, tmp_path, tables(*read))
    fill(given, SIZES, seed=len(name))
    runs = side_by_side({n: partial(given.start, sql, shards=n, checkpoint=n) for n in shards})
    for n, run in runs.items():
        given.check(run.wait(), sql, checkpoint=n)
    assert len(read_metrics(runs[shards[-1]].progress[-1])) == hops


def test_a_view_with_a_warning_may_be_refused(streaming, spark, tmp_path):
    given = Scenario(spark, streaming, tmp_path, tables("edge"))
    sql = "SELECT x.a, y.b FROM edge x JOIN edge y ON x.b = y.a WHERE x.a < y.b"
    frames = {"edge": given.feeds["edge"].stream(streaming)}
    assert "x.a < y.b" in explain(sql, frames)
    with pytest.raises(UnsupportedQueryError, match=r"x.a < y.b") as caught:
        given.maintained(sql, on_warning="refuse")
    assert caught.value.code == "VIEW_WARNING"
