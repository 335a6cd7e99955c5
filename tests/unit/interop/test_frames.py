"""Random frames of Arrow, pandas, polars and Python with every type: what goes in comes out, and what does not fit changes nothing."""

import datetime as dt
import string
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev

# ---- tables and rows -------------------------------------------------------------------------------------------------

UTC = dt.UTC
FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def integers(bits):
    limits = st.sampled_from([0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])
    return limits | st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision, scale):
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(lambda n: Decimal(n).scaleb(-scale, CONTEXT))


CONTEXT = __import__("decimal").Context(prec=60)
SINGLES = st.floats(width=32, allow_nan=False)
KINDS = {
    "BOOLEAN": (st.booleans(), pa.bool_()),
    "TINYINT": (integers(8), pa.int8()),
    "SMALLINT": (integers(16), pa.int16()),
    "INT": (integers(32), pa.int32()),
    "BIGINT": (integers(64), pa.int64()),
    "FLOAT": (SINGLES, pa.float32()),
    "DOUBLE": (st.floats(allow_nan=False), pa.float64()),
    "DECIMAL(1, 0)": (decimals(1, 0), pa.decimal128(1, 0)),
    "DECIMAL(18, 4)": (decimals(18, 4), pa.decimal128(18, 4)),
    "DECIMAL(38, 38)": (decimals(38, 38), pa.decimal128(38, 38)),
    "STRING": (TEXTS, pa.string()),
    "VARCHAR(12)": (TEXTS, pa.string()),
    "VARCHAR": (TEXTS, pa.string()),
    "BINARY": (st.binary(max_size=12), pa.binary()),
    "DATE": (st.dates(), pa.date32()),
    "TIMESTAMP": (st.datetimes(FIRST, LAST).map(lambda t: t.replace(tzinfo=UTC)), pa.timestamp("us", tz="UTC")),
    "TIMESTAMP_NTZ": (st.datetimes(FIRST, LAST), pa.timestamp("us")),
}


@st.composite
def tables(draw, least_rows=0, nulls=True):
    """Names, SQL types and columns of values."""
    width = draw(st.integers(1, 5))
    names = draw(
        st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=3), min_size=width, max_size=width, unique=True)
    )
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=width, max_size=width))
    rows = draw(st.integers(least_rows, 6))
    columns = []
    for kind in kinds:
        values = KINDS[kind][0]
        strategy = draw(st.sampled_from([values, values | st.none(), st.none()])) if nulls else values
        columns.append(draw(st.lists(strategy, min_size=rows, max_size=rows)))
    return names, kinds, columns


def session(names, kinds, not_null=()):
    db = ev.connect()
    # columns are quoted: names may be words of SQL
    columns = ", ".join(f"`{n}` {k}{' NOT NULL' if n in not_null else ''}" for n, k in zip(names, kinds))
    db.execute(f"CREATE TABLE t ({columns})")
    db.create_view("v", "SELECT * FROM t")
    return db


def bag(rows):
    """Rows by value: 0.0 and -0.0 are one."""
    normal = lambda v: v + 0.0 if isinstance(v, float) else v
    return Counter(tuple(map(normal, row)) for row in rows)


# ---- the same columns in many forms ----------------------------------------------------------------------------------


def arrow_types(values, exact):
    """Arrow types that hold the values of a column of type ``exact`` without loss."""
    there = [v for v in values if v is not None]
    found = [exact]
    if not there:
        found.append(pa.null())
    if pa.types.is_integer(exact):
        for bits in (8, 16, 32, 64):
            signed, unsigned = getattr(pa, f"int{bits}")(), getattr(pa, f"uint{bits}")()
            found += [signed] if all(-(2 ** (bits - 1)) <= v < 2 ** (bits - 1) for v in there) else []
            found += [unsigned] if all(0 <= v < 2**bits for v in there) else []
    elif exact == pa.float32():
        found += [pa.float64()]
    elif exact == pa.float64():
        whole = all(v.is_integer() and abs(v) < 2**31 for v in there)
        found += [pa.int32()] if whole else []
    elif pa.types.is_decimal(exact):
        whole = all(v == v.to_integral_value(context=CONTEXT) and abs(v) < 2**62 for v in there)
        found += [pa.decimal256(60, exact.scale)] + ([pa.int64()] if whole else [])
        found += [pa.decimal128(38, exact.scale)]
    elif pa.types.is_string(exact):
        found += [pa.large_string(), pa.string_view()]
        found += [pa.dictionary(i, t) for i in (pa.int8(), pa.uint32()) for t in (pa.string(), pa.large_string())]
    elif pa.types.is_binary(exact):
        found += [pa.large_binary(), pa.binary_view()]
        found += [pa.dictionary(i, t) for i in (pa.int8(), pa.uint32()) for t in (pa.binary(), pa.large_binary())]
        if len({len(v) for v in there}) == 1 and there[0]:
            found.append(pa.binary(len(there[0])))
    elif pa.types.is_date(exact):
        found += [pa.date64()]
    elif exact == pa.timestamp("us"):
        found += [pa.timestamp("s"), pa.timestamp("ms")] if all(v.microsecond == 0 for v in there) else []
        found += [pa.timestamp("ns")] if all(1700 < v.year < 2200 for v in there) else []
    elif pa.types.is_timestamp(exact):
        found += [pa.timestamp("us"), pa.timestamp("us", tz="Asia/Kathmandu")]
        if all(v.microsecond == 0 for v in there):
            found += [pa.timestamp("s", tz="UTC"), pa.timestamp("ms")]
        if all(1700 < v.year < 2200 for v in there):
            found += [pa.timestamp("ns", tz="UTC")]
    return found


def naive(values, kind):
    """Timestamps without a zone are UTC."""
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return [v if v is None else v.replace(tzinfo=None) for v in values]
    return values


def array(values, kind):
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(naive(values, kind), kind)


@st.composite
def arrow_tables(draw, names, kinds, columns):
    arrays = []
    for kind, values in zip(kinds, columns):
        chosen = draw(st.sampled_from(arrow_types(values, KINDS[kind][1])))
        cuts = sorted(draw(st.lists(st.integers(0, len(values)), max_size=3)))
        parts = [values[i:j] for i, j in zip([0, *cuts], [*cuts, len(values)])]
        before = draw(st.integers(0, 2))  # slices of longer arrays
        filler = [next((v for v in values if v is not None), None)] * before
        made = [array([*filler, *part, *filler], chosen).slice(before, len(part)) for part in parts]
        arrays.append(pa.chunked_array(made, made[0].type))
    return pa.table(arrays, names=[draw(st.sampled_from([n, n.upper(), n.title()])) for n in names])


class Stream:
    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@st.composite
def in_arrow(draw, names, kinds, columns):
    table = draw(arrow_tables(names, kinds, columns))
    order = draw(st.permutations(range(len(names))))
    table = table.select(list(order))
    return draw(
        st.sampled_from(
            [
                lambda: table,
                lambda: table.to_reader(2),
                lambda: Stream(table),
                lambda: table.combine_chunks(),
                lambda: dict(zip(table.column_names, table.columns)),
            ]
        )
    )()


@st.composite
def in_pandas(draw, names, kinds, columns):
    plain = [array(values, KINDS[kind][1]) for kind, values in zip(kinds, columns)]
    frame = pa.table(plain, names=names).to_pandas()
    arrow = pa.table(plain, names=names).to_pandas(types_mapper=pd.ArrowDtype)
    for i, (kind, values) in enumerate(zip(kinds, columns)):
        missing = None in values
        text, number = "STRING" in kind or "VARCHAR" in kind, kind in ("TINYINT", "SMALLINT", "INT", "BIGINT")
        choices = [pd.Series(values, dtype=object), arrow[names[i]]]
        exact = all(v is None or abs(v) <= 2**53 for v in values) if number else True
        if exact or not missing:
            choices.append(frame[names[i]])  # floats, where integers are missing
        if number and exact:
            choices.append(pd.Series(values, dtype="Int64"))
            choices.append(pd.Series([np.nan if v is None else v for v in values], dtype="float64"))
        if text:
            choices += [pd.Series(values, dtype="category"), pd.Series(values, dtype="string")]
        if kind == "BOOLEAN":
            choices.append(pd.Series(values, dtype="boolean"))
        chosen = draw(st.sampled_from(choices))
        columns_so_far = (
            {names[i]: chosen.set_axis(range(len(values)))}
            if i == 0
            else {**columns_so_far, names[i]: chosen.set_axis(range(len(values)))}
        )
    made = pd.DataFrame(columns_so_far)
    return made.set_axis([f"row {i}" for i in range(len(made))]) if draw(st.booleans()) else made


@st.composite
def in_polars(draw, names, kinds, columns):
    series = []
    for name, kind, values in zip(names, kinds, columns):
        if kind == "DECIMAL(38, 38)":
            made = pl.Series(name, pa.array(values, KINDS[kind][1]))
        else:
            made = pl.from_arrow(pa.chunked_array([array(values, KINDS[kind][1])])).alias(name)
        if "STRING" in kind or "VARCHAR" in kind:
            distinct = sorted({v for v in values if v is not None})
            made = made.cast(draw(st.sampled_from([pl.String, pl.Categorical, pl.Enum(distinct)])))
        series.append(made)
    frame = pl.DataFrame(series)
    if len(frame) > 1 and draw(st.booleans()):
        frame = pl.concat([frame[:1], frame[1:]], rechunk=False)
    return frame.lazy() if draw(st.booleans()) else frame


@st.composite
def in_python(draw, names, kinds, columns):
    rows = list(zip(*columns))
    marker = draw(st.sampled_from([None, pd.NA]))
    marked = [tuple(marker if v is None else v for v in row) for row in rows]
    return draw(
        st.sampled_from(
            [
                lambda: marked,
                lambda: iter(marked),
                lambda: [dict(zip(names, row)) for row in marked],
                lambda: ({n: v for n, v in zip(names, row) if v is not None} for row in rows),
                lambda: {n: list(values) for n, values in zip(names, columns)},
            ]
        )
    )()


FORMS = [in_arrow, in_pandas, in_polars, in_python]


@settings(max_examples=60)
@given(st.data())
def test_what_goes_in_comes_out(data):
    names, kinds, columns = data.draw(tables())
    rows = list(zip(*columns))
    with session(names, kinds) as db:
        expected = Counter()
        for form in data.draw(st.lists(st.sampled_from(FORMS), min_size=1, max_size=3)):
            db.insert("t", data.draw(form(names, kinds, columns), label=form.__name__))
            expected += bag(rows)
            assert bag(tuple(row.values()) for row in db.view("v").to_arrow().to_pylist()) == expected
        while expected:
            db.delete("t", db.view("v").to_arrow().slice(0, len(rows)))
            expected = bag(tuple(row.values()) for row in db.view("v").to_arrow().to_pylist())
        assert db.view("v").metrics().state_rows == 0


# ---- what does not fit -----------------------------------------------------------------------------------------------


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __repr__


ODD = [
    object(),
    Unprintable(),
    Unprintable,
    len,
    b"bytes",
    bytearray(b"x"),
    {"a": 1},
    {1, 2},
    [1, 2],
    (1,),
    1j,
    "\ud800",
    "x" * 100_000,
    2**63,
    -(2**200),
    10**5000,
    1e300,
    float("nan"),
    Decimal("NaN"),
    Decimal("Infinity"),
    Decimal("-1e400"),
    Decimal("1e-400"),
    dt.time(1),
    dt.timedelta(1),
    dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=12))),
    dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=12))),
    np.datetime64("nat"),
    np.datetime64(2**62, "s"),
    np.timedelta64(5),
    np.array([1, 2]),
    np.array(5),
    np.void(b"x"),
    np.float16(1.5),
    np.int64(5),
    np.str_("x"),
    pd.NaT,
    pd.NA,
    pd.Timestamp(1, unit="ns"),
    pd.Timestamp.max,
    pd.Interval(0, 1),
    pa.scalar(5),
    pa.array([1]),
    float,
    Ellipsis,
    type("Odd", (int,), {"__repr__": lambda self: 1 / 0})(5),
    type("OddText", (str,), {})("x"),
]


@st.composite
def bad_arrays(draw, kind, length):
    """An array that is none of the values of a SQL type."""
    exact = KINDS[kind][1]
    choices = {
        "list": lambda: pa.array([[1]] * length, pa.list_(pa.int8())),
        "struct": lambda: pa.array([{"a": 1}] * length),
        "time": lambda: pa.array([5] * length, pa.time32("s")),
        "duration": lambda: pa.array([5] * length, pa.duration("s")),
        "bytes": lambda: pa.array([b"x"] * length, pa.binary(1)),
        "runs": lambda: pa.RunEndEncodedArray.from_arrays([length], [1.5]),
        "union": lambda: pa.UnionArray.from_sparse(pa.array([0] * length, pa.int8()), [pa.array([5] * length)]),
        "uuid": lambda: pa.array([b"0123456789abcdef"] * length, pa.uuid()),
        "dictionary": lambda: pa.array([1.5] * length).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.float64())),
    }
    if not pa.types.is_string(exact):
        choices["text"] = lambda: pa.array(["x"] * length)
    else:
        wrong = pa.py_buffer(np.arange(length + 1, dtype="int32").tobytes())
        choices["no UTF-8"] = lambda: pa.Array.from_buffers(
            pa.string(), length, [None, wrong, pa.py_buffer(b"\xff" * length)]
        )
        if length > 1:
            offsets = pa.py_buffer(np.array([0, *[10**6] * (length - 1), 0], "int32").tobytes())
            choices["offsets"] = lambda: pa.Array.from_buffers(pa.string(), length, [None, offsets, pa.py_buffer(b"")])
        choices["indices"] = lambda: pa.DictionaryArray.from_arrays(
            pa.array([7] * length, pa.int8()), pa.array(["a"]), safe=False
        )
    if pa.types.is_binary(exact):
        del choices["bytes"]
    if exact == pa.timestamp("us"):
        choices["zone"] = lambda: pa.array([5] * length, pa.timestamp("us", tz="UTC"))
    if pa.types.is_integer(exact):
        choices["float"] = lambda: pa.array([1.0] * length)
        choices["large"] = lambda: pa.array([2**64 - 1] * length, pa.uint64())
        choices["decimal"] = lambda: pa.array([Decimal(1)] * length)
        del choices["dictionary"]
    elif pa.types.is_decimal(exact):
        choices["float"] = lambda: pa.array([1.0] * length)
        choices["large"] = lambda: pa.array([Decimal(10**40)] * length, pa.decimal256(60, 0))
    elif exact == pa.float32():
        choices["large"] = lambda: pa.array([1e39] * length)
    elif pa.types.is_timestamp(exact) or pa.types.is_date(exact):
        choices["number"] = lambda: pa.array([5] * length)
        choices["far"] = lambda: pa.array([2**62] * length, pa.timestamp("s"))
        choices["far too"] = lambda: pa.array([-(2**63)] * length, pa.int64()).view(pa.timestamp("us"))
        choices["nanoseconds"] = lambda: pa.array([1] * length, pa.timestamp("ns"))
        choices["far day"] = lambda: pa.array([2**31 - 1] * length, pa.date32())
    if pa.types.is_floating(exact):
        del choices["dictionary"]
    return choices[draw(st.sampled_from(sorted(choices)))]()


def observed(db):
    view = db.view("v")
    return (
        db.version,
        db.table_rows("t").to_pylist(),
        view.to_arrow().to_pylist(),
        view.count(),
        [list(row) for row in view],
    )


def refuse(db, column, data, also=()):
    before = observed(db)
    with pytest.raises(ev.EverviewError) as refusal:
        db.insert("t", data)
    error = refusal.value
    assert observed(db) == before
    assert error.code and error.hint and "`t`" in str(error) and len(str(error)) < 5000
    assert column is None or f"`{column}`" in str(error)
    return error


@settings(max_examples=60)
@given(st.data())
def test_columns_that_do_not_fit_change_nothing(data):
    names, kinds, columns = data.draw(tables(least_rows=1))
    at = data.draw(st.integers(0, len(names) - 1))
    with session(names, kinds) as db:
        db.insert("t", list(zip(*columns)))
        good = [array(values, KINDS[kind][1]) for kind, values in zip(kinds, columns)]
        bad = data.draw(bad_arrays(kinds[at], len(columns[0])))
        table = pa.table([bad if i == at else a for i, a in enumerate(good)], names=names)
        form = data.draw(st.sampled_from(["table", "batch", "columns", "chunks", "stream"]))
        batch = {
            "table": lambda: table,
            "batch": lambda: pa.RecordBatch.from_arrays([c.chunk(0) for c in table.columns], names=names),
            "columns": lambda: dict(zip(names, table.columns)),
            "chunks": lambda: pa.concat_tables([table, table]),
            "stream": lambda: Stream(table),
        }[form]()
        error = refuse(db, names[at], batch)
        assert error.code in ("WRONG_TYPE", "DATETIME_OVERFLOW")


@settings(max_examples=100)
@given(st.data())
def test_odd_values_are_refused_or_taken_for_what_they_are(data):
    names, kinds, columns = data.draw(tables(least_rows=1))
    at = data.draw(st.integers(0, len(names) - 1))
    row = data.draw(st.integers(0, len(columns[0]) - 1))
    odd = data.draw(st.sampled_from(range(len(ODD))))
    columns[at][row] = ODD[odd]
    form = data.draw(st.sampled_from(["tuples", "dicts", "columns", "objects of pandas"]))
    batch = {
        "tuples": lambda: list(zip(*columns)),
        "dicts": lambda: [dict(zip(names, values)) for values in zip(*columns)],
        "columns": lambda: dict(zip(names, columns)),
        "objects of pandas": lambda: pd.DataFrame(
            {n: pd.Series(list(values), dtype=object) for n, values in zip(names, columns)}
        ),
    }[form]()
    with session(names, kinds) as db:
        try:
            db.insert("t", batch)
        except ev.EverviewError as error:
            assert f"`{names[at]}`" in str(error) and error.parameters["row"] == row
            assert len(str(error)) < 2000
            assert db.version == 0 and list(db.view("v")) == []
        else:
            assert len(list(db.view("v"))) == len(columns[0])
            db.delete("t", db.view("v").to_arrow())
            assert db.view("v").count() == 0


@settings(max_examples=40)
@given(st.data())
def test_frames_with_other_columns_change_nothing(data):
    names, kinds, columns = data.draw(tables(least_rows=1, nulls=False))
    with session(names, kinds, not_null=names) as db:
        good = {n: array(values, KINDS[k][1]) for n, k, values in zip(names, kinds, columns)}
        other = data.draw(st.sampled_from(["missing", "unknown", "twice", "null"]))
        at = data.draw(st.sampled_from(names))
        frame = dict(good)
        if other == "missing":
            del frame[at]
        elif other == "unknown":
            frame["zzzz"] = pa.nulls(len(columns[0]))
        elif other == "null":
            frame = {n: pa.nulls(len(columns[0]), a.type) if n == at else a for n, a in frame.items()}
        tabled = (
            pa.table(frame) if other != "twice" else pa.table([*frame.values(), good[at]], names=[*frame, at.upper()])
        )
        form = data.draw(st.sampled_from([lambda t: t, lambda t: pl.from_arrow(t), lambda t: t.to_pandas()]))
        if other == "missing" and len(names) == 1:
            return
        codes = {
            "missing": "MISSING_COLUMN",
            "unknown": "UNKNOWN_COLUMN",
            "twice": "DUPLICATE_COLUMN",
            "null": "NULL_NOT_ALLOWED",
        }
        error = refuse(db, at if other in ("missing", "null") else None, form(tabled))
        assert error.code == codes[other]
