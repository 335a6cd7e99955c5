"""ORDER BY, LIMIT and OFFSET: what rows are ordered by, and which ranks of that order are the result.

A key of ORDER BY is a position of the SELECT list, or an expression, in which bare names are columns of the result first and
columns of the FROM clause only if the result has none of that name, as in Spark. Arguments of aggregates are of the FROM clause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import SchemaError, Span, cut
from everview.query.expression import Expression, Literal, PlanColumn, rewrite
from everview.query.logical_view import SortKey
from everview.relational.plan import Node, Project, Query, TopK, columns_read
from everview.sql.expressions import ExpressionLowering
from everview.sql.parameters import value_of
from everview.sql.reject import reject
from everview.sql.spans import span_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everview.sql.bind import SelectItem

CLAUSES = ("order", "limit", "offset")
MOST_ROWS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Ranks:
    """Which rows of an order are the result: those after ``offset``, at most ``limit`` (None: all)."""

    limit: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class Key:
    """What rows are ordered by, and where it is written."""

    expression: Expression
    descending: bool
    nulls_first: bool
    node: exp.Expr

    @property
    def span(self) -> Span:
        return span_of(self.node)

    def name(self, sql: str) -> str:
        """What a column is called that is there to order by."""
        return cut(text_of(self.node, sql), 40)


def ranks_of(query: exp.Expr, sql: str) -> Ranks | None:
    """The ranks that LIMIT and OFFSET of a query ask for; None if these are all."""
    limit = _rows(query.args.get("limit"), sql)
    offset = _rows(query.args.get("offset"), sql) or 0
    return None if limit is None and offset == 0 else Ranks(limit, offset)


def _rows(clause: exp.Expr | None, sql: str) -> int | None:
    if clause is None:
        return None
    number = clause.args.get("expression")
    while isinstance(number, exp.Paren):
        number = number.this
    if isinstance(number, exp.Var) and number.name.upper() == "ALL" and isinstance(clause, exp.Limit):
        return None
    if isinstance(number, exp.Literal) and number.is_int and int(number.name) <= MOST_ROWS:
        return int(number.name)
    if isinstance(number, exp.Placeholder):
        given = value_of(number)
        value = given.value if isinstance(given, Literal) and given.type.is_integer else None
        if isinstance(value, int) and 0 <= value <= MOST_ROWS:
            return value
    raise reject("LIMIT", sql, clause, name=f"`{text_of(clause, sql)}`")


def order_keys(
    query: exp.Expr, sql: str, items: Sequence[SelectItem], lower: Callable[[exp.Expr], Expression]
) -> list[Key]:
    """The keys of ORDER BY. ``lower`` binds what is no position."""
    clause = query.args.get("order")
    written = [] if clause is None else clause.expressions
    found: list[Key] = []
    for ordered in written:
        node, descending, nulls_first = ordered.this, bool(ordered.args.get("desc")), bool(ordered.args["nulls_first"])
        if isinstance(node, exp.Var) and node.name.upper() == "ALL" and len(written) == 1:
            return [Key(item.expression, descending, nulls_first, node) for item in items]
        if isinstance(node, exp.Literal) and node.is_int:
            if not 1 <= int(node.name) <= len(items):
                message = f"ORDER BY {node.name} is not a position of the SELECT list"
                raise SchemaError("ORDER_BY_POSITION", message, sql=sql, span=span_of(node))
            expression = items[int(node.name) - 1].expression
        else:
            expression = lower(node)
        found.append(Key(expression, descending, nulls_first, node))
    return found


def output_first(
    sql: str, items: Sequence[SelectItem], below: Callable[[exp.Column], Expression]
) -> Callable[[exp.Column], Expression]:
    """Finds columns by name: those of the result, else those ``below``."""
    outputs: dict[str, dict[Expression, None]] = {}
    for item in items:
        outputs.setdefault(item.name.lower(), {})[item.expression] = None

    def resolve(column: exp.Column) -> Expression:
        found = {} if column.table else outputs.get(column.name.lower(), {})
        if len(found) > 1:
            message = f"column `{column.name}` is ambiguous: several columns of the result have this name"
            hint = "give each a name of its own with AS, or order by position"
            raise SchemaError("AMBIGUOUS_COLUMN", message, sql=sql, span=span_of(column), hint=hint)
        return next(iter(found)) if found else below(column)

    return resolve


def lower_output(sql: str, items: Sequence[SelectItem]) -> Callable[[exp.Expr], Expression]:
    """Binds expressions over the columns of a result whose FROM clause is out of reach."""

    def unknown(column: exp.Column) -> Expression:
        raise reject("ORDER_BY_NOT_SELECTED", sql, column, name=f"`{text_of(column, sql)}`")

    return ExpressionLowering(sql, output_first(sql, items, unknown)).lower


def ordered_query(
    query: Query,
    keys: Sequence[Key],
    ranks: Ranks | None,
    sql: str,
    *,
    path: tuple[str, ...],
    column: Callable[[Expression, str], PlanColumn],
) -> Query:
    """A query with an order and, with ``ranks``, the rows of these alone; ``column`` makes a new column.

    The node of the query may have columns beyond those with names: they are there to order by, and go. So do those that
    are computed here. Without ranks the order is that of reads, which need a column of the result for every key.
    """
    visible = query.node.columns[: len(query.names)]
    if ranks is None:
        return replace(query, order=tuple(_of_result(key, visible, sql) for key in keys))
    node: Node = query.node
    known = dict.fromkeys(node.columns)
    added = [key for key in keys if key.expression not in known]
    for key in added:
        if not known.keys() >= set(columns_read(key.expression)):
            raise reject("ORDER_BY_NOT_SELECTED", sql, key.node, name=f"`{text_of(key.node, sql)}`")
    computed = {k.expression: column(k.expression, k.name(sql)) for k in reversed(added)}
    if computed:
        items = [*((c, c) for c in node.columns), *((c, e) for e, c in computed.items())]
        node = Project(node, tuple(items))
    positions = {c: i for i, c in enumerate(node.columns)}
    places = {e: positions[c] for e, c in [*((c, c) for c in positions), *computed.items()]}
    order = tuple(SortKey(places[k.expression], k.descending, k.nulls_first) for k in keys)
    if not keys:
        order = query.order  # (SELECT ... ORDER BY x) LIMIT 3
    node = TopK(node, order, ranks.limit, ranks.offset, path)
    if node.columns != visible:
        node = Project(node, tuple((c, c) for c in visible))
    return replace(query, node=node, order=())


def _of_result(key: Key, visible: Sequence[PlanColumn], sql: str) -> SortKey:
    if key.expression not in visible:
        raise reject("ORDER_BY_NOT_SELECTED", sql, key.node, name=f"`{text_of(key.node, sql)}`")
    return SortKey(visible.index(key.expression), key.descending, key.nulls_first)


def over_columns(key: Key, items: Sequence[SelectItem], columns: Sequence[PlanColumn]) -> Key:
    """A key in terms of the columns that hold the SELECT list."""
    known = {item.expression: c for item, c in reversed(list(zip(items, columns, strict=True)))}
    return replace(key, expression=rewrite(key.expression, known.get))
