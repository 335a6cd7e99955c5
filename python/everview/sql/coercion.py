"""Types of operations and the casts they imply: Spark 4 with ANSI mode on.

Everything here works on typed expressions and knows nothing of SQL text; ``CoercionError`` is turned into an error
with a span by the caller. Casts are written out, except between the string kinds: STRING, CHAR(n) and VARCHAR(n)
hold the same values at run time, so no cast is written between them.
"""

from __future__ import annotations

import operator
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
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Kind,
    decimal,
)
from everview.sql.literal import CoercionError, cast_literal, decimal_of_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MIN_ADJUSTED_SCALE = 6
_INTEGER_ORDER = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
_INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20}


def bounded_decimal(precision: int, scale: int) -> DataType:
    """DECIMAL(precision, scale), cut to 38 digits at the expense of the scale (but not below six)."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    integer_digits = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - integer_digits, min(scale, _MIN_ADJUSTED_SCALE)))


def decimal_for(data_type: DataType) -> DataType:
    """The decimal that holds every value of an integer type, or the decimal type itself."""
    return data_type if data_type.kind is Kind.DECIMAL else decimal(_INTEGER_DIGITS[data_type.kind], 0)


def wider_decimal(left: DataType, right: DataType) -> DataType:
    """The decimal type that values of both are compared in."""
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    if digits + scale > MAX_PRECISION:
        return decimal(MAX_PRECISION, max(0, MAX_PRECISION - digits))
    return decimal(digits + scale, scale)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type that two values are brought to by comparisons, CASE, COALESCE, IN; None if there is none."""
    if left == right:
        return left
    if Kind.NULL in (left.kind, right.kind):
        return right if left.kind is Kind.NULL else left
    if left.is_string and right.is_string:
        return STRING
    if left.is_string or right.is_string:
        other = right if left.is_string else left
        if other.is_integer:
            return BIGINT
        return DOUBLE if other.is_numeric else other
    if left.is_numeric and right.is_numeric:
        return common_numeric(left, right)
    if left.is_datetime and right.is_datetime:
        return TIMESTAMP if Kind.TIMESTAMP in (left.kind, right.kind) else TIMESTAMP_NTZ
    return None


def common_numeric(left: DataType, right: DataType) -> DataType:
    """The common type of two numeric types. FLOAT with anything but FLOAT is DOUBLE, as ANSI mode has it."""
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda t: _INTEGER_ORDER.index(t.kind))
    if left.is_floating or right.is_floating:
        return FLOAT if left == right == FLOAT else DOUBLE
    return wider_decimal(decimal_for(left), decimal_for(right))


def cast_to(expression: Expression, target: DataType) -> Expression:
    """``expression`` as ``target``, folded for literals; the expression itself where no cast is needed."""
    source = expression.type
    if source == target or (source.is_string and target.is_string):
        return expression
    if isinstance(expression, Literal):
        folded = cast_literal(expression, target)
        if folded is not None:
            return folded
    # NaN and infinities have no decimal: Spark casts them to NULL, even in ANSI mode.
    lossy = source.is_floating and target.kind in (Kind.DECIMAL, Kind.TIMESTAMP)
    return Call("cast", (expression,), target, nullable=expression.nullable or lossy)


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether ANSI mode allows CAST from one type to another."""
    if source == target or source.kind is Kind.NULL or source.is_string or target.is_string:
        return True
    if source.is_numeric:
        return target.is_numeric or target.kind in (Kind.BOOLEAN, Kind.TIMESTAMP)
    if source.kind is Kind.BOOLEAN:
        return target.is_numeric
    if source.is_datetime and target.is_datetime:
        return True
    return source.kind is Kind.TIMESTAMP and target.is_numeric


def computed_type(values: Sequence[Expression]) -> DataType:
    """The type of a value picked from unified expressions. It is never CHAR(n): only columns are known to be padded."""
    return STRING if values[0].type.is_string else values[0].type


def unify(expressions: Sequence[Expression]) -> tuple[Expression, ...]:
    """The expressions cast to their common type."""
    target = expressions[0].type
    for expression in expressions[1:]:
        found = common_type(target, expression.type)
        if found is None:
            raise CoercionError(f"`{target}` and `{expression.type}` have no common type")
        target = found
    return tuple(cast_to(e, target) for e in expressions)


_DECIMAL_RESULT: dict[str, Callable[[int, int, int, int], tuple[int, int]]] = {
    "add": lambda p1, s1, p2, s2: (max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2)),
    "multiply": lambda p1, s1, p2, s2: (p1 + p2 + 1, s1 + s2),
    "divide": lambda p1, s1, p2, s2: (p1 - s1 + s2 + max(6, s1 + p2 + 1), max(6, s1 + p2 + 1)),
    "modulo": lambda p1, s1, p2, s2: (min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2)),
}
_DECIMAL_RESULT["subtract"] = _DECIMAL_RESULT["add"]


def arithmetic(op: str, left: Expression, right: Expression) -> Expression:
    """``add``, ``subtract``, ``multiply``, ``divide``, ``modulo`` or ``int_div`` of two numbers."""
    left, right = _numeric_operands(op, left, right)
    nullable = left.nullable or right.nullable
    if left.type.kind is Kind.DECIMAL:
        if op == "int_div":
            return Call(op, (left, right), BIGINT, nullable)
        one, two = left.type, right.type
        result = bounded_decimal(*_DECIMAL_RESULT[op](one.precision, one.scale, two.precision, two.scale))
        return Call(op, (left, right), result, nullable)
    if op == "divide":
        left, right = cast_to(left, DOUBLE), cast_to(right, DOUBLE)
    elif op == "int_div":
        if left.type.is_floating:
            raise CoercionError("`div` takes integers or decimals, not floating-point numbers")
        left, right = cast_to(left, BIGINT), cast_to(right, BIGINT)
    return Call(op, (left, right), left.type, nullable)


def _numeric_operands(op: str, left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both operands of one type, or both decimals of their own precision and scale."""
    target = common_type(left.type, right.type)
    if target is not None and target.kind is Kind.NULL:
        target = DOUBLE
    if target is None or not target.is_numeric:
        raise CoercionError(f"`{op}` takes numbers, not `{left.type}` and `{right.type}`")
    if target.kind is Kind.DECIMAL:
        return as_decimal(left, target), as_decimal(right, target)
    return cast_to(left, target), cast_to(right, target)


def as_decimal(expression: Expression, fallback: DataType) -> Expression:
    """An integer or decimal as a decimal without loss; an integer literal takes the precision of its digits."""
    if expression.type.kind is Kind.DECIMAL:
        return expression
    if isinstance(expression, Literal) and isinstance(expression.value, int) and expression.type.is_integer:
        return decimal_of_integer(expression.value)
    return cast_to(expression, decimal_for(expression.type) if expression.type.is_integer else fallback)


_COMPARE: dict[str, Callable[[object, object], bool]] = {"eq": operator.eq, "ne": operator.ne}


def compare(op: str, left: Expression, right: Expression, *, pad: bool = True) -> Expression:
    """A comparison: ``eq``, ``ne``, ``lt``, ``le``, ``gt``, ``ge`` or ``eq_null_safe``; ``pad``: see pad_chars."""
    target = common_type(left.type, right.type)
    if target is None:
        raise CoercionError(f"`{left.type}` and `{right.type}` cannot be compared")
    if target.kind is Kind.NULL:
        target = BOOLEAN  # NULL = NULL
    if target.kind is Kind.DECIMAL:
        left, right = as_decimal(left, target), as_decimal(right, target)
    else:
        left, right = cast_to(left, target), cast_to(right, target)
        if pad:
            left, right = pad_chars(left, right)
    nullable = op != "eq_null_safe" and (left.nullable or right.nullable)
    if op in _COMPARE and isinstance(left, Literal) and isinstance(right, Literal) and not nullable:
        return Literal(_COMPARE[op](left.value, right.value), BOOLEAN)
    return Call(op, (left, right), BOOLEAN, nullable)


def pad_chars(*operands: Expression) -> tuple[Expression, ...]:
    """Spark's rule for CHAR(n) in comparisons and IN: columns and literals are padded to the longest of them.

    It applies when every operand is a CHAR(n) or a literal. A CHAR(n) value always has n characters, so padding it
    further is appending blanks.
    """
    chars = [o for o in operands if o.type.kind is Kind.CHAR]
    if not chars or not all(o.type.kind is Kind.CHAR or isinstance(o, Literal) for o in operands):
        return operands
    width = max(_char_width(o) for o in operands)
    return tuple(_padded(o, width) for o in operands)


def _char_width(operand: Expression) -> int:
    if operand.type.kind is Kind.CHAR:
        return operand.type.length
    return len(operand.value) if isinstance(operand, Literal) and isinstance(operand.value, str) else 0


def _padded(operand: Expression, width: int) -> Expression:
    if isinstance(operand, Literal):
        return Literal(operand.value.ljust(width), STRING) if isinstance(operand.value, str) else operand
    if operand.type.length == width:
        return operand
    blanks = Literal(" " * (width - operand.type.length), STRING)
    return Call("concat", (operand, blanks), STRING, operand.nullable)


def logical(op: str, *args: Expression) -> Expression:
    """``and``, ``or`` or ``not``."""
    operands = tuple(condition(a) for a in args)
    return Call(op, operands, BOOLEAN, any(o.nullable for o in operands))


def condition(expression: Expression) -> Expression:
    """A boolean expression; NULL counts as one."""
    if expression.type.kind is Kind.NULL:
        return Literal(None, BOOLEAN)
    if expression.type.kind is not Kind.BOOLEAN:
        raise CoercionError(f"a condition is expected, not a value of type `{expression.type}`")
    return expression


def negate(operand: Expression) -> Expression:
    """Unary minus."""
    operand = as_number(operand, "-")
    return Call("negate", (operand,), operand.type, operand.nullable)


def case(branches: Sequence[tuple[Expression, Expression]], default: Expression) -> Expression:
    """CASE WHEN: the values get their common type."""
    values = unify([*(value for _, value in branches), default])
    args: list[Expression] = []
    for (when, _), value in zip(branches, values, strict=False):
        args += [condition(when), value]
    args.append(values[-1])
    return Call("case", tuple(args), computed_type(values), any(v.nullable for v in values))


def coalesce(args: Sequence[Expression]) -> Expression:
    """The first value that is not NULL."""
    values = unify(args)
    return Call("coalesce", values, computed_type(values), all(v.nullable for v in values))


def in_list(subject: Expression, choices: Sequence[Expression]) -> Expression:
    """``subject IN (choices)``; a single choice is an equality, which may join tables."""
    if len(choices) == 1:
        return compare("eq", subject, choices[0])
    operands = unify([subject, *choices])
    if all(isinstance(c, Literal) and c.value is not None for c in choices):  # with NULL in the list Spark does not pad
        operands = pad_chars(*operands)
    if subject.type.kind is Kind.NULL and operands[0].type.kind is Kind.NULL:
        operands = tuple(cast_to(o, BOOLEAN) for o in operands)
    return Call("in", operands, BOOLEAN, any(o.nullable for o in operands))


def as_date(expression: Expression) -> Expression:
    """An argument of a date function as DATE."""
    if expression.type.is_datetime or expression.type.is_string or expression.type.kind is Kind.NULL:
        return cast_to(expression, DATE)
    raise CoercionError(f"a date is expected, not `{expression.type}`")


def as_timestamp(expression: Expression) -> Expression:
    """An argument of a time function as TIMESTAMP."""
    if expression.type.is_datetime or expression.type.is_string or expression.type.kind is Kind.NULL:
        return cast_to(expression, TIMESTAMP)
    raise CoercionError(f"a timestamp is expected, not `{expression.type}`")


def as_number(expression: Expression, name: str) -> Expression:
    """The argument of a number function; strings and NULL become DOUBLE."""
    if expression.type.is_string or expression.type.kind is Kind.NULL:
        return cast_to(expression, DOUBLE)
    if not expression.type.is_numeric:
        raise CoercionError(f"{name} takes a number, not `{expression.type}`")
    return expression


def as_position(expression: Expression) -> Expression:
    """A position, length or distance as INT; unlike the steps of dates it may be given as any number."""
    return cast_to(expression, INT) if expression.type.is_numeric else as_int(expression)


def as_int(expression: Expression) -> Expression:
    """An argument that counts something as INT."""
    if expression.type.kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.NULL) or expression.type.is_string:
        return cast_to(expression, INT)
    raise CoercionError(f"an integer of type `int` is expected, not `{expression.type}`")


def as_bigint(expression: Expression) -> Expression:
    """A whole number as BIGINT; it may be given as any number."""
    if expression.type.is_numeric or expression.type.is_string or expression.type.kind is Kind.NULL:
        return cast_to(expression, BIGINT)
    raise CoercionError(f"an integer is expected, not `{expression.type}`")


def as_double(expression: Expression) -> Expression:
    """An argument of a function of doubles."""
    return cast_to(as_number(expression, "the function"), DOUBLE)


def as_string(expression: Expression) -> Expression:
    """An argument of a string function as STRING."""
    return cast_to(expression, STRING)


def as_string_or_binary(expression: Expression) -> Expression:
    """An argument of a function that takes strings and byte strings."""
    return expression if expression.type.kind is Kind.BINARY else as_string(expression)


def as_binary(expression: Expression) -> Expression:
    """An argument as BINARY; what is no byte string by way of its text."""
    return cast_to(as_string_or_binary(expression), BINARY)
