"""row_number(): the first rows of each group, QUALIFY, and numbers that are shown."""

import everview as ev
import pytest

DDL = "CREATE TABLE t (g INT, a INT, s STRING)"
LATEST = "SELECT g, a FROM (SELECT g, a, row_number() OVER (PARTITION BY g ORDER BY a DESC) AS n FROM t) WHERE n = 1"


def read(view):
    return [tuple(row.values()) for row in view.to_arrow().to_pylist()]


def change(db, view, *changes):
    """The delta of a view for changes (g, a, multiplicity)."""
    batch = [{"g": g, "a": a, "s": None, "_multiplicity": n} for g, a, n in changes]
    return sorted((tuple(row.values()) for row in db.apply({"t": batch})[view.name].to_pylist()), key=repr)


@pytest.fixture
def make(db):
    db.execute(DDL)
    return lambda sql, **options: db.create_view(f"v{len(db.views)}", sql, **options)


def test_the_first_of_each_group(db, make):
    view = make(LATEST, on_warning="refuse")
    assert change(db, view, (1, 10, 1), (1, 20, 1), (2, 5, 1), (None, 1, 1)) == [(1, 20, 1), (2, 5, 1), (None, 1, 1)]
    assert change(db, view, (1, 15, 1), (2, 1, 1)) == []
    assert change(db, view, (1, 20, -1)) == [(1, 15, 1), (1, 20, -1)]
    assert change(db, view, (2, 5, -1), (2, 1, -1)) == [(2, 5, -1)]
    assert change(db, view, (None, 2, 1)) == [(None, 1, -1), (None, 2, 1)]
    assert read(view) == [(None, 2), (1, 15)]
    assert view.count() == 2
    assert read(make(LATEST)) == read(view)  # one that finds the rows there
    assert change(db, view, (1, 10, -1), (1, 15, -1), (None, 1, -1), (None, 2, -1)) == [(1, 15, -1), (None, 2, -1)]
    assert (read(view), view.count(), view.metrics().state_rows) == ([], 0, 0)


def test_qualify(db, make):
    view = make("SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY a) <= 2 AND a > 1")
    assert change(db, view, (1, 1, 1), (1, 2, 1), (1, 3, 1), (2, 7, 1)) == [(2, 1), (7, 1)]
    assert change(db, view, (1, 1, -1)) == [(3, 1)]
    alias = make("SELECT a, row_number() OVER (ORDER BY a) AS n FROM t QUALIFY n BETWEEN 2 AND 3")
    assert read(alias) == [(3, 2), (7, 3)]
    plain = make("SELECT a FROM t QUALIFY a > 5")
    assert read(plain) == [(7,)]


def test_copies_of_a_row_have_numbers_of_their_own(db, make):
    view = make("SELECT g, row_number() OVER (ORDER BY g) AS n FROM t")
    assert change(db, view, (1, 0, 3)) == [(1, 1, 1), (1, 2, 1), (1, 3, 1)]
    assert change(db, view, (0, 0, 1)) == [(0, 1, 1), (1, 1, -1), (1, 4, 1)]
    assert change(db, view, (1, 0, -2)) == [(1, 3, -1), (1, 4, -1)]
    assert read(view) == [(0, 1), (1, 2)]
    assert view.count() == 2


def test_shown_numbers_are_of_the_rows_inside(db, make):
    view = make(
        "SELECT * FROM (SELECT g, a, row_number() OVER (PARTITION BY g ORDER BY a) AS n FROM t) WHERE n > 1 AND n < 4"
    )
    assert change(db, view, *[(1, a, 1) for a in (10, 20, 30, 40)]) == [(1, 20, 2, 1), (1, 30, 3, 1)]
    assert change(db, view, (1, 25, 1)) == [(1, 25, 3, 1), (1, 30, 3, -1)]
    assert change(db, view, (1, 10, -1)) == [(1, 20, 2, -1), (1, 25, 2, 1), (1, 25, 3, -1), (1, 30, 3, 1)]
    assert change(db, view, (1, 50, 1), (1, 40, -1)) == []
    assert not view.plan.view.warnings


def test_numbers_without_a_limit_are_a_warning(db, make):
    sql = "SELECT a, row_number() OVER (PARTITION BY g ORDER BY a) AS n FROM t"
    assert "number of every row behind it in its partition" in make(sql).plan.view.warnings[0]
    with pytest.raises(ev.UnsupportedQueryError) as error:
        make(sql, on_warning="refuse")
    assert error.value.code == "VIEW_WARNING"


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ("ORDER BY a", [None, -1, 2]),
        ("ORDER BY a DESC", [2, -1, None]),
        ("ORDER BY a NULLS LAST", [-1, 2, None]),
        ("ORDER BY a DESC NULLS FIRST", [None, 2, -1]),
        ("ORDER BY abs(a) DESC NULLS LAST, g", [2, -1, None]),
    ],
)
def test_nulls(db, make, over, expected):
    db.insert("t", [(1, a, None) for a in (2, None, -1)])
    view = make(f"SELECT a, row_number() OVER ({over}) AS n FROM t")
    assert read(view) == [(a, n) for n, a in enumerate(expected, 1)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT g, SUM(a) AS s FROM t GROUP BY g QUALIFY row_number() OVER (ORDER BY SUM(a) DESC) = 1", [(1, 30)]),
        ("SELECT g + 1 AS k, COUNT(*) + row_number() OVER (ORDER BY g + 1) AS n FROM t GROUP BY g + 1", [(2, 3), (3, 3)]),
        ("SELECT DISTINCT row_number() OVER (PARTITION BY g ORDER BY a) AS n FROM t", [(1,), (2,)]),
        ("SELECT a FROM t ORDER BY row_number() OVER (ORDER BY a DESC) LIMIT 1", [(20,)]),
        ("SELECT a, row_number() OVER (ORDER BY a) AS n, row_number() OVER (ORDER BY a DESC) AS m FROM t", [(5, 1, 3), (10, 2, 2), (20, 3, 1)]),
        ("SELECT q.a, t.s FROM t JOIN (SELECT g, a, row_number() OVER (PARTITION BY g ORDER BY a) AS n FROM t) q ON q.g = t.g AND q.n = 1", [(5, "z"), (10, "x"), (10, "y")]),
        ("SELECT g FROM t WHERE a IN (SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY a) = 1)", [(1,), (2,)]),
        ("SELECT s FROM t QUALIFY row_number() OVER (PARTITION BY s, g ORDER BY s) = 1 AND row_number() OVER (ORDER BY a) > 1", [("x",), ("y",)]),
    ],
)  # fmt: skip
def test_results(db, make, sql, expected):
    db.insert("t", [(1, 10, "x"), (1, 20, "y"), (2, 5, "z")])
    assert sorted(read(make(sql))) == expected


def test_texts_part_rows(db, make):
    view = make("SELECT s, a FROM t QUALIFY row_number() OVER (PARTITION BY s, g ORDER BY a) = 1")
    texts = ["", "a", "a\0", "a\0b", "ab", None, "b"]
    db.insert("t", [(g, a, s) for s in texts for g in (1, 2) for a in (3, 4)])
    assert sorted(read(view), key=repr) == sorted(((s, 3) for s in texts for _ in (1, 2)), key=repr)


def test_many_numbers_are_read_in_pieces(db, make):
    db.insert("t", [(g, a, None) for g in range(7) for a in range(500)])
    view = make("SELECT g, a, row_number() OVER (PARTITION BY g ORDER BY a DESC) AS n FROM t")
    expected = [(g, 499 - n, n + 1) for g in range(7) for n in range(500)]
    assert read(view) == expected
    assert list(map(tuple, view)) == expected
