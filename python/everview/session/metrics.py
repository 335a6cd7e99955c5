"""What views and tables hold and have done, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everview.engine import Database
    from everview.plan.lower import PlannedView
    from everview.trees.join_tree import JoinTree


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """One node of the tree (with the hubs below it), or an operator above."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ViewMetrics:
    """State per node and operator; work since the view was created.

    ``updates``: changed rows of relations; ``probes``: hash look-ups; ``status_changes`` and ``annotation_changes``: rows visited because
    support or a value below them changed; ``live_changes``: rows that became or ceased to be part of a result; ``steps``: rows visited by
    enumeration; ``rows_emitted``: result and delta rows the tree emitted.
    """

    nodes: tuple[NodeMetrics, ...]
    operators: tuple[NodeMetrics, ...]
    state_rows: int
    state_bytes: int
    updates: int
    probes: int
    status_changes: int
    annotation_changes: int
    live_changes: int
    steps: int
    rows_emitted: int


@dataclass(frozen=True, slots=True)
class TableMetrics:
    """What a base table holds and, if it is a window, what that has done since the table was created.

    ``late_rows`` came with a time that the window had left behind and were not kept; ``expired_rows`` were pushed out;
    ``missed_deletes`` were of rows that were not there because they had, or may have, expired.
    """

    rows: int
    distinct_rows: int
    bytes: int
    late_rows: int
    expired_rows: int
    missed_deletes: int


def table_metrics(kernel: Database, table: int) -> TableMetrics:
    """The metrics of a table of the kernel."""
    rows, distinct, size = kernel.table_size(table)
    _, late, expired, missed = kernel.window_state(table) or (None, 0, 0, 0)
    return TableMetrics(rows, distinct, size, late, expired, missed)


def read_metrics(raw: Mapping[str, Any], planned: PlannedView) -> ViewMetrics:
    """The kernel's metrics with the plan's names."""
    nodes = tuple(
        NodeMetrics(name, rows, size)
        for core, sizes in zip(planned.cores, raw["nodes"], strict=True)
        for name, (rows, size) in zip(_node_names(core.choice.tree), sizes, strict=True)
    )
    operators = tuple(NodeMetrics(*operator) for operator in raw["operators"])
    counters = ("updates", "probes", "status_changes", "annotation_changes", "live_changes", "steps", "rows_emitted")
    return ViewMetrics(
        nodes=nodes,
        operators=operators,
        state_rows=raw["held"] + sum(o.rows for o in operators),
        state_bytes=sum(n.bytes for n in nodes) + sum(o.bytes for o in operators),
        **{name: raw[name] for name in counters},
    )


def _node_names(tree: JoinTree) -> list[str]:
    return [n.atom or f"[{', '.join(n.columns)}]" for n in tree.nodes] + ["top"]
