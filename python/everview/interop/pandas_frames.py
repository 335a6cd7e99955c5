"""Pandas frames as columns.

A frame does not tell an integer column with missing values from one of floats, nor an empty or all-missing column of one type from one of
another, and object columns hold anything. So its types are not taken at their word: missing values (NaN, NaT, None, NA) are NULL, whole
floats are integers where integers are expected, columns without a value have no type, and objects are judged one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.interop.chunks import combined
from everview.interop.values import is_missing

if TYPE_CHECKING:
    from collections.abc import Callable

_EXACT = 2**53
"""Up to here every integer is a float of its own; beyond, a float may stand for several."""


def is_pandas(data: Any) -> bool:
    """Whether data are a frame of pandas (or of what calls itself so)."""
    return type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns")


def pandas_columns(
    frame: Any, expected: Callable[[Any], pa.DataType | None]
) -> tuple[list[Any], list[pa.Array | list[Any] | Exception]]:
    """The names and columns of a frame: arrays, lists of values that are not one type, or why a column cannot be read."""
    names = list(frame.columns)
    return names, [pandas_column(frame.iloc[:, i], expected(name)) for i, name in enumerate(names)]


def pandas_column(series: Any, expected: pa.DataType | None) -> pa.Array | list[Any] | Exception:
    """A column of a frame, for one of this type."""
    if len(series) == 0:
        return pa.nulls(0)
    if str(series.dtype) == "object":
        return [None if is_missing(value) else value for value in series]
    try:
        array = pa.array(series, from_pandas=True)
    except Exception as error:  # noqa: BLE001 whatever a frame's own types raise
        return error
    if isinstance(array, pa.ChunkedArray):
        array = combined(array)
        if isinstance(array, Exception):
            return array
    if array.null_count == len(array):
        return pa.nulls(len(array))
    if pa.types.is_floating(array.type) and expected is not None and pa.types.is_integer(expected):
        return _integers(array)
    return array


def _integers(array: pa.Array) -> pa.Array | list[Any]:
    """Whole floats as integers; with any other among them, the values as they are, to be refused one by one."""
    exact = pc.and_(pc.equal(pc.floor(array), array), pc.less_equal(pc.abs(array), float(_EXACT)))
    if pc.all(exact).as_py():
        return array.cast(pa.int64())
    return [
        int(value) if value is not None and ok else value
        for value, ok in zip(array.to_pylist(), exact.to_pylist(), strict=True)
    ]
