"""Splits a logical view in two: what every shard maintains of its part, and what is left to do with all parts together.

What: stages that treat each row alone (cores without DISTINCT, maps, filters) give on the union of the shards the sum of what they give on
each. So does every stage whose rows tell their shard: all it puts together stands on one. The first stage of which neither holds is
split: shards emit partial results, which are the rows of a table that the merging view reads. Partial sums are exact (128 bits as
DECIMAL(38, s)), except sums of doubles, which are rounded once per shard.
Representation: two logical views; the table between them is named ``partial``.
Invariants: P1, the merging view of the union of the partial results is the view; P2, partial results of different shards are different
rows or add up.
Cost: linear in the view.
Source: own; the design is in ARCHITECTURE.md, "Shards".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from everview.plan.output_key import group_key
from everview.query.conjunctive import Atom, ConjunctiveQuery, TableSource, Variable
from everview.query.expression import Call, ColumnRef, Expression, Literal
from everview.query.logical_view import (
    Aggregate,
    Core,
    Distinct,
    Function,
    GroupAggregate,
    LogicalView,
    Map,
    OutputColumn,
    Stage,
    Union,
)
from everview.schema.datatype import BIGINT, DOUBLE, DataType, Kind, decimal
from everview.schema.table import Column, Table

PARTIAL = "partial"


@dataclass(frozen=True, slots=True)
class SplitView:
    """``shard`` runs on every shard. ``merge`` reads their results from the table ``partial``; None if these only add up.

    ``merge_key``: columns of ``partial`` by which merging can be spread. ``disjoint``: results of different shards are different rows, so that nothing need be added up either.
    """

    shard: LogicalView
    merge: LogicalView | None
    partial: Table | None
    merge_key: tuple[str, ...]
    disjoint: bool


def split_view(view: LogicalView, variables: frozenset[str]) -> SplitView:
    """Split a view whose rows are spread by these variables of its core."""
    core = view.stages[0]
    assert isinstance(core, Core)
    carried = {v: v for v in core.query.head if v in variables}
    for at, stage in enumerate(view.stages):
        carried = _carry(stage, carried)
        if _gathers(stage) and carried.keys() != variables:
            return _split_at(view, at)
    return SplitView(view, None, None, (), carried.keys() == variables)


def _carry(stage: Stage, carried: dict[str, str]) -> dict[str, str]:
    """Which of these columns of its input a stage passes on, and under which names."""
    match stage:
        case Map(expressions=expressions):
            names = {e.name: name for name, e in expressions if isinstance(e, ColumnRef)}
        case GroupAggregate(keys=keys):
            names = {k.name: k.name for k in keys}
        case _:
            return carried
    return {v: names[name] for v, name in carried.items() if name in names}


def _gathers(stage: Stage) -> bool:
    """Whether a stage puts rows together."""
    return isinstance(stage, GroupAggregate | Distinct) or (isinstance(stage, Core) and stage.query.distinct)


def _merge_key(stages: tuple[Stage, ...], keys: tuple[str, ...]) -> tuple[str, ...]:
    """The columns by which merging can be spread: all keys, if every later stage passes them on; else it is done in one place."""
    carried = {k: k for k in keys}
    for stage in stages:
        carried = _carry(stage, carried)
    return keys if len(carried) == len(keys) else ()


def _split_at(view: LogicalView, at: int) -> SplitView:
    stage = view.stages[at]
    below, above = view.stages[:at], view.stages[at + 1 :]
    if isinstance(stage, GroupAggregate):
        partials = _Partials(stage)
        last: Stage = replace(stage, aggregates=tuple(partials.columns))
        merging = partials.merging(view.name)
    else:
        last, merging = stage, [Core(_reading(view.name, stage.columns, distinct=True))]
    stages: tuple[Stage, ...] = (*below, last)
    if not last.columns:  # a table has a column, even if only its rows count
        stages += (Map(at, (("partial_row", Literal(0, BIGINT)),)),)
    shard = LogicalView(view.name, view.sql, stages)
    shift = len(merging) - 1 - at
    moved = tuple(replace(s, input=s.input + shift) for s in above if not isinstance(s, Core | Union))
    merge = LogicalView(view.name, view.sql, (*merging, *moved))
    partial = Table(PARTIAL, tuple(Column(c.name, c.type, c.nullable) for c in shard.columns))
    keys = tuple(k.name for k in stage.keys) if isinstance(stage, GroupAggregate) else _names(stage)
    core = view.stages[0]
    if isinstance(stage, GroupAggregate) and stage.input == 0 and isinstance(core, Core):
        keys = group_key(core.query, keys)  # rows whose other keys change are one update: they must meet
    return SplitView(shard, merge, partial, _merge_key(above, keys), disjoint=False)


def _names(stage: Stage) -> tuple[str, ...]:
    return tuple(c.name for c in stage.columns)


def _reading(
    name: str,
    columns: tuple[OutputColumn, ...],
    *,
    distinct: bool = False,
    factors: tuple[Expression, ...] = (),
    components: tuple[str, ...] = (),
) -> ConjunctiveQuery:
    """The query that reads columns of the partial table."""
    variables = {c.name: Variable(c.name, c.type, c.nullable) for c in columns}
    bindings = tuple((c.name, ColumnRef(c.name, c.type, c.nullable)) for c in columns)
    atom = Atom(PARTIAL, TableSource(PARTIAL), bindings, factors=factors)
    return ConjunctiveQuery(name, tuple(variables), (atom,), variables, components, distinct)


class _Partials:
    """The partial columns of a group aggregate, and how they are put together again."""

    def __init__(self, groups: GroupAggregate) -> None:
        self.groups = groups
        self.columns: list[Aggregate] = []
        self._taken = {c.name.lower() for c in groups.columns}
        self._count_of: dict[str, str] = {}
        self._sum_of: dict[str, str] = {}
        for aggregate in groups.aggregates:
            counted = replace(
                aggregate, function=Function.COUNT, type=BIGINT, nullable=False, argument_type=None, sum=None
            )
            self._count_of[aggregate.name] = self._column(counted)
            if aggregate.function is not Function.COUNT:
                kind = _sum_type(aggregate.argument_type or BIGINT)
                total = replace(aggregate, function=Function.SUM, type=kind, nullable=True)
                self._sum_of[aggregate.name] = self._column(total)

    def _column(self, wanted: Aggregate) -> str:
        """The name of the partial column that holds this; equal ones are shared."""
        same = next((c for c in self.columns if replace(c, name="") == replace(wanted, name="")), None)
        if same is not None:
            return same.name
        number = len(self.columns)
        name = f"partial_{number}"
        while name in self._taken:
            name += "_"
        self.columns.append(replace(wanted, name=name))
        return name

    def merging(self, view: str) -> list[Stage]:
        """The stages that add up the partial rows of each group."""
        exact = [c for c in self.columns if c.type != DOUBLE]
        rounded = [OutputColumn(c.name, c.type, c.nullable) for c in self.columns if c.type == DOUBLE]
        factors = tuple(ColumnRef(c.name, c.type, c.nullable) for c in exact)
        components = tuple(c.name for c in exact)
        keys = self.groups.keys
        core = Core(_reading(view, (*keys, *rounded), factors=factors, components=components))
        means = [a for a in self.groups.aggregates if a.function is Function.AVG and self._is_rounded(a)]
        aggregates = [self._merged(a) for a in self.groups.aggregates]
        counts = {a.name: Aggregate(self._count_of[a.name], Function.COUNT, BIGINT, False) for a in means}
        counts = {name: replace(count, count=count.name) for name, count in counts.items()}
        merged = GroupAggregate(0, keys, (*aggregates, *dict.fromkeys(counts.values())))
        if not means:
            return [core, merged]
        expressions: list[tuple[str, Expression]] = [(k.name, _reference(k)) for k in keys]
        for column in self.groups.aggregates:
            here: Expression = ColumnRef(column.name, column.type, column.nullable)
            if column in means:
                here = _mean(here, ColumnRef(counts[column.name].name, BIGINT, nullable=False))
            expressions.append((column.name, here))
        return [core, merged, Map(1, tuple(expressions))]

    def _is_rounded(self, aggregate: Aggregate) -> bool:
        return _sum_type(aggregate.argument_type or BIGINT) == DOUBLE

    def _merged(self, aggregate: Aggregate) -> Aggregate:
        count = self._count_of[aggregate.name]
        if aggregate.function is Function.COUNT:
            return replace(aggregate, argument_type=None, argument=None, sum=None, count=count)
        total = self._sum_of[aggregate.name]
        if self._is_rounded(aggregate):
            argument = ColumnRef(total, DOUBLE, nullable=True)
            return replace(aggregate, function=Function.SUM, argument=argument, sum=None, count=None)
        return replace(aggregate, argument=None, sum=total, count=count)


def _sum_type(argument: DataType) -> DataType:
    """The type of partial sums: DOUBLE, or a decimal of the argument's scale that holds all 128 bits can."""
    if argument.is_floating:
        return DOUBLE
    return decimal(38, argument.scale if argument.kind is Kind.DECIMAL else 0)


def _reference(column: OutputColumn) -> ColumnRef:
    return ColumnRef(column.name, column.type, column.nullable)


def _mean(total: Expression, count: Expression) -> Expression:
    """``total / count`` as doubles; NULL where there is nothing to count."""
    counted = Call("nullif", (count, Literal(0, BIGINT)), BIGINT, nullable=True)
    return Call("divide", (total, Call("cast", (counted,), DOUBLE, nullable=True)), DOUBLE, nullable=True)
