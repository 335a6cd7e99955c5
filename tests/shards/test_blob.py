"""Blobs give back the rows they were made of, and integers take the room their values need."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.shards import blob

WIDTHS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


@st.composite
def sections(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Batches of one schema: integers of all widths up to some size, with NULLs, and a text."""
    kinds = draw(st.lists(st.sampled_from(list(WIDTHS)), min_size=1, max_size=4))
    bits = [draw(st.integers(0, WIDTHS[kind])) for kind in kinds]
    schema = pa.schema(
        [*(pa.field(f"c{i}", kind, draw(st.booleans())) for i, kind in enumerate(kinds)), ("t", pa.string())]
    )
    batches = []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(0, 6))
        columns = []
        for kind, size, field in zip(kinds, bits, schema, strict=False):
            value = st.integers(-(1 << size), (1 << size) - 1)
            value = st.none() | value if field.nullable else value
            columns.append(pa.array(draw(st.lists(value, min_size=count, max_size=count)), kind))
        texts = pa.array(draw(st.lists(st.none() | st.text(), min_size=count, max_size=count)), pa.string())
        batches.append(pa.RecordBatch.from_arrays([*columns, texts], schema=schema))
    return batches


@settings(max_examples=60)
@given(sections(), st.integers(0, 2**32 - 1))
def test_what_goes_in_comes_out(batches, number):
    ((found, rows),) = blob.unpack(blob.pack([(number, batches)]))
    assert found == number
    assert [b.to_pylist() for b in rows] == [b.to_pylist() for b in batches]
    assert all(b.schema == batches[0].schema for b in rows)


@pytest.mark.parametrize(
    ("least", "most", "width"),
    [
        (-128, 127, 1),
        (-129, 0, 2),
        (0, 128, 2),
        (-32768, 32767, 2),
        (0, 32768, 4),
        (-(2**31), 2**31 - 1, 4),
        (0, 2**31, 8),
        (-(2**63), 2**63 - 1, 8),
    ],
)
def test_integers_take_the_room_of_the_largest(least, most, width):
    batches = [pa.RecordBatch.from_pydict({"n": pa.array([value], pa.int64())}) for value in (least, most, 0)]
    with pa.ipc.open_stream(blob.pack_section(batches)) as reader:
        assert reader.schema.field("n").type.bit_width == 8 * width
    assert [b.column(0)[0].as_py() for b in blob.unpack(blob.pack([(0, batches)]))[0][1]] == [least, most, 0]


def test_a_column_of_nulls_takes_one_byte_a_row():
    rows = pa.RecordBatch.from_pydict({"n": pa.array([None, None], pa.int64())})
    with pa.ipc.open_stream(blob.pack_section([rows])) as reader:
        assert reader.schema.field("n").type == pa.int8()
    assert blob.unpack(blob.pack([(0, [rows])]))[0][1][0].column(0).to_pylist() == [None, None]


@settings(max_examples=40)
@given(st.integers(0, 2000), st.integers(1, 5))
def test_slices_are_the_rows_in_order_and_fit(count, columns):
    rows = pa.RecordBatch.from_arrays([pa.array(range(count), pa.int64())] * columns, names=list("abcde"[:columns]))
    largest, blob.LARGEST = blob.LARGEST, 1 << 10
    try:
        parts = list(blob.slices(rows))
    finally:
        blob.LARGEST = largest
    assert [v for part in parts for v in part.column(0).to_pylist()] == list(range(count))
    assert all(part.nbytes <= 1 << 10 for part in parts)
