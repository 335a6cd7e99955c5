"""What a query says, as a hash: state that was kept for one text of it can be used for another.

The same for texts that differ in aliases of tables, names of CTEs, spaces or comments, and whatever columns its tables have that it does not
read; other for other names of the output. It is taken of the plan as it is bound, so that better rules do not change it; and fields that
nodes got later (``ADDED``) do not count at their default.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from itertools import count
from typing import Any

from everview.query.expression import Call, PlanColumn
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
    plain = _Plain(query.node)
    text = json.dumps([plain.value(query.node), plain.definitions, list(query.names)])
    return hashlib.sha256(text.encode()).hexdigest()


class _Plain:
    """Values as JSON has them: columns numbered as they come up, and nothing that does not count when values are compared."""

    def __init__(self, node: Node) -> None:
        self._used = _used(node)
        self._next = count()
        self._numbers: dict[PlanColumn, int] = {}
        self._calls: dict[Call, int] = {}
        self.definitions: list[Any] = []

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
                *(
                    self.value(getattr(value, f.name))
                    for f in fields(value)
                    if f.compare and f.init and not ("added" in f.metadata and getattr(value, f.name) == f.default)
                ),
            ]
        if isinstance(value, tuple | list):
            return [self.value(v) for v in value]
        return value if isinstance(value, bool | int | str | None) else repr(value)

    def _column(self, column: PlanColumn) -> Any:
        if column not in self._numbers:
            self._numbers[column] = next(self._next)
        return ["column", self._numbers[column], str(column.type)]

    def _call(self, call: Call) -> Any:
        """A reference to a call, defined once: calls share arguments, and some are too deep for recursion."""
        waiting = [call]
        while waiting:
            found = waiting[-1]
            missing = [a for a in found.args if isinstance(a, Call) and a not in self._calls]
            if found in self._calls or not missing:
                waiting.pop()
                if found not in self._calls:
                    arguments = [["call", self._calls[a]] if isinstance(a, Call) else self.value(a) for a in found.args]
                    self.definitions.append([found.op, str(found.type), arguments])
                    self._calls[found] = len(self._calls)
            else:
                waiting += reversed(missing)
        return ["call", self._calls[call]]


def _used(node: Node) -> set[PlanColumn]:
    """The columns of a plan that count: those that expressions read, and those of rows that are compared or handed out."""
    used = set(node.columns)
    for found in nodes_of(node):
        used.update(column for e in expressions_of(found) for column in columns_read(e))
        match found:
            case Distinct() | UnionAll() | TopK():
                used.update(column for below in inputs_of(found) for column in below.columns)
            case Apply(subquery=subquery, operands=operands, scalar=scalar) if operands or scalar:
                used.update(subquery.columns)
            case _:
                pass
    return used
