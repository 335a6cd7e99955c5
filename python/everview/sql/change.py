"""INSERT, UPDATE and DELETE, parsed, to what they read and what becomes of it.

INSERT ... VALUES has expressions without columns, row by row. Everything else is a query: of the rows to insert, of the rows to delete, or
of the rows to update together with their new values. So WHERE, SET and SELECT mean what they mean in a view, because the same binder
binds them. Values are brought to the types of their columns by store assignment (``store.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

from sqlglot import exp

from everview.aggregates import SPELLINGS
from everview.errors import SchemaError, Span
from everview.query.expression import Expression
from everview.query.expression import Literal as Constant
from everview.relational.plan import Project, Query
from everview.sql.bind import Binder
from everview.sql.coercion import unify
from everview.sql.expressions import ExpressionLowering
from everview.sql.literal import CoercionError
from everview.sql.reject import close_matches, mismatch, reject
from everview.sql.spans import keyword_span, span_of, text_of
from everview.sql.store import stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everview.schema.table import Column, Table
    from everview.sql.statement import ChangeRows


@dataclass(frozen=True, slots=True)
class InsertValues:
    """Rows to insert: per row the values of all columns of the table, and where they are written. They read no columns, but those that
    stand for parameters."""

    table: Table
    rows: tuple[tuple[Expression, ...], ...]
    places: tuple[tuple[Span, ...], ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class ChangeByQuery:
    """A query of rows, and what becomes of them.

    ``insert``: its columns are those of the table. ``delete``: likewise, of rows that are there. ``update``: after those of the rows that
    are there come the new values of the columns at the positions ``assigned``.
    """

    kind: Literal["insert", "update", "delete"]
    table: Table
    query: Query
    assigned: tuple[int, ...] = ()


def has_values(change: ChangeRows) -> bool:
    """Whether a statement is INSERT ... VALUES."""
    return change.kind == "insert" and isinstance(change.tree.args.get("expression"), exp.Values)


def bind_change(
    change: ChangeRows, sql: str, tables: Mapping[str, Table], views: Mapping[str, Table]
) -> InsertValues | ChangeByQuery:
    """What a statement reads and what becomes of it. ``tables`` and ``views`` are keyed by lower-case name."""
    bound = _ChangeBinder(sql, change.span, tables, views)
    match change.kind:
        case "insert":
            return bound.insert(change.tree)
        case "update":
            return bound.update(change.tree)
        case "delete":
            return bound.delete(change.tree)


class _ChangeBinder:
    def __init__(self, sql: str, span: Span, tables: Mapping[str, Table], views: Mapping[str, Table]) -> None:
        self.sql = sql
        self._span = span
        self._tables = tables
        self._views = views
        self._binder = Binder(sql, tables, views)

    # ---- INSERT ------------------------------------------------------------------------------------------------------

    def insert(self, tree: exp.Expr) -> InsertValues | ChangeByQuery:
        schema = tree.this if isinstance(tree.this, exp.Schema) else None
        table = self._target(tree.this if schema is None else schema.this)
        columns = list(table.columns) if schema is None else self._listed(table, schema)
        source = tree.args.get("expression")
        if source is None:
            raise self._error("NO_QUERY", "INSERT needs VALUES or a query", tree, None)
        if isinstance(source, exp.Values) and not tree.args.get("by_name") and not source.args.get("alias"):
            return self._values(table, columns, source)
        with_ = tree.args.get("with_")
        if with_ is not None and isinstance(source, exp.Query) and source.args.get("with_") is None:
            source.set("with_", with_)
        query = self._binder.whole(source)
        if tree.args.get("by_name"):
            columns = [self._column(table, name, span) for name, span in zip(query.names, query.spans, strict=True)]
            self._refuse_twice(columns, tree)
        if len(query.names) != len(columns):
            raise self._count(len(query.names), columns, table, span_of(source))
        items = zip(query.node.columns, columns, query.spans, strict=True)
        given = {column.name: self._stored(value, column, place) for value, column, place in items}
        return ChangeByQuery("insert", table, self._projected(query, [_or_null(given, c) for c in table.columns]))

    def _listed(self, table: Table, schema: exp.Schema) -> list[Column]:
        found = []
        for node in schema.expressions:
            if not isinstance(node, exp.Identifier):
                raise reject("UNSUPPORTED_CLAUSE", self.sql, node, name=f"`{text_of(node, self.sql)}`")
            found.append(self._column(table, node.name, span_of(node)))
        self._refuse_twice(found, schema)
        return found

    def _values(self, table: Table, columns: Sequence[Column], source: exp.Values) -> InsertValues:
        lowering = ExpressionLowering(self.sql, self._no_column)
        nodes = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in source.expressions]
        rows: list[list[Expression]] = []
        for row, parts in zip(source.expressions, nodes, strict=True):
            if len(parts) != len(columns):
                raise self._count(len(parts), columns, table, span_of(row))
            default = next((part for part in parts if isinstance(part, exp.Var)), None)
            if default is not None:  # the parser knows no place of it
                place = keyword_span(self.sql, self._span, default.name)
                raise reject("UNSUPPORTED_EXPRESSION", self.sql, place, name=f"`{default.name}`")
            rows.append([lowering.lower(part) for part in parts])
        values = [self._one_type([row[i] for row in rows], [parts[i] for parts in nodes]) for i in range(len(columns))]
        found, places = [], []
        spans = tuple(span_of(row) for row in source.expressions)
        for at, (parts, span) in enumerate(zip(nodes, spans, strict=True)):
            where = {column.name: span_of(part) for column, part in zip(columns, parts, strict=True)}
            given = {c.name: self._stored(values[i][at], c, where[c.name]) for i, c in enumerate(columns)}
            found.append(tuple(_or_null(given, c) for c in table.columns))
            places.append(tuple(where.get(c.name, span) for c in table.columns))
        return InsertValues(table, tuple(found), tuple(places), spans)

    def _one_type(self, values: list[Expression], nodes: Sequence[exp.Expr]) -> Sequence[Expression]:
        """The values of a column of VALUES, in the type that they have in common."""
        if len({value.type for value in values}) < 2:
            return values
        try:
            return unify(values)
        except CoercionError as error:
            raise mismatch(self.sql, nodes[-1], f"VALUES: {error}") from None

    def _no_column(self, node: exp.Column) -> NoReturn:
        hint = "a text stands in single quotes"
        raise self._error("UNKNOWN_COLUMN", f"column `{text_of(node, self.sql)}`: VALUES reads no table", node, hint)

    # ---- UPDATE and DELETE -------------------------------------------------------------------------------------------

    def update(self, tree: exp.Expr) -> ChangeByQuery:
        table = self._target(tree.this)
        columns, values = [], []
        for node in tree.expressions:
            target, value = self._assignment(node, tree.this)
            columns.append(self._column(table, target.name, span_of(target)))
            values.append(value)
        self._refuse_twice(columns, tree)
        places = [span_of(value) for value in values]
        query = self._rows_of(tree, values)
        old, new = query.node.columns[: len(table.columns)], query.node.columns[len(table.columns) :]
        assigned = [self._stored(v, c, p) for v, c, p in zip(new, columns, places, strict=True)]
        positions = tuple(table.columns.index(column) for column in columns)
        return ChangeByQuery("update", table, self._projected(query, [*old, *assigned]), positions)

    def delete(self, tree: exp.Expr) -> ChangeByQuery:
        table = self._target(tree.this)
        query = self._rows_of(tree, [])
        return ChangeByQuery("delete", table, self._projected(query, query.node.columns))

    def _assignment(self, node: exp.Expr, target: exp.Expr) -> tuple[exp.Column, exp.Expr]:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise reject("UNSUPPORTED_CLAUSE", self.sql, node, name=f"SET `{text_of(node, self.sql)}`")
        column = node.this
        if column.table and column.table.lower() != target.alias_or_name.lower():
            message = f"SET changes `{target.alias_or_name}`, not `{column.table}`"
            raise self._error("UNKNOWN_TABLE", message, column, None)
        self._refuse_aggregates(node.expression)
        return column, node.expression

    def _refuse_aggregates(self, node: exp.Expr) -> None:
        """SET is no SELECT list: there is nothing to aggregate."""
        for part in node.walk(prune=lambda n: isinstance(n, exp.Query | exp.Subquery)):
            if isinstance(part, exp.Anonymous) and part.name.lower() in SPELLINGS:
                raise reject("MISPLACED_AGGREGATE", self.sql, part, name=part.name.upper())

    def _rows_of(self, tree: exp.Expr, values: Sequence[exp.Expr]) -> Query:
        """``SELECT *, values FROM target WHERE ...``."""
        select = exp.Select(expressions=[exp.Star(), *values], from_=exp.From(this=tree.this))
        if tree.args.get("where") is not None:
            select.set("where", tree.args["where"])
        return self._binder.whole(select)

    # ---- both --------------------------------------------------------------------------------------------------------

    def _target(self, node: exp.Expr) -> Table:
        if not isinstance(node, exp.Table) or node.db or not isinstance(node.this, exp.Identifier):
            raise reject("UNSUPPORTED_CLAUSE", self.sql, node, name=f"the target `{text_of(node, self.sql)}`")
        found = self._tables.get(node.name.lower())
        if found is None:
            is_view = node.name.lower() in self._views
            hint = "a view follows its tables: change those" if is_view else None
            hint = hint or close_matches(node.name, [table.name for table in self._tables.values()])
            raise self._error("UNKNOWN_TABLE", f"there is no table `{node.name}`", node, hint)
        return found

    def _column(self, table: Table, name: str, place: Span) -> Column:
        found = next((column for column in table.columns if column.name.lower() == name.lower()), None)
        if found is None:
            hint = close_matches(name, [column.name for column in table.columns])
            message = f"table `{table.name}` has no column `{name}`"
            raise SchemaError("UNKNOWN_COLUMN", message, sql=self.sql, span=place, hint=hint)
        return found

    def _refuse_twice(self, columns: Sequence[Column], place: exp.Expr) -> None:
        twice = next((column for i, column in enumerate(columns) if column in columns[:i]), None)
        if twice is not None:
            raise self._error("DUPLICATE_COLUMN", f"column `{twice.name}` is given twice", place, "give it once")

    def _stored(self, value: Expression, column: Column, place: Span) -> Expression:
        try:
            return stored(value, column)
        except CoercionError as error:
            raise mismatch(self.sql, place, str(error)) from None

    def _projected(self, query: Query, items: Sequence[Expression]) -> Query:
        """A query of these expressions over the columns of another one. Its names are of no use to anybody."""
        named = tuple((self._binder.column(e, f"_{i}"), e) for i, e in enumerate(items))
        whole = Span(0, len(self.sql))
        names = tuple(column.name for column, _ in named)
        return Query(Project(query.node, named), names, (whole,) * len(names))

    def _count(self, given: int, columns: Sequence[Column], table: Table, place: Span) -> SchemaError:
        message = f"{given} value{'' if given == 1 else 's'} for {len(columns)} columns of table `{table.name}`"
        names = ", ".join(column.name for column in columns[:20])
        return SchemaError("COLUMN_COUNT", message, sql=self.sql, span=place, hint=f"the columns are {names}")

    def _error(self, code: str, message: str, node: exp.Expr, hint: str | None) -> SchemaError:
        return SchemaError(code, message, sql=self.sql, span=span_of(node), hint=hint)


def _or_null(given: Mapping[str, Expression], column: Column) -> Expression:
    """What a row has for a column: NULL if nothing is given."""
    return given.get(column.name) or Constant(None, column.type)
