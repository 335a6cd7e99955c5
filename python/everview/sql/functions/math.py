"""Functions of numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, MAX_PRECISION, Kind, decimal
from everview.sql.coercion import arithmetic, as_double, as_number, cast_to, negate
from everview.sql.functions.function import Arguments, ScalarFunction, plain
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable


def _abs(args: Arguments) -> Expression:
    operand = as_number(args[0], "ABS")
    return Call("abs", (operand,), operand.type, operand.nullable)


def _rounded(op: str, args: Arguments) -> Expression:
    operand = as_number(args[0], op.upper())
    digits = args[1] if len(args) > 1 else Literal(0, INT)
    places = digits.value if isinstance(digits, Literal) and digits.type.is_integer else None
    if not isinstance(places, int) or not -(1 << 31) <= places < 1 << 31:
        raise CoercionError(f"the number of digits of {op.upper()} must be a literal of type `int`")
    data_type = operand.type
    if data_type.kind is Kind.DECIMAL:
        whole = data_type.precision - data_type.scale + 1
        scale = min(data_type.scale, places)
        data_type = (
            decimal(min(MAX_PRECISION, max(whole, 1 - places)), 0)
            if places < 0
            else decimal(min(MAX_PRECISION, whole + scale), scale)
        )
    return Call(op, (operand, Literal(places, INT)), data_type, operand.nullable)


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


def _log(args: Arguments) -> Expression:
    return plain("ln" if len(args) == 1 else "log", DOUBLE, as_double, nullable=True)(args)


def _pmod(args: Arguments) -> Expression:
    rest = arithmetic("modulo", *args)
    return replace(rest, op="pmod") if isinstance(rest, Call) else rest


def _is_nan(args: Arguments) -> Expression:
    operand = _floating(args[0])
    found = Call("is_nan", (operand,), BOOLEAN, operand.nullable)
    return Call("coalesce", (found, Literal(False, BOOLEAN)), BOOLEAN, nullable=False) if operand.nullable else found


def _nanvl(args: Arguments) -> Expression:
    value, other = (as_number(a, "NANVL") for a in args)
    target = FLOAT if value.type == other.type == FLOAT else DOUBLE
    value, other = cast_to(value, target), cast_to(other, target)
    return Call("if", (_is_nan([value]), other, value), target, value.nullable or other.nullable)


def _floating(argument: Expression) -> Expression:
    return argument if argument.type == FLOAT else as_double(argument)


def _doubles(op: str, *, nullable: bool = False) -> Callable[[Arguments], Expression]:
    return plain(op, DOUBLE, as_double, nullable=nullable)


TITLE = "Numbers"
FUNCTIONS = (
    ScalarFunction("abs", "number", "the number without its sign", _abs),
    ScalarFunction(
        "round",
        "number[, digits]",
        "rounded half up; negative digits round before the point; a literal",
        lambda args: _rounded("round", args),
    ),
    ScalarFunction("bround", "number[, digits]", "the same, half to even", lambda args: _rounded("bround", args)),
    ScalarFunction("floor", "number", "the greatest whole number that is not greater", _whole("floor")),
    ScalarFunction("ceil", "number", "the least whole number that is not less", _whole("ceil"), ("ceiling",)),
    ScalarFunction("sign", "number", "-1.0, 0.0 or 1.0", _doubles("signum"), ("signum",)),
    ScalarFunction("negative", "number", "`-number`", lambda args: negate(args[0])),
    ScalarFunction("positive", "number", "the number", lambda args: as_number(args[0], "POSITIVE")),
    ScalarFunction("sqrt", "number", "square root; NaN of negative numbers", _doubles("sqrt")),
    ScalarFunction("cbrt", "number", "cube root", _doubles("cbrt")),
    ScalarFunction("pow", "base, exponent", "the power, a double", _doubles("pow"), ("power",)),
    ScalarFunction("exp", "number", "e to the power of it", _doubles("exp")),
    ScalarFunction("expm1", "number", "the same minus 1", _doubles("expm1")),
    ScalarFunction("ln", "number", "natural logarithm; NULL of what has none", _doubles("ln", nullable=True)),
    ScalarFunction("log", "[base,] number", "logarithm to a base, or the natural one; NULL of what has none", _log),
    ScalarFunction("log10", "number", "the same to base 10", _doubles("log10", nullable=True)),
    ScalarFunction("log2", "number", "the same to base 2", _doubles("log2", nullable=True)),
    ScalarFunction("log1p", "number", "natural logarithm of it plus 1", _doubles("log1p", nullable=True)),
    ScalarFunction("hypot", "a, b", "square root of a² + b²", _doubles("hypot")),
    *(ScalarFunction(name, "angle", "of an angle in radians", _doubles(name)) for name in ("sin", "cos", "tan", "cot")),
    *(ScalarFunction(name, "number", "in radians", _doubles(name)) for name in ("asin", "acos", "atan")),
    ScalarFunction("atan2", "y, x", "the angle of a point, in radians", _doubles("atan2")),
    *(ScalarFunction(name, "number", "hyperbolic", _doubles(name)) for name in ("sinh", "cosh", "tanh")),
    ScalarFunction("degrees", "radians", "an angle in degrees", _doubles("degrees")),
    ScalarFunction("radians", "degrees", "an angle in radians", _doubles("radians")),
    ScalarFunction("rint", "number", "rounded half to even, a double", _doubles("rint")),
    ScalarFunction("pi", "", "3.14...", lambda _: Literal(math.pi, DOUBLE)),
    ScalarFunction("e", "", "2.71...", lambda _: Literal(math.e, DOUBLE)),
    ScalarFunction("isnan", "number", "whether it is NaN; false of NULL", _is_nan),
    ScalarFunction("nanvl", "number, default", "the default where the number is NaN", _nanvl),
    ScalarFunction("pmod", "number, divisor", "the remainder that is not negative (of positive divisors)", _pmod),
    ScalarFunction("mod", "number, divisor", "the remainder, as `%`", lambda args: arithmetic("modulo", *args)),
)
