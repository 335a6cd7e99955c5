"""A stage that puts rows together, in two steps: what every shard makes of its part, and what is made of all parts together.

What: a group's sums are sums of partial sums, and distinct rows are the distinct ones among those of the parts. Partial sums are exact
(128 bits as DECIMAL(38, s)), except sums of doubles, which are rounded once per shard.
Representation: the stage itself with partial columns, and the stages that read it, the first of which is a core.
Invariants: P1, the merging stages give on the union of the partial results what the stage gives on the union of its inputs; P2, partial
results of different shards are different rows or add up.
Cost: linear in the stage.
Source: own; the design is in ARCHITECTURE.md, "Shards".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from everview.query.conjunctive import Atom, ConjunctiveQuery, StageSource, Variable
from everview.query.expression import Call, ColumnRef, Expression, Literal
from everview.query.logical_view import Aggregate, Core, Distinct, Function, GroupAggregate, Map, OutputColumn, Stage
from everview.schema.datatype import BIGINT, DOUBLE, DataType, Kind, decimal


@dataclass(frozen=True, slots=True)
class Split:
    """``partial`` reads what the stage reads. ``merging``: the core that reads it, and what stands above."""

    partial: Stage
    merging: tuple[Stage, ...]


def gathers(stage: Stage) -> bool:
    """Whether a stage puts rows together, so that it must see all that belong together."""
    return isinstance(stage, GroupAggregate | Distinct) or (isinstance(stage, Core) and stage.query.distinct)


def split_stage(stage: Stage, at: int) -> Split:
    """Split a stage that gathers; the partial one will be stage number ``at``, and the merging ones follow it."""
    if not isinstance(stage, GroupAggregate):
        return Split(stage, (Core(reading(at, stage.columns, distinct=True)),))
    partials = _Partials(stage)
    return Split(replace(stage, aggregates=tuple(partials.columns)), tuple(partials.merging(at)))


def reading(
    stage: int,
    columns: tuple[OutputColumn, ...],
    *,
    distinct: bool = False,
    factors: tuple[Expression, ...] = (),
    components: tuple[str, ...] = (),
) -> ConjunctiveQuery:
    """The query that reads columns of a stage."""
    variables = {c.name: Variable(c.name, c.type, c.nullable) for c in columns}
    bindings = tuple((c.name, ColumnRef(c.name, c.type, c.nullable)) for c in columns)
    atom = Atom("partial", StageSource(stage), bindings, factors=factors)
    return ConjunctiveQuery("merged", tuple(variables), (atom,), variables, components, distinct)


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

    def merging(self, at: int) -> list[Stage]:
        """The stages that add up the partial rows of each group, which are stage number ``at``."""
        exact = [c for c in self.columns if c.type != DOUBLE]
        rounded = [OutputColumn(c.name, c.type, c.nullable) for c in self.columns if c.type == DOUBLE]
        factors = tuple(ColumnRef(c.name, c.type, c.nullable) for c in exact)
        components = tuple(c.name for c in exact)
        keys = self.groups.keys
        core = Core(reading(at, (*keys, *rounded), factors=factors, components=components))
        means = [a for a in self.groups.aggregates if a.function is Function.AVG and self._is_rounded(a)]
        aggregates = [self._merged(a) for a in self.groups.aggregates]
        counts = {a.name: Aggregate(self._count_of[a.name], Function.COUNT, BIGINT, False) for a in means}
        counts = {name: replace(count, count=count.name) for name, count in counts.items()}
        merged = GroupAggregate(at + 1, keys, (*aggregates, *dict.fromkeys(counts.values())))
        if not means:
            return [core, merged]
        expressions: list[tuple[str, Expression]] = [(k.name, _reference(k)) for k in keys]
        for column in self.groups.aggregates:
            here: Expression = ColumnRef(column.name, column.type, column.nullable)
            if column in means:
                here = _mean(here, ColumnRef(counts[column.name].name, BIGINT, nullable=False))
            expressions.append((column.name, here))
        return [core, merged, Map(at + 2, tuple(expressions))]

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
