"""What a query says, as a hash: state that was kept for one text of it can be used for another.

The same for texts that differ in aliases of tables, names of CTEs, spaces or comments, and whatever columns its tables have that it does not
read; other for other names of the output. It is taken of the plan as it is bound, so that better rules do not change it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from itertools import count
from typing import Any

from everview.query.expression import Call, Expression, PlanColumn
from everview.relational.plan import (
    Apply,
    Distinct,
    Node,
    Query,
    Scan,
    TopK,
    UnionAll,
    columns_read,
    expressions_of,
    inputs_of,
    nodes_of,
)


def meaning(query: Query) -> str:
    """The hash, in hexadecimal."""
    text = json.dumps([_Plain(query.node).value(query.node), list(query.names)])
    return hashlib.sha256(text.encode()).hexdigest()


class _Plain:
    """Values as JSON has them: columns numbered as they come up, and nothing that does not count when values are compared."""

    def __init__(self, node: Node) -> None:
        self._used = _used(node)
        self._next = count()
        self._numbers: dict[PlanColumn, int] = {}

    def value(self, value: Any) -> Any:
        if isinstance(value, PlanColumn):
            return self._column(value)
        if isinstance(value, Call):
            return self._call(value)
        if isinstance(value, Scan):
            named = zip(value.table.columns, value.columns, strict=True)
            columns = [[c.name.lower(), self.value(column)] for c, column in named if column in self._used]
            return ["scan", value.table.name.lower(), value.is_view, columns]
        if is_dataclass(value):
            return [
                type(value).__name__,
                *(self.value(getattr(value, f.name)) for f in fields(value) if f.compare and f.init),
            ]
        if isinstance(value, tuple | list):
            return [self.value(v) for v in value]
        return value if isinstance(value, bool | int | str | None) else repr(value)

    def _column(self, column: PlanColumn) -> Any:
        if column not in self._numbers:
            self._numbers[column] = next(self._next)
        return ["column", self._numbers[column], str(column.type)]

    def _call(self, call: Call) -> Any:
        """A call and its arguments one after another, which are too deep for recursion sometimes: the operation, then each argument."""
        found: list[Any] = []
        waiting: list[Expression] = [call]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Call):
                found.append([part.op, len(part.args), str(part.type)])
                waiting += reversed(part.args)
            else:
                found.append(self.value(part))
        return found


def _used(node: Node) -> set[PlanColumn]:
    """The columns of a plan that count: those that expressions read, and those of rows that are compared or handed out."""
    used = set(node.columns)
    for found in nodes_of(node):
        used.update(column for e in expressions_of(found) for column in columns_read(e))
        match found:
            case Distinct() | UnionAll() | TopK():
                used.update(column for below in inputs_of(found) for column in below.columns)
            case Apply(subquery=subquery, operands=operands) if operands:
                used.update(subquery.columns)
            case _:
                pass
    return used
