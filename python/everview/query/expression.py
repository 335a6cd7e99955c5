"""Typed scalar expressions.

An expression is closed over the columns of one input (the table of an atom, the head of a core, the output of an
operator). Types are explicit everywhere and implicit casts are written out, so an evaluator infers nothing.
``to_json`` gives the form that plans carry; the operations and their meaning are listed in
``docs/reference/expressions.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from everview.schema.datatype import DataType


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the input, by name."""

    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Dates are days and timestamps microseconds since 1970-01-01 UTC; decimals are ``Decimal``."""

    value: bool | int | float | str | Decimal | None
    type: DataType

    @property
    def nullable(self) -> bool:
        return self.value is None


@dataclass(frozen=True, slots=True)
class Call:
    """An operation applied to arguments whose types are exactly those the operation takes."""

    op: str
    args: tuple[Expression, ...]
    type: DataType
    nullable: bool = True


Expression = ColumnRef | Literal | Call


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    yield expression
    if isinstance(expression, Call):
        for arg in expression.args:
            yield from walk(arg)


def columns_of(expression: Expression) -> frozenset[str]:
    """The names of the columns an expression reads."""
    return frozenset(e.name for e in walk(expression) if isinstance(e, ColumnRef))


_OPERATIONS_THAT_NEVER_FAIL = (
    "eq ne lt le gt ge eq_null_safe and or not in is_null is_not_null case coalesce if nullif year month day quarter dayofweek"
    " dayofyear weekofyear hour minute second substring upper lower trim ltrim rtrim length concat replace left right"
    " starts_with ends_with contains greatest least"
)
_NEVER_FAIL = frozenset(_OPERATIONS_THAT_NEVER_FAIL.split())


def may_fail(expression: Expression) -> bool:
    """Whether evaluating an expression may refuse a row. Says yes in doubt (some casts and additions never fail)."""
    return any(isinstance(e, Call) and e.op not in _NEVER_FAIL for e in walk(expression))


def substitute(expression: Expression, replacements: Mapping[str, Expression]) -> Expression:
    """The expression with column references replaced by name."""
    if isinstance(expression, ColumnRef):
        return replacements.get(expression.name, expression)
    if isinstance(expression, Call):
        args = tuple(substitute(a, replacements) for a in expression.args)
        return Call(expression.op, args, expression.type, expression.nullable)
    return expression


def to_json(expression: Expression, index: Mapping[str, int]) -> dict[str, Any]:
    """The plan form of an expression; ``index`` gives the position of each column in the input."""
    if isinstance(expression, ColumnRef):
        return {"op": "column", "index": index[expression.name], "type": str(expression.type)}
    if isinstance(expression, Literal):
        value = str(expression.value) if isinstance(expression.value, Decimal) else expression.value
        if isinstance(value, float) and not -1.8e308 < value < 1.8e308:
            value = str(value)  # inf, -inf and nan have no JSON number
        return {"op": "literal", "value": value, "type": str(expression.type)}
    return {
        "op": expression.op,
        "args": [to_json(a, index) for a in expression.args],
        "type": str(expression.type),
    }
