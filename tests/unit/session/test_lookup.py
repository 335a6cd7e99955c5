"""Lookups by the column sets that the tree supports."""

import datetime as dt
from decimal import Decimal

import pytest

import everview as ev


@pytest.fixture
def joined(db):
    db.execute("CREATE TABLE r (a INT, b STRING, c INT); CREATE TABLE s (b STRING, d INT)")
    v = db.create_view("v", "SELECT r.a, r.b, r.c, s.d FROM r JOIN s ON r.b = s.b")
    db.insert("r", [(1, "x", 1), (1, "x", 1), (2, "x", 2), (3, "y", 3), (4, None, 4)])
    db.insert("s", [("x", 10), ("x", 20), ("y", 30), ("z", 40), (None, 50)])
    return v


def test_every_supported_set_finds_what_a_scan_finds(joined, bag):
    from everview.plan.view_lookup import view_lookups

    supported = [lk.columns for lk in view_lookups(joined.plan)]
    assert ("b",) in supported
    result = joined.to_arrow().to_pylist()
    for columns in supported:
        for wanted in {tuple(row[c] for c in columns) for row in result}:
            found = joined.lookup(**dict(zip(columns, wanted, strict=True)))
            expected = [tuple(row.values()) for row in result if tuple(row[c] for c in columns) == wanted]
            assert bag(found) == sorted(expected, key=repr), columns
            assert found.schema == joined.schema


def test_duplicates_are_repeated(joined, bag):
    assert bag(joined.lookup(b="x")) == [(1, "x", 1, 10)] * 2 + [(1, "x", 1, 20)] * 2 + [
        (2, "x", 2, 10),
        (2, "x", 2, 20),
    ]


def test_values_without_a_result(db, joined):
    for absent in ("z", "never seen", "", None):
        assert joined.lookup(b=absent).num_rows == 0
    db.delete("s", [("y", 30)])
    assert joined.lookup(b="y").num_rows == 0
    db.insert("s", [("y", 31)])
    assert joined.lookup(B="y")["d"].to_pylist() == [31]


def test_other_sets_are_refused_with_the_list(joined):
    with pytest.raises(ev.AccessPatternError) as refusal:
        joined.lookup(a=1)
    assert refusal.value.code == "NO_INDEX"
    assert "(b)" in refusal.value.hint
    assert ("b",) in refusal.value.parameters["supported"]
    with pytest.raises(ev.AccessPatternError, match="no column `nope`"):
        joined.lookup(nope=1)


def test_a_lookup_needs_columns(joined):
    with pytest.raises(ev.AccessPatternError, match="needs columns") as refusal:
        joined.lookup()
    assert "(b)" in refusal.value.hint


@pytest.mark.parametrize("value", [1, b"x", 1.5, True])
def test_values_of_another_type_are_refused(joined, value):
    with pytest.raises(ev.AccessPatternError, match="STRING") as refusal:
        joined.lookup(b=value)
    assert refusal.value.code == "WRONG_TYPE"
    assert refusal.value.hint


def test_a_view_without_an_index_says_so(db):
    db.execute("CREATE TABLE g (src INT, dst INT)")
    v = db.create_view("v", "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src")
    with pytest.raises(ev.AccessPatternError, match="no index") as refusal:
        v.lookup(src=1)
    assert "to_arrow" in refusal.value.hint


def test_groups_are_found_by_their_keys(db, bag):
    db.execute("CREATE TABLE t (g STRING, h INT, x INT)")
    v = db.create_view("v", "SELECT h, g AS name, SUM(x) AS total, COUNT(*) AS n FROM t GROUP BY g, h")
    db.insert("t", [("a", 1, 5), ("a", 1, 6), ("a", 2, 7), (None, 1, 8)])
    assert bag(v.lookup(name="a", h=1)) == [(1, "a", 11, 2)]
    assert bag(v.lookup(name=None, h=1)) == [(1, None, 8, 1)]
    assert v.lookup(name="b", h=1).num_rows == 0
    with pytest.raises(ev.AccessPatternError):
        v.lookup(h=1)
    db.delete("t", [("a", 1, 5), ("a", 1, 6)])
    assert v.lookup(name="a", h=1).num_rows == 0


def test_groups_counted_in_the_tree_are_found(db, bag):
    db.execute("CREATE TABLE r (a INT, b INT); CREATE TABLE s (a INT, c INT)")
    v = db.create_view("v", "SELECT r.a, COUNT(*) AS n FROM r JOIN s ON r.a = s.a GROUP BY r.a")
    db.apply({"r": [(1, 1), (1, 2)], "s": [(1, 1), (1, 2), (2, 2)]})
    assert bag(v.lookup(a=1)) == [(1, 4)]
    assert v.lookup(a=2).num_rows == 0


@pytest.mark.parametrize(
    ("sql_type", "values", "absent"),
    [
        ("DATE", [dt.date(2020, 1, 1), dt.date(1969, 1, 1)], dt.date(2021, 1, 1)),
        ("TIMESTAMP", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], dt.datetime(2020, 1, 2)),
        ("DECIMAL(10, 2)", [Decimal("1.50"), Decimal("-1.00")], 7),
        ("DECIMAL(38, 2)", [Decimal("123456789012345678901234567890.50")], Decimal(1)),
        ("DOUBLE", [1.5, float("inf")], -0.5),
        ("BOOLEAN", [True], False),
        ("CHAR(3)", ["a  "], "b"),
        ("SMALLINT", [-5], 5),
        ("TINYINT", [-128, 127], 5),
        ("BINARY", [b"", b"\xff\x00"], b"\xff"),
        ("TIMESTAMP_NTZ", [dt.datetime(2024, 3, 31, 2, 30)], dt.datetime(2024, 3, 31, 3, 30)),
    ],
)
def test_every_type_can_be_looked_up(db, sql_type, values, absent):
    db.execute(f"CREATE TABLE r (k {sql_type}, a INT); CREATE TABLE s (k {sql_type}, b INT)")
    v = db.create_view("v", "SELECT r.k, r.a, s.b FROM r JOIN s ON r.k = s.k")
    rows = [(value, i) for i, value in enumerate(values)]
    db.apply({"r": rows, "s": rows})
    for value, i in rows:
        assert v.lookup(k=value).to_pylist() == [{"k": value, "a": i, "b": i}]
    assert v.lookup(k=absent).num_rows == 0


def test_zero_nan_and_padding_are_looked_up_as_sql_compares_them(db):
    db.execute("CREATE TABLE r (k DOUBLE, c CHAR(3)); CREATE TABLE s (k DOUBLE); CREATE TABLE u (c CHAR(3))")
    numbers = db.create_view("numbers", "SELECT r.k, r.c FROM r JOIN s ON r.k = s.k")
    texts = db.create_view("texts", "SELECT r.k, r.c FROM r JOIN u ON r.c = u.c")
    db.apply({"r": [(-0.0, "a"), (float("nan"), "b")], "s": [(0.0,), (float("nan"),)], "u": [("a",)]})
    assert (
        numbers.lookup(k=0.0).num_rows
        == numbers.lookup(k=-0.0).num_rows
        == numbers.lookup(k=float("nan")).num_rows
        == 1
    )
    assert texts.lookup(c="a").num_rows == texts.lookup(c="a  ").num_rows == 1


def test_looking_up_unknown_texts_keeps_nothing(db, joined):
    before = db._state.kernel.texts_size()[0]
    for i in range(100):
        joined.lookup(b=f"unknown {i}")
    db.apply({})
    assert db._state.kernel.texts_size()[0] == before
