"""Texts and byte strings in every layout of Arrow, and more of them than 32-bit offsets reach."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everview as ev
from everview.interop import chunks

TEXTS = ["a", None, "a text that is longer than a view holds", "ž", "", "a"]
TEXT_LAYOUTS = [pa.string(), pa.large_string(), pa.string_view()]
BINARY_LAYOUTS = [pa.binary(), pa.large_binary(), pa.binary_view()]


def encoded(layout, index=pa.int8()):
    return pa.dictionary(index, layout)


def columns(sql_type):
    """The same values in every layout."""
    plain = pa.array(TEXTS if sql_type != "BINARY" else [t and t.encode() for t in TEXTS])
    layouts = TEXT_LAYOUTS if sql_type != "BINARY" else BINARY_LAYOUTS
    found = {str(layout): plain.cast(layout) for layout in layouts}
    for layout in layouts[:2]:
        for index in (pa.int8(), pa.uint32()):
            array = plain.cast(layout).dictionary_encode()
            found[str(encoded(layout, index))] = pa.DictionaryArray.from_arrays(
                array.indices.cast(index), array.dictionary
            )
    return plain.to_pylist(), found


@pytest.mark.parametrize("sql_type", ["STRING", "VARCHAR", "VARCHAR(50)", "CHAR(50)", "BINARY"])
def test_layouts_are_read_alike(db, sql_type):
    db.execute(f"CREATE TABLE t (k INT, x {sql_type})")
    v = db.create_view("v", "SELECT x, COUNT(*) AS n FROM t GROUP BY x")
    values, found = columns(sql_type)
    for n, (layout, array) in enumerate(found.items()):
        rows = pa.table({"k": [n] * len(array), "x": array})
        db.insert("t", rows)
        db.insert("t", rows.slice(2, 3))
        db.delete("t", rows.slice(2, 3))
        counts = {x if not sql_type.startswith("CHAR") or x is None else x.rstrip(): c for x, c in v}
        assert counts == {value: values.count(value) * (n + 1) for value in values}, layout


def test_layouts_of_keys(db):
    db.execute("CREATE TABLE t (b BINARY, s STRING, x INT, PRIMARY KEY (b, s)); CREATE TABLE u (b BINARY)")
    v = db.create_view("v", "SELECT t.s, t.x FROM t JOIN u ON t.b = u.b")
    db.insert("u", pa.table({"b": pa.array([b"\xff", b"a"], pa.binary_view())}))
    db.insert("t", [(b"\xff", "a", 1), (b"a", "a", 2)])
    keys = {"b": pa.array([b"\xff", b"a"], pa.large_binary()), "s": pa.array(["a", "a"]).dictionary_encode()}
    db.upsert("t", pa.table(keys | {"x": [3, 4]}))
    assert sorted(v) == [("a", 3), ("a", 4)]
    db.delete("t", pa.table(keys).slice(1))
    assert list(v) == [("a", 3)]


def test_nulls_of_a_dictionary(db):
    db.execute("CREATE TABLE t (x STRING, y STRING NOT NULL)")
    v = db.create_view("v", "SELECT x, y FROM t")
    values = pa.array(["a", None])
    nulls = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), values)
    empty = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string()))
    db.insert("t", pa.table({"x": nulls, "y": ["1", "2", "3"]}))
    db.insert("t", pa.table({"x": empty, "y": ["4"]}))
    assert sorted(v, key=str) == [("a", "1"), (None, "2"), (None, "3"), (None, "4")]
    with pytest.raises(ev.ChangeError, match="row 1.*NOT NULL") as refusal:
        db.insert("t", pa.table({"x": ["1", "2", "3"], "y": nulls}))
    assert refusal.value.code == "NULL_NOT_ALLOWED"


def test_frames(db, bag):
    db.execute("CREATE TABLE t (t TINYINT, b BINARY, n TIMESTAMP_NTZ, s VARCHAR)")
    v = db.create_view("v", "SELECT t, b, n, s FROM t")
    n = pd.Timestamp("2024-03-31 02:30:00.000001").to_pydatetime()
    rows = [(-128, b"\xff", n, "a"), (127, b"", n.replace(year=1970), "ž")]
    frame = pd.DataFrame(rows, columns=["t", "b", "n", "s"])
    for given in (frame, frame.astype({"s": "category"}), frame.astype({"t": "int8", "s": "string"})):
        db.insert("t", given)
    db.insert("t", pl.DataFrame(rows, schema=["t", "b", "n", "s"], orient="row"))
    db.insert("t", pl.DataFrame(rows, schema=["t", "b", "n", "s"], orient="row").cast({"t": pl.Int8}))
    assert sorted(v, key=str) == sorted(rows * 5, key=str)
    assert sorted(map(tuple, v.to_pandas().itertuples(index=False)), key=str) == sorted(rows * 5, key=str)
    assert sorted(v.to_polars().rows(), key=str) == sorted(rows * 5, key=str)
    assert v.to_polars().schema == {"t": pl.Int8, "b": pl.Binary, "n": pl.Datetime("us"), "s": pl.String}
    db.delete("t", v.to_pandas())
    assert v.count() == 0


# ---- beyond 2 GiB. The buffers are pages of zeros that are never written to, so they take no memory. ------------------

MIB = 1 << 20
COUNT = 2100


def zeros(layout, shifted=0):
    """Texts of 1 MiB, 2.05 GiB in all, in one array; the last is longer by what it is ``shifted``, the one before it shorter."""
    buffer = pa.py_buffer(np.zeros(COUNT * MIB, np.uint8))
    offsets = np.arange(COUNT + 1, dtype=np.int64) * MIB
    offsets[-2] -= shifted
    return pa.Array.from_buffers(layout, COUNT, [None, pa.py_buffer(offsets), buffer])


def repeated(layout):
    values = pa.array(["\0" * MIB]).cast(layout)
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(COUNT, np.int8)), values)


@pytest.mark.parametrize(
    ("sql_type", "make"),
    [
        ("STRING", lambda: zeros(pa.large_string())),
        ("BINARY", lambda: zeros(pa.large_binary())),
        ("STRING", lambda: repeated(pa.string())),
        ("CHAR(1048577)", lambda: repeated(pa.large_string())),
    ],
)
def test_more_than_two_gibibytes_in_one_column(db, sql_type, make):
    db.execute(f"CREATE TABLE t (x {sql_type})")
    v = db.create_view("v", "SELECT LENGTH(x) AS size, COUNT(*) AS n FROM t GROUP BY LENGTH(x)")
    array = make()
    db.insert("t", pa.table({"x": array}))
    assert list(v) == [(MIB + sql_type.startswith("CHAR"), len(array))]


@pytest.mark.parametrize("values", [["a", "b"], [b"a", b"b"]])
def test_chunks_get_wide_offsets_where_they_need_them(db, monkeypatch, values):
    db.execute(f"CREATE TABLE t (x {'STRING' if values[0] == 'a' else 'BINARY'})")
    v = db.create_view("v", "SELECT x, COUNT(*) AS n FROM t GROUP BY x")
    given = pa.chunked_array([values, values[:1]])
    for most in (chunks.MOST_BYTES, 10):
        monkeypatch.setattr(chunks, "MOST_BYTES", most)
        assert chunks.combined(given).type == (
            given.type if most > 10 else pa.large_string() if values[0] == "a" else pa.large_binary()
        )
        db.insert("t", pa.table({"x": given}))
        db.insert("t", {"x": given})
        db.insert("t", pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(given)}))
    assert sorted(v) == [(values[0], 12), (values[1], 6)]


@pytest.mark.parametrize("rows", [[("a",), (None,), ("b",)], [(b"a",), (None,), (b"b",)]])
def test_lists_get_wide_offsets_where_they_need_them(db, monkeypatch, rows):
    """Beyond 2 GiB pyarrow makes several chunks of a list; here of any."""

    def array(values, type):
        found = make(values, type)
        return pa.chunked_array([found]) if type in (pa.string(), pa.binary()) else found

    db.execute(f"CREATE TABLE t (x {'STRING' if rows[0][0] == 'a' else 'BINARY'})")
    v = db.create_view("v", "SELECT x FROM t")
    make = pa.array
    with monkeypatch.context() as patched:
        patched.setattr(pa, "array", array)
        db.insert("t", rows)
    assert sorted(v, key=str) == sorted(rows, key=str)


def test_a_text_too_long_is_named_by_its_row_beyond_two_gibibytes(db):
    db.execute(f"CREATE TABLE t (x VARCHAR({MIB}))")
    with pytest.raises(ev.ChangeError, match=f"row {COUNT - 1}") as refusal:
        db.insert("t", pa.table({"x": zeros(pa.large_string(), shifted=1)}))
    assert refusal.value.code == "EXCEED_LIMIT_LENGTH"
    assert db.table_rows("t").num_rows == 0
