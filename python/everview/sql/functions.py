"""The scalar functions: name, number of arguments, and how a call becomes typed operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    MAX_PRECISION,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Kind,
    decimal,
)
from everview.sql.coercion import (
    arithmetic,
    as_binary,
    as_date,
    as_int,
    as_number,
    as_position,
    as_string,
    as_string_or_binary,
    as_timestamp,
    can_cast,
    cast_to,
    coalesce,
    compare,
    computed_type,
    condition,
    unify,
)
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


OTHER_AGGREGATES = _names(
    "approx_count_distinct approx_percentile array_agg bit_and bit_or bit_xor collect_list collect_set first "
    "first_value kurtosis last last_value listagg median mode percentile percentile_approx regr_slope skewness "
    "string_agg try_avg try_sum"
)
NONDETERMINISTIC = _names(
    "rand random randn uuid shuffle now current_date curdate current_timestamp localtimestamp current_time "
    "current_user user session_user unix_timestamp monotonically_increasing_id spark_partition_id input_file_name"
)
WINDOW_ONLY = _names("row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value")

Arguments = list[Expression]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function of ``least`` to ``most`` arguments (None: any number)."""

    least: int
    most: int | None
    build: Callable[[Arguments], Expression]


def _plain(
    op: str, data_type: DataType, *casts: Callable[[Expression], Expression]
) -> Callable[[Arguments], Expression]:
    """An operation that is NULL iff an argument is; the last cast serves all further arguments."""

    def build(args: Arguments) -> Expression:
        done = tuple(casts[min(i, len(casts) - 1)](a) for i, a in enumerate(args))
        return Call(op, done, data_type, any(a.nullable for a in done))

    return build


def _abs(args: Arguments) -> Expression:
    operand = as_number(args[0], "ABS")
    return Call("abs", (operand,), operand.type, operand.nullable)


def _round(args: Arguments) -> Expression:
    operand = as_number(args[0], "ROUND")
    digits = args[1] if len(args) > 1 else Literal(0, INT)
    places = digits.value if isinstance(digits, Literal) and digits.type.is_integer else None
    if not isinstance(places, int) or not -(1 << 31) <= places < 1 << 31:
        raise CoercionError("the number of digits of ROUND must be a literal of type `int`")
    data_type = operand.type
    if data_type.kind is Kind.DECIMAL:
        whole = data_type.precision - data_type.scale + 1
        scale = min(data_type.scale, places)
        data_type = (
            decimal(min(MAX_PRECISION, max(whole, 1 - places)), 0)
            if places < 0
            else decimal(min(MAX_PRECISION, whole + scale), scale)
        )
    return Call("round", (operand, Literal(places, INT)), data_type, operand.nullable)


def _whole(op: str) -> Callable[[Arguments], Expression]:
    def build(args: Arguments) -> Expression:
        operand = as_number(args[0], op.upper())
        if operand.type == FLOAT:
            operand = cast_to(operand, DOUBLE)
        if operand.type.is_integer:
            return cast_to(operand, BIGINT)
        data_type = BIGINT
        if operand.type.kind is Kind.DECIMAL:
            if operand.type.scale == 0:
                return operand
            data_type = decimal(min(MAX_PRECISION, operand.type.precision - operand.type.scale + 1), 0)
        return Call(op, (operand,), data_type, operand.nullable)

    return build


def _extremum(op: str) -> Callable[[Arguments], Expression]:
    def build(args: Arguments) -> Expression:
        if len({a.type.is_string for a in args if a.type.kind is not Kind.NULL}) > 1:
            raise CoercionError(f"{op.upper()} takes strings or other values, not both")
        values = unify(args)
        return Call(op, values, computed_type(values), all(v.nullable for v in values))

    return build


def if_(args: Arguments) -> Expression:
    """IF(condition, then, else)."""
    then, other = unify(args[1:])
    return Call("if", (condition(args[0]), then, other), computed_type((then, other)), then.nullable or other.nullable)


def _nullif(args: Arguments) -> Expression:
    first, second = args
    if first.type == second.type or (first.type.is_string and second.type.is_string):
        return Call("nullif", (first, second), computed_type((first,)), nullable=True)
    return if_([compare("eq", first, second), Literal(None, first.type), first])


def is_null(operand: Expression, *, negated: bool = False) -> Expression:
    """IS [NOT] NULL."""
    return Call("is_not_null" if negated else "is_null", (operand,), BOOLEAN, nullable=False)


def explicit_cast(operand: Expression, target: DataType) -> Expression:
    """CAST as the user wrote it: refused where ANSI mode refuses it."""
    if not can_cast(operand.type, target):
        raise CoercionError(f"`{operand.type}` cannot be cast to `{target}`")
    if operand.type.kind is Kind.CHAR:
        return Call("cast", (operand,), target, operand.nullable)  # from here on it is not padded in comparisons
    return cast_to(operand, target)


def _cast(target: DataType) -> Callable[[Arguments], Expression]:
    return lambda args: explicit_cast(args[0], target)


_TRUNC_UNITS = _names("year yyyy yy quarter month mon mm week day dd hour minute second millisecond microsecond")


def _unit(argument: Expression, name: str) -> Literal:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise CoercionError(f"the unit of {name} must be a string literal")
    unit = argument.value.lower()
    if unit not in _TRUNC_UNITS:
        raise CoercionError(f"`{argument.value}` is not a unit of {name}")
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


def trim(op: str, args: Arguments) -> Expression:
    """``trim``, ``ltrim`` or ``rtrim`` of (string) or (string, characters); the characters can only be the blank."""
    if len(args) > 1 and not (isinstance(args[1], Literal) and args[1].value == " "):
        raise CoercionError("TRIM takes off blanks only, no other characters")
    return _plain(op, STRING, as_string)(args[:1])


def _replace(args: Arguments) -> Expression:
    return _plain("replace", STRING, as_string)([*args, Literal("", STRING)][:3])


def concat(args: Arguments) -> Expression:
    """CONCAT and ``||``: of byte strings only a byte string."""
    if all(a.type.kind is Kind.BINARY for a in args):
        return _plain("concat", BINARY, as_binary)(args)
    return _plain("concat", STRING, as_string)(args)


def substring(args: Arguments) -> Expression:
    """SUBSTRING(string, position [, length])."""
    return _part_of("substring", args)


def _part_of(op: str, args: Arguments) -> Expression:
    """A part of a string or byte string, by positions."""
    result = BINARY if args[0].type.kind is Kind.BINARY else STRING
    return _plain(op, result, as_string_or_binary, as_position)(args)


def _search(op: str) -> Callable[[Arguments], Expression]:
    """Whether one string has another somewhere. The bytes decide, so strings become byte strings where one of both is."""

    def build(args: Arguments) -> Expression:
        binary = any(a.type.kind is Kind.BINARY for a in args)
        return _plain(op, BOOLEAN, as_binary if binary else as_string)(args)

    return build


def date_part(op: str) -> Callable[[Arguments], Expression]:
    """A part of a date (year, month, ...) or of a time (hour, minute, second), as INT."""
    return _plain(op, INT, as_timestamp if op in ("hour", "minute", "second") else as_date)


datediff = _plain("datediff", INT, as_date)

SCALARS: dict[str, ScalarFunction] = {
    "abs": ScalarFunction(1, 1, _abs),
    "round": ScalarFunction(1, 2, _round),
    "floor": ScalarFunction(1, 1, _whole("floor")),
    "ceil": ScalarFunction(1, 1, _whole("ceil")),
    "mod": ScalarFunction(2, 2, lambda args: arithmetic("modulo", args[0], args[1])),
    "coalesce": ScalarFunction(1, None, coalesce),
    "nvl": ScalarFunction(2, 2, coalesce),
    "nvl2": ScalarFunction(3, 3, lambda args: if_([is_null(args[0], negated=True), *args[1:]])),
    "nullif": ScalarFunction(2, 2, _nullif),
    "if": ScalarFunction(3, 3, if_),
    "isnull": ScalarFunction(1, 1, lambda args: is_null(args[0])),
    "isnotnull": ScalarFunction(1, 1, lambda args: is_null(args[0], negated=True)),
    "greatest": ScalarFunction(2, None, _extremum("greatest")),
    "least": ScalarFunction(2, None, _extremum("least")),
    "upper": ScalarFunction(1, 1, _plain("upper", STRING, as_string)),
    "lower": ScalarFunction(1, 1, _plain("lower", STRING, as_string)),
    "length": ScalarFunction(1, 1, _plain("length", INT, as_string_or_binary)),
    "concat": ScalarFunction(1, None, concat),
    # The characters come first in the call form: ltrim(characters, string).
    "ltrim": ScalarFunction(1, 2, lambda args: trim("ltrim", args[::-1])),
    "rtrim": ScalarFunction(1, 2, lambda args: trim("rtrim", args[::-1])),
    "replace": ScalarFunction(2, 3, _replace),
    "left": ScalarFunction(2, 2, lambda args: _part_of("left", args)),
    "right": ScalarFunction(2, 2, _plain("right", STRING, as_string, as_position)),
    "startswith": ScalarFunction(2, 2, _search("starts_with")),
    "endswith": ScalarFunction(2, 2, _search("ends_with")),
    "contains": ScalarFunction(2, 2, _search("contains")),
    "date_add": ScalarFunction(2, 2, _plain("date_add", DATE, as_date, as_int)),
    "date_sub": ScalarFunction(2, 2, _plain("date_sub", DATE, as_date, as_int)),
    "datediff": ScalarFunction(2, 2, datediff),
    "add_months": ScalarFunction(2, 2, _plain("add_months", DATE, as_date, as_int)),
    "date_trunc": ScalarFunction(2, 2, _date_trunc),
    "trunc": ScalarFunction(2, 2, _trunc),
    **{
        name: ScalarFunction(1, 1, date_part(name))
        for name in _names("year month day quarter dayofweek dayofyear weekofyear hour minute second")
    },
    "to_timestamp_ntz": ScalarFunction(1, 1, _cast(TIMESTAMP_NTZ)),
    **{
        str(t): ScalarFunction(1, 1, _cast(t))
        for t in (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP)
    },
}
SCALARS |= {
    alias: SCALARS[name]
    for alias, name in {
        "ceiling": "ceil",
        "ifnull": "nvl",
        "ucase": "upper",
        "lcase": "lower",
        "len": "length",
        "char_length": "length",
        "character_length": "length",
        "dateadd": "date_add",
        "date_diff": "datediff",
        "dayofmonth": "day",
        "to_date": "date",
        "to_timestamp": "timestamp",
        "to_timestamp_ltz": "timestamp",
    }.items()
}

# EXTRACT fields and the function each stands for.
EXTRACT_FIELDS = {
    "year": "year", "years": "year", "yr": "year", "y": "year",
    "quarter": "quarter", "qtr": "quarter",
    "month": "month", "months": "month", "mon": "month",
    "week": "weekofyear", "weeks": "weekofyear", "w": "weekofyear",
    "day": "day", "days": "day", "d": "day",
    "dayofweek": "dayofweek", "dow": "dayofweek",
    "doy": "dayofyear",
    "hour": "hour", "hours": "hour", "hr": "hour", "h": "hour",
    "minute": "minute", "minutes": "minute", "min": "minute", "m": "minute",
}  # fmt: skip
