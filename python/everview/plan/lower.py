"""Lowers a logical view to its maintenance plan.

What: classifies each core, chooses its tree, and writes every stage in the plan's form.
Representation: ``PlannedView`` keeps the plan beside what led to it, for ``explain``. Expressions refer to columns by
name; they are turned into positions here, from the columns of the stage they read.
Invariants: L1, a core whose head was extended is followed by a map onto its own head, and by ``distinct`` if the query
was; the map is left out where the query is not distinct, or nobody minds duplicates, and every reader is an aggregate or a map, which pick their
columns by position anyway. L2, stages keep their order; ``positions`` tells where each logical stage ended up (the last
of the stages made for it).
Cost: that of choosing the trees.
Source: CROWN, section 7.1, for extended heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everview.aggregates import FUNCTIONS
from everview.aggregates.duplicates import minds_duplicates
from everview.analysis.classification import Classification, classify
from everview.analysis.normalise import merge_equal_atoms
from everview.errors import InternalError
from everview.plan.maintenance import (
    PLAN_VERSION,
    AggregatePlan,
    AtomPlan,
    BindingPlan,
    ColumnPlan,
    CorePlan,
    DistinctPlan,
    FilterPlan,
    GroupAggregatePlan,
    HubPlan,
    MaintenancePlan,
    MapColumnPlan,
    MapPlan,
    NodePlan,
    RepeatPlan,
    SortPlan,
    StagePlan,
    TopKPlan,
    UnionPlan,
    ValuesPlan,
)
from everview.query.conjunctive import (
    Atom,
    ConjunctiveQuery,
    HubKind,
    Source,
    StageSource,
    ViewSource,
    every_attachment,
)
from everview.query.expression import ColumnRef, Expression, columns_of, may_fail, to_json
from everview.query.logical_view import (
    Aggregate,
    Core,
    Distinct,
    Filter,
    GroupAggregate,
    LogicalView,
    Map,
    OutputColumn,
    Repeat,
    Stage,
    TopK,
    Union,
    Values,
    inputs_of,
)
from everview.schema.table import Table
from everview.sql.nesting import room_to_recurse
from everview.trees.choose import Choice, choose_tree
from everview.trees.join_tree import JoinTree


@dataclass(frozen=True, slots=True)
class PlannedCore:
    """A core with its analysis. ``stage``: its position in the logical view; ``plan_stage``: in the plan."""

    stage: int
    plan_stage: int
    query: ConjunctiveQuery
    classification: Classification
    choice: Choice


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A view, its plan, and how it came about."""

    view: LogicalView
    plan: MaintenancePlan
    cores: tuple[PlannedCore, ...]
    positions: tuple[int, ...]


def lower_view(
    view: LogicalView, tables: Mapping[str, Table], update_rates: Mapping[str, int] | None = None
) -> MaintenancePlan:
    """The plan alone; see ``plan_view``."""
    return plan_view(view, tables, update_rates).plan


def plan_view(
    view: LogicalView, tables: Mapping[str, Table], update_rates: Mapping[str, int] | None = None
) -> PlannedView:
    """Plan a view. ``tables``, and the views it reads, by lower-case name; ``update_rates`` as in ``choose_tree``."""
    with room_to_recurse():  # trees are as high as their longest path
        return _plan_view(view, tables, update_rates)


def _plan_view(view: LogicalView, tables: Mapping[str, Table], update_rates: Mapping[str, int] | None) -> PlannedView:
    smaller = (Core(merge_equal_atoms(s.query)) if isinstance(s, Core) else s for s in view.stages)
    view = replace(view, stages=tuple(smaller))
    stages: list[StagePlan] = []
    cores: list[PlannedCore] = []
    outputs: list[tuple[int, dict[str, int]]] = []  # per logical stage: its position and its columns in the plan
    for i, stage in enumerate(view.stages):
        if isinstance(stage, Core):
            classification = classify(stage.query)
            grouped = any(isinstance(s, GroupAggregate) and s.input == i for s in view.stages)
            always = _reads_deltas_always(view, i, classification)
            choice = choose_tree(stage.query, classification, update_rates, grouped=grouped, always_deltas=always)
            cores.append(PlannedCore(i, len(stages), stage.query, classification, choice))
            outputs.append(_lower_core(view, i, choice, _Places(tables, outputs), stages))
        else:
            stages.append(_lower_operator(view, stage, [outputs[i] for i in inputs_of(stage)]))
            outputs.append((len(stages) - 1, _index(stage.columns)))
    output = tuple(ColumnPlan(c.name, str(c.type), c.nullable) for c in view.columns)
    plan = MaintenancePlan(PLAN_VERSION, view.name, tuple(stages), output)
    return PlannedView(view, plan, tuple(cores), tuple(position for position, _ in outputs))


@dataclass(frozen=True, slots=True)
class _Places:
    """Where atoms find their sources: tables and views by lower-case name, and per stage its position and columns in the plan."""

    tables: Mapping[str, Table]
    outputs: Sequence[tuple[int, Mapping[str, int]]] = ()

    def columns(self, source: Source) -> Mapping[str, int]:
        """The positions of the source's columns by name in lower case: names of tables' columns are case-insensitive."""
        if isinstance(source, StageSource):
            return {name.lower(): i for name, i in self.outputs[source.stage][1].items()}
        return {c.name.lower(): i for i, c in enumerate(self.tables[source.name.lower()].columns)}

    def plan(self, source: Source) -> Mapping[str, Any]:
        """The source as plans name it."""
        if isinstance(source, StageSource):
            return {"stage": self.outputs[source.stage][0]}
        return {"view" if isinstance(source, ViewSource) else "table": source.name}


def _reads_deltas_always(view: LogicalView, core: int, classification: Classification) -> bool:
    """Whether the engine enumerates the core's deltas in any case: a stage above keeps state, or may refuse a row."""
    stage = view.stages[core]
    assert isinstance(stage, Core)
    if stage.query.distinct and classification.is_extended:
        return True
    above = {core}
    for at, reader in enumerate(view.stages):
        if not above.intersection(inputs_of(reader)):
            continue
        above.add(at)
        fused = isinstance(reader, GroupAggregate) and reader.input == core
        if isinstance(reader, GroupAggregate) and (not fused or keeps_groups(reader, classification.maintained_head)):
            return True
        if isinstance(reader, Core | Distinct | TopK) or _may_refuse(reader):
            return True
    return False


def _may_refuse(stage: Stage) -> bool:
    """Whether a stage may refuse a row: a sum that does not fit its type, an expression that fails."""
    if isinstance(stage, GroupAggregate):
        return any(FUNCTIONS[a.function].may_refuse(a.type) for a in stage.aggregates)
    if isinstance(stage, Map):
        return any(may_fail(e) for _, e in stage.expressions)
    return isinstance(stage, Repeat) or (isinstance(stage, Filter) and may_fail(stage.predicate))


def keeps_groups(groups: GroupAggregate, head: tuple[str, ...]) -> bool:
    """Whether sums by group are kept beside a core with this head, because its results are not the groups."""
    return {k.name for k in groups.keys} != set(head) or any(a.argument is not None for a in groups.aggregates)


def _index(columns: tuple[OutputColumn, ...]) -> dict[str, int]:
    return {c.name: i for i, c in enumerate(columns)}


def _lower_core(
    view: LogicalView, position: int, choice: Choice, places: _Places, stages: list[StagePlan]
) -> tuple[int, dict[str, int]]:
    stage = view.stages[position]
    assert isinstance(stage, Core)
    query, tree = stage.query, choice.tree
    stages.append(_core_plan(query, tree, places))
    core = len(stages) - 1
    if tree.head == query.head:
        return core, {v: i for i, v in enumerate(query.head)}
    index = {v: i for i, v in enumerate(tree.head)}
    readers = [s for s in view.stages if position in inputs_of(s)]
    by_position = bool(readers) and all(isinstance(r, GroupAggregate | Map | Core) for r in readers)
    if by_position and (not query.distinct or not minds_duplicates(view.stages, position)):
        return core, index
    columns = tuple(MapColumnPlan(c.name, to_json(ColumnRef(c.name, c.type, c.nullable), index)) for c in stage.columns)
    stages.append(MapPlan("map", core, columns))
    if query.distinct:
        stages.append(DistinctPlan("distinct", len(stages) - 1))
    return len(stages) - 1, _index(stage.columns)


def lower_core(query: ConjunctiveQuery, tree: JoinTree, tables: Mapping[str, Table]) -> CorePlan:
    """A core over tables on a tree, with the tree's head."""
    return _core_plan(query, tree, _Places(tables))


def _core_plan(query: ConjunctiveQuery, tree: JoinTree, places: _Places) -> CorePlan:
    variable = {v: i for i, v in enumerate(query.variables)}
    atom = {a.name: i for i, a in enumerate(query.atoms)}

    def positions(names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(variable[v] for v in names)

    return CorePlan(
        stage="core",
        mode="set" if query.distinct else "bag",
        variables=tuple(ColumnPlan(v.name, str(v.type), v.nullable) for v in query.variables.values()),
        components=len(query.components),
        atoms=tuple(_lower_atom(a, variable, len(query.components), places, _needed(query, a)) for a in query.atoms),
        nodes=tuple(
            NodePlan(
                kind=n.kind.value,
                atom=None if n.atom is None else atom[n.atom],
                columns=positions(n.columns),
                connex=n.connex,
                up=n.up,
                down=n.down,
            )
            for n in tree.nodes
        ),
        hubs=tuple(
            HubPlan(positions(h.key), h.parent, h.children, h.kind.value, _phantom(query, tree, i))
            for i, h in enumerate(tree.hubs)
        ),
        head=positions(tree.head),
    )


def _needed(query: ConjunctiveQuery, atom: Atom) -> frozenset[str]:
    """The variables whose values find the atom's partners by ``=``: where one is NULL, the row has none and need not be there."""
    block = next((b for b in every_attachment(query.attached) if atom.name in b.atoms), None)
    beside = query.joined_atoms if block is None else [query.atoms_by_name[name] for name in block.atoms]
    attached = query.attached if block is None else block.attached
    found = {
        v for other in beside if other.name != atom.name for v in other.variables if not query.variables[v].null_safe
    }
    blocks = [b for b in attached if b.kind is HubKind.EXISTS] + ([] if block is None else [block])
    found.update(*(set(b.key) - b.null_safe for b in blocks))
    return frozenset(v for v in atom.variables if v in found)


def _phantom(query: ConjunctiveQuery, tree: JoinTree, hub: int) -> tuple[int, ...]:
    """Where an atom below has a factor that factor is NULL, which counts as nothing; without one the phantom counts once."""
    if tree.hubs[hub].kind is not HubKind.OPTIONAL:
        return ()
    below = [query.atoms_by_name[name] for name in tree.atoms_below(hub)]
    has_factor = [
        any(i < len(a.factors) and a.factors[i] is not None for a in below) for i in range(len(query.components))
    ]
    return tuple(0 if found else 1 for found in has_factor)


def _lower_atom(
    atom: Atom, variable: Mapping[str, int], components: int, places: _Places, needed: frozenset[str]
) -> AtomPlan:
    position = places.columns(atom.source)

    def lowered(expression: Expression) -> dict[str, object]:
        index = {name: position[name.lower()] for name in columns_of(expression)}  # names are case-insensitive
        return to_json(expression, index)

    def optional(expression: Expression | None) -> dict[str, object] | None:
        return None if expression is None else lowered(expression)

    factors = atom.factors + (None,) * (components - len(atom.factors))
    return AtomPlan(
        name=atom.name,
        source=places.plan(atom.source),
        filter=optional(atom.filter),
        columns=tuple(BindingPlan(variable[v], lowered(e), v in needed) for v, e in atom.bindings),
        factors=tuple(optional(f) for f in factors),
        power=atom.power,
    )


def _lower_operator(view: LogicalView, stage: Stage, inputs: Sequence[tuple[int, Mapping[str, int]]]) -> StagePlan:
    if isinstance(stage, Values):
        named = tuple(ColumnPlan(c.name, str(c.type), c.nullable) for c in stage.columns)
        return ValuesPlan("values", named, tuple(tuple(to_json(e, {}) for e in row) for row in stage.rows))
    if isinstance(stage, Union):
        return UnionPlan("union", tuple(position for position, _ in inputs))
    ((position, index),) = inputs
    if isinstance(stage, GroupAggregate):
        source = view.stages[stage.input]
        components = source.query.components if isinstance(source, Core) else ()
        return GroupAggregatePlan(
            stage="aggregate",
            input=position,
            keys=tuple(index[k.name] for k in stage.keys),
            aggregates=tuple(_lower_aggregate(a, components, index) for a in stage.aggregates),
        )
    if isinstance(stage, Map):
        columns = tuple(MapColumnPlan(name, to_json(e, index)) for name, e in stage.expressions)
        return MapPlan("map", position, columns)
    if isinstance(stage, Filter):
        return FilterPlan("filter", position, to_json(stage.predicate, index))
    if isinstance(stage, Distinct):
        return DistinctPlan("distinct", position)
    if isinstance(stage, TopK):
        *below, last = stage.columns if stage.numbered else (*stage.columns, None)
        places = [index[c.name] for c in below if c is not None]
        order = tuple(SortPlan(places[k.position], k.descending, k.nulls_first) for k in stage.order)
        partition = tuple(places[i] for i in stage.partition)
        rank = None if last is None else last.name
        return TopKPlan("topk", position, partition, order, stage.limit, stage.offset, rank)
    if isinstance(stage, Repeat):
        return RepeatPlan("repeat", position, to_json(stage.count, index))
    raise InternalError("UNKNOWN_STAGE", f"no plan for a stage of type {type(stage).__name__}")


def _lower_aggregate(aggregate: Aggregate, components: tuple[str, ...], index: Mapping[str, int]) -> AggregatePlan:
    def component(name: str | None) -> int | None:
        if name is None:
            return None
        if name not in components:
            raise InternalError("UNKNOWN_COMPONENT", f"{aggregate.name} reads component {name}, which its input lacks")
        return components.index(name)

    return AggregatePlan(
        function=aggregate.function,
        type=str(aggregate.type),
        argument_type=None if aggregate.argument_type is None else str(aggregate.argument_type),
        argument=None if aggregate.argument is None else to_json(aggregate.argument, index),
        sum=component(aggregate.sum),
        count=component(aggregate.count),
        second=None if aggregate.second is None else to_json(aggregate.second, index),
    )
