"""Prints relational plans: an indented tree, one line per node, columns as ``name#id``."""

from __future__ import annotations

from collections.abc import Iterable

from everview.query.expression import PlanColumn
from everview.query.expression_text import expression_text
from everview.relational.plan import (
    Aggregate,
    AggregateCall,
    Apply,
    Condition,
    Distinct,
    Filter,
    Join,
    Lateral,
    Node,
    Project,
    Repeat,
    Scan,
    TopK,
    UnionAll,
    Values,
    inputs_of,
)

_SHOWN_ROWS = 5


def plan_text(node: Node) -> str:
    """The plan as text.

    >>> from everview.schema.datatype import BIGINT
    >>> from everview.schema.table import Column, Table
    >>> column = PlanColumn(0, BIGINT, name="src")
    >>> print(plan_text(Distinct(Scan(Table("g", (Column("src", BIGINT),)), ("a",), (column,)))))
    distinct
      scan g AS a (src#0)
    """
    lines: list[str] = []
    open_nodes = [(node, 0)]
    while open_nodes:
        found, level = open_nodes.pop()
        lines.append("  " * level + _line(found))
        open_nodes += [(below, level + 1) for below in reversed(inputs_of(found))]
    return "\n".join(lines)


def _line(node: Node) -> str:
    match node:
        case Scan():
            alias = node.path[-1]
            renamed = "" if alias.lower() == node.table.name.lower() else f" AS {alias}"
            return f"scan {node.table.name}{renamed} ({_listed(node.columns)})"
        case Filter():
            return f"filter {_conditions(node.conditions)}"
        case Project():
            return "project " + ", ".join(
                expression_text(column)
                if column == expression
                else f"{expression_text(column)} = {expression_text(expression)}"
                for column, expression in node.items
            )
        case Join() | Lateral():
            lateral = " lateral" if isinstance(node, Lateral) else ""
            on = f" ON {_conditions(node.conditions)}" if node.conditions else ""
            return f"{node.kind}{lateral} join{on}"
        case Aggregate():
            keys = ", ".join(f"{expression_text(c)} = {expression_text(e)}" for c, e in node.keys)
            calls = ", ".join(f"{expression_text(c)} = {_call(a)}" for c, a in node.calls)
            return f"aggregate [{keys}]" + (f" {calls}" if calls else "")
        case Apply():
            operands = ", ".join(map(expression_text, node.operands))
            test = "IN" if node.comparison == "eq" else f"{node.comparison.upper()} ANY"
            what = "THE VALUE" if node.scalar else f"({operands}) {test}" if operands else "EXISTS"
            return f"apply {expression_text(node.column)} = {what}"
        case Distinct():
            return "distinct"
        case TopK():
            named = [expression_text(column) for column in node.columns]
            by = ", ".join(key.text(named) for key in node.order) or "all columns"
            limit = "ALL" if node.limit is None else node.limit
            per = f" per ({', '.join(named[i] for i in node.partition)})" if node.partition else ""
            rank = "" if node.rank is None else f", numbered {expression_text(node.rank)}"
            return f"top {limit}{f' after {node.offset}' if node.offset else ''}{per} by {by}{rank}"
        case Values():
            rows = [f"({', '.join(map(expression_text, row))})" for row in node.rows[:_SHOWN_ROWS]]
            more = ["..."] if len(node.rows) > _SHOWN_ROWS else []
            return f"values ({_listed(node.columns)}): {', '.join(rows + more)}"
        case Repeat():
            return f"repeat {expression_text(node.count)} times"
        case UnionAll():
            return f"union all ({_listed(node.columns)})"


def _listed(columns: Iterable[PlanColumn]) -> str:
    return ", ".join(expression_text(c) for c in columns)


def _conditions(conditions: Iterable[Condition]) -> str:
    return " AND ".join(expression_text(c.expression) for c in conditions)


def _call(call: AggregateCall) -> str:
    given = [e for e in (call.argument, call.second) if e is not None]
    listed = ", ".join(map(expression_text, given)) or "*"
    of = f" OF DISTINCT ({', '.join(map(expression_text, call.distinct))})" if call.distinct else ""
    return f"{call.function.upper()}({listed}){of}"
