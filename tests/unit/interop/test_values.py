"""Python values as Arrow arrays: nothing bent, numpy scalars welcome."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from everview.interop.values import array_of

UTC = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None, np.int8(3)], pa.int32(), [1, None, 3]),
        ([1, 2.5, np.float32(0.5)], pa.float64(), [1.0, 2.5, 0.5]),
        ([1, Decimal("2.50")], pa.decimal128(5, 2), [Decimal("1.00"), Decimal("2.50")]),
        ([True, np.bool_(False)], pa.bool_(), [True, False]),
        ([np.str_("x"), "y"], pa.string(), ["x", "y"]),
        ([dt.date(2020, 1, 2)], UTC, [dt.datetime(2020, 1, 2, tzinfo=dt.UTC)]),
        ([], pa.int64(), []),
    ],
)
def test_accepted(values, kind, expected):
    array = array_of(values, kind)
    assert (array.type, array.to_pylist()) == (kind, expected)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (1.0, pa.int64()),
        (Decimal(1), pa.int64()),
        (True, pa.int64()),
        (np.bool_(True), pa.int64()),
        (True, pa.float64()),
        (Decimal("0.1"), pa.float64()),
        (Fraction(1, 3), pa.float64()),
        (0.1, pa.decimal128(5, 2)),
        (5, pa.date32()),
        (dt.datetime(2020, 1, 1), pa.date32()),
        (5, UTC),
        (b"x", pa.string()),
        ("true", pa.bool_()),
        ([1], pa.int64()),
    ],
)
def test_refused(value, kind):
    with pytest.raises((TypeError, ValueError)):
        array_of([None, value], kind)
