"""Large texts: long chains are flat, what is used often is shared, and the limits that remain have a code of their own.

No test looks at a clock: what must not be exponential is so large here that it would never end.
"""

import json
import sys
import threading

import pytest

from everview.errors import UnsupportedQueryError, point_at, Span
from everview.explain.formats import explain
from everview.plan.lower import plan_view
from everview.query.expression import Call, ColumnRef, Literal, calls_of, columns_of, may_fail, parts, rewrite, to_json
from everview.schema.datatype import BIGINT, INT
from everview.lower import lower_query
from everview.sql.nesting import MOST_LEVELS, MOST_NESTED

X = ColumnRef("x", BIGINT)


def doubled(levels, leaf=X):
    """x + x, and that plus itself, and so on: a DAG of so many calls, a tree of 2^levels."""
    found = leaf
    for _ in range(levels):
        found = Call("add", (found, found), BIGINT)
    return found


def test_a_dag_is_as_large_as_its_parts():
    one, two = doubled(100), doubled(100)
    assert (one.size, one.depth, len(list(parts(one)))) == (2**101 - 1, 101, 101)
    assert one == two
    assert hash(one) == hash(two)
    assert one != doubled(100, ColumnRef("y", BIGINT))
    assert one != doubled(99)
    assert len(calls_of(one)) == 100
    assert columns_of(one) == {"x"}
    assert may_fail(one)
    renamed = rewrite(one, lambda part: ColumnRef("y", BIGINT) if part is X else None)
    assert renamed == doubled(100, ColumnRef("y", BIGINT))
    assert len(list(parts(renamed))) == 101
    assert rewrite(one, lambda _: None) is one


def expanded(node, shared):
    """The tree of the plan form."""
    if node["op"] == "let":
        known = []
        for part in node["shared"]:
            known.append(expanded(part, known))
        return expanded(node["in"], known)
    if node["op"] == "shared":
        assert shared[node["index"]]["type"] == node["type"]
        return shared[node["index"]]
    return {**node, "args": [expanded(a, shared) for a in node["args"]]} if "args" in node else node


def depth_of(node):
    below = [*node.get("args", ()), *node.get("shared", ()), *([node["in"]] if "in" in node else ())]
    return 1 + max(map(depth_of, below), default=0)


def tree_json(expression):
    if isinstance(expression, Call):
        return {"op": expression.op, "args": [tree_json(a) for a in expression.args], "type": str(expression.type)}
    return to_json(expression, {"x": 0})


@pytest.mark.parametrize("levels", [1, 5, 8, 9, 12])
def test_the_plan_form_expands_to_the_tree(levels):
    expression = doubled(levels)
    written = to_json(expression, {"x": 0})
    assert expanded(written, []) == tree_json(expression)
    assert (written["op"] == "let") == (expression.size > 500)


def test_small_expressions_are_written_as_trees():
    expression = Call("add", (doubled(3), doubled(3)), BIGINT)
    assert to_json(expression, {"x": 0}) == tree_json(expression)


def test_the_plan_form_is_small_and_shallow():
    assert len(json.dumps(to_json(doubled(500), {"x": 0}))) < 100_000
    chain = X
    for n in range(10_000):
        chain = Call("add", (chain, Literal(n, BIGINT)), BIGINT)
    written = to_json(chain, {"x": 0})
    assert depth_of(written) < 60
    assert len(calls_of(chain)) == 10_000


FLAT = {
    "+": lambda n: "SELECT " + " + ".join(["x"] * n) + " AS z FROM t",
    "- and *": lambda n: "SELECT x" + " - x * y" * n + " AS z FROM t",
    "/": lambda n: "SELECT f" + " / f" * n + " AS z FROM t",
    "||": lambda n: "SELECT s" + " || s" * n + " AS z FROM t",
    "AND": lambda n: "SELECT x FROM t WHERE " + " AND ".join(f"x <> {i}" for i in range(n)),
    "OR": lambda n: "SELECT x FROM t WHERE " + " OR ".join(f"x = {i}" for i in range(n)),
    "AND in a SELECT list": lambda n: "SELECT " + " AND ".join(f"x <> {i}" for i in range(n)) + " AS z FROM t",
    "OR of AND": lambda n: "SELECT x FROM t WHERE " + " OR ".join(f"x = {i} AND y = {i}" for i in range(n)),
    "IN": lambda n: f"SELECT x FROM t WHERE x IN ({', '.join(map(str, range(n)))})",
    "WHEN": lambda n: "SELECT CASE" + "".join(f" WHEN x = {i} THEN {i}" for i in range(n)) + " END AS z FROM t",
    "dates and intervals": lambda n: "SELECT d" + " + INTERVAL 1 DAY" * min(n, 500) + " AS z FROM t",
    "texts": lambda n: "SELECT x FROM t WHERE s = " + " ".join(["'a'"] * n),
    "aliases": lambda n: "SELECT x AS x0, " + ", ".join(f"-x{i} AS x{i + 1}" for i in range(min(n, 150))) + " FROM t",
    "WITH": lambda n: (
        "WITH c0 AS (SELECT x FROM t)"
        + "".join(f", c{i + 1} AS (SELECT x + 1 AS x FROM c{i})" for i in range(100))
        + " SELECT x FROM c100"
    ),
    "joins without ON": lambda n: "SELECT a0.x FROM t a0" + "".join(f" JOIN t a{i}" for i in range(1, 60)),
}


@pytest.mark.parametrize("form", FLAT.values(), ids=FLAT)
def test_long_texts_are_flat(form, tables):
    view = lower_query("v", form(3000), tables)
    assert view.columns
    assert max((e.levels for e in view.expressions if isinstance(e, Call)), default=0) <= 2


SHARED = {
    "CASE of aliases": lambda n: (
        "SELECT x AS x0, "
        + ", ".join(f"CASE WHEN x{i} > 0 THEN x{i} ELSE -x{i} END AS x{i + 1}" for i in range(n))
        + " FROM t"
    ),
    "CTEs": lambda n: (
        "WITH c0 AS (SELECT x, y FROM t)"
        + "".join(
            f", c{i + 1} AS (SELECT CASE WHEN x > y THEN x ELSE -x END AS x, x + y AS y FROM c{i})" for i in range(n)
        )
        + f" SELECT x, y FROM c{n}"
    ),
    "derived tables": lambda n: (
        "SELECT x FROM " + "(SELECT x + x AS x FROM " * n + "(SELECT CAST(x AS DOUBLE) AS x FROM t) AS d" + ") AS d" * n
    ),
    "conditions": lambda n: (
        "WITH c0 AS (SELECT x, x > 0 AS b FROM t)"
        + "".join(f", c{i + 1} AS (SELECT x, b AND (b OR x = {i}) AS b FROM c{i})" for i in range(n))
        + f" SELECT x FROM c{n} WHERE b AND b"
    ),
    "group keys": lambda n: (
        "SELECT x0, "
        + ", ".join(f"x{i} + x{i} AS x{i + 1}" for i in range(n))
        + ", COUNT(*) AS c FROM (SELECT CAST(x AS DOUBLE) AS x0 FROM t) AS d GROUP BY x0"
    ),
    "sums": lambda n: (
        "WITH c0 AS (SELECT CAST(t.x AS BIGINT) AS a, u.x AS b FROM t JOIN u ON t.id = u.id)"
        + "".join(f", c{i + 1} AS (SELECT a * a AS a, b * b AS b FROM c{i})" for i in range(n))
        + f" SELECT SUM(a * b) AS s, AVG(a) AS m FROM c{n}"
    ),
    "group keys over two tables": lambda n: (
        "WITH c0 AS (SELECT t.f AS a, u.f AS b FROM t JOIN u ON t.id = u.id)"
        + "".join(f", c{i + 1} AS (SELECT a + b AS a, a - b AS b FROM c{i})" for i in range(n))
        + f" SELECT a, b, COUNT(*) AS c FROM c{n} GROUP BY a, b HAVING a + a > b"
    ),
    "DISTINCT over two tables": lambda n: (
        "WITH c0 AS (SELECT t.f AS a, u.f AS b FROM t JOIN u ON t.id = u.id)"
        + "".join(f", c{i + 1} AS (SELECT a + b AS a, a - b AS b FROM c{i})" for i in range(n))
        + f" SELECT DISTINCT a, b FROM c{n}"
    ),
    "joins": lambda n: (
        "WITH c0 AS (SELECT x AS k FROM t)"
        + "".join(f", c{i + 1} AS (SELECT CASE WHEN k > {i} THEN k ELSE k + k END AS k FROM c{i})" for i in range(n))
        + f" SELECT u.s FROM c{n} JOIN u ON c{n}.k = u.id"
    ),
    "casts of differences": lambda n: "SELECT " + "CAST((" * n + "x" + " - 1) AS INT)" * n + " AS z FROM t",
}


@pytest.mark.parametrize("form", SHARED.values(), ids=SHARED)
def test_what_is_used_often_is_shared(form, tables):
    """As trees these expressions have some 2^40 nodes."""
    view = lower_query("v", form(40), tables)
    planned = plan_view(view, tables)
    assert len(planned.plan.to_json()) < 1_000_000
    assert len(explain(planned, "text")) < 100_000
    assert explain(planned, "json")


NESTED = {
    "calls": lambda n: "SELECT " + "abs(" * n + "x" + ")" * n + " AS z FROM t",
    "parentheses": lambda n: "SELECT " + "(" * n + "x" + ")" * n + " AS z FROM t",
    "CASE": lambda n: "SELECT " + "CASE WHEN x = 1 THEN " * n + "x" + " END" * n + " AS z FROM t",
    "NOT": lambda n: "SELECT " + "NOT " * n + "x = 1 AS z FROM t",
    "signs": lambda n: "SELECT " + "- " * n + "x AS z FROM t",
    "right operands": lambda n: "SELECT " + "x + (" * n + "x" + ")" * n + " AS z FROM t",
    "derived tables": lambda n: "SELECT x FROM " + "(SELECT x FROM " * n + "t" + ") AS d" * n,
    "joins": lambda n: "SELECT t.x FROM " + "(" * n + "t JOIN u ON t.id = u.id" + ")" * n,
    "signs in calls": lambda n: "SELECT " + "- - abs(" * (n // 2) + "x" + ")" * (n // 2) + " AS z FROM t",
    "a sign before each call": lambda n: "SELECT " + "- abs(" * n + "x" + ")" * n + " AS z FROM t",
}


@pytest.mark.parametrize("form", NESTED.values(), ids=NESTED)
def test_nesting_has_one_limit(form, tables):
    assert lower_query("v", form(MOST_NESTED), tables).columns
    for levels in (MOST_NESTED + 2, 100_000):
        with pytest.raises(UnsupportedQueryError) as caught:
            lower_query("v", form(levels), tables)
        assert caught.value.code == "EXPRESSION_TOO_DEEP"
        assert f"more than {MOST_NESTED} levels" in caught.value.message
        assert len(str(caught.value)) < 1000


def test_the_limit_does_not_depend_on_the_caller(tables):
    sql = NESTED["calls"](MOST_NESTED)

    def deep(levels):
        return lower_query("v", sql, tables) if levels == 0 else deep(levels - 1)

    before = sys.getrecursionlimit()
    assert deep(before - 200).columns
    assert sys.getrecursionlimit() == before


def test_threads_take_turns(tables):
    before = sys.getrecursionlimit()
    found = []

    def work():
        found.extend(lower_query("v", NESTED["CASE"](MOST_NESTED), tables).columns for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    "text", ["'" + "(" * 500 + "'", "1 /* " + "(" * 500 + " */", "1 -- " + "(" * 500 + "\n", '"' + "CASE " * 500 + '"']
)
def test_texts_and_comments_do_not_nest(text, tables):
    assert lower_query("v", f"SELECT {text} AS z FROM t", tables).columns


def test_levels_have_a_limit_too(tables):
    def nested(levels):
        items = [f"coalesce(x{i}, x) AS x{i + 1}" for i in range(levels)]
        return f"SELECT y AS x0, {', '.join(items)} FROM t"

    assert lower_query("v", nested(MOST_LEVELS), tables).columns
    with pytest.raises(UnsupportedQueryError) as caught:
        lower_query("v", nested(MOST_LEVELS + 1), tables)
    assert caught.value.code == "EXPRESSION_TOO_DEEP"
    assert f"more than {MOST_LEVELS} levels" in caught.value.message


def test_a_cte_that_joins_itself_has_a_limit(tables):
    """As many tables as there are paths: 2^40."""
    steps = "".join(f", c{i + 1} AS (SELECT a.x FROM c{i} a JOIN c{i} b ON a.x = b.x)" for i in range(40))
    with pytest.raises(UnsupportedQueryError) as caught:
        lower_query("v", f"WITH c0 AS (SELECT x FROM t){steps} SELECT x FROM c40", tables)
    assert caught.value.code == "TOO_MANY_TABLES"
    assert (
        len(lower_query("v", f"WITH c0 AS (SELECT x FROM t){steps} SELECT x FROM c6", tables).stages[0].query.atoms)
        == 64
    )


@pytest.mark.parametrize(("tables_read", "fits"), [(100, True), (101, False)])
def test_tables_of_a_query_have_a_limit(tables_read, fits, tables):
    sql = "SELECT a0.x FROM t a0" + "".join(f" JOIN t a{i} ON a{i}.id = a{i - 1}.x" for i in range(1, tables_read))
    if fits:
        assert plan_view(lower_query("v", sql, tables), tables).plan
    else:
        with pytest.raises(UnsupportedQueryError) as caught:
            lower_query("v", sql, tables)
        assert caught.value.code == "TOO_MANY_TABLES"
        assert sql[caught.value.span.start : caught.value.span.end] == "t a100"


@pytest.mark.parametrize("start", [0, 10, 500, 985, 999])
def test_of_a_long_line_the_place_is_shown(start):
    sql = "short\n" + "".join(chr(97 + i % 26) for i in range(1000)) + "\nshort"
    shown, carets = point_at(sql, Span(6 + start, 6 + start + 3)).split("\n")
    assert len(shown) < 200
    assert shown.startswith("  line 2: ")
    at = carets.index("^")
    assert shown[at] == sql[6 + start]
    assert 1 <= carets.count("^") <= 3


def test_the_whole_of_a_short_line_is_shown():
    assert point_at("SELECT a\nFROM t", Span(14, 15)) == "  line 2: FROM t\n               ^"


def test_constants_in_lists_stay_apart():
    """Equality looks at types: INT 1 and BIGINT 1 are two parts."""
    one, other = Call("negate", (Literal(1, INT),), INT), Call("negate", (Literal(1, BIGINT),), BIGINT)
    assert one != other
    assert len({one, other}) == 2
