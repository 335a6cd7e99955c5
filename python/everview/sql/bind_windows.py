"""row_number() OVER (PARTITION BY ... ORDER BY ...) and QUALIFY.

A block with window functions becomes, above its FROM, WHERE and GROUP BY: a Project of all that is read from here on, a TopK without a limit
per window, which numbers the rows, a Filter for QUALIFY, and the SELECT list. Rows that ORDER BY leaves equal are numbered by their
other columns, the selected ones first: SQL leaves it open. Conditions on the number become limits later (``rules/number_limits.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from everview.query.expression import Expression, PlanColumn, parts, rewrite
from everview.query.logical_view import SortKey
from everview.relational.plan import Condition, Filter, Node, Project, TopK, columns_read
from everview.schema.datatype import INT
from everview.sql.coercion import condition
from everview.sql.expressions import ExpressionLowering, conjuncts
from everview.sql.literal import CoercionError
from everview.sql.reject import mismatch, reject
from everview.sql.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everview.errors import Span
    from everview.sql.bind import Binder, SelectItem


@dataclass(frozen=True, slots=True)
class _Window:
    """What rows are parted by and ordered by: expressions, and how each is ordered."""

    partition: tuple[Expression, ...]
    order: tuple[Expression, ...]
    ways: tuple[tuple[bool, bool], ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*self.partition, *self.order)


class WindowCollector:
    """Collects the window functions of a block, equal ones once; expressions refer to them by their columns."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder
        self._sql = binder.sql
        self._windows: dict[_Window, PlanColumn] = {}
        self._spans: dict[_Window, Span] = {}
        self._qualify: list[Condition] = []

    def __bool__(self) -> bool:
        return bool(self._windows or self._qualify)

    def lower(self, lowering: ExpressionLowering, node: exp.Window) -> Expression:
        """The column of a window function."""
        function, order = node.this, node.args.get("order")
        known = isinstance(function, exp.Anonymous) and function.name.lower() == "row_number"
        if not known or function.expressions or order is None or node.args.get("spec") or node.args.get("alias"):
            raise reject("WINDOW_FUNCTION", self._sql, node)
        keys = order.expressions
        window = _Window(
            tuple(self._plain(lowering, key) for key in node.args.get("partition_by") or ()),
            tuple(self._plain(lowering, key.this) for key in keys),
            tuple((bool(key.args.get("desc")), bool(key.args["nulls_first"])) for key in keys),
        )
        if window not in self._windows:
            self._windows[window] = PlanColumn(self._binder.new_id(), INT, nullable=False, name="row_number")
            self._spans[window] = span_of(node)
        return self._windows[window]

    def _plain(self, lowering: ExpressionLowering, node: exp.Expr) -> Expression:
        found = lowering.lower(node)
        if self._is_computed(found):
            raise reject("WINDOW_FUNCTION", self._sql, node)
        return found

    def _is_computed(self, expression: Expression) -> bool:
        """Whether an expression reads a window function."""
        ours = set(self._windows.values())
        return any(part in ours for part in parts(expression))

    def bind_qualify(self, qualify: exp.Qualify | None, lowering: ExpressionLowering) -> None:
        """The conditions of QUALIFY."""
        for part in () if qualify is None else conjuncts(qualify.this):
            try:
                self._qualify.append(Condition(condition(lowering.lower(part)), span_of(part)))
            except CoercionError as error:
                raise mismatch(self._sql, part, str(error)) from None

    def read(self, item: type[SelectItem]) -> list[SelectItem]:
        """What windows and QUALIFY read, as items of a SELECT list."""
        of_windows = [(e, self._spans[w]) for w in self._windows for e in w.expressions]
        return [item("", e, span) for e, span in [*of_windows, *((c.expression, c.span) for c in self._qualify)]]

    def above(
        self, node: Node, selected: Sequence[SelectItem], read: Sequence[SelectItem], path: tuple[str, ...]
    ) -> tuple[Node, list[SelectItem]]:
        """The windows over the rows of a block, QUALIFY above them, and the SELECT list in terms of that. ``read``: as ``read`` gave it, over groups."""
        found = iter(read)
        windows = [
            (
                tuple(next(found).expression for _ in w.partition),
                tuple(next(found).expression for _ in w.order),
                w,
                column,
            )
            for w, column in self._windows.items()
        ]
        conditions = [replace(c, expression=next(found).expression) for c in self._qualify]
        wanted: dict[Expression, str] = {
            i.expression: i.name for i in reversed(selected) if not self._is_computed(i.expression)
        }
        wanted = dict(reversed(wanted.items()))
        ours = set(self._windows.values())
        above = [
            *(i.expression for i in selected if self._is_computed(i.expression)),
            *(c.expression for c in conditions),
        ]
        for column in dict.fromkeys(c for e in above for c in columns_read(e) if c in node.columns and c not in ours):
            wanted.setdefault(column, column.name)
        for partition, order, _, _ in windows:
            for expression in (*partition, *order):
                wanted.setdefault(expression, expression.name if isinstance(expression, PlanColumn) else "")
        known = {e: self._binder.column(e, name) for e, name in wanted.items()}
        node = Project(node, tuple((column, e) for e, column in known.items()))
        places = {column: i for i, column in enumerate(node.columns)}
        for partition, order, window, column in windows:
            keys = zip(order, window.ways, strict=True)
            by = tuple(SortKey(places[known[e]], descending, nulls_first) for e, (descending, nulls_first) in keys)
            parted = tuple(dict.fromkeys(places[known[e]] for e in partition))
            node = TopK(node, by, None, 0, path, parted, column)
        if conditions:
            over = tuple(replace(c, expression=rewrite(c.expression, known.get)) for c in conditions)
            node = Filter(node, over)
        return node, [replace(i, expression=rewrite(i.expression, known.get)) for i in selected]
