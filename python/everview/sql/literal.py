"""Constants: reading number, date and timestamp literals, and casting literals while lowering.

``cast_literal`` returns None where folding is left to the evaluator (a cast whose text form is Spark's business, a
time zone by name) and raises ``CoercionError`` where the cast can never succeed.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from decimal import ROUND_HALF_UP, Context, Decimal

from everview.errors import cut
from everview.query.expression import Literal
from everview.schema.datatype import BIGINT, DOUBLE, INT, DataType, Kind, decimal

_RANGE = {Kind.TINYINT: 1 << 7, Kind.SMALLINT: 1 << 15, Kind.INT: 1 << 31, Kind.BIGINT: 1 << 63}
_DATE = re.compile(r"(\d{4,5})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?")
_TIMESTAMP = re.compile(
    r"(\d{4,5})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*(Z|UTC)?)?)?)?"
)
_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAY_MICROS = 86_400_000_000
_EXACT = Context(prec=80)


class CoercionError(Exception):
    """Types that do not fit together; the caller adds the place."""


def number_literal(text: str) -> Literal:
    """The literal of an unsuffixed number, possibly negative.

    >>> number_literal("0.05").type
    DataType(kind=<Kind.DECIMAL: 'decimal'>, precision=2, scale=2, length=0)
    """
    if "e" in text.lower():
        return Literal(float(text), DOUBLE)
    value = Decimal(text)
    if "." in text:
        return decimal_literal(value)
    whole = int(value)
    for data_type in (INT, BIGINT):
        if -_RANGE[data_type.kind] <= whole < _RANGE[data_type.kind]:
            return Literal(whole, data_type)
    return decimal_literal(value)


def decimal_of_integer(value: int) -> Literal:
    """An integer as a decimal of just its digits."""
    return Literal(Decimal(value), decimal(len(str(abs(value))), 0))


def decimal_literal(value: Decimal) -> Literal:
    """A decimal of just its digits."""
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits), scale)
    if precision > 38:
        raise CoercionError("a decimal has at most 38 digits")
    return Literal(value, decimal(precision, scale))


def add_days(date: int, days: int) -> int | None:
    """A date, in days since 1970, some days later; None beyond the years 1 to 9999, which is left to the evaluator."""
    return date + days if 1 <= date + days + _EPOCH <= dt.date.max.toordinal() else None


def add_months(days: int, months: int) -> int | None:
    """A date, in days since 1970, some months later: the same day, or the last of the month if there is none; None as in ``add_days``."""
    date = dt.date.fromordinal(days + _EPOCH)
    year, month = divmod(date.year * 12 + date.month - 1 + months, 12)
    try:
        day = min(date.day, calendar.monthrange(year, month + 1)[1])
        return dt.date(year, month + 1, day).toordinal() - _EPOCH
    except ValueError:
        return None


def cast_literal(literal: Literal, target: DataType) -> Literal | None:
    """The literal cast to ``target``, or None if that is left to the evaluator."""
    value = literal.value
    if value is None:
        return Literal(None, target)
    if isinstance(value, str):
        if target.kind is Kind.BINARY:
            return Literal(value.encode(), target)
        return _from_string(value.strip(), target)
    if literal.type.kind is Kind.DATE:
        return Literal(int(value) * _DAY_MICROS, target) if target.is_timestamp else None
    if literal.type.is_timestamp and target.is_timestamp:
        return Literal(value, target)  # the same digits: what has no zone is in UTC
    if isinstance(value, bool | bytes) or not literal.type.is_numeric:
        return None
    return _from_number(value, target)


def _from_number(value: float | Decimal, target: DataType) -> Literal | None:
    if target.is_integer:
        return Literal(in_range(value, target), target) if isinstance(value, int) else None
    if target.kind is Kind.DOUBLE:
        return Literal(float(value), target)
    if target.kind is Kind.DECIMAL and isinstance(value, int | Decimal):
        return Literal(_as_decimal(Decimal(value), target), target)
    if target.is_string and isinstance(value, int):
        return Literal(str(value), target)
    return None


def _from_string(text: str, target: DataType) -> Literal | None:
    if target.is_integer:
        if re.fullmatch(r"[+-]?\d+", text) is None:
            raise _bad(text, target)
        return Literal(in_range(int(text), target), target)
    if target.kind in (Kind.DECIMAL, Kind.DOUBLE):
        if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) is None:
            if target.kind is Kind.DOUBLE and text.lstrip("+-").lower() in ("nan", "inf", "infinity"):
                return None
            raise _bad(text, target)
        if target.kind is Kind.DOUBLE:
            return Literal(float(text), target)
        return Literal(_as_decimal(Decimal(text), target), target)
    if target.kind is Kind.DATE:
        return Literal(_days(text), target)
    if target.is_timestamp:
        micros = _micros(text, target)
        return None if micros is None else Literal(micros, target)
    return None


def in_range(value: int, target: DataType) -> int:
    """The value, refused if it is not one of its integer type."""
    if not -_RANGE[target.kind] <= value < _RANGE[target.kind]:
        raise _bad(str(value), target)
    return value


def _as_decimal(value: Decimal, target: DataType) -> Decimal:
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), rounding=ROUND_HALF_UP, context=_EXACT)
    if rounded.copy_abs() >= Decimal(10) ** (target.precision - target.scale):
        raise _bad(str(value), target)
    return rounded


def _days(text: str) -> int:
    match = _DATE.fullmatch(text)
    if match is None:
        raise _bad(text, DataType(Kind.DATE))
    return _ordinal(text, match, Kind.DATE)


def _micros(text: str, target: DataType) -> int | None:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        if _DATE.match(text) is not None:
            return None
        raise _bad(text, target)
    hour, minute, second = (int(g or 0) for g in match.group(4, 5, 6))
    if hour > 23 or minute > 59 or second > 59:
        raise _bad(text, target)
    micros = int((match[7] or "0").ljust(6, "0")[:6])
    days = _ordinal(text, match, target.kind)
    return days * _DAY_MICROS + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def _ordinal(text: str, match: re.Match[str], kind: Kind) -> int:
    try:
        return dt.date(int(match[1]), int(match[2] or 1), int(match[3] or 1)).toordinal() - _EPOCH
    except ValueError:
        raise _bad(text, DataType(kind)) from None


def _bad(text: str, target: DataType) -> CoercionError:
    return CoercionError(f"`{cut(text)}` is not a value of type `{target}`")
