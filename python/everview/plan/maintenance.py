"""The maintenance plan: what an engine is told, as values and as JSON.

What: the format of docs/reference/maintenance-plan.md, one dataclass per kind of object.
Representation: frozen dataclasses whose fields are those of the JSON in the same order; expressions are kept in their
JSON form (``query.expression.to_json``). Variables, atoms, nodes, hubs, components and stages are referred to by
position; component 0 is the first beyond the multiplicity.
Invariants: M1, ``to_json`` is deterministic: the same plan gives the same text, on any machine; M2, ``plan_hash``
depends on that text alone.
Cost: linear in the plan.
Source: docs/reference/maintenance-plan.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

PLAN_VERSION = 2

ExpressionJson = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """A column of the view, or a variable of a core."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class BindingPlan:
    """A variable and the expression over the source's columns that gives it; with ``not_null``, rows where it is NULL are dropped."""

    variable: int
    expression: ExpressionJson
    not_null: bool


@dataclass(frozen=True, slots=True)
class AtomPlan:
    """An input of the engine. ``source``: one of ``{"table": name}``, ``{"stage": position}`` and ``{"view": name}``."""

    name: str
    source: Mapping[str, Any]
    filter: ExpressionJson | None
    columns: tuple[BindingPlan, ...]
    factors: tuple[ExpressionJson | None, ...]
    power: int


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node; ``atom`` is None for a projection and then absent from the JSON."""

    kind: str
    atom: int | None
    columns: tuple[int, ...]
    connex: bool
    up: int
    down: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HubPlan:
    """A hub. ``phantom``: what an optional one contributes to each component where there is no row below."""

    key: tuple[int, ...]
    parent: int | None
    children: tuple[int, ...]
    kind: str
    phantom: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CorePlan:
    """A semi-join tree."""

    stage: str
    mode: str
    variables: tuple[ColumnPlan, ...]
    components: int
    atoms: tuple[AtomPlan, ...]
    nodes: tuple[NodePlan, ...]
    hubs: tuple[HubPlan, ...]
    head: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """One aggregate function. ``second``: its second argument, left out where it takes one."""

    function: str
    type: str
    argument_type: str | None
    argument: ExpressionJson | None
    sum: int | None
    count: int | None
    second: ExpressionJson | None = None


@dataclass(frozen=True, slots=True)
class GroupAggregatePlan:
    """Groups by columns of the input."""

    stage: str
    input: int
    keys: tuple[int, ...]
    aggregates: tuple[AggregatePlan, ...]


@dataclass(frozen=True, slots=True)
class MapColumnPlan:
    """A computed column."""

    name: str
    expression: ExpressionJson


@dataclass(frozen=True, slots=True)
class MapPlan:
    """Computes columns."""

    stage: str
    input: int
    columns: tuple[MapColumnPlan, ...]


@dataclass(frozen=True, slots=True)
class FilterPlan:
    """Keeps rows."""

    stage: str
    input: int
    predicate: ExpressionJson


@dataclass(frozen=True, slots=True)
class DistinctPlan:
    """Each row once."""

    stage: str
    input: int


@dataclass(frozen=True, slots=True)
class UnionPlan:
    """The rows of several stages."""

    stage: str
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SortPlan:
    """A column of the input that rows are ordered by."""

    column: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class TopKPlan:
    """The rows from one rank of an order to another. ``partition``: columns by which rows are ordered apart.

    ``rank``: the name of a last column with the number of the row; without one it is absent from the JSON.
    """

    stage: str
    input: int
    partition: tuple[int, ...]
    order: tuple[SortPlan, ...]
    limit: int | None
    offset: int
    rank: str | None = None


@dataclass(frozen=True, slots=True)
class RepeatPlan:
    """Each row as often as an expression says."""

    stage: str
    input: int
    count: ExpressionJson


@dataclass(frozen=True, slots=True)
class ValuesPlan:
    """Constant rows."""

    stage: str
    columns: tuple[ColumnPlan, ...]
    rows: tuple[tuple[ExpressionJson, ...], ...]


StagePlan = (
    CorePlan | GroupAggregatePlan | MapPlan | FilterPlan | DistinctPlan | UnionPlan | TopKPlan | RepeatPlan | ValuesPlan
)


@dataclass(frozen=True, slots=True)
class MaintenancePlan:
    """The plan of a view; its last stage is the view."""

    version: int
    view: str
    stages: tuple[StagePlan, ...]
    output: tuple[ColumnPlan, ...]

    def to_json(self, indent: int | None = None) -> str:
        """The plan as JSON text."""
        separators = (",", ":") if indent is None else (",", ": ")
        return json.dumps(_plain(self), indent=indent, separators=separators, ensure_ascii=False)

    @property
    def plan_hash(self) -> str:
        """SHA-256 of the JSON text, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return value  # an expression or a source, which is plain already
    if hasattr(value, "__dataclass_fields__"):
        optional = {NodePlan: "atom", AggregatePlan: "second", TopKPlan: "rank"}.get(type(value))
        skipped = {optional} if optional is not None and getattr(value, optional) is None else set()
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.name not in skipped}
    return value
