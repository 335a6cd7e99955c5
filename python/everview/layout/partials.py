"""A stage that puts rows together, in two steps: what every shard makes of its part, and what is made of all parts together.

What: a group's sums are sums of partial sums, distinct rows are the distinct ones among those of the parts, and the first rows are among the
first of the parts. Partial sums are exact
(128 bits as DECIMAL(38, s)), except sums of doubles, which are rounded once per shard. The least value is the least of the parts' least ones.
Representation: the stage itself with partial columns, and the stages that read it, the first of which is a core.
Invariants: P1, the merging stages give on the union of the partial results what the stage gives on the union of its inputs; P2, partial
results of different shards are different rows or add up.
Cost: linear in the stage.
Source: own; the design is in ARCHITECTURE.md, "Shards".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from everview.aggregates import FUNCTIONS
from everview.query.conjunctive import Atom, ConjunctiveQuery, StageSource, Variable
from everview.query.expression import ColumnRef, Expression
from everview.query.logical_view import Aggregate, Core, Distinct, GroupAggregate, Map, OutputColumn, Stage, TopK
from everview.query.names import unique_name
from everview.schema.datatype import DOUBLE


@dataclass(frozen=True, slots=True)
class Split:
    """``partial`` reads what the stage reads. ``merging``: the core that reads it, and what stands above."""

    partial: Stage
    merging: tuple[Stage, ...]


def gathers(stage: Stage) -> bool:
    """Whether a stage puts rows together, so that it must see all that belong together."""
    return isinstance(stage, GroupAggregate | Distinct | TopK) or (isinstance(stage, Core) and stage.query.distinct)


def split_stage(stage: Stage, at: int) -> Split:
    """Split a stage that gathers; the partial one will be stage number ``at``, and the merging ones follow it."""
    if isinstance(stage, TopK):
        columns = stage.columns[:-1] if stage.numbered else stage.columns
        first: Stage = Map(stage.input, tuple((c.name, ColumnRef(c.name, c.type, c.nullable)) for c in columns))
        if stage.limit is not None:
            most = stage.limit + stage.offset
            first = replace(stage, limit=most, offset=0, columns=columns, numbered=False)
        return Split(first, (Core(reading(at, columns)), replace(stage, input=at + 1)))
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


def _adds_up(partial: Aggregate) -> bool:
    """Whether a partial is an exact number, so that sums of it are components of what reads it."""
    return partial.type != DOUBLE and not FUNCTIONS[partial.function].kept


class _Partials:
    """The partial columns of a group aggregate, and how they are put together again."""

    def __init__(self, groups: GroupAggregate) -> None:
        self.groups = groups
        self.columns: list[Aggregate] = []
        self._taken = {c.name.lower() for c in groups.columns}
        self._columns_of = {
            a.name: [self._column(wanted) for wanted in FUNCTIONS[a.function].partials(a)] for a in groups.aggregates
        }

    def _column(self, wanted: Aggregate) -> ColumnRef:
        """The partial column that holds this; equal ones are shared."""
        same = next((c for c in self.columns if replace(c, name="") == replace(wanted, name="")), None)
        if same is None:
            same = replace(wanted, name=unique_name(f"partial_{len(self.columns)}", self._taken))
            self.columns.append(same)
        return ColumnRef(same.name, same.type, same.nullable)

    def merging(self, at: int) -> list[Stage]:
        """The stages that add up the partial rows of each group, which are stage number ``at``."""
        exact = [c for c in self.columns if _adds_up(c)]
        read = [OutputColumn(c.name, c.type, c.nullable) for c in self.columns if not _adds_up(c)]
        factors = tuple(ColumnRef(c.name, c.type, c.nullable) for c in exact)
        components = tuple(c.name for c in exact)
        keys = self.groups.keys
        core = Core(reading(at, (*keys, *read), factors=factors, components=components))
        aggregates: list[Aggregate] = []
        values: list[tuple[str, Expression]] = [(k.name, ColumnRef(k.name, k.type, k.nullable)) for k in keys]
        for aggregate in self.groups.aggregates:
            merged = FUNCTIONS[aggregate.function].merged(aggregate, self._columns_of[aggregate.name])
            names = [aggregate.name, *(unique_name("merged", self._taken) for _ in merged.aggregates[1:])]
            aggregates += [replace(a, name=name) for a, name in zip(merged.aggregates, names, strict=True)]
            parts = [ColumnRef(a.name, a.type, a.nullable) for a in aggregates[-len(names) :]]
            values.append((aggregate.name, parts[0] if merged.value is None else merged.value(parts)))
        groups = GroupAggregate(at + 1, keys, tuple(aggregates))
        if len(groups.columns) == len(values):
            return [core, groups]
        return [core, groups, Map(at + 2, tuple(values))]
