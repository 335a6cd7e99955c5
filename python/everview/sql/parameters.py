"""Parameters of a text: ``?`` by position, ``:name`` by name.

Values are given to the placeholders of the parsed text as typed literals, so no value is ever read as SQL. A definition has none: what
it means must be in its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from everview.errors import SchemaError, Span, SqlParseError, cut, listed
from everview.query.expression import ColumnRef, Expression, Literal
from everview.schema.datatype import Kind
from everview.sql.coercion import unify
from everview.sql.literal import CoercionError
from everview.sql.reject import close_matches, mismatch, reject
from everview.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Convert = Callable[[Any], Literal]

Parameters = Sequence[Any] | Mapping[str, Any]
"""The values of one run: by position or by name."""

_VALUE = "everview_value"
_FOUND = "everview_placeholders"
_NAMES = (exp.Table, exp.TableAlias, exp.Column, exp.Dot, exp.Schema, exp.Identifier)
_SINGLE = (str, bytes, bytearray, memoryview)


def placeholders(tree: exp.Expr) -> list[exp.Placeholder]:
    """The placeholders of a statement, in the order of the text; a statement that runs often is searched once."""
    if _FOUND not in tree.meta:
        tree.meta[_FOUND] = sorted(tree.find_all(exp.Placeholder), key=lambda node: span_of(node).start)
    found: list[exp.Placeholder] = tree.meta[_FOUND]
    return found


def refuse_parameters(tree: exp.Expr, sql: str) -> None:
    """Refuse a definition that has parameters."""
    found = placeholders(tree)
    if found:
        raise reject("PARAMETER_IN_DEFINITION", sql, found[0])


def value_of(node: exp.Placeholder) -> Expression:
    """What a placeholder stands for: a literal, or a column of ``give_rows``."""
    found: Expression = node.meta[_VALUE]
    return found


def is_many(parameters: object) -> bool:
    """Whether parameters are rows: a sequence of sequences or mappings."""
    return (
        _is_sequence(parameters)
        and len(parameters) > 0  # type: ignore[arg-type]
        and all(_is_sequence(p) or isinstance(p, Mapping) for p in parameters)  # type: ignore[attr-defined]
    )


def give_parameters(tree: exp.Expr, sql: str, parameters: object, convert: Convert) -> None:
    """Give every placeholder of a statement its value. ``convert`` makes literals; it raises TypeError and ValueError."""
    found = _checked(tree, sql)
    for at, (node, value) in enumerate(zip(found, _matched(found, sql, parameters), strict=True), 1):
        node.meta[_VALUE] = _literal(node, sql, value, at, convert)


def give_rows(tree: exp.Expr, sql: str, rows: Sequence[Any], convert: Convert) -> list[tuple[ColumnRef, list[Any]]]:
    """Make every placeholder of a statement a column, with a value of each of the rows, and return these columns.

    As in a VALUES of so many rows, the values of a column have the type that all of them have in common.
    """
    found = _checked(tree, sql)
    given: list[list[Literal]] = [[] for _ in found]
    for row, parameters in enumerate(rows):
        try:
            for at, value in enumerate(_matched(found, sql, parameters)):
                given[at].append(_literal(found[at], sql, value, at + 1, convert))
        except SchemaError as error:
            message = f"row {row} of the parameters: {error.message}"
            raise SchemaError(error.code, message, hint=error.hint, sql=sql, span=error.span) from None
    columns = []
    for at, (node, literals) in enumerate(zip(found, given, strict=True)):
        try:
            same: Sequence[Expression] = literals if len({one.type for one in literals}) == 1 else unify(literals)
        except CoercionError as error:
            raise mismatch(sql, node, f"values of parameter {at + 1}: {error}") from None
        values = [one.value for one in same if isinstance(one, Literal)]
        if len(values) < len(same):
            raise mismatch(sql, node, f"values of parameter {at + 1} are of several types")
        column = ColumnRef(f"p{at}", same[0].type, nullable=None in values)
        node.meta[_VALUE] = column
        if column.type.kind is Kind.NULL:
            node.meta[_VALUE] = Literal(None, column.type)
        else:
            columns.append((column, values))
    return columns


def _checked(tree: exp.Expr, sql: str) -> list[exp.Placeholder]:
    """The placeholders of a statement, which stand for values."""
    found = placeholders(tree)
    for node in found:
        if isinstance(node.parent, _NAMES) or node.arg_key == "alias":
            message = "a parameter stands for a value, not for a name"
            raise SqlParseError("SYNTAX_ERROR", message, sql=sql, span=span_of(node), hint="write the name in the text")
    return found


def _matched(found: list[exp.Placeholder], sql: str, parameters: object) -> Sequence[Any]:
    """The values of the placeholders."""
    given: Any = () if parameters is None else parameters
    if isinstance(given, Mapping):
        return _by_name(found, sql, given)
    if _is_sequence(given):
        return _by_position(found, sql, given)
    message = f"parameters are a list, a tuple or a mapping, not {type(given).__name__}"
    hint = "write [value] for a single value"
    raise SchemaError("PARAMETER_TYPE", message, hint=hint, sql=sql, span=Span(0, len(sql)))


def _by_position(found: list[exp.Placeholder], sql: str, given: Sequence[Any]) -> Sequence[Any]:
    named = next((node for node in found if node.this), None)
    if named is not None:
        mixed = any(not node.this for node in found)
        if mixed or given:
            raise _style(sql, named, mixed=mixed)
    if len(found) != len(given):
        place = span_of(found[min(len(given), len(found) - 1)]) if found else None
        raise _count(sql, place, len(found), len(given))
    return given


def _by_name(found: list[exp.Placeholder], sql: str, given: Mapping[Any, Any]) -> Sequence[Any]:
    bare = next((node for node in found if not node.this), None)
    if bare is not None:
        raise _style(sql, bare, mixed=any(node.this for node in found))
    for node in found:
        if node.this not in given:
            message = f"parameter `:{node.this}` is given no value"
            hint = close_matches(str(node.this), [str(name) for name in given]) or "give it one by its name"
            raise SchemaError("PARAMETER_NAME", message, hint=hint, sql=sql, span=span_of(node))
    names = {node.this for node in found}
    unknown = next((name for name in given if name not in names), None)
    if unknown is not None:
        message = f"the text has no parameter `:{cut(str(unknown))}`"
        hint = f"those it has: {listed(f':{name}' for name in sorted(names))}" if names else "it has none"
        raise SchemaError("PARAMETER_NAME", message, hint=hint, sql=sql, span=Span(0, len(sql)))
    return [given[node.this] for node in found]


def _literal(node: exp.Placeholder, sql: str, value: Any, at: int, convert: Convert) -> Literal:
    try:
        return convert(value)
    except (TypeError, ValueError, CoercionError) as error:
        name = f"parameter `:{node.this}`" if node.this else f"parameter {at}"
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


def _count(sql: str, place: Span | None, there: int, given: int) -> SchemaError:
    values = "1 value is" if given == 1 else f"{given} values are"
    message = f"the text has {there} parameter{'' if there == 1 else 's'}, and {values} given"
    span = Span(0, len(sql)) if place is None else place
    return SchemaError("PARAMETER_COUNT", message, hint="give one value for each parameter", sql=sql, span=span)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, _SINGLE)
