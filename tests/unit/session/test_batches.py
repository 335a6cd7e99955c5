"""apply() takes every form of batch, and the same rows in every form mean the same."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everview as ev

ROWS = [(1, "a"), (2, None), (3, "c")]
TABLE = pa.table({"k": pa.array([1, 2, 3]), "s": pa.array(["a", None, "c"])})


class Stream:
    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


class Array:
    def __arrow_c_array__(self, requested_schema=None):
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


FORMS = {
    "pyarrow.Table": lambda: TABLE,
    "pyarrow.Table in chunks": lambda: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "pyarrow.RecordBatch": lambda: TABLE.to_batches()[0],
    "pyarrow.RecordBatchReader": TABLE.to_reader,
    "a slice of a longer batch": lambda: (
        pa.concat_tables([TABLE, TABLE, TABLE]).combine_chunks().to_batches()[0].slice(3, 3)
    ),
    "columns in another order and case": lambda: TABLE.select(["s", "k"]).rename_columns(["S", "K"]),
    "narrower and wider types": lambda: TABLE.cast(pa.schema([("k", pa.int8()), ("s", pa.large_string())])),
    "dictionary": lambda: TABLE.set_column(1, "s", TABLE["s"].dictionary_encode()),
    "fields declared NOT NULL": lambda: TABLE.cast(
        pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.string())])
    ),
    "__arrow_c_stream__": Stream,
    "__arrow_c_array__": Array,
    "pandas": TABLE.to_pandas,
    "pandas with an index": lambda: TABLE.to_pandas().set_axis([7, 8, 9]),
    "pandas with categories": lambda: TABLE.to_pandas().astype({"s": "category"}),
    "pandas with its own types": lambda: TABLE.to_pandas().convert_dtypes(),
    "pandas with Arrow types": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with integers that became floats": lambda: TABLE.to_pandas().astype({"k": "float64"}),
    "pandas with objects": lambda: TABLE.to_pandas().astype(object),
    "polars": lambda: pl.DataFrame({"k": [1, 2, 3], "s": ["a", None, "c"]}),
    "polars, lazy": lambda: pl.DataFrame({"k": [1, 2, 3], "s": ["a", None, "c"]}).lazy(),
    "polars, Categorical": lambda: pl.DataFrame(ROWS, schema={"k": pl.Int64, "s": pl.Categorical}, orient="row"),
    "polars, Enum": lambda: pl.DataFrame(ROWS, schema={"k": pl.UInt8, "s": pl.Enum(["c", "b", "a"])}, orient="row"),
    "polars in chunks": lambda: pl.concat(
        [pl.DataFrame([row], schema={"k": pl.Int64, "s": pl.Categorical}, orient="row") for row in ROWS], rechunk=False
    ),
    "a generator of tuples": lambda: (row for row in ROWS),
    "a generator of dicts": lambda: ({"k": k, "s": s} for k, s in ROWS),
    "an iterator": lambda: iter(ROWS),
    "a set": lambda: set(ROWS),
    "the values of a dict": lambda: dict(enumerate(ROWS)).values(),
    "columns as lists": lambda: {"k": [1, 2, 3], "S": ["a", None, "c"]},
    "columns of every kind": lambda: {"k": np.array([1, 2, 3], dtype="int16"), "s": pl.Series(["a", None, "c"])},
    "columns of pandas": lambda: {"k": pd.Series([1.0, 2, 3]), "s": pd.Series(["a", np.nan, "c"])},
    "columns of pyarrow": lambda: {"k": TABLE["k"].chunk(0), "s": TABLE["s"]},
    "columns as ranges and generators": lambda: {"k": range(1, 4), "s": (s for _, s in ROWS)},
    "dicts with pandas' missing values": lambda: [{"k": 1, "s": "a"}, {"k": 2, "s": pd.NA}, {"k": 3, "s": "c"}],
    "dicts": lambda: [{"k": k, "s": s} for k, s in ROWS],
    "dicts that leave NULL out": lambda: [{"k": 1, "s": "a"}, {"k": 2}, {"k": 3, "s": "c"}],
    "tuples": lambda: list(ROWS),
    "a tuple of lists": lambda: tuple(map(list, ROWS)),
}


@pytest.fixture
def view(db):
    db.execute("CREATE TABLE t (k BIGINT NOT NULL, s STRING)")
    return db.create_view("v", "SELECT k, s FROM t")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_batch(db, view, bag, form):
    delta = db.apply({"t": FORMS[form]()})["v"]
    assert bag(delta) == [(1, "a", 1), (2, None, 1), (3, "c", 1)]
    assert bag(view.to_arrow()) == sorted(ROWS, key=repr)
    assert bag(db.delete("t", FORMS[form]() if "leave" not in form else ROWS)["v"]) == [
        (1, "a", -1),
        (2, None, -1),
        (3, "c", -1),
    ]
    assert view.count() == 0


@pytest.mark.parametrize(
    "empty",
    [
        [],
        (),
        TABLE.slice(0, 0),
        TABLE.to_batches()[0].slice(0, 0),
        TABLE.slice(0, 0).to_pandas().astype({"k": "int64"}),
        TABLE.schema.empty_table(),
        pd.DataFrame(),
        pd.DataFrame(columns=["k", "s"]),
        pd.DataFrame({"k": [], "s": []}),
        pd.DataFrame({"k": pd.Series([], dtype="datetime64[ns]"), "s": pd.Series([], dtype="int8")}),
        pl.DataFrame(),
        pl.DataFrame(schema={"k": pl.Int8, "s": pl.Categorical}),
        {},
        {"k": [], "s": []},
        iter(()),
    ],
    ids=lambda e: type(e).__module__ + "." + type(e).__name__,
)
def test_an_empty_batch_changes_nothing(db, view, empty):
    db.insert("t", ROWS)
    assert db.apply({"t": empty})["v"].num_rows == 0
    assert view.count() == 3


def test_an_empty_commit(db, view):
    delta = db.apply({})["v"]
    assert delta.num_rows == 0
    assert delta.schema.names == ["k", "s", "_multiplicity"]


def test_deltas_have_the_schema_of_the_view_and_a_multiplicity(db, view):
    expected = view.schema.append(pa.field("_multiplicity", pa.int64(), nullable=False))
    assert db.insert("t", ROWS)["v"].schema == expected
    assert db.insert("t", [])["v"].schema == expected


def test_change_type(db, view, bag):
    db.insert("t", ROWS)
    changes = [
        {"k": 1, "s": "a", "_change_type": "update_preimage"},
        {"k": 1, "s": "b", "_change_type": "update_postimage"},
        {"k": 2, "s": None, "_change_type": "delete"},
        {"k": 4, "s": "d", "_change_type": "insert"},
    ]
    assert bag(db.apply({"t": changes})["v"]) == [(1, "a", -1), (1, "b", 1), (2, None, -1), (4, "d", 1)]
    assert bag(view.to_arrow()) == [(1, "b"), (3, "c"), (4, "d")]


def test_multiplicity(db, view, bag):
    assert bag(db.apply({"t": [{"k": 1, "s": "a", "_multiplicity": 3}]})["v"]) == [(1, "a", 3)]
    assert bag(db.apply({"t": [{"k": 1, "s": "a", "_multiplicity": -2}]})["v"]) == [(1, "a", -2)]
    assert bag(view.to_arrow()) == [(1, "a")]
    assert db.apply({"t": [{"k": 9, "s": "z", "_multiplicity": 0}]})["v"].num_rows == 0


def test_multiplicity_of_any_integer_type(db, view, bag):
    batch = TABLE.append_column("_multiplicity", pa.array([1, 2, 3], type=pa.int32()))
    assert bag(db.apply({"t": batch})["v"]) == [(1, "a", 1), (2, None, 2), (3, "c", 3)]


def test_deltas_false_returns_none_and_commits(db, view, bag):
    assert db.apply({"t": ROWS}, deltas=False) == {}
    assert db.insert("t", ROWS, deltas=False) == {}
    assert view.count() == 6
    assert bag(db.delete("t", ROWS)["v"]) == [(1, "a", -1), (2, None, -1), (3, "c", -1)]


def test_several_tables_are_one_commit(db, bag):
    db.execute("CREATE TABLE r (a INT); CREATE TABLE s (a INT)")
    db.create_view("j", "SELECT r.a FROM r JOIN s ON r.a = s.a")
    version = db.version
    assert bag(db.apply({"r": [(1,), (2,)], "s": [(2,), (3,)]})["j"]) == [(2, 1)]
    assert db.version == version + 1


# ---- values ----------------------------------------------------------------------------------------------------------

TYPES = {
    "BOOLEAN": [True, False],
    "TINYINT": [-(2**7), 2**7 - 1],
    "SMALLINT": [-(2**15), 2**15 - 1],
    "INT": [-(2**31), 2**31 - 1],
    "BIGINT": [-(2**63), 2**63 - 1],
    "FLOAT": [0.5, float("inf")],
    "DOUBLE": [0.1, -1e300],
    "DECIMAL(12, 2)": [Decimal("-1.25"), Decimal("9999999999.99")],
    "DECIMAL(38, 6)": [Decimal("12345678901234567890123456789012.123456"), Decimal("0.000000")],
    "STRING": ["", "žluťoučký 🐎"],
    "VARCHAR": ["", "of any length"],
    "VARCHAR(5)": ["abcde", ""],
    "BINARY": [b"", b"\xff\x00", "ž".encode()],
    "CHAR(2)": ["ab", "xy"],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "TIMESTAMP": [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(2038, 1, 19, 3, 14, 8, 999999, tzinfo=dt.UTC)],
    "TIMESTAMP_NTZ": [dt.datetime(1, 1, 1), dt.datetime(2024, 3, 31, 2, 30, 0, 1)],
}


@pytest.mark.parametrize("sql_type", TYPES)
def test_values_come_back(db, sql_type):
    db.execute(f"CREATE TABLE t (x {sql_type})")
    v = db.create_view("v", "SELECT x FROM t")
    values = [*TYPES[sql_type], None]
    db.insert("t", [(x,) for x in values])
    assert set(v.to_arrow()["x"].to_pylist()) == set(values)
    db.delete("t", v.to_arrow())
    assert v.count() == 0


WRONG = {
    "BOOLEAN": [1, "true"],
    "FLOAT": [1e300, -1e39, 2**100, 2**24 + 1, "1"],
    "TINYINT": [128, -129, 1.0, True],
    "SMALLINT": [2**15, 1.0],
    "INT": [2**31, "1", True],
    "BIGINT": [2**63, 1.5, Decimal(1), True],
    "DOUBLE": ["1", 2**60 + 1, True],
    "DECIMAL(4, 2)": [1.5, Decimal("1.234"), Decimal("123"), "1"],
    "STRING": [1, b"x"],
    "BINARY": ["x", 1, [1]],
    "DATE": [5, "2020-01-01", dt.datetime(2020, 1, 1, 5)],
    "TIMESTAMP": [5, "2020-01-01", pd.Timestamp(1, unit="ns")],
    "TIMESTAMP_NTZ": [5, "2020-01-01", pd.Timestamp(1, unit="ns"), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
}


@pytest.mark.parametrize(("sql_type", "value"), [(t, v) for t, values in WRONG.items() for v in values])
def test_wrong_values_are_refused_by_row(db, sql_type, value):
    db.execute(f"CREATE TABLE t (k BIGINT, x {sql_type})")
    with pytest.raises(ev.ChangeError) as refusal:
        db.insert("t", [(1, None), (2, value)])
    error = refusal.value
    assert (error.code, error.parameters["table"], error.parameters["row"], error.parameters["column"]) == (
        "WRONG_TYPE",
        "t",
        1,
        "x",
    )
    assert "table `t`, row 1" in str(error)
    assert repr(value)[:40] in str(error)  # long values are cut
    assert error.hint


OFFSETS_AND_BYTES = [pa.py_buffer(np.array([0, 1, 3], dtype="int32").tobytes()), pa.py_buffer(b"a\xff\xfe")]  # no UTF-8
DIGITS = (5).to_bytes(16, "little") + (10**9).to_bytes(16, "little")  # more than the type says


@pytest.mark.parametrize(
    ("sql_type", "array"),
    [
        ("BIGINT", pa.array([1, 2**63], type=pa.uint64())),
        ("TINYINT", pa.array([1, 128])),
        ("TINYINT", pa.array([1, 200], type=pa.uint8())),
        ("SMALLINT", pa.array([1, 40000])),
        ("FLOAT", pa.array([float("inf"), -1e300])),
        ("FLOAT", pa.array([1, 2**24 + 1])),
        ("DOUBLE", pa.array([1, 2**53 + 1])),
        ("DECIMAL(4, 2)", pa.array([1, 100])),
        ("DECIMAL(4, 2)", pa.array([Decimal("1.000"), Decimal("1.234")])),
        ("TIMESTAMP", pa.array([1000, 1], type=pa.timestamp("ns"))),
        ("TIMESTAMP", pa.array([0, 2**62], type=pa.timestamp("s"))),
        ("FLOAT", pa.array([1.5, 1e300])),
        ("FLOAT", pa.array([1.5, -1e39])),
        ("DATE", pa.array([0, 5], type=pa.date64())),
        ("STRING", pa.Array.from_buffers(pa.string(), 2, [None, *OFFSETS_AND_BYTES])),
        ("DECIMAL(4, 2)", pa.Array.from_buffers(pa.decimal128(2, 1), 2, [None, pa.py_buffer(DIGITS)])),
        ("TIMESTAMP_NTZ", pa.array([1000, 1], type=pa.timestamp("ns"))),
    ],
)
def test_columns_that_would_lose_something_are_refused_by_row(db, sql_type, array):
    db.execute(f"CREATE TABLE t (x {sql_type})")
    with pytest.raises(ev.ChangeError, match="table `t`, row 1") as refusal:
        db.apply({"t": pa.table({"x": array})})
    assert refusal.value.code == "WRONG_TYPE"


@pytest.mark.parametrize(
    ("sql_type", "array"),
    [
        ("BIGINT", pa.array([1.0])),
        ("BIGINT", pa.array(["1"])),
        ("STRING", pa.array([b"x"])),
        ("STRING", pa.array([1])),
        ("TINYINT", pa.array([1.0])),
        ("BINARY", pa.array(["x"])),
        ("BINARY", pa.array(["x"]).dictionary_encode()),
        ("TIMESTAMP_NTZ", pa.array([1], type=pa.timestamp("us", tz="UTC"))),
        ("DATE", pa.array([dt.datetime(2020, 1, 1)])),
        ("BOOLEAN", pa.array([1])),
        ("DECIMAL(4, 2)", pa.array([1.0])),
    ],
)
def test_columns_of_another_kind_are_refused(db, sql_type, array):
    db.execute(f"CREATE TABLE t (x {sql_type})")
    with pytest.raises(ev.ChangeError, match="table `t`: column `x` is") as refusal:
        db.apply({"t": pa.table({"x": array})})
    assert refusal.value.code == "WRONG_TYPE"
    assert "convert" in refusal.value.hint


@pytest.mark.parametrize(
    ("sql_type", "array"),
    [
        ("TIMESTAMP", pa.array([0, 2**63 - 1], type=pa.timestamp("us", tz="UTC"))),
        ("TIMESTAMP", pa.array([0, -(2**63)], type=pa.timestamp("us"))),
        ("TIMESTAMP", pa.array([None, 253402300800], type=pa.timestamp("s"))),
        ("DATE", pa.array([0, 2932897], type=pa.date32())),
        ("DATE", pa.array([0, -719163], type=pa.date32())),
        ("DATE", pa.array([0, 2**31 - 1], type=pa.date32())),
    ],
)
def test_dates_beyond_the_calendar_are_refused_by_row(db, sql_type, array):
    db.execute(f"CREATE TABLE t (x {sql_type})")
    v = db.create_view("v", "SELECT x FROM t")
    for batch in (pa.table({"x": array}), pa.record_batch({"x": array}), {"x": array}):
        with pytest.raises(ev.ChangeError, match="table `t`, row 1") as refusal:
            db.apply({"t": batch})
        assert refusal.value.code == "DATETIME_OVERFLOW"
    assert list(v) == []


def test_floats_are_rounded_to_the_nearest(db):
    db.execute("CREATE TABLE t (x FLOAT)")
    v = db.create_view("v", "SELECT x FROM t")
    db.insert("t", [(0.1,), (float("inf"),), (float("nan"),), (3.4028234e38,)])
    db.insert("t", pa.table({"x": [0.1, float("-inf"), None]}))
    found = v.to_arrow()["x"].to_pylist()
    assert found.count(float(np.float32(0.1))) == 2 and float("inf") in found and None in found


def test_all_bad_columns_are_named_at_once(db, state):
    db.execute("CREATE TABLE t (a INT, b STRING, c DATE, d DOUBLE)")
    before = state(db)
    columns = {"a": ["x", "y"], "b": [1, 2], "zz": [0, 0], "D": [1.0, 2.0]}
    for batch in (pa.table(columns), pd.DataFrame(columns), pl.DataFrame(columns)):
        with pytest.raises(ev.ChangeError, match="4 columns do not fit") as refusal:
            db.apply({"t": batch})
        problems = refusal.value.parameters["problems"]
        assert [(p["code"], p["column"]) for p in problems] == [
            ("UNKNOWN_COLUMN", "zz"),
            ("WRONG_TYPE", "a"),
            ("WRONG_TYPE", "b"),
            ("MISSING_COLUMN", "c"),
        ]
        assert refusal.value.code == "UNKNOWN_COLUMN"
        assert all(f"`{name}`" in str(refusal.value) for name in ("zz", "a", "b", "c"))
    with pytest.raises(ev.ChangeError) as refusal:
        db.insert("t", [(1, "x", None, 0.5), (1, 5, "2020", 0.5), ("z", "x", None, None)])
    assert [(p["row"], p["column"]) for p in refusal.value.parameters["problems"]] == [(2, "a"), (1, "b"), (1, "c")]
    assert state(db) == before


def test_our_own_pandas_output_comes_back(db):
    """With NULLs in every type: integers come out as floats, booleans and dates as objects."""
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(TYPES))
    db.execute(f"CREATE TABLE t ({columns}); CREATE TABLE again ({columns})")
    rows = [*zip(*TYPES.values()), (None,) * len(TYPES)]
    db.insert("t", [tuple(v if v not in (-(2**63), 2**63 - 1) else 2**53 for v in row) for row in rows])
    frame = db.create_view("v", "SELECT * FROM t").to_pandas()
    assert str(frame["c1"].dtype) == "float64"
    db.insert("again", frame)
    again = db.create_view("w", "SELECT * FROM again")
    assert sorted(map(repr, again.to_arrow().to_pylist())) == sorted(map(repr, db.view("v").to_arrow().to_pylist()))


@pytest.mark.parametrize("value", [1.5, 2.0**53 + 2, -(2.0**60), float("inf")])
def test_floats_of_pandas_that_are_no_integers_are_refused(db, value):
    db.execute("CREATE TABLE t (x BIGINT)")
    with pytest.raises(ev.ChangeError, match="table `t`, row 2") as refusal:
        db.insert("t", pd.DataFrame({"x": [1.0, np.nan, value]}))
    assert refusal.value.code == "WRONG_TYPE" and repr(value) in str(refusal.value)


def test_a_generator_that_fails_changes_nothing_and_its_error_is_its_own(db, view, state):
    def rows():
        yield (1, "a")
        raise KeyError("mine")

    before = state(db)
    with pytest.raises(KeyError, match="mine"):
        db.insert("t", rows())
    assert state(db) == before


def test_keys_can_be_deleted_in_every_form(db, bag):
    db.execute("CREATE TABLE k (a INT, b INT, x STRING, PRIMARY KEY (a, b))")
    keys = [(1, 2), (3, 4)]
    for form in (
        keys,
        iter(keys),
        [{"b": 2, "a": 1}, {"a": 3, "b": 4}],
        {"A": [1, 3], "B": [2, 4]},
        pd.DataFrame(keys, columns=["a", "b"]),
        pl.DataFrame(keys, schema=["b", "a"], orient="row").select(a="b", b="a").lazy(),
    ):
        db.insert("k", [(1, 2, "x"), (3, 4, "y"), (5, 6, "z")])
        db.delete("k", form)
        assert bag(db.table_rows("k")) == [(5, 6, "z", 1)]
        db.delete("k", [(5, 6)])


def test_conversions_that_lose_nothing(db, bag):
    db.execute("CREATE TABLE t (d DECIMAL(12, 2), f DOUBLE, ts TIMESTAMP, day DATE)")
    v = db.create_view("v", "SELECT d, f, ts, day FROM t")
    at = dt.datetime(2020, 1, 1, 5)
    db.apply(
        {"t": pa.table({"d": [5], "f": [7], "ts": pa.array([at]), "day": pa.array([at.date()], type=pa.date64())})}
    )
    db.insert("t", [(5, 7, at.date(), at.date())])
    db.insert("t", [(5, 7, at.replace(tzinfo=dt.timezone(dt.timedelta(hours=2))), at.date())])
    at = at.replace(tzinfo=dt.UTC)
    assert [row.ts for row in v] and {row.ts for row in v} == {at, at.replace(hour=0), at.replace(hour=3)}
    assert {(row.d, row.f, row.day) for row in v} == {(Decimal("5.00"), 7.0, at.date())}


def test_char_is_padded_and_too_long_texts_are_refused(db, bag):
    db.execute("CREATE TABLE t (c CHAR(3), v VARCHAR(3))")
    v = db.create_view("v", "SELECT c, v FROM t")
    db.insert("t", [("a", "b")])
    assert bag(v.to_arrow()) == [("a  ", "b")]
    for row in (("abcd", "b"), ("a", "abcd")):
        with pytest.raises(ev.ChangeError, match="table `t`, row 1") as refusal:
            db.insert("t", [("x", "y"), row])
        assert refusal.value.code == "EXCEED_LIMIT_LENGTH"
    db.delete("t", [("a", "b")])
    assert v.count() == 0


@pytest.mark.parametrize(
    "rows",
    [
        5,
        "abc",
        b"abc",
        {"k": 1, "s": "a"},
        {"k": [1], "s": ["a", "b"]},
        {"k": [1], "s": "a"},
        object(),
        [5],
        ["ab"],
        [{"k": 1, "s": "a"}, (1, "a")],
        [(1, "a"), {"k": 1}],
        [None],
    ],
)
def test_what_is_no_batch_is_refused(db, view, rows):
    with pytest.raises(ev.ChangeError) as refusal:
        db.apply({"t": rows})
    assert refusal.value.code == "WRONG_TYPE"
    assert "`t`" in str(refusal.value)
    assert refusal.value.hint


def test_what_is_no_mapping_is_refused(db, view):
    with pytest.raises(ev.ChangeError, match="by table name"):
        db.apply([("t", ROWS)])
