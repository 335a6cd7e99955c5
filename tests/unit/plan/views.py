"""Views with finishing operators, written by hand, for the tests of lowering and explain."""

from decimal import Decimal

from everview.query.conjunctive import Atom, ConjunctiveQuery, Variable, TableSource
from everview.query.expression import Call, ColumnRef, Literal
from everview.query.logical_view import (
    Aggregate,
    Core,
    Distinct,
    Filter,
    GroupAggregate,
    LogicalView,
    Map,
    OutputColumn,
)
from everview.schema.datatype import BIGINT, BOOLEAN, DATE, STRING, decimal
from everview.schema.table import Column, Table
from everview.lower import lower_query
from textbook import TEXTBOOK, parse, tables_of, view_of

MONEY, TOTAL = decimal(12, 2), decimal(22, 2)
TABLES = {
    "customer": Table("Customer", (Column("c_custkey", BIGINT, False), Column("c_mktsegment", STRING))),
    "orders": Table(
        "orders",
        (Column("o_orderkey", BIGINT, False), Column("o_custkey", BIGINT, False), Column("o_orderdate", DATE)),
    ),
    "lineitem": Table("lineitem", (Column("l_orderkey", BIGINT, False), Column("l_extendedprice", MONEY))),
}


def tpch_q3(keyed=True):
    """A sum over three tables, grouped by order: TPC-H Q3 without ORDER BY."""
    segment = Call("eq", (ColumnRef("c_mktsegment", STRING), Literal("BUILDING", STRING)), BOOLEAN)
    before = Call("lt", (ColumnRef("o_orderdate", DATE), Literal(9204, DATE)), BOOLEAN)
    price = ColumnRef("l_extendedprice", MONEY)
    cust, order = Variable("c_custkey", BIGINT, False), Variable("o_orderkey", BIGINT, False)
    when = Variable("o_orderdate", DATE, True)
    query = ConjunctiveQuery(
        "revenue",
        ("o_orderkey", "o_orderdate"),
        (
            Atom(
                "customer",
                TableSource("customer"),
                (("c_custkey", ColumnRef("c_custkey", BIGINT, False)),),
                segment,
                (None,),
                keys=(frozenset({"c_custkey"}),) if keyed else (),
            ),
            Atom(
                "orders",
                TableSource("orders"),
                (
                    ("o_orderkey", ColumnRef("o_orderkey", BIGINT, False)),
                    ("c_custkey", ColumnRef("O_CustKey", BIGINT, False)),
                    ("o_orderdate", ColumnRef("o_orderdate", DATE)),
                ),
                before,
                (None,),
            ),
            Atom(
                "lineitem",
                TableSource("lineitem"),
                (("o_orderkey", ColumnRef("l_orderkey", BIGINT, False)),),
                None,
                (price,),
            ),
        ),
        {"c_custkey": cust, "o_orderkey": order, "o_orderdate": when},
        components=("revenue",),
    )
    keys = (OutputColumn("o_orderkey", BIGINT, False), OutputColumn("o_orderdate", DATE, True))
    aggregate = Aggregate("revenue", "sum", TOTAL, True, argument_type=MONEY, sum="revenue")
    total = ColumnRef("revenue", TOTAL)
    big = Call("gt", (total, Literal(Decimal("1000.00"), TOTAL)), BOOLEAN)
    columns = (*keys, OutputColumn("revenue", TOTAL, True))
    rename = Map(2, (("orderkey", ColumnRef("o_orderkey", BIGINT, False)), ("revenue", total)))
    sql = (
        "SELECT o_orderkey AS orderkey, SUM(l_extendedprice) AS revenue\n"
        "FROM customer, orders, lineitem\n"
        "WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey\n"
        "  AND o_orderdate < DATE '1995-03-15'\n"
        "GROUP BY o_orderkey, o_orderdate HAVING SUM(l_extendedprice) > 1000"
    )
    stages = (Core(query), GroupAggregate(0, keys, (aggregate,)), Filter(1, big, columns), rename)
    return LogicalView("revenue", sql, stages), TABLES


def textbook(name, distinct=False):
    query = parse(TEXTBOOK[name], distinct)
    return view_of(query), tables_of(query)


def count_by_ends():
    """COUNT(*) of two-hop paths grouped by both ends: not free-connex, the aggregate reads the extended core."""
    query = parse(TEXTBOOK["two_hop_ends"])
    keys = (OutputColumn("c", BIGINT, False), OutputColumn("a", BIGINT, False))
    count = Aggregate("paths", "count", BIGINT, False)
    return LogicalView("paths", "-- count", (Core(query), GroupAggregate(0, keys, (count,)))), tables_of(query)


def distinct_above_filter():
    """A filter and a DISTINCT above a core that is not free-connex."""
    query = parse(TEXTBOOK["two_hop_ends"])
    columns = (OutputColumn("a", BIGINT, False), OutputColumn("c", BIGINT, False))
    differ = Call("ne", (ColumnRef("a", BIGINT, False), ColumnRef("c", BIGINT, False)), BOOLEAN)
    view = LogicalView("pairs", "-- pairs", (Core(query), Filter(0, differ, columns), Distinct(1, columns)))
    return view, tables_of(query)


def from_sql(name, sql):
    """A view by its text."""
    return lower_query(name, sql, TABLES), TABLES


TOP_ORDERS = """
SELECT o_orderkey, SUM(l_extendedprice) AS revenue FROM orders JOIN lineitem ON o_orderkey = l_orderkey
GROUP BY o_orderkey ORDER BY revenue DESC LIMIT 10 OFFSET 5
"""
LATEST_LINES = """
SELECT o_orderkey, l_extendedprice FROM orders JOIN lineitem ON o_orderkey = l_orderkey
ORDER BY o_orderdate DESC NULLS FIRST LIMIT 3
"""

CHEAPEST = """
SELECT c_mktsegment, MIN(l_extendedprice) AS cheapest, MAX(o_orderdate) AS latest, COUNT(DISTINCT o_custkey) AS customers
FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_mktsegment
"""

NEVER_ORDERED = """
SELECT c_custkey, c_mktsegment, o_orderkey, l_extendedprice FROM customer JOIN orders ON c_custkey = o_custkey
LEFT JOIN lineitem ON o_orderkey = l_orderkey
WHERE NOT EXISTS (SELECT 1 FROM customer old WHERE old.c_mktsegment <=> customer.c_mktsegment AND old.c_custkey < 9)
"""
BUSIEST = """
WITH busy AS (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey)
SELECT a.o_custkey, b.o_custkey AS other FROM busy a JOIN busy b ON a.n = b.n
UNION ALL SELECT c_custkey, c_custkey FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM busy)
"""

LAST_ORDERS = """
SELECT c.c_mktsegment, o.o_orderkey, o.n
FROM Customer c JOIN (
    SELECT o_orderkey, o_custkey, row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderdate DESC) AS n FROM orders
) o ON c.c_custkey = o.o_custkey
WHERE o.n <= 3
"""

LEFT_OVER = """
SELECT o_custkey FROM orders EXCEPT ALL SELECT c_custkey FROM Customer INTERSECT ALL VALUES (1L), (2L)
"""

GOLDEN = {
    "last_orders": lambda: from_sql("last_orders", LAST_ORDERS),
    "left_over": lambda: from_sql("left_over", LEFT_OVER),
    "never_ordered": lambda: from_sql("never_ordered", NEVER_ORDERED),
    "busiest": lambda: from_sql("busiest", BUSIEST),
    "top_orders": lambda: from_sql("top_orders", TOP_ORDERS),
    "cheapest": lambda: from_sql("cheapest", CHEAPEST),
    "latest_lines": lambda: from_sql("latest_lines", LATEST_LINES),
    "figure_1": lambda: textbook("figure_1"),
    "tpch_q3": tpch_q3,
    "two_hop_ends_distinct": lambda: textbook("two_hop_ends", distinct=True),
    "count_by_ends": count_by_ends,
    "example_6": lambda: textbook("example_6"),
    "guarded": lambda: textbook("guarded"),
    "star": lambda: textbook("star"),
    "global": lambda: textbook("global"),
    "product": lambda: textbook("product"),
    "three_hop": lambda: textbook("three_hop"),
    "two_comb": lambda: textbook("two_comb"),
}
