"""Python values as typed literals, in the types that Spark gives them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from everview.errors import shown
from everview.interop.values import is_marker
from everview.query.expression import Literal
from everview.schema.datatype import BINARY, BOOLEAN, DATE, DOUBLE, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ
from everview.sql.literal import decimal_literal, number_literal

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_MOST_DIGITS = 38


def literal_of(value: Any) -> Literal:
    """The literal of a value; ``TypeError`` and ``ValueError`` where there is none.

    Integers are INT, BIGINT or DECIMAL, whichever is the first that holds them. A datetime with a zone is a TIMESTAMP, one without a
    TIMESTAMP_NTZ.

    >>> str(literal_of(5).type), str(literal_of(Decimal("1.50")).type)
    ('int', 'decimal(3,2)')
    """
    kind: type = type(value)
    if value is None or is_marker(kind):
        return Literal(None, NULL)
    if isinstance(value, bool) or kind.__name__ in ("bool_", "bool"):  # numpy's has either name
        return Literal(bool(value), BOOLEAN)
    if isinstance(value, Integral):
        return _integer(int(value))
    if isinstance(value, float) or (isinstance(value, Real) and kind.__module__ == "numpy"):
        return Literal(float(value), DOUBLE)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        value.encode()  # half a surrogate pair is no text
        return Literal(str(value), STRING)
    if isinstance(value, bytes | bytearray | memoryview):
        return Literal(bytes(value), BINARY)
    if isinstance(value, dt.datetime):
        return _moment(value)
    if isinstance(value, dt.date):
        return Literal(value.toordinal() - _EPOCH.toordinal(), DATE)
    raise TypeError(f"{shown(value)} is a {kind.__name__}")


def _integer(value: int) -> Literal:
    if abs(value) >= 10**_MOST_DIGITS:
        raise ValueError(f"a number has at most {_MOST_DIGITS} digits")
    return number_literal(str(value))


def _decimal(value: Decimal) -> Literal:
    if not value.is_finite():
        raise ValueError(f"{value} is no number that a DECIMAL holds")
    if value.adjusted() >= _MOST_DIGITS:
        raise ValueError(f"a number has at most {_MOST_DIGITS} digits")
    _, _, exponent = value.as_tuple()
    return decimal_literal(value if int(exponent) <= 0 else Decimal(int(value)))


def _moment(value: dt.datetime) -> Literal:
    if getattr(value, "nanosecond", 0):
        raise ValueError("timestamps hold microseconds, not nanoseconds")
    offset = value.utcoffset()
    plain = dt.datetime(
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, dt.UTC
    )
    micros = (plain - _EPOCH) // _MICROSECOND
    if offset is None:
        return Literal(micros, TIMESTAMP_NTZ)
    return Literal(micros - offset // _MICROSECOND, TIMESTAMP)
