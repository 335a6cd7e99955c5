"""Operations on the bits of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression
from everview.schema.datatype import BIGINT, INT, Kind
from everview.sql.coercion import as_bigint, as_position, cast_to, common_type
from everview.sql.functions.function import Arguments, ScalarFunction, plain
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable


def bitwise(op: str, *args: Expression) -> Expression:
    """``bit_and``, ``bit_or``, ``bit_xor`` of two integers or ``bit_not`` of one."""
    target = common_type(args[0].type, args[-1].type)
    if target is None or not target.is_integer:
        given = " and ".join(f"`{a.type}`" for a in args)
        raise CoercionError(f"bit operations take integers, not {given}")
    done = tuple(cast_to(a, target) for a in args)
    return Call(op, done, target, any(a.nullable for a in done))


def shift(op: str) -> Callable[[Arguments], Expression]:
    """A shift of an INT or BIGINT by an INT."""

    def build(args: Arguments) -> Expression:
        value = args[0] if args[0].type.kind is Kind.BIGINT else as_position(args[0])
        return plain(op, BIGINT if value.type.kind is Kind.BIGINT else INT, lambda a: a, as_position)([value, args[1]])

    return build


def _bit_count(args: Arguments) -> Expression:
    if args[0].type.kind is Kind.BOOLEAN:
        return cast_to(args[0], INT)
    if not args[0].type.is_integer and args[0].type.kind is not Kind.NULL:
        raise CoercionError(f"BIT_COUNT takes an integer, not `{args[0].type}`")
    return plain("bit_count", INT, as_bigint)(args)


TITLE = "Bits"
FUNCTIONS = (
    ScalarFunction("bit_count", "integer", "the number of bits that are set, as a BIGINT", _bit_count),
    ScalarFunction("shiftleft", "integer, distance", "the bits moved to the left, as `<<`", shift("shift_left")),
    ScalarFunction("shiftright", "integer, distance", "to the right with the sign, as `>>`", shift("shift_right")),
    ScalarFunction(
        "shiftrightunsigned", "integer, distance", "to the right with zeros, as `>>>`", shift("shift_right_unsigned")
    ),
)
