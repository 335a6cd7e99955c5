"""Rows repeated by their multiplicity."""

import pyarrow as pa
import pytest

from everview.interop.expand import expand


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
@pytest.mark.parametrize("counts", [[1, 1, 1], [3, 1, 2], [5], [1]])
def test_expand(counts, rows):
    batch = pa.record_batch({"a": pa.array(range(len(counts))), "_multiplicity": pa.array(counts)})
    schema = pa.schema([("a", pa.int64())])
    parts = list(expand(batch, schema, max(rows, len(counts)) if set(counts) == {1} else rows))
    assert [a for part in parts for a in part["a"].to_pylist()] == [i for i, n in enumerate(counts) for _ in range(n)]
    assert all(part.num_rows <= max(rows, 3) and part.schema == schema for part in parts)


def test_expand_is_lazy():
    batch = pa.record_batch({"a": pa.array([1]), "_multiplicity": pa.array([10**15])})
    assert next(expand(batch, pa.schema([("a", pa.int64())]), 10)).num_rows == 10
