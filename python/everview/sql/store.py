"""Which values a column of a table takes, and how they are brought to its type: Spark's ANSI store assignment.

Numbers go into columns of numbers, anything into texts, dates and timestamps among each other, NULL anywhere. A value that does not fit
its column fails when it is evaluated, as CAST does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression
from everview.schema.datatype import Kind
from everview.sql.coercion import cast_to
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from everview.schema.datatype import DataType
    from everview.schema.table import Column


def stored(expression: Expression, column: Column) -> Expression:
    """The expression in the type of a column; ``CoercionError`` if it is of a type that the column does not take."""
    if not _takes(column.type, expression.type):
        raise CoercionError(f"column `{column.name}` is `{column.type}` and takes no `{expression.type}`")
    try:
        return cast_to(expression, column.type)
    except CoercionError:  # a constant that does not fit: evaluated, it says so with the code that any value would
        return Call("cast", (expression,), column.type, expression.nullable)


def _takes(target: DataType, source: DataType) -> bool:
    if source == target or source.kind is Kind.NULL or target.is_string:
        return True
    return (source.is_numeric and target.is_numeric) or (source.is_datetime and target.is_datetime)
