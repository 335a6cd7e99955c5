"""Subqueries in expressions: EXISTS, IN, ANY, ALL and scalar ones, each a column of an Apply below what reads it.

x op ALL (S)  =  NOT (x not-op ANY (S))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import SchemaError
from everview.query.expression import Call, Expression, PlanColumn
from everview.relational.canonical import copied
from everview.relational.plan import (
    Apply,
    Node,
    Project,
    Query,
    columns_read,
    inputs_of,
    outer_columns,
    with_expressions,
    with_inputs,
)
from everview.schema.datatype import BOOLEAN
from everview.sql.coercion import compare, logical
from everview.sql.expressions import COMPARISONS
from everview.sql.literal import CoercionError
from everview.sql.reject import mismatch
from everview.sql.spans import span_of

if TYPE_CHECKING:
    from everview.errors import Span
    from everview.schema.datatype import DataType
    from everview.sql.bind import Around, Binder
    from everview.sql.expressions import ExpressionLowering
    from everview.sql.scope import Scope

_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_FAR = 1 << 40  # columns of a copy that is there to be compared: no other column has such a number


@dataclass(frozen=True, slots=True)
class _Bound:
    """A subquery that waits for the node it is to be applied to."""

    subquery: Node
    column: PlanColumn
    operands: tuple[Expression, ...]
    span: Span
    comparison: str
    scalar: bool

    def reads(self) -> frozenset[PlanColumn]:
        """The columns it needs from the node."""
        return outer_columns(self.subquery).union(*(columns_read(e) for e in self.operands))


class Subqueries:
    """The subqueries of the expressions of one block; equal ones are one."""

    def __init__(self, binder: Binder, scope: Scope, around: Around) -> None:
        self._binder = binder
        self._scope = scope
        self._around = around
        self._waiting: list[_Bound] = []
        self._known: dict[object, PlanColumn] = {}

    def bind(self, lowering: ExpressionLowering, node: exp.Expr) -> Expression:
        """The value of a subquery, or of an operand and a subquery, as a column."""
        match node:
            case exp.Exists():
                query = self._query(node.this)
                return self._add(query.node, "exists", BOOLEAN, node)
            case exp.In():
                return self._compared(lowering, node.this, "eq", node.args["query"], node)
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                query = self._query(node)
                columns = query.node.columns
                if len(columns) != 1:
                    message = f"a scalar subquery has one column, this one has {len(columns)}"
                    raise self._column_count(message, node)
                return self._add(query.node, columns[0].name, columns[0].type, node, scalar=True)
            case _:
                op, quantified = COMPARISONS[type(node)], node.expression
                if isinstance(quantified, exp.Any):
                    return self._compared(lowering, node.this, op, quantified.this, node)
                found = self._compared(lowering, node.this, _NEGATED[op], quantified.this, node)
                return logical("not", found)

    def onto(
        self,
        node: Node,
        wanted: Iterable[Expression] | None = None,
        change: Callable[[Expression, Span], Expression] | None = None,
    ) -> Node:
        """The node with the columns of subqueries: those that ``wanted`` expressions read, else all that wait.

        ``change``: what the columns that they read are called in the node.
        """
        needed = {b.column for b in self._waiting} if wanted is None else self._needed(wanted)
        for bound in [b for b in self._waiting if b.column in needed]:
            self._waiting.remove(bound)
            subquery, operands = bound.subquery, bound.operands
            if change is not None:
                subquery = _changed(subquery, bound.span, change)
                operands = tuple(change(e, bound.span) for e in operands)
            node = Apply(node, subquery, bound.column, operands, bound.span, bound.comparison, bound.scalar)
        return node

    def reading(self, columns: Sequence[PlanColumn]) -> tuple[PlanColumn, ...]:
        """The columns of the waiting subqueries that need nothing but these columns of what is around them."""
        known = {*columns}
        found: list[PlanColumn] = []
        here = {e for r in self._scope.relations for _, e in r.columns}
        for bound in self._waiting:
            if all(c in known or c not in here for c in bound.reads()) and not self._nested(bound, found):
                found.append(bound.column)
        return tuple(found)

    def _nested(self, bound: _Bound, found: Sequence[PlanColumn]) -> bool:
        """Whether a subquery reads another one that waits and is not among those found."""
        others = {b.column for b in self._waiting}.difference(found)
        return not others.isdisjoint(bound.reads())

    @property
    def waiting(self) -> tuple[PlanColumn, ...]:
        """The columns of the subqueries that are not applied to anything yet."""
        return tuple(bound.column for bound in self._waiting)

    def span_of(self, column: PlanColumn) -> Span:
        """Where a waiting subquery is written."""
        return next(b.span for b in self._waiting if b.column == column)

    def _needed(self, wanted: Iterable[Expression]) -> set[PlanColumn]:
        read = {column for e in wanted for column in columns_read(e)}
        for bound in reversed(self._waiting):  # a subquery reads those before it
            if bound.column in read:
                read |= bound.reads()
        return read

    def _query(self, node: exp.Expr) -> Query:
        around = replace(self._around, outer=self._scope, path=(*self._around.path, "subquery"))
        return self._binder.query(node, around)

    def _compared(
        self, lowering: ExpressionLowering, left: exp.Expr, op: str, subquery: exp.Expr, node: exp.Expr
    ) -> Expression:
        while isinstance(left, exp.Paren):
            left = left.this
        operands = left.expressions if isinstance(left, exp.Tuple) else [left]
        lowered = [lowering.lower(operand) for operand in operands]
        query = self._query(subquery)
        lowered, rows = self._comparable(lowered, op, query, node)
        nullable = any(e.nullable for e in (*lowered, *rows.columns))
        return self._add(rows, "in", BOOLEAN, node, operands=tuple(lowered), comparison=op, nullable=nullable)

    def _add(
        self,
        subquery: Node,
        name: str,
        data_type: DataType,
        node: exp.Expr,
        *,
        operands: tuple[Expression, ...] = (),
        comparison: str = "eq",
        scalar: bool = False,
        nullable: bool = False,
    ) -> PlanColumn:
        same = (copied(subquery, count(_FAR))[0], operands, comparison, scalar)
        if same not in self._known:
            column = PlanColumn(self._binder.new_id(), data_type, nullable or scalar, name)
            self._known[same] = column
            self._waiting.append(_Bound(subquery, column, operands, span_of(node), comparison, scalar))
        return self._known[same]

    def _comparable(
        self, operands: Sequence[Expression], op: str, query: Query, node: exp.Expr
    ) -> tuple[list[Expression], Node]:
        """The operands and the subquery, column by column in a type that they have in common."""
        columns = query.node.columns
        if len(operands) != len(columns):
            message = f"IN compares {len(operands)} values with {len(columns)} columns"
            raise self._column_count(message, node)
        try:
            pairs = [compare(op, one, two) for one, two in zip(operands, columns, strict=True)]
        except CoercionError as error:
            raise mismatch(self._binder.sql, node, str(error)) from None
        sides = [pair.args if isinstance(pair, Call) else (pair, pair) for pair in pairs]
        if [right for _, right in sides] == list(columns):
            return [left for left, _ in sides], query.node
        named = zip(sides, query.names, strict=True)
        items = tuple((self._binder.column(right, name), right) for (_, right), name in named)
        return [left for left, _ in sides], Project(query.node, items)

    def _column_count(self, message: str, node: exp.Expr) -> SchemaError:
        return SchemaError("COLUMN_COUNT", message, sql=self._binder.sql, span=span_of(node))


def _changed(node: Node, span: Span, change: Callable[[Expression, Span], Expression]) -> Node:
    """A plan with all its expressions changed."""
    below = tuple(_changed(n, span, change) for n in inputs_of(node))
    return with_expressions(with_inputs(node, below), lambda e: change(e, span))
