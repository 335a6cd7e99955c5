"""Expressions that are large or shared mean what they say, under inserts, deletes and refusals."""

import everview as ev
import pytest
from everview.testing.asserts import DeltaSum, assert_view_equals

ROWS = [(i, n, (True, False, None)[i % 3]) for i, n in enumerate([3, -3, None, 0, 7, -8, 1])]


def folded(step, levels, start):
    for level in range(levels):
        start = step(start, level)
    return start


CASES = {
    "the larger of x and -x, again and again": (
        "SELECT id, n AS x0, "
        + ", ".join(f"CASE WHEN x{i} > 0 THEN x{i} ELSE -x{i} END AS x{i + 1}" for i in range(30))
        + " FROM t",
        lambda i, n, b: (i, n, *[None if n is None else abs(n)] * 30),
    ),
    "a branch and the whole": (
        "WITH c0 AS (SELECT id, n AS x, b FROM t)"
        + "".join(
            f", c{i + 1} AS (SELECT id, coalesce(CASE WHEN b THEN x END, 0) - x AS x, b FROM c{i})" for i in range(60)
        )
        + " SELECT id, x FROM c60",
        lambda i, n, b: (i, None if n is None else folded(lambda x, _: (x if b else 0) - x, 60, n)),
    ),
    "a long sum": (
        "SELECT id, " + " + ".join("n" if i % 3 else "-n" for i in range(3000)) + " AS s FROM t",
        lambda i, n, b: (i, None if n is None else sum(n if i % 3 else -n for i in range(3000))),
    ),
    "a long AND": (
        "SELECT id FROM t WHERE " + " AND ".join(f"n <> {i}" for i in range(3, 2000)),
        lambda i, n, b: (i,) if n is not None and n not in range(3, 2000) else None,
    ),
    "nested calls": (
        "SELECT id, " + "abs(-" * 90 + "n" + ")" * 90 + " AS x FROM t",
        lambda i, n, b: (i, None if n is None else abs(n)),
    ),
    "nested choices": (
        "SELECT id, " + "CASE WHEN b THEN n ELSE coalesce(NULL, " * 40 + "0" + ") END" * 40 + " AS x FROM t",
        lambda i, n, b: (i, n if b else 0),
    ),
}


@pytest.mark.parametrize(("query", "row"), CASES.values(), ids=CASES)
def test_large_expressions(query, row):
    with ev.connect() as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, b BOOLEAN)")
        view = db.create_view("v", query)
        total = DeltaSum.of(view)
        for change, part in ((db.insert, ROWS), (db.delete, ROWS[::2]), (db.insert, ROWS[:3:2])):
            total.add(change("t", part)["v"])
            total.check(view)
            held = [tuple(r.values())[:-1] for r in db.table_rows("t").to_pylist()]
            assert_view_equals(view, [found for r in held if (found := row(*r)) is not None])


def test_what_is_shared_fails_only_where_it_is_needed():
    """r is 1 / n, used on both sides of a guard: rows with n = 0 never need it."""
    with ev.connect() as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, b BOOLEAN)")
        levels = "".join(
            f", c{i + 1} AS (SELECT id, n, CASE WHEN n <> 0 THEN r + r END AS r FROM c{i})" for i in range(30)
        )
        view = db.create_view("v", f"WITH c0 AS (SELECT id, n, 1 / n AS r FROM t){levels} SELECT id, r FROM c30")
        db.insert("t", [(0, 0, True), (1, 2, True)])
        assert sorted(view) == [(0, None), (1, 2.0**29)]
        db.create_view(
            "w", f"WITH c0 AS (SELECT id, n, 1 / n AS r FROM t WHERE id > 0){levels} SELECT id, r, r + r AS s FROM c30"
        )
        with pytest.raises(ev.ChangeError) as caught:
            db.execute(
                "CREATE VIEW z AS WITH c0 AS (SELECT id, 1 / n AS r FROM t) SELECT id, r + r AS s, r + r + r AS q FROM c0"
            )
        assert caught.value.code == "DIVIDE_BY_ZERO"
