"""By which output columns a view can be looked up.

What: the variable sets of the core's tree (``join_tree.lookups``), renamed to the view's output columns.
Representation: a ``Lookup`` pairs output columns with the variables of the core they carry, in the same order.
Invariants: V1, every column of a lookup carries its variable unchanged from the core to the output; V2, views with
several cores, or with groups of groups, have none.
Cost: linear in the view.
Source: ours; the trees are those of CROWN.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.plan.lower import PlannedView, keeps_groups
from everview.plan.maintenance import DistinctPlan, TopKPlan, UnionPlan
from everview.query.expression import ColumnRef
from everview.query.logical_view import Core, GroupAggregate, Map, Union, Values
from everview.trees.join_tree import lookups


@dataclass(frozen=True, slots=True)
class Lookup:
    """Output columns, and the core's variables they stand for."""

    columns: tuple[str, ...]
    variables: tuple[str, ...]


def view_lookups(planned: PlannedView) -> tuple[Lookup, ...]:
    """The lookups a view supports, smallest first."""
    if len(planned.cores) != 1 or any(isinstance(s, DistinctPlan | UnionPlan | TopKPlan) for s in planned.plan.stages):
        return ()
    column_of = _output_columns(planned)
    aggregates = [s for s in planned.view.stages if isinstance(s, GroupAggregate)]
    if any(s.input != planned.cores[0].stage for s in aggregates):
        return ()  # what is read is neither the core nor groups of its results
    groups = aggregates[0] if aggregates else None
    if groups is not None and holds_groups(planned, groups):
        keys = tuple(k.name for k in groups.keys)
        return (Lookup(tuple(column_of[k] for k in keys), keys),) if keys and all(k in column_of for k in keys) else ()
    found = [s for s in lookups(planned.cores[0].choice.tree) if all(v in column_of for v in s)]
    return tuple(Lookup(tuple(column_of[v] for v in s), s) for s in found)


def holds_groups(planned: PlannedView, groups: GroupAggregate) -> bool:
    """Whether the engine keeps the groups' sums beside the tree, because the tree's results are not the groups."""
    core = next((c for c in planned.cores if c.stage == groups.input), None)
    return core is None or keeps_groups(groups, core.choice.tree.head)


def _output_columns(planned: PlannedView) -> dict[str, str]:
    """For each variable of the core that reaches the output unchanged, the first output column that is it."""
    carried: list[dict[str, str]] = []  # per stage: column -> variable
    for stage in planned.view.stages:
        if isinstance(stage, Core):
            carried.append({v: v for v in stage.query.head})
            continue
        if isinstance(stage, Union | Values):
            carried.append({})
            continue
        below = carried[stage.input]
        if isinstance(stage, Map):
            plain = ((n, e.name) for n, e in stage.expressions if isinstance(e, ColumnRef))
            carried.append({n: below[source] for n, source in plain if source in below})
        elif isinstance(stage, GroupAggregate):
            carried.append({k.name: below[k.name] for k in stage.keys if k.name in below})
        else:
            carried.append(below)
    columns: dict[str, str] = {}
    for column, variable in carried[-1].items():
        columns.setdefault(variable, column)
    return columns
