"""Functions of dates and timestamps. Everything is UTC."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from everview.errors import cut
from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Kind, decimal
from everview.sql.coercion import (
    arithmetic,
    as_bigint,
    as_date,
    as_int,
    as_position,
    as_string,
    as_timestamp,
    cast_to,
    condition,
)
from everview.sql.functions.function import Arguments, ScalarFunction, literal_text, plain
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable

_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "dayofyear": 86_400_000_000,
    "week": 7 * 86_400_000_000,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
# The letters of DATE_FORMAT, and how often each may stand in a row.
_LETTERS = {
    "y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "E": 4, "Q": 4, "q": 4, "a": 1, "H": 2, "h": 2, "K": 2, "k": 2, "m": 2, "s": 2, "S": 9,
    "X": 3, "x": 3, "Z": 3,
}  # fmt: skip
_UNITS = "year yyyy yy quarter month mon mm week day dd hour minute second millisecond microsecond"


def _unit(argument: Expression, name: str) -> Literal:
    text = literal_text(argument, f"the unit of {name}")
    unit = text.lower()
    if unit not in _UNITS.split(" "):
        raise CoercionError(f"`{text}` is not a unit of {name}")
    canonical = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}.get(unit, unit)
    return Literal(canonical, STRING)


def _date_trunc(args: Arguments) -> Expression:
    operand = as_timestamp(args[1])
    return Call("date_trunc", (_unit(args[0], "date_trunc"), operand), TIMESTAMP, operand.nullable)


def _trunc(args: Arguments) -> Expression:
    operand, unit = as_date(args[0]), _unit(args[1], "trunc")
    if unit.value not in ("year", "quarter", "month", "week"):
        raise CoercionError(f"`{unit.value!s}` is not a unit of trunc, which gives a date")
    return Call("trunc", (operand, unit), DATE, operand.nullable)


def date_part(op: str) -> Callable[[Arguments], Expression]:
    """A part of a date (year, month, ...) or of a time (hour, minute, second), as INT."""
    return plain(op, INT, as_timestamp if op in ("hour", "minute", "second") else as_date)


def date_difference(dates: Arguments) -> Expression:
    """The days from the second date to the first."""
    return plain("datediff", INT, as_date)(dates)


def extract(field: str, operand: Expression) -> Expression | None:
    """EXTRACT(field FROM operand); None if the field is not known."""
    if field in ("second", "seconds", "sec", "s"):
        operand = as_timestamp(operand)
        return Call("second_fraction", (operand,), decimal(8, 6), operand.nullable)
    if field in ("dayofweek_iso", "dow_iso"):
        return arithmetic("add", date_part("weekday")([operand]), Literal(1, INT))
    name = EXTRACT_FIELDS.get(field)
    return None if name is None else date_part(name)([operand])


def _date_part(args: Arguments) -> Expression:
    field = literal_text(args[0], "the field of DATE_PART")
    found = extract(field.lower(), args[1])
    if found is None:
        raise CoercionError(f"`{cut(field)}` is not a field of DATE_PART")
    return found


def _datediff(args: Arguments) -> Expression:
    return date_difference(args) if len(args) == 2 else timestamp_difference(args)


def _date_add(args: Arguments) -> Expression:
    return plain("date_add", DATE, as_date, as_int)(args) if len(args) == 2 else _timestamp_add(args)


def _units(argument: Expression, name: str) -> tuple[int | None, int | None]:
    """The microseconds or else the months of a unit."""
    unit = literal_text(argument, f"the unit of {name}").lower()
    if unit in _MICROS:
        return _MICROS[unit], None
    if unit in _MONTHS:
        return None, _MONTHS[unit]
    raise CoercionError(f"`{cut(unit)}` is not a unit of {name}")


def timestamp_difference(args: Arguments) -> Expression:
    """TIMESTAMPDIFF(unit, start, end): whole units, cut toward zero."""
    micros, months = _units(args[0], "TIMESTAMPDIFF")
    start, end = (a if a.type.kind is Kind.TIMESTAMP_NTZ else as_timestamp(a) for a in args[1:])
    if start.type != end.type:
        start, end = cast_to(start, TIMESTAMP), cast_to(end, TIMESTAMP)
    op = "timestamp_until" if months is None else "timestamp_until_months"
    found = Call(op, (start, end), BIGINT, start.nullable or end.nullable)
    unit = micros or months or 1
    return found if unit == 1 else arithmetic("int_div", found, Literal(unit, BIGINT))


def _timestamp_add(args: Arguments) -> Expression:
    micros, months = _units(args[0], "TIMESTAMPADD")
    moment = args[2] if args[2].type.kind is Kind.TIMESTAMP_NTZ else as_timestamp(args[2])
    amount = as_bigint(args[1])
    steps = arithmetic("multiply", amount, Literal(micros or months or 1, BIGINT))
    op, steps = ("timestamp_add", steps) if months is None else ("timestamp_add_months", cast_to(steps, INT))
    return Call(op, (moment, steps), moment.type, moment.nullable or steps.nullable)


def _months_between(args: Arguments) -> Expression:
    rounded = condition(args[2]) if len(args) > 2 else Literal(True, BOOLEAN)
    done = (as_timestamp(args[0]), as_timestamp(args[1]), rounded)
    return Call("months_between", done, DOUBLE, any(a.nullable for a in done))


def _next_day(args: Arguments) -> Expression:
    day = as_date(args[0])
    if isinstance(args[1], Literal) and args[1].value is None:
        return Literal(None, DATE)
    name = literal_text(args[1], "the day of NEXT_DAY").strip().lower()
    for number, known in enumerate(_DAYS):
        if name in (known, known[:2], known[:3]):
            return Call("next_day", (day, Literal(number, INT)), DATE, day.nullable)
    raise CoercionError(f"`{cut(name)}` is not a day of the week")


def _checked_format(pattern: str) -> Literal:
    """A pattern of DATE_FORMAT, if it has only letters that mean the same here and in Spark."""
    for letters in re.findall(r"(?s)'[^']*'?|([a-zA-Z])(\1*)|.", pattern):
        letter, count = letters[0], 1 + len(letters[1])
        if letter and count > _LETTERS.get(letter, 0):
            raise CoercionError(f"`{letter * count}` in a format is not supported; known are {' '.join(_LETTERS)}")
    if pattern.count("'") % 2 or any(c in pattern for c in "[]{}#"):
        raise CoercionError(f"`{cut(pattern)}` is not a supported format")
    return Literal(pattern, STRING)


def _formatted(moment: Expression, pattern: Literal) -> Expression:
    return Call("date_format", (moment, pattern), STRING, moment.nullable)


def _date_format(args: Arguments) -> Expression:
    moment = as_timestamp(args[0])
    if isinstance(args[1], Literal) and args[1].value is None:
        return Literal(None, STRING)
    return _formatted(moment, _checked_format(literal_text(args[1], "the format of DATE_FORMAT")))


def _name(pattern: str) -> Callable[[Arguments], Expression]:
    return lambda args: _formatted(cast_to(as_date(args[0]), TIMESTAMP), Literal(pattern, STRING))


def _from_unixtime(args: Arguments) -> Expression:
    seconds = timestamp_from(1_000_000)([as_bigint(args[0])])
    pattern = args[1] if len(args) > 1 else Literal("yyyy-MM-dd HH:mm:ss", STRING)
    return _date_format([seconds, pattern])


def parsed(args: Arguments) -> Expression:
    """A text as a timestamp, by a format."""
    text = as_string(args[0])
    if isinstance(args[1], Literal) and args[1].value is None:
        return Literal(None, TIMESTAMP)
    pattern = _checked_format(literal_text(args[1], "a format"))
    letters = [(m[0], len(m[0])) for m in re.finditer(r"'[^']*'|([a-zA-Z])\1*", str(pattern.value)) if m[1]]
    for letter, count in ((text[0], count) for text, count in letters):
        if letter not in "yMLdHhmsSa" or (letter == "y" and count not in (1, 2, 4)):
            raise CoercionError(f"`{letter * count}` in a format that texts are read by is not supported")
    names = [text[0] for text, _ in letters]
    if len(names) != len(set(names)) or ("h" in names) != ("a" in names) or {"h", "H"} <= set(names):
        raise CoercionError("a format that texts are read by has each field once, and `h` with `a`")
    if re.search(
        r"(?<![a-zA-Z])([yMdHhms])(?!\1)[yMdHhmsS]|([yMdHhms])(?!\2)([yMdHhms])(?!\3)[yMdHhmsS]", str(pattern.value)
    ):
        raise CoercionError("in a format that texts are read by, a field of one letter is followed by no digits")
    return Call("parse_timestamp", (text, pattern), TIMESTAMP, text.nullable)


def _unix_timestamp(args: Arguments) -> Expression:
    if args[0].type.is_string:
        moment = parsed([*args, Literal("yyyy-MM-dd HH:mm:ss", STRING)][:2])
    else:
        moment = as_timestamp(args[0])
    micros = Call("unix_micros", (moment,), BIGINT, moment.nullable)
    return arithmetic("int_div", micros, Literal(1_000_000, BIGINT))  # toward zero, as Spark


def timestamp_from(micros: int) -> Callable[[Arguments], Expression]:
    """A timestamp from a number of units since 1970."""

    def build(args: Arguments) -> Expression:
        if not args[0].type.is_integer and args[0].type.kind is not Kind.NULL:
            raise CoercionError(f"an integer is expected, not `{args[0].type}`")
        amount = cast_to(args[0], BIGINT)
        return Call("timestamp_from", (amount, Literal(micros, BIGINT)), TIMESTAMP, amount.nullable)

    return build


def _unix_date(args: Arguments) -> Expression:
    if args[0].type.kind not in (Kind.DATE, Kind.NULL):
        raise CoercionError(f"a date is expected, not `{args[0].type}`")
    return plain("unix_date", INT, as_date)(args)


def _unix(micros: int) -> Callable[[Arguments], Expression]:
    """The number of units since 1970, cut to the earlier."""

    def build(args: Arguments) -> Expression:
        if not args[0].type.is_timestamp and args[0].type.kind is not Kind.NULL:
            raise CoercionError(f"a timestamp is expected, not `{args[0].type}`")
        moment = as_timestamp(args[0])
        found: Expression = Call("unix_micros", (moment,), BIGINT, moment.nullable)
        if micros == 1:
            return found
        unit = Literal(micros, BIGINT)
        rest = Call("pmod", (found, unit), BIGINT, found.nullable)
        return arithmetic("int_div", arithmetic("subtract", found, rest), unit)

    return build


TITLE = "Dates and timestamps"
_PARTS = {
    "year": "the year",
    "quarter": "the quarter, 1 to 4",
    "month": "the month, 1 to 12",
    "day": "the day of the month",
    "dayofweek": "the day of the week, 1 is Sunday",
    "weekday": "the day of the week, 0 is Monday",
    "dayofyear": "the day of the year",
    "weekofyear": "the ISO week",
    "hour": "the hour",
    "minute": "the minute",
    "second": "the second, whole",
}
FUNCTIONS = (
    ScalarFunction(
        "date_add",
        "[unit,] date_or_amount, days_or_timestamp",
        "`date_add(date, days)`: some days later; `date_add(unit, amount, timestamp)`: as `timestampadd`",
        _date_add,
        ("dateadd",),
    ),
    ScalarFunction("date_sub", "date, days", "some days earlier", plain("date_sub", DATE, as_date, as_int)),
    ScalarFunction(
        "datediff",
        "[unit,] end_or_start, start_or_end",
        "`datediff(end, start)`: number of days; `datediff(unit, start, end)`: as `timestampdiff`",
        _datediff,
        ("date_diff",),
    ),
    ScalarFunction(
        "timestampadd",
        "unit, amount, timestamp",
        "some `SECOND`s, ..., `YEAR`s later; the unit is written without quotes",
        _timestamp_add,
    ),
    ScalarFunction(
        "timestampdiff", "unit, start, end", "whole units from start to end, cut toward zero", timestamp_difference
    ),
    ScalarFunction(
        "add_months",
        "date, months",
        "some months later; the day is cut to the length of the month",
        plain("add_months", DATE, as_date, as_int),
    ),
    ScalarFunction(
        "months_between",
        "end, start[, round]",
        "months, a double, of 31 days where days of the month differ; to 8 digits unless `round` is false",
        _months_between,
    ),
    ScalarFunction("last_day", "date", "the last day of its month", plain("last_day", DATE, as_date)),
    ScalarFunction(
        "next_day", "date, day", "the first day of that name (`'MON'`, a literal) after the date", _next_day
    ),
    ScalarFunction("make_date", "year, month, day", "the date", plain("make_date", DATE, as_position)),
    ScalarFunction(
        "date_format", "timestamp, format", "as a text, by a literal such as `'yyyy-MM-dd HH:mm'`", _date_format
    ),
    ScalarFunction("dayname", "date", "`Mon`, `Tue`, ...", _name("EEE")),
    ScalarFunction("monthname", "date", "`Jan`, `Feb`, ...", _name("MMM")),
    ScalarFunction("date_part", "field, date", "as `EXTRACT(field FROM date)`; a literal", _date_part, ("datepart",)),
    ScalarFunction(
        "unix_timestamp",
        "timestamp[, format]",
        "seconds since 1970, cut toward zero; a text is read by the format",
        _unix_timestamp,
        ("to_unix_timestamp",),
    ),
    ScalarFunction("from_unixtime", "seconds[, format]", "seconds since 1970 as a text", _from_unixtime),
    ScalarFunction("timestamp_seconds", "integer", "seconds since 1970", timestamp_from(1_000_000)),
    ScalarFunction("timestamp_millis", "integer", "milliseconds since 1970", timestamp_from(1_000)),
    ScalarFunction("timestamp_micros", "integer", "microseconds since 1970", timestamp_from(1)),
    ScalarFunction("unix_seconds", "timestamp", "seconds since 1970", _unix(1_000_000)),
    ScalarFunction("unix_millis", "timestamp", "milliseconds since 1970", _unix(1_000)),
    ScalarFunction("unix_micros", "timestamp", "microseconds since 1970", _unix(1)),
    ScalarFunction("unix_date", "date", "days since 1970", _unix_date),
    ScalarFunction("date_from_unix_date", "days", "the date", plain("date_from_unix_date", DATE, as_int)),
    ScalarFunction("date_trunc", "unit, timestamp", "the start of its year, ..., microsecond", _date_trunc),
    ScalarFunction("trunc", "date, unit", "the first day of its year, quarter, month or week", _trunc),
    *(
        ScalarFunction(name, "date", meaning, date_part(name), ("dayofmonth",) if name == "day" else ())
        for name, meaning in _PARTS.items()
    ),
)

# EXTRACT fields and the function each stands for.
EXTRACT_FIELDS = {
    "year": "year", "years": "year", "yr": "year", "y": "year",
    "quarter": "quarter", "qtr": "quarter",
    "month": "month", "months": "month", "mon": "month",
    "week": "weekofyear", "weeks": "weekofyear", "w": "weekofyear",
    "day": "day", "days": "day", "d": "day",
    "dayofweek": "dayofweek", "dow": "dayofweek",
    "doy": "dayofyear",
    "yearofweek": "yearofweek",
    "hour": "hour", "hours": "hour", "hr": "hour", "h": "hour",
    "minute": "minute", "minutes": "minute", "min": "minute", "m": "minute",
}  # fmt: skip

# The functions whose first argument, of three, is a unit that is written without quotes.
UNIT_FIRST = frozenset({"timestampdiff", "timestampadd", "datediff", "date_diff", "date_add", "dateadd"})
