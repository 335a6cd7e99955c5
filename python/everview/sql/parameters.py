"""Parameters of a text: ``?`` by position, ``:name`` by name.

Values are given to the placeholders of the parsed text as typed literals, so no value is ever read as SQL. A definition has none: what
it means must be in its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.errors import EverviewError, SchemaError, Span, SqlParseError, cut, listed
from everview.query.expression import Literal
from everview.sql.literal import CoercionError
from everview.sql.reject import close_matches, reject
from everview.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Convert = Callable[[Any], Literal]

Parameters = Sequence[Any] | Mapping[str, Any]
"""The values of one run: by position or by name."""

_VALUE = "everview_value"
_NAMES = (exp.Table, exp.TableAlias, exp.Column, exp.Dot, exp.Schema, exp.Identifier)
_SINGLE = (str, bytes, bytearray, memoryview)


def placeholders(tree: exp.Expr) -> list[exp.Placeholder]:
    """The placeholders of a statement, in the order of the text."""
    return sorted(tree.find_all(exp.Placeholder), key=lambda node: span_of(node).start)


def refuse_parameters(tree: exp.Expr, sql: str) -> None:
    """Refuse a definition that has parameters."""
    found = placeholders(tree)
    if found:
        raise reject("PARAMETER_IN_DEFINITION", sql, found[0])


def value_of(node: exp.Placeholder) -> Literal:
    """The value that a placeholder was given."""
    found = node.meta[_VALUE]
    assert isinstance(found, Literal)
    return found


def is_many(parameters: object) -> bool:
    """Whether parameters are those of several runs: a sequence of sequences or mappings."""
    return (
        _is_sequence(parameters)
        and len(parameters) > 0  # type: ignore[arg-type]
        and all(_is_sequence(p) or isinstance(p, Mapping) for p in parameters)  # type: ignore[attr-defined]
    )


def give_parameters(tree: exp.Expr, sql: str, parameters: object, convert: Convert) -> None:
    """Give every placeholder of a statement its value. ``convert`` makes literals; it raises TypeError and ValueError."""
    found = placeholders(tree)
    for node in found:
        if isinstance(node.parent, _NAMES) or node.arg_key == "alias":
            message = "a parameter stands for a value, not for a name"
            raise SqlParseError("SYNTAX_ERROR", message, sql=sql, span=span_of(node), hint="write the name in the text")
    given: Any = () if parameters is None else parameters
    if isinstance(given, Mapping):
        _by_name(found, sql, given, convert)
    elif _is_sequence(given):
        _by_position(found, sql, given, convert)
    else:
        message = f"parameters are a list, a tuple or a mapping, not {type(given).__name__}"
        raise SchemaError("PARAMETER_TYPE", message, hint="write [value] for a single value")


def _by_position(found: list[exp.Placeholder], sql: str, given: Sequence[Any], convert: Convert) -> None:
    named = next((node for node in found if node.this), None)
    mixed = any(not node.this for node in found)
    if named is not None and (mixed or given):
        raise _style(sql, named, mixed=mixed)
    if len(found) != len(given):
        place = span_of(found[min(len(given), len(found) - 1)]) if found else None
        raise _count(sql, place, len(found), len(given))
    for at, (node, value) in enumerate(zip(found, given, strict=True), 1):
        _give(node, sql, value, f"parameter {at}", convert)


def _by_name(found: list[exp.Placeholder], sql: str, given: Mapping[Any, Any], convert: Convert) -> None:
    bare = next((node for node in found if not node.this), None)
    if bare is not None:
        raise _style(sql, bare, mixed=any(node.this for node in found))
    for node in found:
        if node.this not in given:
            message = f"parameter `:{node.this}` is given no value"
            hint = close_matches(str(node.this), [str(name) for name in given]) or "give it one by its name"
            raise SchemaError("PARAMETER_NAME", message, hint=hint, sql=sql, span=span_of(node))
    names = {node.this for node in found}
    unknown = [name for name in given if name not in names]
    if unknown:
        message = f"the text has no parameter `:{cut(str(unknown[0]))}`"
        hint = f"those it has: {listed(f':{name}' for name in sorted(names))}" if names else "it has none"
        raise _of_text(SchemaError("PARAMETER_NAME", message, hint=hint), sql)
    for node in found:
        _give(node, sql, given[node.this], f"parameter `:{node.this}`", convert)


def _give(node: exp.Placeholder, sql: str, value: Any, name: str, convert: Convert) -> None:
    try:
        node.meta[_VALUE] = convert(value)
    except (TypeError, ValueError, CoercionError) as error:
        hint = "parameters are None, bool, int, float, Decimal, str, bytes, date and datetime"
        if _is_sequence(value):
            hint += "; for IN, write as many placeholders as there are values"
        message = f"{name}: {cut(str(error), 200)}"
        raise SchemaError("PARAMETER_TYPE", message, hint=hint, sql=sql, span=span_of(node)) from None


def _style(sql: str, node: exp.Placeholder, *, mixed: bool) -> SchemaError:
    if mixed:
        message, hint = (
            "a text has parameters by position or by name, not both",
            "write all of them as `?` or as `:name`",
        )
    elif node.this:
        message, hint = "the parameters of the text have names", "pass a mapping of names to values"
    else:
        message, hint = "the parameters of the text are found by position", "pass a list or a tuple"
    return SchemaError("PARAMETER_STYLE", message, hint=hint, sql=sql, span=span_of(node))


def _count(sql: str, place: Span | None, there: int, given: int) -> EverviewError:
    message = f"the text has {there} parameter{'' if there == 1 else 's'}, and {given} value{' is' if given == 1 else 's are'} given"
    error = SchemaError("PARAMETER_COUNT", message, hint="give one value for each `?`")
    return error.located(sql, place) if place is not None else _of_text(error, sql)


def _of_text(error: SchemaError, sql: str) -> SchemaError:
    return error.located(sql, Span(0, len(sql)))


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, _SINGLE)
