"""FROM and WHERE of a query block, derived tables and CTEs merged into it.

``Resolver`` collects, over all nested blocks, the atoms (occurrences of tables) and the conditions (conjuncts of
WHERE and ON). A derived table contributes its atoms and conditions and becomes a relation whose columns are
expressions over them, so nothing is left of it afterwards. A CTE is lowered anew at each reference: its atoms occur
as often as it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import SchemaError, Span
from everview.query.expression import Expression, Literal
from everview.sql import functions
from everview.sql.coercion import compare, condition
from everview.sql.expressions import ExpressionLowering, conjuncts
from everview.sql.literal import CoercionError
from everview.sql.reject import HAS_NO_PARTNER, HAS_PARTNER, close_matches, mismatch, reject
from everview.sql.scope import NamedExpression, Relation, Scope, qualified
from everview.sql.spans import keyword_span, source_of, span_of, text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from everview.schema.table import Table


MOST_TABLES = 100
"""The most occurrences of tables in a query. A CTE that joins itself doubles them, so without a limit texts may explode."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunct with its place in the SQL text."""

    expression: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class SelectItem:
    """A column of a SELECT list."""

    name: str
    expression: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class _Cte:
    query: exp.Expr
    columns: tuple[str, ...]
    visible: Mapping[str, _Cte]


# Clauses of a SELECT that are refused wherever they occur.
_REFUSED_CLAUSES = {
    "order": ("ORDER_BY", "ORDER BY"),
    "sort": ("ORDER_BY", "SORT BY"),
    "cluster": ("ORDER_BY", "CLUSTER BY"),
    "distribute": ("ORDER_BY", "DISTRIBUTE BY"),
    "limit": ("LIMIT", "LIMIT"),
    "offset": ("LIMIT", "OFFSET"),
    "qualify": ("QUALIFY", "QUALIFY"),
    "windows": ("WINDOW_FUNCTION", "WINDOW"),
    "laterals": ("TABLE_EXPRESSION", "LATERAL VIEW"),
    "sample": ("TABLE_EXPRESSION", "TABLESAMPLE"),
    "pivots": ("TABLE_EXPRESSION", "PIVOT"),
    "match": ("TABLE_EXPRESSION", "MATCH_RECOGNIZE"),
}
_SELECT_PARTS = {
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "distinct",
    "with_",
    "hint",
    "kind",
    "alias",
}


class Resolver:
    """Collects ``atoms`` and ``conditions`` of a query, blocks within blocks included."""

    def __init__(self, sql: str, tables: Mapping[str, Table], views: Collection[str]) -> None:
        self.sql = sql
        self._views = views
        self.atoms: dict[str, Table] = {}
        self.conditions: list[Condition] = []
        self._tables = tables
        self._reserved: set[str] = set()

    def unwrap(self, query: exp.Expr, ctes: Mapping[str, _Cte]) -> tuple[exp.Select, Mapping[str, _Cte]]:
        """The SELECT inside parentheses, with the CTEs it sees; clauses no block may have are refused."""
        if isinstance(query, exp.SetOperation):
            name = type(query).__name__.upper()
            whole = span_of(query)
            between = Span(span_of(query.this).end, span_of(query.expression).start)
            place = keyword_span(self.sql, between if between.start < between.end else whole, name)
            raise reject("SET_OPERATION", self.sql, place, name=name)
        if not isinstance(query, exp.Select | exp.Subquery):
            raise reject("TABLE_EXPRESSION", self.sql, query, name=f"`{text_of(query, self.sql)}`")
        with_ = query.args.get("with_")
        if with_ is not None:
            ctes = self._with(with_, ctes)
        self._refuse_clauses(query)
        if isinstance(query, exp.Subquery):
            return self.unwrap(query.this, ctes)
        for part, value in query.args.items():
            if value and part not in _SELECT_PARTS:
                raise reject("UNSUPPORTED_CLAUSE", self.sql, query, name=part.strip("_").upper())
        return query, ctes

    def block(self, select: exp.Select, ctes: Mapping[str, _Cte], prefix: str = "") -> Scope:
        """The scope of a SELECT; its atoms and conditions are collected. ``prefix`` is the alias of a derived table."""
        from_ = select.args.get("from_")
        if from_ is None:
            raise reject("NO_FROM", self.sql, select)
        joins = select.args.get("joins") or []
        if not prefix:
            self._reserved = {a.lower() for i in (from_.this, *(j.this for j in joins)) for a in _visible_tables(i)}
        scope = self._joined(self._from_item(from_.this, ctes, prefix), joins, ctes, prefix)
        where = select.args.get("where")
        if where is not None:
            self._conditions(where.this, scope)
        return scope

    def items(
        self, select: exp.Select, scope: Scope, lowering: ExpressionLowering, aliases: dict[str, Expression]
    ) -> list[SelectItem]:
        """The SELECT list, stars expanded. ``aliases`` is filled as it goes: later items may use earlier aliases."""
        found: list[SelectItem] = []
        for node in select.expressions:
            span = span_of(node)
            star = self._star(node, scope)
            if star is not None:
                found += [SelectItem(name, expression, span) for name, expression in star]
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            expression = lowering.lower(inner)
            if isinstance(node, exp.Alias):
                name = node.alias
                aliases.setdefault(name.lower(), expression)
            else:
                name = _output_name(inner, self.sql)
            found.append(SelectItem(name, expression, span))
        return found

    # FROM.

    def _from_item(self, node: exp.Expr, ctes: Mapping[str, _Cte], prefix: str) -> Scope:
        """The scope of one item: a table, a derived table, or joins in parentheses."""
        if not isinstance(node, exp.Subquery) or _is_query(node.this):
            scope = Scope.of(self.sql, self._relation(node, ctes, prefix))
        else:
            self._refuse_clauses(node)
            scope = self._from_item(node.this, ctes, node.alias or prefix)
            if node.alias:
                columns = self._renamed(tuple(scope.visible), _alias_columns(node), node)
                scope = Scope.of(self.sql, Relation(node.alias, columns))
        return self._joined(scope, node.args.get("joins") or [], ctes, prefix)

    def _joined(self, first: Scope, joins: list[exp.Join], ctes: Mapping[str, _Cte], prefix: str) -> Scope:
        """An item and what is joined to it. JOIN binds stronger than a comma: it sees what stands since the last one."""
        last, others = first, []
        for join in joins:
            if self.sql[span_of(join).start] == ",":
                last = self._from_item(join.this, ctes, prefix)
                others.append((last, join.this))
            else:
                self._join(join, last, ctes, prefix)
        for scope, node in others:
            first.add(scope, node)
        return first

    def _refuse_clauses(self, node: exp.Expr) -> None:
        for part, (code, name) in _REFUSED_CLAUSES.items():
            clause = node.args.get(part)
            if clause:
                raise reject(code, self.sql, clause[0] if isinstance(clause, list) else clause, name=name)

    def _relation(self, node: exp.Expr, ctes: Mapping[str, _Cte], prefix: str) -> Relation:
        self._refuse_clauses(node)
        if isinstance(node, exp.Subquery):
            return self._derived(node.this, node.alias or "", _alias_columns(node), ctes, node)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise reject("TABLE_EXPRESSION", self.sql, node, name=f"`{text_of(node, self.sql)}`")
        name, alias = node.name, node.alias_or_name
        if node.args.get("when") or node.args.get("version"):
            raise reject("TABLE_EXPRESSION", self.sql, node, name="time travel")
        if not node.db and name.lower() in ctes:
            cte = ctes[name.lower()]
            return self._derived(cte.query, alias, _alias_columns(node) or cte.columns, cte.visible, node)
        table = None if node.db else self._tables.get(name.lower())
        if table is None and not node.db and name.lower() in self._views:
            raise reject("VIEW_IN_FROM", self.sql, node, name=name)
        if table is None:
            text = f"{node.db}.{name}" if node.db else name
            hint = close_matches(name, [*(t.name for t in self._tables.values()), *ctes])
            raise SchemaError(
                "UNKNOWN_TABLE", f"table `{text}` is unknown", sql=self.sql, span=span_of(node), hint=hint
            )
        if len(self.atoms) == MOST_TABLES:
            raise reject("TOO_MANY_TABLES", self.sql, node, most=MOST_TABLES)
        atom = self._claim(alias, prefix)
        self.atoms[atom] = table
        columns = tuple((c.name, qualified(atom, c)) for c in table.columns)
        return Relation(alias, self._renamed(columns, _alias_columns(node), node))

    def _derived(
        self, query: exp.Expr, alias: str, names: tuple[str, ...], ctes: Mapping[str, _Cte], place: exp.Expr
    ) -> Relation:
        select, ctes = self.unwrap(query, ctes)
        for part, name in (("distinct", "DISTINCT"), ("group", "GROUP BY"), ("having", "HAVING")):
            clause = select.args.get(part)
            if clause is not None:
                where = keyword_span(self.sql, span_of(select), name) if part == "distinct" else span_of(clause)
                raise reject("DERIVED_TABLE_NOT_MERGEABLE", self.sql, where, name=name)
        for call in select.find_all(exp.Anonymous):
            if call.name.lower() in functions.AGGREGATES and call.parent_select is select:
                raise reject("DERIVED_TABLE_NOT_MERGEABLE", self.sql, call, name=call.name.upper())
        scope = self.block(select, ctes, prefix=alias or "derived")
        aliases: dict[str, Expression] = {}
        lowering = ExpressionLowering(self.sql, lambda column: scope.resolve(column, aliases))
        items = self.items(select, scope, lowering, aliases)
        columns = tuple((i.name, i.expression) for i in items)
        return Relation(alias, self._renamed(columns, names, place))

    def _renamed(
        self, columns: tuple[NamedExpression, ...], names: tuple[str, ...], node: exp.Expr
    ) -> tuple[NamedExpression, ...]:
        if not names:
            return columns
        if len(names) != len(columns):
            message = f"{len(names)} column names are given for {len(columns)} columns"
            raise SchemaError("COLUMN_COUNT", message, sql=self.sql, span=span_of(node))
        return tuple((n, e) for n, (_, e) in zip(names, columns, strict=True))

    def _claim(self, alias: str, prefix: str) -> str:
        """A name for an atom, which no other has: its alias, with that of the derived table around it if it is taken.

        Atoms of derived tables leave the names that the outermost FROM shows to the atoms there.
        """
        taken = {name.lower() for name in self.atoms}
        if prefix:
            taken |= self._reserved
        if alias.lower() not in taken:
            return alias
        base = f"{prefix}_{alias}" if prefix else alias
        name, number = base, 2
        while name.lower() in taken:
            name, number = f"{base}_{number}", number + 1
        return name

    def _with(self, with_: exp.With, outer: Mapping[str, _Cte]) -> Mapping[str, _Cte]:
        if with_.args.get("recursive"):
            raise reject("RECURSIVE_CTE", self.sql, with_)
        ctes = dict(outer)
        for cte in with_.expressions:
            ctes[cte.alias.lower()] = _Cte(cte.this, _alias_columns(cte), dict(ctes))
        return ctes

    # Joins.

    def _join(self, join: exp.Join, scope: Scope, ctes: Mapping[str, _Cte], prefix: str) -> None:
        kind, side, method = join.kind, join.side, join.method
        if kind in ("SEMI", "ANTI") or side or kind == "OUTER" or method not in ("", "NATURAL"):
            start = span_of(join).start
            words = self.sql[start : span_of(join.this).start].rstrip()
            code = "SEMI_OR_ANTI_JOIN" if kind in ("SEMI", "ANTI") else "OUTER_JOIN"
            hint = HAS_NO_PARTNER if kind == "ANTI" else HAS_PARTNER
            name = " ".join(words.upper().split())
            raise reject(code, self.sql, Span(start, start + len(words)), name=name, hint=hint)
        right = self._from_item(join.this, ctes, prefix)
        merges = method == "NATURAL" or bool(join.args.get("using"))
        scope.add(right, join.this, self._merge(join, scope, right) if merges else ())
        on = join.args.get("on")
        if on is not None:
            self._conditions(on, scope)

    def _merge(self, join: exp.Join, left: Scope, right: Scope) -> tuple[str, ...]:
        """The columns of USING or NATURAL, which become equalities."""
        if join.method == "NATURAL":
            names = [(n, join.this) for n, _ in right.visible if left.try_bare(n)]
        else:
            names = [(u.name, u) for u in join.args["using"]]
        for name, node in names:
            column = exp.Column(this=exp.to_identifier(name))
            column.parent = node
            try:
                self._add_condition(compare("eq", left.resolve(column), right.resolve(column)), span_of(node))
            except CoercionError as error:
                raise mismatch(self.sql, node, str(error)) from None
        return tuple(name for name, _ in names)

    def _conditions(self, node: exp.Expr, scope: Scope) -> None:
        lowering = ExpressionLowering(self.sql, scope.resolve)
        for part in conjuncts(node):
            expression = lowering.lower(part)
            try:
                self._add_condition(condition(expression), span_of(part))
            except CoercionError as error:
                raise mismatch(self.sql, part, str(error)) from None

    def _add_condition(self, expression: Expression, span: Span) -> None:
        if not (isinstance(expression, Literal) and expression.value is True):
            self.conditions.append(Condition(expression, span))

    # SELECT lists.

    def _star(self, node: exp.Expr, scope: Scope) -> list[NamedExpression] | None:
        if isinstance(node, exp.Star):
            columns, star = scope.visible, node
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            columns, star = list(scope.relation(node, node.table).columns), node.this
        else:
            return None
        if star.args.get("replace") or star.args.get("rename"):
            raise reject("UNSUPPORTED_EXPRESSION", self.sql, node, name=f"`{text_of(node, self.sql)}`")
        excepted = {e.name.lower() for e in star.args.get("except_") or []}
        return [c for c in columns if c[0].lower() not in excepted]


def _is_query(node: exp.Expr) -> bool:
    """Whether what stands in parentheses is a query, and not a join."""
    while isinstance(node, exp.Subquery) and not node.alias and not node.args.get("joins"):
        node = node.this
    return not isinstance(node, exp.Table | exp.Subquery)


def _visible_tables(node: exp.Expr) -> Iterator[str]:
    """The names of the tables that an item of FROM brings into scope, those in joins in parentheses included."""
    if isinstance(node, exp.Table):
        yield node.alias_or_name
    elif isinstance(node, exp.Subquery) and not node.alias and not _is_query(node.this):
        yield from _visible_tables(node.this)
    for join in node.args.get("joins") or []:
        yield from _visible_tables(join.this)


def _alias_columns(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(c.name for c in alias.columns) if isinstance(alias, exp.TableAlias) else ()


def _output_name(node: exp.Expr, sql: str) -> str:
    """The name of a column without an alias: its own, or its text."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node.name if isinstance(node, exp.Column) else source_of(node, sql)
