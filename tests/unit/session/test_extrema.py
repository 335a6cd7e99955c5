"""MIN and MAX: of every type, under deletes, and what of them a delta shows."""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, isnan, nan

import everview as ev
import pytest

DDL = "CREATE TABLE t (g INT, x INT); CREATE TABLE u (g INT, y INT)"


@pytest.fixture
def tables(db):
    db.execute(DDL)
    return db


def read(view):
    return [tuple(row.values()) for row in view.to_arrow().to_pylist()]


def change(db, view, rows, sign=1, table="t"):
    columns = {"t": "gx", "u": "gy"}[table]
    batch = [dict(zip(columns, row, strict=True), _multiplicity=sign) for row in rows]
    return sorted((tuple(row.values()) for row in db.apply({table: batch})[view.name].to_pylist()), key=repr)


def test_the_next_value_comes_when_the_least_leaves(tables):
    view = tables.create_view("v", "SELECT g, MIN(x) AS low, MAX(x) AS high FROM t GROUP BY g")
    assert change(tables, view, [(1, 5), (1, 3), (1, 9), (2, None)]) == [(1, 3, 9, 1), (2, None, None, 1)]
    assert change(tables, view, [(1, 3), (1, 4)]) == [], "a change between the ends"
    assert change(tables, view, [(1, 3)], -1) == [], "there is another one"
    assert change(tables, view, [(1, 3)], -1) == [(1, 3, 9, -1), (1, 4, 9, 1)]
    assert change(tables, view, [(1, 4), (1, 5)], -1) == [(1, 4, 9, -1), (1, 9, 9, 1)]
    assert change(tables, view, [(1, 9)], -1) == [(1, 9, 9, -1)]
    assert read(view) == [(2, None, None)]
    assert change(tables, view, [(2, None)], -1) == [(2, None, None, -1)]
    assert view.metrics().state_rows == 0


def test_of_no_rows_it_is_null(tables):
    view = tables.create_view("v", "SELECT MIN(x) AS low, MAX(x + 1) AS high, COUNT(*) AS n FROM t")
    assert read(view) == [(None, None, 0)]
    change(tables, view, [(1, 2), (1, 7)])
    assert read(view) == [(2, 8, 2)]
    change(tables, view, [(1, 2), (1, 7)], -1)
    assert read(view) == [(None, None, 0)]


def test_over_a_join_and_above_groups(tables):
    joined = tables.create_view(
        "joined", "SELECT t.g, MIN(u.y - t.x) AS d FROM t JOIN u ON t.g = u.g GROUP BY t.g HAVING MAX(u.y) > 1"
    )
    above = tables.create_view("above", "SELECT MAX(n) AS most FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) c")
    late = "SELECT MIN(d) AS d FROM joined"
    change(tables, joined, [(1, 5), (1, 3), (2, 1)])
    change(tables, joined, [(1, 1), (1, 4), (2, 1)], table="u")
    assert read(joined) == [(1, -4)]
    assert read(above) == [(2,)]
    assert read(tables.create_view("late", late)) == [(-4,)]
    change(tables, joined, [(1, 5)], -1)
    assert (read(joined), read(above), read(tables.view("late"))) == ([(1, -2)], [(1,)], [(-2,)])


VALUES = {
    "BOOLEAN": [True, False],
    "TINYINT": [3, -7, 127, -128],
    "BIGINT": [2**40, -(2**62), 0],
    "FLOAT": [1.5, -2.5, inf, -inf, 0.0],
    "DOUBLE": [1.5, -2.5, inf, -inf, 0.0],
    "DECIMAL(9,2)": [Decimal("1.20"), Decimal("-3.00")],
    "DECIMAL(38,2)": [Decimal("1e30"), Decimal("-1e30"), Decimal("0.01")],
    "STRING": ["b", "", "ä", "a\0", "aa", "Z"],
    "CHAR(3)": ["b", "aa", "Z"],
    "BINARY": [b"\xff", b"", b"\0", b"\0\0"],
    "DATE": [date(2024, 1, 2), date(1969, 5, 6)],
    "TIMESTAMP": [datetime(2024, 1, 2, tzinfo=UTC), datetime(1960, 1, 2, tzinfo=UTC)],
}


@pytest.mark.parametrize("sql_type", VALUES)
def test_every_type_has_an_order(db, sql_type):
    values = VALUES[sql_type]
    db.execute(f"CREATE TABLE w (v {sql_type})")
    view = db.create_view("v", "SELECT MIN(v) AS low, MAX(v) AS high FROM w")
    db.apply({"w": [{"v": v} for v in [*values, None]]})
    pad = (lambda v: v.ljust(3)) if sql_type == "CHAR(3)" else (lambda v: v)
    order = sorted(map(pad, values), key=lambda v: v.encode() if isinstance(v, str) else v)
    while order:
        assert read(view) == [(order[0], order[-1])]
        gone = order.pop(0 if len(order) % 2 else -1)
        db.apply({"w": [{"v": gone, "_multiplicity": -1}]})
    assert read(view) == [(None, None)]


def test_nan_is_above_all_numbers(db):
    db.execute("CREATE TABLE w (v DOUBLE)")
    view = db.create_view("v", "SELECT MIN(v) AS low, MAX(v) AS high FROM w")
    db.apply({"w": [{"v": nan}, {"v": inf}, {"v": -0.0}]})
    ((low, high),) = read(view)
    assert (low, isnan(high)) == (0.0, True)
    db.apply({"w": [{"v": nan, "_multiplicity": -1}, {"v": 0.0, "_multiplicity": -1}]})
    assert read(view) == [(inf, inf)]


def test_a_refused_batch_changes_nothing(tables):
    view = tables.create_view("v", "SELECT g, MIN(10 / x) AS low FROM t GROUP BY g")
    change(tables, view, [(1, 2), (1, 5)])
    with pytest.raises(ev.ChangeError) as refusal:
        tables.apply({"t": [{"g": 1, "x": 10}, {"g": 1, "x": 0}]})
    assert refusal.value.code == "DIVIDE_BY_ZERO"
    assert read(view) == [(1, 2.0)]
    assert change(tables, view, [(1, 5)], -1) == [(1, 2.0, -1), (1, 5.0, 1)]
