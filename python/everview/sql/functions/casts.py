"""Casts that are written as calls: ``int(x)``, ``to_date(x)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression
from everview.schema.datatype import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    DataType,
    Kind,
)
from everview.sql.coercion import can_cast, cast_to
from everview.sql.functions.dates import parsed
from everview.sql.functions.function import Arguments, ScalarFunction
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable


def explicit_cast(operand: Expression, target: DataType) -> Expression:
    """CAST as the user wrote it: refused where ANSI mode refuses it."""
    if not can_cast(operand.type, target):
        raise CoercionError(f"`{operand.type}` cannot be cast to `{target}`")
    if operand.type.kind is Kind.CHAR:
        return Call("cast", (operand,), target, operand.nullable)  # from here on it is not padded in comparisons
    return cast_to(operand, target)


def _cast(target: DataType) -> Callable[[Arguments], Expression]:
    return lambda args: explicit_cast(args[0], target)


def _parsed(target: DataType) -> Callable[[Arguments], Expression]:
    """A cast, or, with a format, what the text says by it."""

    def build(args: Arguments) -> Expression:
        if len(args) == 1 or not (args[0].type.is_string or args[0].type.kind is Kind.NULL):
            return explicit_cast(args[0], target)
        return cast_to(parsed(args), target)

    return build


TITLE = "Casts"
FUNCTIONS = (
    *(
        ScalarFunction(str(t), "value", f"CAST(value AS {str(t).upper()})", _cast(t))
        for t in (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP)
    ),
    ScalarFunction("to_date", "value[, format]", "a cast; a text by a format such as `'dd/MM/yyyy'`", _parsed(DATE)),
    ScalarFunction(
        "to_timestamp", "value[, format]", "the same as a timestamp", _parsed(TIMESTAMP), ("to_timestamp_ltz",)
    ),
    ScalarFunction("to_timestamp_ntz", "value[, format]", "the same without zone", _parsed(TIMESTAMP_NTZ)),
)
