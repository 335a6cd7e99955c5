"""VALUES, as a query or an item of FROM, and the row that a SELECT without FROM is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from everview.errors import SchemaError
from everview.query.expression import PlanColumn
from everview.relational.plan import Query, Values
from everview.schema.datatype import Kind
from everview.sql.coercion import unify
from everview.sql.expressions import ExpressionLowering
from everview.sql.literal import CoercionError
from everview.sql.reject import mismatch
from everview.sql.scope import Scope
from everview.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everview.query.expression import Expression
    from everview.sql.bind import Binder

ONE_ROW = Values(((),), ())
"""No FROM: one row without columns."""


def bind_values(node: exp.Values, binder: Binder, path: tuple[str, ...]) -> Query:
    """The rows of VALUES: columns ``col1``, ``col2``, ..., each of the type that its cells have in common."""
    lowering = ExpressionLowering(binder.sql, Scope(binder.sql).resolve)
    written = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    width = len(written[0])
    for cells, row in zip(written, node.expressions, strict=True):
        if len(cells) != width:
            message = f"a row of VALUES has {len(cells)} columns, the first one has {width}"
            raise SchemaError("COLUMN_COUNT", message, sql=binder.sql, span=span_of(row))
    rows = [[lowering.lower(cell) for cell in cells] for cells in written]
    columns = [_in_common([row[i] for row in rows], node, binder.sql) for i in range(width)]
    names = tuple(f"col{i + 1}" for i in range(width))
    made = tuple(
        PlanColumn(binder.new_id(), cells[0].type, any(cell.nullable for cell in cells), name)
        for cells, name in zip(columns, names, strict=True)
    )
    spans = tuple(span_of(cell) for cell in written[0])
    return Query(Values(tuple(zip(*columns, strict=True)), made, path), names, spans)


def _in_common(cells: Sequence[Expression], node: exp.Expr, sql: str) -> list[Expression]:
    """The cells of a column in one type. Texts are not read as numbers or dates here, as in Spark."""
    kinds = {cell.type.is_string for cell in cells if cell.type.kind is not Kind.NULL}
    if len(kinds) > 1:
        raise mismatch(sql, node, "a column of VALUES has texts and other values")
    try:
        return list(unify(list(cells)))
    except CoercionError as error:
        raise mismatch(sql, node, str(error)) from None
