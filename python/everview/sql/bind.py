"""A query, parsed, to its relational plan: names are bound, nothing is decided.

``Binder`` goes through the blocks of a query. A block becomes its FROM (scans and joins), Filter for WHERE, Aggregate and
Filter for GROUP BY and HAVING, Project for the SELECT list, Distinct, and TopK for LIMIT. A derived table is the plan of its query, with
columns of its own; a CTE is bound anew at each reference, so its scans occur as often as it is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import SchemaError, Span
from everview.query.expression import Expression, Literal, PlanColumn
from everview.relational.plan import (
    Condition,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Lateral,
    Node,
    Project,
    Query,
    Scan,
    columns_read,
)
from everview.schema.datatype import BOOLEAN
from everview.sql.bind_aggregates import AggregateCollector
from everview.sql.bind_grouping import Grouping
from everview.sql.bind_order import CLAUSES as ORDER_CLAUSES
from everview.sql.bind_order import (
    Key,
    Ranks,
    lower_output,
    order_keys,
    ordered_query,
    output_first,
    over_columns,
    ranks_of,
)
from everview.sql.bind_sets import bind_set_operation
from everview.sql.bind_subqueries import Subqueries
from everview.sql.bind_values import ONE_ROW, bind_values
from everview.sql.bind_windows import WindowCollector
from everview.sql.coercion import coalesce, compare, condition
from everview.sql.expressions import ExpressionLowering, conjuncts
from everview.sql.literal import CoercionError
from everview.sql.nesting import room_to_recurse, too_deep
from everview.sql.output_names import check_names
from everview.sql.parameters import give_parameters, refuse_parameters
from everview.sql.reject import close_matches, mismatch, reject
from everview.sql.scope import NamedExpression, Relation, Scope
from everview.sql.spans import keyword_span, parse_query, source_of, span_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from everview.schema.table import Table
    from everview.sql.parameters import Convert


TRUE = Literal(True, BOOLEAN)
MOST_TABLES = 100
"""The most occurrences of tables in a query. A CTE that joins itself doubles them, so without a limit texts may explode."""


def bind_query(sql: str, tables: Mapping[str, Table], views: Mapping[str, Table] | None = None) -> Query:
    """The plan of the SELECT of a definition. ``tables`` and ``views`` that it may read are keyed by lower-case name."""
    tree = parse_query(sql)
    refuse_parameters(tree, sql)
    query = Binder(sql, tables, views or {}).whole(tree)
    check_names(sql, query)
    return query


_NO_QUERIES = (exp.DDL, exp.DML, exp.Drop, exp.Merge, exp.Command)


def bind_once(
    sql: str, tables: Mapping[str, Table], views: Mapping[str, Table], parameters: object, convert: Convert
) -> Query:
    """The plan of a SELECT that is read once, with its parameters, of which ``convert`` makes literals."""
    tree = parse_query(sql)
    if isinstance(tree, _NO_QUERIES):
        message = f"a SELECT is expected, not {source_of(tree, sql).split()[0].upper()}"
        raise SchemaError("NO_QUERY", message, sql=sql, span=span_of(tree), hint="run other statements with execute()")
    give_parameters(tree, sql, parameters, convert)
    query = Binder(sql, tables, views).whole(tree)
    check_names(sql, query)
    return query


@dataclass(frozen=True, slots=True)
class SelectItem:
    """A column of a SELECT list. ``owner``: the alias of the table that it is a column of, if it is one."""

    name: str
    expression: Expression
    span: Span
    owner: str = ""


@dataclass(frozen=True, slots=True)
class _Cte:
    query: exp.Expr
    columns: tuple[str, ...]
    visible: Mapping[str, _Cte]
    outer: Scope | None


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a part of the text: the CTEs it sees, the aliases of the derived tables that it is in, and for a
    subquery the names of the query around it."""

    ctes: Mapping[str, _Cte]
    path: tuple[str, ...] = ()
    outer: Scope | None = None

    def inside(self, alias: str) -> Around:
        """What is around the parts of a derived table: of the names, only those of a query that both are a subquery of."""
        return replace(self, path=(*self.path, alias))


@dataclass(slots=True)
class _From:
    """What a part of FROM means: its plan, and the names it brings. ``lateral``: it reads what stands before it."""

    node: Node
    scope: Scope
    lateral: bool = False


# Clauses of a SELECT that are refused wherever they occur.
_REFUSED_CLAUSES = {
    "sort": ("ORDER_BY", "SORT BY"),
    "cluster": ("ORDER_BY", "CLUSTER BY"),
    "distribute": ("ORDER_BY", "DISTRIBUTE BY"),
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
    "qualify",
    "distinct",
    "with_",
    "hint",
    "kind",
    "alias",
    *ORDER_CLAUSES,
}


class Binder:
    """Binds one SQL text. ``path``: the aliases of the derived tables around what is bound."""

    def __init__(self, sql: str, tables: Mapping[str, Table], views: Mapping[str, Table]) -> None:
        self.sql = sql
        self._tables = tables
        self._views = views
        self._ids = count()
        self._scans = 0

    def new_id(self) -> int:
        """A number that no column has."""
        return next(self._ids)

    def column(self, expression: Expression, name: str) -> PlanColumn:
        """A new column that holds an expression."""
        return PlanColumn(self.new_id(), expression.type, expression.nullable, name)

    def whole(self, tree: exp.Expr) -> Query:
        """The plan of a query that stands alone."""
        try:
            with room_to_recurse():
                return self.query(tree, Around({}))
        except RecursionError:
            raise too_deep(self.sql) from None

    def query(self, query: exp.Expr, around: Around) -> Query:
        """The plan of a query, which may stand in parentheses; clauses that none may have are refused."""
        if not isinstance(query, exp.Select | exp.Subquery | exp.SetOperation | exp.Values):
            raise reject("TABLE_EXPRESSION", self.sql, query, name=f"`{text_of(query, self.sql)}`")
        with_ = query.args.get("with_")
        if with_ is not None:
            around = replace(around, ctes=self._with(with_, around))
        self._refuse_clauses(query)
        if isinstance(query, exp.Select):
            return self._block(query, around)
        if isinstance(query, exp.Subquery):
            found = self.query(query.this, around)
        elif isinstance(query, exp.Values):
            found = bind_values(query, self, around.path)
        else:
            found = bind_set_operation(query, self, lambda side: self.query(side, around), around.path)
        if not any(query.args.get(clause) for clause in ORDER_CLAUSES):
            return found
        items = _as_items(found)
        keys = order_keys(query, self.sql, items, lower_output(self.sql, items))
        return self._ordered(found, keys, ranks_of(query, self.sql), around.path)

    def _block(self, select: exp.Select, around: Around) -> Query:
        for part, value in select.args.items():
            if value and part not in _SELECT_PARTS:
                raise reject("UNSUPPORTED_CLAUSE", self.sql, select, name=part.strip("_").upper())
        from_ = select.args.get("from_")
        first = _From(ONE_ROW, Scope(self.sql)) if from_ is None else self._from_item(from_.this, around)
        bound = self._joined(first, select.args.get("joins") or [], around)
        bound.scope.outer = around.outer
        where = select.args.get("where")
        if where is not None:
            subqueries = Subqueries(self, bound.scope, around)
            conditions = self._conditions(where.this, bound.scope, subqueries)
            bound.node = _filtered(subqueries.onto(bound.node), conditions)
        return self._select(select, bound, around)

    def _select(self, select: exp.Select, bound: _From, around: Around) -> Query:
        path = around.path
        scope, group, having = bound.scope, select.args.get("group"), select.args.get("having")
        subqueries = Subqueries(self, scope, around)
        collector = AggregateCollector(self, grouped=group is not None and not group.args.get("all"))
        aliases: dict[str, Expression] = {}
        lowering = ExpressionLowering(
            self.sql, lambda column: scope.resolve(column, aliases), collector.lower, subqueries.bind
        )
        windows = WindowCollector(self)
        lowering.window = windows.lower
        items = self._items(select, scope, lowering, aliases)
        windows.bind_qualify(select.args.get("qualify"), lowering)
        distinct, ranks = self._is_distinct(select), ranks_of(select, self.sql)
        names = output_first(self.sql, items, lambda column: scope.resolve(column, aliases))
        ordering = ExpressionLowering(
            self.sql, names, lambda _, *call: collector.lower(lowering, *call), subqueries.bind
        )
        ordering.window = windows.lower
        keys = order_keys(select, self.sql, items, ordering.lower)
        selected = items if distinct or ranks is None else [*items, *_not_selected(keys, items, self.sql)]
        node = bound.node
        grouping = Grouping(self, scope, aliases, collector, subqueries)
        if group is not None:
            grouping.bind_keys(group, items)
        if having is not None:
            grouping.bind_having(having)
        computed = [*selected, *windows.read(SelectItem)]
        if group is not None or having is not None or collector.calls:
            node, computed = grouping.above(node, computed, path)
        else:
            node = subqueries.onto(node)
        if windows:
            node, computed = windows.above(node, computed[: len(selected)], computed[len(selected) :], path)
        node = Project(node, tuple((self.column(i.expression, i.name), i.expression) for i in computed))
        keys = [over_columns(key, selected, node.columns) for key in keys]
        if distinct:
            node = Distinct(node, path)
        owners = tuple(i.owner for i in items)
        query = Query(node, tuple(i.name for i in items), tuple(i.span for i in items), owners=owners)
        return self._ordered(query, keys, ranks, path)

    def _is_distinct(self, select: exp.Select) -> bool:
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            place = keyword_span(self.sql, span_of(select), "DISTINCT ON")
            raise reject("UNSUPPORTED_CLAUSE", self.sql, place, name="DISTINCT ON")
        return distinct is not None

    def _ordered(self, query: Query, keys: Sequence[Key], ranks: Ranks | None, path: tuple[str, ...]) -> Query:
        return ordered_query(query, keys, ranks, self.sql, path=path, column=self.column)

    def _with(self, with_: exp.With, around: Around) -> Mapping[str, _Cte]:
        if with_.args.get("recursive"):
            raise reject("RECURSIVE_CTE", self.sql, with_)
        ctes = dict(around.ctes)
        for cte in with_.expressions:
            ctes[cte.alias.lower()] = _Cte(cte.this, _alias_columns(cte), dict(ctes), around.outer)
        return ctes

    def _refuse_clauses(self, node: exp.Expr) -> None:
        for part, (code, name) in _REFUSED_CLAUSES.items():
            clause = node.args.get(part)
            if clause:
                raise reject(code, self.sql, clause[0] if isinstance(clause, list) else clause, name=name)

    # ---- FROM --------------------------------------------------------------------------------------------------------

    def _from_item(self, node: exp.Expr, around: Around) -> _From:
        """One item: a table, a derived table, or joins in parentheses."""
        if not isinstance(node, exp.Subquery) or _is_query(node.this):
            bound = self._relation(node, around)
        else:
            self._refuse_clauses(node)
            bound = self._from_item(node.this, around.inside(node.alias) if node.alias else around)
            if node.alias:
                columns = self._renamed(tuple(bound.scope.visible), _alias_columns(node), node)
                bound.scope = Scope.of(self.sql, Relation(node.alias, columns))
        return self._joined(bound, node.args.get("joins") or [], around)

    def _joined(self, first: _From, joins: list[exp.Join], around: Around) -> _From:
        """An item and what is joined to it. JOIN binds stronger than a comma: it sees what stands since the last one."""
        last, before = first, exp.Expr()
        for join in joins:
            if self.sql[span_of(join).start] != ",":
                self._join(join, last, around)
                continue
            if last is not first:
                self._beside(first, last, before)
            before = join.this
            last = self._from_item(before, _seeing(around, first.scope, before))
        if last is not first:
            self._beside(first, last, before)
        return first

    def _beside(self, first: _From, other: _From, node: exp.Expr) -> None:
        """Items of FROM with a comma between them."""
        first.scope.add(other.scope, node)
        join = Lateral if other.lateral else Join
        first.node = join(JoinKind.INNER, first.node, other.node, ())

    def _relation(self, node: exp.Expr, around: Around) -> _From:
        self._refuse_clauses(node)
        if isinstance(node, exp.Values):
            return self._derived(node, node, _alias_columns(node), around.inside(node.alias or "values"))
        if isinstance(node, exp.Subquery):
            return self._derived(node.this, node, _alias_columns(node), around.inside(node.alias or "derived"))
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery) and not node.args.get("view"):
            bound = self._derived(node.this, node, _alias_columns(node), around.inside(node.alias or "derived"))
            return replace(bound, lateral=True)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise reject("TABLE_EXPRESSION", self.sql, node, name=f"`{text_of(node, self.sql)}`")
        name, alias = node.name, node.alias_or_name
        if node.args.get("when") or node.args.get("version"):
            raise reject("TABLE_EXPRESSION", self.sql, node, name="time travel")
        if not node.db and name.lower() in around.ctes:
            cte = around.ctes[name.lower()]
            inside = Around(cte.visible, (*around.path, alias), cte.outer)
            return self._derived(cte.query, node, _alias_columns(node) or cte.columns, inside)
        known = {**self._views, **self._tables}
        table = None if node.db else known.get(name.lower())
        if table is None:
            text = f"{node.db}.{name}" if node.db else name
            hint = close_matches(name, [*(t.name for t in known.values()), *around.ctes])
            raise SchemaError(
                "UNKNOWN_TABLE", f"table `{text}` is unknown", sql=self.sql, span=span_of(node), hint=hint
            )
        self._scans += 1
        if self._scans > MOST_TABLES:
            raise reject("TOO_MANY_TABLES", self.sql, node, most=MOST_TABLES)
        columns = tuple(PlanColumn(self.new_id(), c.type, c.nullable, c.name) for c in table.columns)
        named = tuple((c.name, c) for c in columns)
        renamed = self._renamed(named, _alias_columns(node), node)
        scope = Scope.of(self.sql, Relation(alias, renamed, table.unreadable))
        is_view = name.lower() not in self._tables
        return _From(Scan(table, (*around.path, alias), columns, is_view), scope)

    def _derived(self, query: exp.Expr, node: exp.Expr, names: tuple[str, ...], inside: Around) -> _From:
        """A query as the item ``node`` of FROM, which may give its columns other ``names``."""
        bound = self.query(query, inside)
        columns = tuple(zip(bound.names, bound.node.columns, strict=True))
        relation = Relation(node.alias_or_name, self._renamed(columns, names, node))
        return _From(bound.node, Scope.of(self.sql, relation))

    def _renamed(
        self, columns: tuple[NamedExpression, ...], names: tuple[str, ...], node: exp.Expr
    ) -> tuple[NamedExpression, ...]:
        if not names:
            return columns
        if len(names) != len(columns):
            message = f"{len(names)} column names are given for {len(columns)} columns"
            raise SchemaError("COLUMN_COUNT", message, sql=self.sql, span=span_of(node))
        return tuple((n, e) for n, (_, e) in zip(names, columns, strict=True))

    def _join(self, join: exp.Join, left: _From, around: Around) -> None:
        kind, swapped = self._join_kind(join)
        right = self._from_item(join.this, _seeing(around, left.scope, join.this))
        if right.lateral and kind not in (JoinKind.INNER, JoinKind.LEFT):
            raise reject("LATERAL_JOIN", self.sql, join.this)
        merges = join.method == "NATURAL" or bool(join.args.get("using"))
        using, conditions = self._merge(join, left.scope, right.scope) if merges else ((), ())
        both = Scope(self.sql, list(left.scope.relations), list(left.scope.visible), around.outer)
        both.add(right.scope, join.this, using)
        on = join.args.get("on")
        subqueries = Subqueries(self, both, around)
        if on is not None:
            conditions += self._conditions(on, both, subqueries)
        first, second = (right, left) if swapped else (left, right)
        if kind is JoinKind.INNER:
            # What reads a subquery is checked above the join.
            later = tuple(c for c in conditions if not set(subqueries.waiting).isdisjoint(columns_read(c.expression)))
            conditions = tuple(c for c in conditions if c not in later)
        else:
            later = ()
            for side in (first, second):
                side.node = subqueries.onto(side.node, subqueries.reading(side.node.columns))
            if subqueries.waiting:
                place, hint = (
                    subqueries.span_of(subqueries.waiting[0]),
                    "compare with columns of one side, or use WHERE",
                )
                name = "a subquery that reads both sides of this join"
                raise reject("SUBQUERY_EXPRESSION", self.sql, place, name=name, hint=hint)
        left.node = (Lateral if right.lateral else Join)(kind, first.node, second.node, conditions)
        left.node = _filtered(subqueries.onto(left.node), later)
        if kind in (JoinKind.LEFT, JoinKind.FULL):
            second.scope.make_nullable()
        if kind is JoinKind.FULL:
            first.scope.make_nullable()
        if kind in (JoinKind.SEMI, JoinKind.ANTI):
            left.scope.show_first(using)
            return
        merged = {n: _merged(n, left.scope, right.scope, kind, swapped=swapped) for n in using}
        left.scope.add(right.scope, join.this, using)
        left.scope.show(merged)

    def _join_kind(self, join: exp.Join) -> tuple[JoinKind, bool]:
        """The kind of a join, and whether its sides change places: a RIGHT JOIN is a LEFT JOIN of the other side."""
        kind, side, method = join.kind, join.side, join.method
        if method in ("", "NATURAL"):
            if kind in ("SEMI", "ANTI") and side in ("", "LEFT"):
                return JoinKind(kind.lower()), False
            if side in ("LEFT", "RIGHT") and kind in ("", "OUTER"):
                return JoinKind.LEFT, side == "RIGHT"
            if side == "FULL" and kind in ("", "OUTER"):
                return JoinKind.FULL, False
            if not side and kind in ("", "INNER", "CROSS"):
                return JoinKind.INNER, False
        start = span_of(join).start
        words = self.sql[start : span_of(join.this).start].rstrip()
        name = " ".join(words.upper().split())
        raise reject("OUTER_JOIN", self.sql, Span(start, start + len(words)), name=name)

    def _merge(self, join: exp.Join, left: Scope, right: Scope) -> tuple[tuple[str, ...], tuple[Condition, ...]]:
        """The columns of USING or NATURAL, and the equalities they become."""
        if join.method == "NATURAL":
            names = [(n, join.this) for n, _ in left.visible if right.try_bare(n)]
        else:
            names = [(u.name, u) for u in join.args["using"]]
        found = []
        for name, node in names:
            column = exp.Column(this=exp.to_identifier(name))
            column.parent = node
            try:
                equal = compare("eq", left.resolve(column), right.resolve(column))
            except CoercionError as error:
                raise mismatch(self.sql, node, str(error)) from None
            found.append(Condition(equal, span_of(node)))
        return tuple(name for name, _ in names), tuple(found)

    def _conditions(
        self,
        node: exp.Expr,
        scope: Scope,
        subqueries: Subqueries,
    ) -> tuple[Condition, ...]:
        lowering = ExpressionLowering(self.sql, scope.resolve, None, subqueries.bind)
        found = []
        for part in conjuncts(node):
            expression = lowering.lower(part)
            try:
                found.append(Condition(condition(expression), span_of(part)))
            except CoercionError as error:
                raise mismatch(self.sql, part, str(error)) from None
        return tuple(c for c in found if c.expression != TRUE)

    # ---- SELECT lists ------------------------------------------------------------------------------------------------

    def _items(
        self, select: exp.Select, scope: Scope, lowering: ExpressionLowering, aliases: dict[str, Expression]
    ) -> list[SelectItem]:
        """The SELECT list, stars expanded. ``aliases`` is filled as it goes: later items may use earlier aliases."""
        found: list[SelectItem] = []
        owners = scope.owners()
        for node in select.expressions:
            span = span_of(node)
            star = self._star(node, scope)
            if star is not None:
                found += [SelectItem(name, expression, span, owners.get(expression, "")) for name, expression in star]
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            expression = lowering.lower(inner)
            if isinstance(node, exp.Alias):
                name = node.alias
                aliases.setdefault(name.lower(), expression)
            else:
                name = _output_name(inner, self.sql)
            found.append(SelectItem(name, expression, span, owners.get(expression, "")))
        return found

    def _star(self, node: exp.Expr, scope: Scope) -> list[NamedExpression] | None:
        if isinstance(node, exp.Star) and not scope.relations:
            raise reject("NO_FROM", self.sql, node)
        if isinstance(node, exp.Star):
            columns, star, relations = scope.visible, node, scope.relations
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            relation = scope.relation(node, node.table)
            columns, star, relations = list(relation.columns), node.this, [relation]
        else:
            return None
        if star.args.get("replace") or star.args.get("rename"):
            raise reject("UNSUPPORTED_EXPRESSION", self.sql, node, name=f"`{text_of(node, self.sql)}`")
        excepted = {e.name.lower() for e in star.args.get("except_") or []}
        scope.refuse_star(relations, excepted, node)
        return [c for c in columns if c[0].lower() not in excepted]


def _as_items(query: Query) -> list[SelectItem]:
    """The columns of a query as a SELECT list."""
    named = zip(query.names, query.node.columns, query.spans, strict=True)
    return [SelectItem(name, column, span) for name, column, span in named]


def _not_selected(keys: Sequence[Key], items: Sequence[SelectItem], sql: str) -> list[SelectItem]:
    """What rows are ordered by and the SELECT list has not, each once."""
    known = {item.expression for item in items}
    found = {k.expression: SelectItem(k.name(sql), k.expression, k.span) for k in keys if k.expression not in known}
    return list(found.values())


def _filtered(node: Node, conditions: Iterable[Condition]) -> Node:
    kept = tuple(conditions)
    return Filter(node, kept) if kept else node


def _seeing(around: Around, scope: Scope, node: exp.Expr) -> Around:
    """What is around an item of FROM: with LATERAL, the items before it too."""
    return replace(around, outer=scope) if isinstance(node, exp.Lateral) else around


def _merged(name: str, left: Scope, right: Scope, kind: JoinKind, *, swapped: bool) -> Expression:
    """The column that USING makes of one of each side: that of the side that has all rows, else the one that there is."""
    (one, *_), (two, *_) = left.try_bare(name), right.try_bare(name)
    return coalesce([one, two]) if kind is JoinKind.FULL else two if swapped else one


def _is_query(node: exp.Expr) -> bool:
    """Whether what stands in parentheses is a query, and not a join."""
    while isinstance(node, exp.Subquery) and not node.alias and not node.args.get("joins"):
        node = node.this
    return not isinstance(node, exp.Table | exp.Subquery)


def _alias_columns(node: exp.Expr) -> tuple[str, ...]:
    alias = node.args.get("alias")
    return tuple(c.name for c in alias.columns) if isinstance(alias, exp.TableAlias) else ()


def _output_name(node: exp.Expr, sql: str) -> str:
    """The name of a column without an alias: its own, or its text."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node.name if isinstance(node, exp.Column) else source_of(node, sql)
