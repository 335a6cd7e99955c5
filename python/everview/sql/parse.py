"""SQL text to statements: CREATE TABLE, CREATE VIEW, DROP, INSERT, UPDATE, DELETE. Everything else is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from everview.errors import SchemaError, Span
from everview.sql.change_clauses import refuse_clauses
from everview.sql.parameters import refuse_parameters
from everview.sql.reject import reject
from everview.sql.spans import keyword_span, parse, span_of, text_of
from everview.sql.statement import ChangeRows, CreateTable, CreateView, DropTable, DropView, Statement
from everview.sql.table import lower_table

if TYPE_CHECKING:
    from collections.abc import Iterable


_CHANGES: dict[type[exp.Expr], Literal["insert", "update", "delete"]] = {
    exp.Insert: "insert",
    exp.Update: "update",
    exp.Delete: "delete",
}


def parse_statements(sql: str) -> tuple[Statement, ...]:
    """The statements of a text, separated by semicolons.

    >>> [statement.name for statement in parse_statements("DROP VIEW a; DROP TABLE b")]
    ['a', 'b']
    """
    return tuple(_statement(tree, sql) for tree in parse(sql))


def _statement(tree: exp.Expr, sql: str) -> Statement:
    change = _CHANGES.get(type(tree))
    if change is not None:
        refuse_clauses(tree, sql)
        return ChangeRows(change, tree, span_of(tree))
    refuse_parameters(tree, sql)
    if isinstance(tree, exp.Create) and tree.kind == "TABLE":
        _refuse_flags(tree, sql, ("replace", "OR REPLACE"), ("clone", "CLONE"))
        if tree.expression is not None:
            raise reject("UNSUPPORTED_STATEMENT", sql, tree, name="CREATE TABLE AS SELECT")
        return CreateTable(lower_table(tree, sql), bool(tree.args.get("exists")), span_of(tree))
    if isinstance(tree, exp.Create) and tree.kind == "VIEW":
        return _view(tree, sql)
    if isinstance(tree, exp.Drop) and tree.kind in ("TABLE", "VIEW"):
        return _drop(tree, sql)
    raise reject("UNSUPPORTED_STATEMENT", sql, tree, name=_statement_name(tree, sql))


def _view(tree: exp.Create, sql: str) -> CreateView:
    properties = tree.args.get("properties")
    for part in properties.expressions if properties is not None else []:
        if not isinstance(part, exp.MaterializedProperty):
            name = "TEMPORARY" if isinstance(part, exp.TemporaryProperty) else f"`{text_of(part, sql)}`"
            raise reject("UNSUPPORTED_CLAUSE", sql, part, name=name)
    if isinstance(tree.this, exp.Schema):
        place = _hull(span_of(e) for e in tree.this.expressions)
        raise reject("UNSUPPORTED_CLAUSE", sql, place, name="a column list of CREATE VIEW")
    if tree.expression is None:
        raise SchemaError("NO_QUERY", "CREATE VIEW needs AS SELECT ...", sql=sql, span=span_of(tree))
    span = span_of(tree.expression)
    return CreateView(
        _object_name(tree.this, sql),
        sql[span.start : span.end],
        span,
        or_replace=bool(tree.args.get("replace")),
        if_not_exists=bool(tree.args.get("exists")),
    )


def _drop(tree: exp.Drop, sql: str) -> DropTable | DropView:
    _refuse_flags(
        tree, sql, ("cascade", "CASCADE"), ("restrict", "RESTRICT"), ("purge", "PURGE"), ("temporary", "TEMPORARY")
    )
    tables = tree.args.get("tables") or []
    if len(tables) != 1:
        raise reject("UNSUPPORTED_CLAUSE", sql, tree, name="DROP of several objects in one statement")
    statement = DropTable if tree.kind == "TABLE" else DropView
    return statement(_object_name(tables[0], sql), bool(tree.args.get("exists")), span_of(tree))


def _object_name(node: exp.Expr, sql: str) -> str:
    if not isinstance(node, exp.Table) or node.db:
        raise reject("UNSUPPORTED_CLAUSE", sql, node, name=f"the qualified name `{text_of(node, sql)}`")
    return node.name


def _refuse_flags(tree: exp.Expr, sql: str, *flags: tuple[str, str]) -> None:
    for flag, name in flags:
        if tree.args.get(flag):
            raise reject("UNSUPPORTED_CLAUSE", sql, keyword_span(sql, span_of(tree), name), name=name)


def _statement_name(tree: exp.Expr, sql: str) -> str:
    words = text_of(tree, sql).upper().split()
    if isinstance(tree, exp.Query):
        return "SELECT"
    return " ".join(words[:2]) if isinstance(tree, exp.Create | exp.Drop | exp.Alter) else (words or ["?"])[0]


def _hull(spans: Iterable[Span]) -> Span:
    found = list(spans)
    return Span(min(s.start for s in found), max(s.end for s in found))
