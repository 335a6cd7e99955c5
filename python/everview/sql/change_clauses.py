"""Clauses of INSERT, UPDATE and DELETE that are refused: seen when a text is parsed, before any of its statements runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import Span
from everview.sql.reject import reject
from everview.sql.spans import keyword_span, span_of

if TYPE_CHECKING:
    from everview.errors import UnsupportedQueryError

_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Insert: frozenset({"this", "expression", "with_", "by_name"}),
    exp.Update: frozenset({"this", "expressions", "where"}),
    exp.Delete: frozenset({"this", "where"}),
}
_NAMES = {
    "overwrite": "INSERT OVERWRITE",
    "exists": "IF EXISTS",
    "from_": "FROM",
    "with_": "WITH",
    "tables": "a list of tables",
    "joins": "a join",
}


def refuse_clauses(tree: exp.Expr, sql: str) -> None:
    """Refuse a statement that has more than a target, rows or a query, assignments and a condition."""
    for part, value in tree.args.items():
        if value and part not in _PARTS[type(tree)]:
            raise _refused(tree, sql, part, value)
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    for part, value in target.args.items():
        if value and part not in ("this", "alias", "db", "catalog"):
            raise _refused(tree, sql, part, value)
    alias = target.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        raise reject("UNSUPPORTED_CLAUSE", sql, target, name="a list of column aliases")


def _refused(tree: exp.Expr, sql: str, part: str, value: object) -> UnsupportedQueryError:
    name = _NAMES.get(part, part.strip("_").upper().replace("_", " "))
    whole = span_of(tree)
    place = keyword_span(sql, whole, name)
    if place == whole:  # the clause has other words
        first = value[0] if isinstance(value, list) else value
        place = span_of(first) if isinstance(first, exp.Expr) else whole
    kind = type(tree).__name__.upper()
    return reject(
        "UNSUPPORTED_CLAUSE", sql, Span(place.start, place.end), name=name if kind in name else f"{name} in {kind}"
    )
