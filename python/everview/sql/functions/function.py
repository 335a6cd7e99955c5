"""What a scalar function is: its names, how it is called, and how a call becomes typed operations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression, Literal
from everview.sql.coercion import cast_to
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from everview.schema.datatype import DataType

Arguments = list[Expression]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function of ``least`` to ``most`` arguments (None: any number).

    ``arguments`` and ``meaning`` are for readers (docs/reference/functions.md); ``build`` types and lowers a call, or
    raises ``CoercionError``.
    """

    name: str
    arguments: str
    meaning: str
    build: Callable[[Arguments], Expression]
    aliases: tuple[str, ...] = ()

    @property
    def least(self) -> int:
        """The least number of arguments: those outside of brackets, before dots."""
        return len(_split(re.sub(r"\[[^]]*\]|\.\.\.", "", self.arguments)))

    @property
    def most(self) -> int | None:
        """The greatest number of arguments; None if the last may be repeated."""
        return None if "..." in self.arguments else len(_split(self.arguments))


def _split(arguments: str) -> list[str]:
    return [part for part in arguments.replace("[", "").replace("]", "").replace(" ", "").split(",") if part]


def plain(
    op: str, data_type: DataType, *casts: Callable[[Expression], Expression], nullable: bool = False
) -> Callable[[Arguments], Expression]:
    """An operation that is NULL iff an argument is (``nullable``: also elsewhere); the last cast serves all further arguments."""

    def build(args: Arguments) -> Expression:
        done = tuple(casts[min(i, len(casts) - 1)](a) for i, a in enumerate(args))
        return Call(op, done, data_type, nullable or any(a.nullable for a in done))

    return build


def literal_text(argument: Expression, what: str) -> str:
    """The value of an argument that must be a string literal."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise CoercionError(f"{what} must be a string literal")
    return argument.value


def cast_of(target: DataType) -> Callable[[Expression], Expression]:
    """An implicit cast to a type, whatever the argument is."""
    return lambda expression: cast_to(expression, target)
