"""CREATE TABLE to a table definition: columns, keys, retention and what is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from everview.errors import SchemaError
from everview.schema.table import Column, ForeignKey, Retention, Table
from everview.sql.intervals import interval_from_text, interval_of
from everview.sql.literal import CoercionError
from everview.sql.reject import close_matches, reject
from everview.sql.spans import span_of, text_of
from everview.sql.types import data_type_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_RETENTION = ("retain_rows", "retain", "time_column", "max_jump")
_OPTIONS = (*_RETENTION, "keep")
_PREFIX = "everview."
_MOST_ROWS = 1 << 62


def lower_table(tree: exp.Create, sql: str) -> Table:
    """The table a CREATE TABLE statement defines."""
    if not isinstance(tree.this, exp.Schema):
        raise SchemaError("NO_COLUMNS", "CREATE TABLE needs a list of columns", sql=sql, span=span_of(tree))
    return _TableLowering(sql).lower(tree)


@dataclass(slots=True)
class _TableLowering:
    sql: str
    columns: dict[str, Column] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    foreign_keys: list[ForeignKey] = field(default_factory=list)
    options: dict[str, exp.Expr] = field(default_factory=dict)

    def lower(self, tree: exp.Create) -> Table:
        name = tree.this.this
        if name.db:
            raise reject("UNSUPPORTED_CLAUSE", self.sql, name, name=f"the qualified name `{text_of(name, self.sql)}`")
        parts = tree.this.expressions
        for part in parts:
            if isinstance(part, exp.ColumnDef):
                self._column(part)
        if not self.columns:
            raise self._error("NO_COLUMNS", "CREATE TABLE needs a list of columns", tree)
        for part in parts:
            if not isinstance(part, exp.ColumnDef):
                self._constraint(part)
        properties = tree.args.get("properties")
        for option in properties.expressions if properties is not None else []:
            self._option(option)
        columns = tuple(self._with_key(c) for c in self.columns.values())
        foreign = tuple(self.foreign_keys)
        return Table(name.name, columns, self.primary_key, foreign, self._retention(), self._keep())

    def _column(self, node: exp.ColumnDef) -> None:
        name = node.name
        if name.lower() in self.columns:
            raise self._error("DUPLICATE_COLUMN", f"column `{name}` is declared twice", node)
        if node.args.get("kind") is None:
            raise self._error("INVALID_TYPE", f"column `{name}` has no type", node)
        nullable = True
        self.columns[name.lower()] = Column(name, data_type_of(node.args["kind"], self.sql))
        for constraint in node.args.get("constraints") or []:
            kind = constraint.kind
            if isinstance(kind, exp.NotNullColumnConstraint):
                nullable = bool(kind.args.get("allow_null"))
            elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
                self._set_key((name,), constraint)
            elif isinstance(kind, exp.Reference):
                self._reference((name,), kind)
            elif not isinstance(kind, exp.CommentColumnConstraint):
                raise reject("UNSUPPORTED_CLAUSE", self.sql, constraint, name=f"`{text_of(constraint, self.sql)}`")
        if not nullable:
            self.columns[name.lower()] = Column(name, self.columns[name.lower()].type, nullable=False)

    def _constraint(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Constraint):
            for inner in node.expressions:
                self._constraint(inner)
        elif isinstance(node, exp.PrimaryKey):
            self._set_key(self._declared(node.expressions), node)
        elif isinstance(node, exp.ForeignKey):
            self._reference(self._declared(node.expressions), node.args["reference"])
        else:
            raise reject("UNSUPPORTED_CLAUSE", self.sql, node, name=f"`{text_of(node, self.sql)}`")

    def _set_key(self, columns: tuple[str, ...], node: exp.Expr) -> None:
        if self.primary_key:
            raise self._error("DUPLICATE_PRIMARY_KEY", "a table has one primary key", node)
        if len({c.lower() for c in columns}) < len(columns):
            raise self._error("DUPLICATE_COLUMN", "a column occurs twice in the primary key", node)
        self.primary_key = columns

    def _reference(self, columns: tuple[str, ...], node: exp.Reference) -> None:
        target = node.this
        referenced = tuple(c.name for c in target.expressions) if isinstance(target, exp.Schema) else ()
        table = target.this if isinstance(target, exp.Schema) else target
        if referenced and len(referenced) != len(columns):
            message = f"the foreign key has {len(columns)} columns and refers to {len(referenced)}"
            raise self._error("COLUMN_COUNT", message, node)
        self.foreign_keys.append(ForeignKey(columns, table.name, referenced))

    def _declared(self, nodes: Iterable[exp.Expr]) -> tuple[str, ...]:
        return tuple(self._declared_column(node.name, node).name for node in nodes)

    def _declared_column(self, name: str, node: exp.Expr) -> Column:
        column = self.columns.get(name.lower())
        if column is None:
            hint = close_matches(name, [c.name for c in self.columns.values()])
            raise self._error("UNKNOWN_COLUMN", f"column `{name}` is not declared", node, hint)
        return column

    def _with_key(self, column: Column) -> Column:
        return Column(column.name, column.type, nullable=False) if column.name in self.primary_key else column

    # Options.

    def _option(self, node: exp.Expr) -> None:
        if isinstance(node, exp.SchemaCommentProperty):
            return
        if not isinstance(node, exp.Property) or node.this is None or type(node) is not exp.Property:
            raise reject("UNSUPPORTED_CLAUSE", self.sql, node, name=f"`{text_of(node, self.sql)}`")
        written = node.this.sql(dialect="spark") if isinstance(node.this, exp.Dot) else node.this.name
        name = written.lower()
        if name.startswith(_PREFIX):
            name = name.removeprefix(_PREFIX)
        if name not in _OPTIONS:
            hint = close_matches(name, _OPTIONS)
            raise self._error("UNKNOWN_OPTION", f"table option `{written}` is unknown", node, hint)
        if name in self.options:
            raise self._error("DUPLICATE_OPTION", f"table option `{written}` is given twice", node)
        self.options[name] = node

    def _keep(self) -> Literal["rows", "views"]:
        node = self.options.get("keep")
        if node is None:
            return "rows"
        kept = node.args["value"].name.lower()
        if kept not in ("rows", "views"):
            hint = "'rows' keeps all rows, 'views' nothing but what views read"
            raise self._error("KEEP", "keep takes 'rows' or 'views'", node, hint)
        if kept == "rows":
            return "rows"
        if self.primary_key:
            message = "a table that keeps no rows has no primary key: nothing is there to check it against"
            raise self._error("KEEP", message, node, "leave the key out, or keep = 'views'")
        other = next((self.options[name] for name in _RETENTION if name in self.options), None)
        if other is not None:
            message = "a table that keeps no rows is no window: it would not know which rows leave"
            raise self._error("KEEP", message, other, "leave the retention out, or keep = 'views'")
        return "views"

    def _retention(self) -> Retention | None:
        rows, time, column, jump = (self.options.get(name) for name in _RETENTION)
        if rows is not None:
            other = time or column or jump
            if other is not None:
                raise self._error("RETENTION", "a table is retained by rows or by time, not both", other)
            value = rows.args["value"]
            text = value.name if isinstance(value, exp.Literal) else ""
            if re.fullmatch("[0-9]{1,19}", text) is None or not 1 <= int(text) <= _MOST_ROWS:
                raise self._error("RETENTION", "retain_rows takes a number of rows from 1 to 2^62", rows)
            return Retention(rows=int(text))
        if time is None and column is None and jump is None:
            return None
        if time is None or column is None:
            given = time or column or jump
            assert given is not None
            raise self._error("RETENTION", "retain and time_column go together; max_jump goes with both", given)
        declared = self._declared_column(column.args["value"].name, column)
        if not declared.type.is_datetime:
            message = f"time_column must be a DATE, TIMESTAMP or TIMESTAMP_NTZ, `{declared.name}` is `{declared.type}`"
            raise self._error("RETENTION", message, column)
        max_jump = None if jump is None else self._micros("max_jump", jump)
        return Retention(micros=self._micros("retain", time), time_column=declared.name, max_jump=max_jump)

    def _micros(self, option: str, node: exp.Expr) -> int:
        value = node.args["value"]
        try:
            interval = interval_of(value) or interval_from_text(value.name)
        except CoercionError as error:
            raise self._error("RETENTION", f"{option} takes an interval: {error}", node) from None
        if interval.months is not None or not 0 < interval.micros < 1 << 63:
            message = (
                f"{option} takes a positive interval of weeks, days, hours, minutes or seconds below 292,000 years"
            )
            raise self._error("RETENTION", message, node)
        return interval.micros

    def _error(self, code: str, message: str, node: exp.Expr, hint: str | None = None) -> SchemaError:
        return SchemaError(code, message, sql=self.sql, span=span_of(node), hint=hint)
