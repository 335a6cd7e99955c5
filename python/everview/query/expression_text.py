"""Prints expressions for people.

What: SQL-like text of an expression, for ``explain`` and printed plans; never parsed back.
Representation: infix operators with parentheses only where operators nest; everything else as a function call. An operand
of more than ``LARGE`` nodes is shown as ``...``: it is there for people, and its tree may be exponentially large.
Invariants: deterministic; distinct expressions over distinct column names have distinct texts up to literals' types, as far
as they are shown.
Cost: linear in the text, which has at most ``LARGE`` nodes per operand of the outermost operation.
Source: the operations of docs/reference/expressions.md.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from everview.query.expression import Call, ColumnRef, Expression, Literal, PlanColumn
from everview.schema.datatype import Kind

_INFIX = {
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "and": "AND",
    "or": "OR",
    "like": "LIKE",
}
LARGE = 200
_POSTFIX = {"is_null": "IS NULL", "is_not_null": "IS NOT NULL"}


def expression_text(expression: Expression) -> str:
    """The text of an expression.

    >>> from everview.schema.datatype import BIGINT, BOOLEAN
    >>> expression_text(Call("lt", (ColumnRef("a", BIGINT), Literal(3, BIGINT)), BOOLEAN))
    'a < 3'
    """
    if isinstance(expression, ColumnRef):
        return expression.name
    if isinstance(expression, PlanColumn):
        return f"{expression.name or 'c'}#{expression.id}"
    if isinstance(expression, Literal):
        return _literal_text(expression)
    args = [_operand_text(a) if expression.op in _INFIX else _argument_text(a) for a in expression.args]
    if expression.op in _INFIX and len(args) > 1:
        return f" {_INFIX[expression.op]} ".join(args)
    if expression.op in _POSTFIX:
        return f"{_operand_text(expression.args[0])} {_POSTFIX[expression.op]}"
    if expression.op == "cast":
        return f"CAST({args[0]} AS {str(expression.type).upper()})"
    return f"{expression.op.upper()}({', '.join(args)})"


def _argument_text(expression: Expression) -> str:
    return "..." if isinstance(expression, Call) and expression.size > LARGE else expression_text(expression)


def _operand_text(expression: Expression) -> str:
    text = _argument_text(expression)
    if text == "...":
        return text
    nested = isinstance(expression, Call) and expression.op in _INFIX
    return f"({text})" if nested else text


def _literal_text(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) and literal.type.kind is Kind.DATE:
        return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
    if isinstance(value, int) and literal.type.is_timestamp:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
        return f"{literal.type.kind.upper()} '{moment.replace(tzinfo=None)}'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    return str(value)
