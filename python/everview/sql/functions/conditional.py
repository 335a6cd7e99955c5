"""Choices between values: COALESCE, NULLIF, IF, GREATEST and the tests for NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import BOOLEAN, Kind
from everview.sql.coercion import coalesce, compare, computed_type, condition, unify
from everview.sql.functions.function import Arguments, ScalarFunction
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable


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


TITLE = "Choices"
FUNCTIONS = (
    ScalarFunction("coalesce", "value, ...", "the first value that is not NULL", coalesce),
    ScalarFunction("nvl", "value, default", "the default where the value is NULL", coalesce, ("ifnull",)),
    ScalarFunction(
        "nvl2",
        "value, then, else",
        "`then` where the value is not NULL, `else` where it is",
        lambda args: if_([is_null(args[0], negated=True), *args[1:]]),
    ),
    ScalarFunction("nullif", "value, other", "NULL where both are equal, else the value", _nullif),
    ScalarFunction("if", "condition, then, else", "`then` where the condition is true, else `else`", if_),
    ScalarFunction("isnull", "value", "whether it is NULL", lambda args: is_null(args[0])),
    ScalarFunction("isnotnull", "value", "whether it is not NULL", lambda args: is_null(args[0], negated=True)),
    ScalarFunction("greatest", "value, value, ...", "the greatest value; NULLs do not count", _extremum("greatest")),
    ScalarFunction("least", "value, value, ...", "the least value; NULLs do not count", _extremum("least")),
)
