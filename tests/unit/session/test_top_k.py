"""ORDER BY with LIMIT and OFFSET: which rows are inside, in which order they are read, what enters and leaves."""

from datetime import UTC, date, datetime
from decimal import Decimal

import everview as ev
import pytest

DDL = "CREATE TABLE t (a INT, b INT, s STRING, d DOUBLE); CREATE TABLE u (a INT, c INT)"


@pytest.fixture
def top(db):
    db.execute(DDL)

    def create(sql, **options):
        return db.create_view(f"v{len(db.views)}", sql, **options)

    return create


def read(view):
    return [tuple(row.values()) for row in view.to_arrow().to_pylist()]


def change(db, view, rows, sign=1):
    """The delta of a view for rows (a, b) of t that come or go."""
    batch = [{"a": a, "b": b, "s": None, "d": None, "_multiplicity": sign} for a, b in rows]
    return sorted(tuple(row.values()) for row in db.apply({"t": batch})[view.name].to_pylist())


def test_a_row_that_leaves_lets_the_next_one_in(db, top):
    view = top("SELECT a, b FROM t ORDER BY b DESC LIMIT 2")
    assert change(db, view, [(1, 10), (2, 20), (3, 30)]) == [(2, 20, 1), (3, 30, 1)]
    assert change(db, view, [(4, 5)]) == []
    assert change(db, view, [(3, 30)], -1) == [(1, 10, 1), (3, 30, -1)]
    assert read(view) == [(2, 20), (1, 10)]
    assert change(db, view, [(1, 10), (2, 20), (4, 5)], -1) == [(1, 10, -1), (2, 20, -1)]
    assert (read(view), view.count(), view.metrics().state_rows) == ([], 0, 0)


def test_copies_of_a_row_on_both_sides_of_the_limit(db, top):
    view = top("SELECT a, b FROM t ORDER BY a LIMIT 4")
    assert change(db, view, [(1, 1), *[(2, 2)] * 5]) == [(1, 1, 1), (2, 2, 3)]
    assert change(db, view, [(0, 0)]) == [(0, 0, 1), (2, 2, -1)]
    assert change(db, view, [(2, 2)] * 2, -1) == []
    assert change(db, view, [(2, 2)] * 2, -1) == [(2, 2, -1)]
    assert view.to_arrow(multiplicity=True).to_pylist()[-1] == {"a": 2, "b": 2, "_multiplicity": 1}
    assert view.count() == 3


def test_offset(db, top):
    view = top("SELECT a, b FROM t ORDER BY a LIMIT 2 OFFSET 2")
    assert change(db, view, [(1, 1), (2, 2)]) == []
    assert change(db, view, [(3, 3), (4, 4), (5, 5)]) == [(3, 3, 1), (4, 4, 1)]
    assert change(db, view, [(0, 0)]) == [(2, 2, 1), (4, 4, -1)]
    assert change(db, view, [(0, 0), (1, 1), (2, 2)], -1) == [(2, 2, -1), (3, 3, -1), (5, 5, 1)]
    rest = top("SELECT a FROM t ORDER BY a DESC OFFSET 1")
    assert read(rest) == [(4,), (3,)]


@pytest.mark.parametrize(
    ("limit", "rows"),
    [("LIMIT 0", []), ("LIMIT ALL", [1, 2, 3]), ("LIMIT 99", [1, 2, 3]), ("LIMIT 5 OFFSET 99", []), ("LIMIT (1)", [1])],
)
def test_limits_beyond_the_rows(db, top, limit, rows):
    view = top(f"SELECT a FROM t ORDER BY a {limit}")
    db.insert("t", [(a, 0, None, None) for a in (3, 1, 2)])
    assert [a for (a,) in read(view)] == rows
    assert read(top(f"SELECT a FROM t ORDER BY a {limit}")) == read(view)  # one that finds the rows there
    assert view.count() == len(rows)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("a", [None, -1, 2]),
        ("a DESC", [2, -1, None]),
        ("a NULLS LAST", [-1, 2, None]),
        ("a DESC NULLS FIRST", [None, 2, -1]),
        ("-a", [None, 2, -1]),
    ],
)
def test_where_null_stands(db, top, order, expected):
    view = top(f"SELECT a FROM t ORDER BY {order} LIMIT 3")
    db.insert("t", [(2, 0, None, None), (None, 0, None, None), (-1, 0, None, None)])
    assert [a for (a,) in read(view)] == expected


def test_values_are_ordered_as_in_spark(db, top):
    texts = top("SELECT s FROM t ORDER BY s LIMIT 3")
    numbers = top("SELECT d FROM t ORDER BY d DESC LIMIT 3")
    nan, inf = float("nan"), float("inf")
    rows = [("b", inf), ("B", 1.0), ("ä", nan), ("a", -0.0), ("", 0.0)]
    for s, d in rows:  # texts are not ordered by when they come
        db.insert("t", [(0, 0, s, d)])
    assert [s for (s,) in read(texts)] == ["", "B", "a"]
    assert [str(d) for (d,) in read(numbers)] == ["nan", "inf", "1.0"]
    assert [str(d) for (d,) in read(top("SELECT d FROM t ORDER BY d LIMIT 3"))] == ["0.0", "0.0", "1.0"]


def test_ties_are_broken_by_content_whatever_the_order_of_arrival(db, top):
    rows = [(i % 3, -i, None, None) for i in range(12)]
    one = top("SELECT a, b FROM t ORDER BY a LIMIT 6")
    db.insert("t", rows)
    with ev.connect() as other:
        other.execute(DDL)
        two = other.create_view("v0", one.sql)
        for row in reversed(rows):
            other.insert("t", [row])
        assert read(one) == read(two) == [(0, -9), (0, -6), (0, -3), (0, 0), (1, -10), (1, -7)]
    assert read(top("SELECT a, b FROM t LIMIT 2")) == [(0, -9), (0, -6)]


QUERIES = {
    "SELECT a FROM t ORDER BY b LIMIT 2": [(2,), (3,)],
    "SELECT a AS b FROM t ORDER BY b LIMIT 2": [(1,), (2,)],  # the name of the result goes before the table's
    "SELECT a AS b FROM t ORDER BY t.b LIMIT 2": [(2,), (3,)],
    "SELECT -a AS a FROM t ORDER BY a + 1 LIMIT 2": [(-3,), (-2,)],
    "SELECT a, b FROM t ORDER BY ALL DESC LIMIT 1": [(3, 10)],
    "SELECT a, b FROM t ORDER BY 2 LIMIT 1": [(2, 10)],
    "SELECT b FROM t GROUP BY b ORDER BY COUNT(*) DESC, b LIMIT 1": [(10,)],
    "SELECT SUM(b) AS b FROM t GROUP BY a ORDER BY SUM(b) DESC LIMIT 1": [(30,)],
    "SELECT COUNT(*) AS n FROM t ORDER BY n LIMIT 1": [(3,)],
    "SELECT DISTINCT a FROM t ORDER BY a % 2, a DESC LIMIT 2": [(2,), (3,)],
    "(SELECT a FROM t ORDER BY a DESC) LIMIT 1": [(3,)],
    "(SELECT a FROM t ORDER BY a DESC LIMIT 2) ORDER BY a LIMIT 1": [(2,)],
    "(SELECT a FROM t ORDER BY a DESC LIMIT 2) ORDER BY a": [(2,), (3,)],
    "(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL (SELECT c FROM u ORDER BY c DESC LIMIT 1) ORDER BY a DESC": [
        (7,),
        (1,),
    ],
    "SELECT a FROM t UNION ALL SELECT c FROM u ORDER BY -a LIMIT 2": [(7,), (5,)],
    "WITH w AS (SELECT a FROM t ORDER BY a LIMIT 2) SELECT x.a FROM w x JOIN w y ON x.a = y.a ORDER BY 1": [(1,), (2,)],
    "SELECT t.a, c FROM t JOIN u ON t.a = u.a ORDER BY c DESC LIMIT 1": [(1, 7)],
    "SELECT a FROM t WHERE a IN (SELECT a FROM u ORDER BY c LIMIT 1)": [(2,)],
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a LIMIT 1) ORDER BY a": [(1,), (2,)],
    "SELECT COUNT(*) AS n FROM (SELECT a FROM t LIMIT 2) q": [(2,)],
}


@pytest.mark.parametrize(("sql", "expected"), QUERIES.items(), ids=QUERIES)
def test_queries(db, top, sql, expected):
    view = top(sql)
    db.apply({"t": [(1, 30, "x", 1.0), (2, 10, "y", 2.0), (3, 10, "z", 3.0)], "u": [(1, 7), (2, 5)]})
    assert read(view) == expected
    assert [tuple(row) for row in view] == expected
    assert [tuple(r.values()) for batch in view.batches(rows=1) for r in batch.to_pylist()] == expected
    assert read(top(sql)) == expected


def test_several_results_of_a_name_are_ambiguous(top):
    with pytest.raises(ev.SchemaError, match="ambiguous"):
        top("SELECT 1 AS n FROM (SELECT a AS x, b AS x FROM t ORDER BY x LIMIT 1) q")


def test_views_over_it_see_what_enters_and_leaves(db, top):
    view = top("SELECT a, b FROM t ORDER BY b DESC LIMIT 2")
    over = db.create_view("over", f"SELECT COUNT(*) AS n, SUM(b) AS s FROM {view.name}")
    db.insert("t", [(1, 10, None, None), (2, 20, None, None), (3, 30, None, None)])
    assert read(over) == [(2, 50)]
    change(db, view, [(3, 30)], -1)
    assert read(over) == [(2, 30)]


def test_what_is_kept_is_told(top):
    plain = top("SELECT a FROM t ORDER BY b LIMIT 2")
    assert "keeps the rows of t in order" in plain.explain()
    assert plain.plan.view.warnings == ()
    groups = top("SELECT t.a, COUNT(*) AS n FROM t JOIN u ON t.a = u.a GROUP BY t.a ORDER BY n DESC LIMIT 2")
    assert "keeps the groups in order" in groups.explain()
    assert "read in   the order of n DESC" in groups.explain()
    assert groups.plan.view.warnings == ()
    joined = top("SELECT t.a, u.c FROM t JOIN u ON t.a = u.a LIMIT 2")
    assert "keeps the whole result of the join in order" in joined.explain()
    (warning,) = joined.plan.view.warnings
    assert "LIMIT keeps the whole result of the join of `t`, `u`" in warning
    with pytest.raises(ev.UnsupportedQueryError, match="LIMIT keeps the whole result"):
        top(joined.sql, on_warning="refuse")


def test_there_is_no_lookup(top):
    view = top("SELECT a, b FROM t ORDER BY a LIMIT 2")
    with pytest.raises(ev.AccessPatternError):
        view.lookup(a=1)


def test_a_snapshot_gives_the_same_rows(db, top, tmp_path):
    view = top("SELECT a, b FROM t ORDER BY a LIMIT 2 OFFSET 1")
    db.insert("t", [(i % 4, i, None, None) for i in range(9)])
    db.save(tmp_path / "saved")
    with ev.restore(tmp_path / "saved") as again:
        assert read(again.view(view.name)) == read(view) == [(0, 4), (0, 8)]


def test_a_refused_batch_leaves_what_is_inside(db, top):
    view = top("SELECT a, b, 10 / b AS q FROM t ORDER BY a LIMIT 2")
    over = db.create_view("over", f"SELECT a, 10 / (b - 1) AS r FROM {view.name}")
    db.insert("t", [(5, 5, None, None), (6, 6, None, None)])
    before = (read(view), read(over))
    for rows in ([(1, 2, None, None), (2, 1, None, None)], [(9, 0, None, None)]):
        with pytest.raises(ev.ChangeError):
            db.insert("t", rows)
        assert (read(view), read(over)) == before
    db.insert("t", [(9, 1, None, None)])  # it fails above the limit, which it does not reach
    assert (read(view), read(over)) == before


def test_every_type_comes_back_as_it_was(db):
    columns = (
        "a BOOLEAN, b TINYINT, c SMALLINT, d FLOAT, e DOUBLE, f DECIMAL(10, 2), g DECIMAL(38, 5), h STRING, i CHAR(3), j BINARY, "
        "k DATE, l TIMESTAMP, m TIMESTAMP_NTZ, n BIGINT"
    )
    db.execute(f"CREATE TABLE w ({columns})")
    view = db.create_view("v", "SELECT *, NULL AS z FROM w ORDER BY g DESC, k NULLS LAST LIMIT 4 OFFSET 1")
    rows = [
        (
            *(
                i % 2 == 0,
                i - 3,
                -i,
                i / 2,
                -i / 4,
                Decimal(i) / 4,
                Decimal(-i) * 10**20,
                "ä" * i,
                "abc",
                b"\0\xff" * i,
            ),
            *(date(1966 + i, 1, 1), datetime(1966 + i, 1, 1, tzinfo=UTC), datetime(1950 + i, 1, 1), -i),
        )
        for i in range(4)
    ]
    db.insert("w", [*rows, (None,) * 14])
    assert view.to_arrow().schema == view.schema
    assert read(view) == [(*row, None) for row in rows[1:]] + [(None,) * 15]


def test_more_columns_than_a_mask_has_bits(db):
    db.execute(f"CREATE TABLE w ({', '.join(f'c{i} INT' for i in range(130))})")
    view = db.create_view("v", "SELECT * FROM w ORDER BY c129 DESC, c70 LIMIT 2")
    rows = [tuple(None if (i + j) % 3 else i * j for i in range(130)) for j in range(6)]
    db.insert("w", rows)
    assert read(view) == [rows[3], rows[0]]
