"""Regular expressions, in the syntax of Java, matched in linear time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import BOOLEAN, INT, STRING, DataType
from everview.sql.coercion import as_int, as_string
from everview.sql.functions.function import Arguments, ScalarFunction, literal_text
from everview.sql.functions.java_regex import translate
from everview.sql.literal import CoercionError

if TYPE_CHECKING:
    from collections.abc import Callable


def _pattern(argument: Expression) -> tuple[Literal, int]:
    """The pattern as the kernel takes it, and the number of its groups."""
    text, groups = translate(literal_text(argument, "a regular expression"))
    return Literal(text, STRING), groups


def _on_pattern(op: str, data_type: DataType, *, nullable: bool = False) -> Callable[[Arguments], Expression]:
    """A function of a string and a pattern."""

    def build(args: Arguments) -> Expression:
        text = as_string(args[0])
        if isinstance(args[1], Literal) and args[1].value is None:
            return Literal(None, data_type)
        return Call(op, (text, _pattern(args[1])[0]), data_type, nullable or text.nullable)

    return build


regexp_like = _on_pattern("regexp_like", BOOLEAN)


def _replace(args: Arguments) -> Expression:
    text, replacement = as_string(args[0]), as_string(args[2])
    position = as_int(args[3]) if len(args) > 3 else Literal(1, INT)
    if not isinstance(position, Literal) or not isinstance(position.value, int) or position.value < 1:
        raise CoercionError("the position of REGEXP_REPLACE must be a positive literal")
    if isinstance(args[1], Literal) and args[1].value is None:
        return Literal(None, STRING)
    nullable = text.nullable or replacement.nullable
    return Call("regexp_replace", (text, _pattern(args[1])[0], replacement, position), STRING, nullable)


def _extract(args: Arguments) -> Expression:
    text = as_string(args[0])
    group = as_int(args[2]) if len(args) > 2 else Literal(1, INT)
    if isinstance(args[1], Literal) and args[1].value is None:
        return Literal(None, STRING)
    pattern, groups = _pattern(args[1])
    if isinstance(group, Literal) and isinstance(group.value, int) and not 0 <= group.value <= groups:
        raise CoercionError(f"there is no group {group.value}: the pattern has {groups}")
    return Call("regexp_extract", (text, pattern, group), STRING, text.nullable or group.nullable)


TITLE = "Regular expressions"
FUNCTIONS = (
    ScalarFunction(
        "regexp_like", "string, pattern", "whether the pattern is found in it", regexp_like, ("rlike", "regexp")
    ),
    ScalarFunction(
        "regexp_replace",
        "string, pattern, replacement[, position]",
        "every match replaced, from a position on; `$1` stands for a group",
        _replace,
    ),
    ScalarFunction(
        "regexp_extract",
        "string, pattern[, group]",
        "a group (1 if none is given) of the first match, else ''",
        _extract,
    ),
    ScalarFunction(
        "regexp_substr",
        "string, pattern",
        "the first match; NULL if there is none or it is empty",
        _on_pattern("regexp_substr", STRING, nullable=True),
    ),
    ScalarFunction("regexp_count", "string, pattern", "the number of matches", _on_pattern("regexp_count", INT)),
)
