"""Python values as Arrow arrays, refusing what pyarrow would bend.

``pyarrow.array`` makes 1 of 1.5 in an integer column, a date of 5, infinity of 1e300 in a FLOAT column, bytes of a text, and forgets the
time of a datetime in a date column and the zone of one without. Here the classes of
the values are checked first: once per class and family of types, so that it costs next to nothing per value.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_FAMILIES = {
    "a boolean": (pa.bool_(),),
    "an integer": (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    "a number": (pa.float32(), pa.float64()),
    "a decimal.Decimal or an integer": (pa.decimal128(1),),
    "a text": (pa.string(),),
    "bytes": (pa.binary(),),
    "a datetime.date": (pa.date32(),),
    "a datetime.datetime": (pa.timestamp("us"),),
}
_FAMILY = {kind.id: family for family, kinds in _FAMILIES.items() for kind in kinds}


def is_missing(value: Any) -> bool:
    """Whether a value of an object column of pandas stands for none: None, NaN, NaT, NA."""
    kind: type = type(value)
    return value is None or (isinstance(value, float) and value != value) or is_marker(kind)  # noqa: PLR0124 NaN


@lru_cache(maxsize=1024)
def is_marker(kind: type) -> bool:
    """Whether values of a class are pandas' NA or NaT, which mean NULL wherever they stand."""
    return kind.__name__ in ("NAType", "NaTType") and kind.__module__.split(".")[0] == "pandas"


def array_of(values: list[Any], expected: pa.DataType) -> pa.Array:
    """The values as an array of this type; ``TypeError`` where a value is of another kind.

    >>> array_of([1, None], pa.int16()).type
    DataType(int16)
    """
    family = _FAMILY[expected.id]
    kinds: set[type] = set(map(type, values))
    markers = {kind for kind in kinds if is_marker(kind)}
    if markers:
        values = [None if type(value) in markers else value for value in values]
    for kind in kinds:
        if not _is_accepted(kind, family):
            raise TypeError(f"{kind.__name__} is not {family}")
    if family == "a datetime.datetime":
        moment = _timestamp if expected.tz is not None else _timestamp_without_zone
        values = [moment(v) for v in values]
    array = pa.array(values, type=expected)
    if isinstance(array, pa.ChunkedArray):  # texts of more than 2 GiB
        array = None  # frees it first
        array = pa.array(values, type=pa.large_string() if family == "a text" else pa.large_binary())
    elif pa.types.is_float32(expected):
        check_finite(array, pa.array(values, type=pa.float64()))
    return array


def check_finite(array: pa.Array, given: pa.Array) -> None:
    """Refuse FLOATs that are infinite although the numbers they come from are not."""
    if pc.any(pc.and_(pc.is_inf(array), pc.is_finite(given))).as_py():
        raise ValueError("the number is beyond the range of FLOAT")


@lru_cache(maxsize=1024)
def _is_accepted(kind: type, family: str) -> bool:
    if kind is type(None) or is_marker(kind):
        return True
    if family == "a boolean":
        return kind is bool or kind.__name__ in ("bool_", "bool")  # numpy's has either name
    if issubclass(kind, bool):
        return False
    if family == "a datetime.date":
        return issubclass(kind, dt.date) and not issubclass(kind, dt.datetime)
    classes: dict[str, type | tuple[type, ...]] = {
        "an integer": Integral,
        "a number": Real,
        "a decimal.Decimal or an integer": (Integral, Decimal),
        "a text": str,
        "bytes": (bytes, bytearray, memoryview),
        "a datetime.datetime": dt.date,
    }
    return issubclass(kind, classes[family])


def _timestamp(value: Any) -> Any:
    if value is None or isinstance(value, dt.datetime):
        if getattr(value, "nanosecond", 0):
            raise ValueError("timestamps hold microseconds, not nanoseconds")
        return value
    return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)


def _timestamp_without_zone(value: Any) -> Any:
    if getattr(value, "tzinfo", None) is not None:
        raise ValueError("a TIMESTAMP_NTZ has no time zone")
    found = _timestamp(value)
    return found if found is value else found.replace(tzinfo=None)
