"""Interval literals and date arithmetic.

Intervals are not values of columns here; they are constants that are added to dates and timestamps. Spark keeps two
kinds apart: year-month intervals (a number of months) and day-time intervals (a number of microseconds). A date plus
a day-time interval stays a date only if the interval's finest unit is the day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import cut
from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import BIGINT, DATE, INT, STRING, TIMESTAMP, Kind
from everview.sql.coercion import cast_to
from everview.sql.literal import CoercionError, add_days, add_months

if TYPE_CHECKING:
    from collections.abc import Callable

_DAY = 86_400_000_000
_MONTHS = {"YEAR": 12, "MONTH": 1}
_MICROS = {
    "WEEK": 7 * _DAY,
    "DAY": _DAY,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}


@dataclass(frozen=True, slots=True)
class Interval:
    """``months`` for year-month intervals, else ``micros``; ``whole_days``: no unit finer than the day is named."""

    months: int | None = None
    micros: int = 0
    whole_days: bool = True

    def __neg__(self) -> Interval:
        return Interval(None if self.months is None else -self.months, -self.micros, self.whole_days)

    def __add__(self, other: Interval) -> Interval:
        if (self.months is None) != (other.months is None):
            raise CoercionError("an interval has either years and months or days and times, not both")
        months = None if self.months is None or other.months is None else self.months + other.months
        return Interval(months, self.micros + other.micros, self.whole_days and other.whole_days)


def interval_of(node: exp.Expr) -> Interval | None:
    """The interval a node stands for; None if it is not an interval. Sums are looked at from the right: most are none."""
    added: list[Interval] = []
    while isinstance(node, exp.Add | exp.Sub):
        right = interval_of(node.expression)
        if right is None:
            return None
        added.append(right if isinstance(node, exp.Add) else -right)
        node = node.this
    found: Interval | None = None
    if isinstance(node, exp.Paren):
        found = interval_of(node.this)
    elif isinstance(node, exp.Neg):
        inner = interval_of(node.this)
        found = None if inner is None else -inner
    elif isinstance(node, exp.Interval):
        found = _literal(node)
    return None if found is None else sum(reversed(added), start=found)


def interval_from_text(text: str) -> Interval:
    """An interval from option text such as ``INTERVAL 1 HOUR`` or ``2 days``."""
    match = re.fullmatch(r"\s*(?:interval\s+)?'?(-?[0-9]+)'?\s+([a-z]+)\s*'?\s*", text, re.IGNORECASE)
    if match is None:
        raise CoercionError(f"`{cut(text)}` is not an interval")
    return _of_unit(match[1], match[2])


def add_interval(operand: Expression, interval: Interval) -> Expression:
    """A date or timestamp plus an interval."""
    if operand.type.is_string and interval.months is None:  # Spark's result is a string again
        whole = Interval(micros=interval.micros, whole_days=False)
        return cast_to(add_interval(cast_to(operand, TIMESTAMP), whole), STRING)
    if not operand.type.is_datetime:
        raise CoercionError(f"an interval is added to a date or timestamp, not to `{operand.type}`")
    is_date = operand.type.kind is Kind.DATE
    if not (abs(interval.months or 0) < 1 << 31 and abs(interval.micros) < 1 << 63):
        raise CoercionError("the interval is out of range")
    if interval.months is not None:
        months = Literal(interval.months, INT)
        if is_date:
            return _folded(operand, interval.months, add_months) or Call(
                "add_months", (operand, months), DATE, operand.nullable
            )
        return Call("timestamp_add_months", (operand, months), operand.type, operand.nullable)
    if is_date and interval.whole_days:
        days = interval.micros // _DAY
        return _folded(operand, days, add_days) or Call(
            "date_add", (operand, Literal(days, INT)), DATE, operand.nullable
        )
    operand = cast_to(operand, TIMESTAMP) if is_date else operand
    return Call("timestamp_add", (operand, Literal(interval.micros, BIGINT)), operand.type, operand.nullable)


def _folded(operand: Expression, amount: int, add: Callable[[int, int], int | None]) -> Literal | None:
    """A constant date plus an amount; None if the date is no constant, or the sum no date that can be written as one."""
    if not isinstance(operand, Literal) or not isinstance(operand.value, int):
        return None
    found = add(operand.value, amount)
    return None if found is None else Literal(found, DATE)


def _literal(node: exp.Interval) -> Interval:
    value, unit = node.this, node.args.get("unit")
    sign = ""
    while isinstance(value, exp.Neg | exp.Paren):
        sign = "-" if isinstance(value, exp.Neg) and not sign else sign
        value = value.this
    if not isinstance(value, exp.Literal):
        raise CoercionError("the amount of an interval must be a literal")
    text = sign + value.name.strip()
    if unit is None:
        return interval_from_text(text)
    if isinstance(unit, exp.IntervalSpan):
        return _of_span(text, unit.this.name.upper(), unit.expression.name.upper())
    return _of_unit(text, unit.name)


def _of_unit(text: str, unit: str) -> Interval:
    name = unit.upper().removesuffix("S")
    match = re.fullmatch(r"([+-]?)([0-9]{1,30})(?:\.([0-9]+))?", text)
    if match is None or (match[3] and name != "SECOND"):
        raise CoercionError(f"`{cut(text)}` is not an amount of {cut(unit)}")
    sign = -1 if match[1] == "-" else 1
    amount = sign * int(match[2])
    if name in _MONTHS:
        return Interval(months=amount * _MONTHS[name])
    if name not in _MICROS:
        raise CoercionError(f"`{cut(unit)}` is not a unit of intervals")
    fraction = sign * int((match[3] or "0").ljust(6, "0")[:6])
    return Interval(micros=amount * _MICROS[name] + fraction, whole_days=name in ("WEEK", "DAY"))


def _of_span(text: str, first: str, last: str) -> Interval:
    """``'1-2' YEAR TO MONTH`` and ``'1 12:30:00' DAY TO SECOND`` with its shorter forms."""
    if (first, last) == ("YEAR", "MONTH"):
        match = re.fullmatch(r"([+-]?)([0-9]{1,30})-([0-9]{1,30})", text)
        if match is None:
            raise CoercionError(f"`{cut(text)}` is not an interval of years and months")
        months = int(match[2]) * 12 + int(match[3])
        return Interval(months=-months if match[1] else months)
    units = ["DAY", "HOUR", "MINUTE", "SECOND"]
    match = re.fullmatch(r"([+-]?)([0-9 :]{1,60})(?:\.([0-9]{1,9}))?", text)
    if match is None or first not in units or last not in units:
        raise CoercionError(f"`{cut(text)}` is not an interval {first} TO {last}")
    fields = re.split(r"[ :]", match[2])
    names = units[units.index(first) : units.index(last) + 1]
    if len(fields) != len(names) or not all(fields):
        raise CoercionError(f"`{cut(text)}` is not an interval {first} TO {last}")
    micros = sum(int(f) * _MICROS[n] for f, n in zip(fields, names, strict=True))
    micros += int((match[3] or "0").ljust(6, "0")[:6])
    return Interval(micros=-micros if match[1] == "-" else micros, whole_days=False)
