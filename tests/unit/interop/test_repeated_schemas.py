"""Streams of small batches come with one schema: what was checked about it is not checked again, what is in the batches is."""

import everview as ev
import pyarrow as pa
import pytest

FIELDS = [("id", pa.int64()), ("name", pa.string()), ("day", pa.date32()), ("_multiplicity", pa.int64())]


@pytest.fixture
def db():
    with ev.connect() as session:
        session.execute("CREATE TABLE t (id BIGINT NOT NULL, name STRING, day DATE)")
        session.create_view("v", "SELECT id, name, day FROM t")
        yield session


def batch(*rows, fields=FIELDS):
    return pa.RecordBatch.from_pylist(
        [dict(zip([n for n, _ in FIELDS], r, strict=True)) for r in rows], pa.schema(fields)
    )


def test_batches_of_one_schema_are_taken_as_they_are(db):
    first, second = batch((1, "a", None, 1)), batch((2, "b", None, 1), (1, "a", None, -1))
    db.apply({"t": first})
    reader = db._state.table("t").reader
    assert reader.changes(second) is second
    db.apply({"t": second})
    assert db.view("v").to_arrow().column("id").to_pylist() == [2]


@pytest.mark.parametrize(
    ("column", "array", "code"),
    [
        (
            1,
            pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]),
            "WRONG_TYPE",
        ),
        (2, pa.array([3_000_000], pa.int32()).view(pa.date32()), "DATETIME_OVERFLOW"),
        (0, pa.array([None], pa.int64()), "NULL_NOT_ALLOWED"),
    ],
    ids=["no UTF-8", "a day after the year 9999", "NULL"],
)
def test_values_are_checked_in_every_batch(db, column, array, code):
    good = batch((1, "a", None, 1))
    db.apply({"t": good})
    arrays = good.columns
    arrays[column] = array
    bad = pa.RecordBatch.from_arrays(arrays, schema=good.schema)
    with pytest.raises(ev.ChangeError) as caught:
        db.apply({"t": bad})
    assert caught.value.code == code
    assert db.view("v").count() == 1


def test_another_order_of_columns_is_another_schema(db):
    db.apply({"t": batch((1, "a", None, 1))})
    db.apply({"t": batch((2, "b", None, 1)).select(["_multiplicity", "day", "name", "id"])})
    db.apply({"t": batch((3, "c", None, 1))})
    assert sorted(db.view("v").to_arrow().column("name").to_pylist()) == ["a", "b", "c"]


def test_a_column_that_is_left_out_is_missed_every_time(db):
    db.apply({"t": batch((1, "a", None, 1))})
    for _ in range(2):
        with pytest.raises(ev.ChangeError, match="lacks the column `day`"):
            db.apply({"t": batch((2, "b", None, 1)).select(["id", "name"])})
