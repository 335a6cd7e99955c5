"""The logical view: a DAG of cores and finishing operators, in topological order.

Each stage names its input stages by position. A core reads tables and earlier stages (through its atoms); every other
stage reads the output of earlier ones. A stage may be read by several. The last stage is the view. Stages pass bags of rows; a row of a core also carries the
components of its query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from everview.query.conjunctive import ConjunctiveQuery, StageSource
from everview.query.expression import Expression
from everview.schema.datatype import DataType


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a stage's output."""

    name: str
    type: DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Core:
    """A select-project-join block. Its output columns are the head variables of ``query``."""

    query: ConjunctiveQuery

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        found = (self.query.variables[v] for v in self.query.head)
        return tuple(OutputColumn(v.name, v.type, v.nullable) for v in found)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a group. ``function`` is one of ``everview.aggregates``.

    Where the argument factors over the atoms, ``sum`` and ``count`` name the core's components that hold the sum of
    the argument and the number of its non-NULL values (None: the multiplicity). Otherwise ``argument`` is an
    expression over the input's columns and the operator itself accumulates it. ``argument_type`` is the type of the
    summed expression, ``type`` that of the result. ``second``: the other argument of a function of two.
    """

    name: str
    function: str
    type: DataType
    nullable: bool
    argument_type: DataType | None = None
    argument: Expression | None = None
    sum: str | None = None
    count: str | None = None
    second: Expression | None = None

    @property
    def arguments(self) -> tuple[Expression, ...]:
        return tuple(e for e in (self.argument, self.second) if e is not None)


@dataclass(frozen=True, slots=True)
class GroupAggregate:
    """Groups by the columns ``keys`` of the input; without keys there is always exactly one output row."""

    input: int
    keys: tuple[OutputColumn, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.keys + tuple(OutputColumn(a.name, a.type, a.nullable) for a in self.aggregates)


@dataclass(frozen=True, slots=True)
class Map:
    """Computes each output column from the input's columns."""

    input: int
    expressions: tuple[tuple[str, Expression], ...]

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return tuple(OutputColumn(n, e.type, e.nullable) for n, e in self.expressions)


@dataclass(frozen=True, slots=True)
class Filter:
    """Keeps the rows for which ``predicate`` is true."""

    input: int
    predicate: Expression
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    """Each row of the input once, whatever its multiplicity; keeps a count per row."""

    input: int
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all inputs."""

    inputs: tuple[int, ...]
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column by position, and how rows are ordered by it."""

    position: int
    descending: bool
    nulls_first: bool

    def text(self, names: Sequence[str]) -> str:
        """The key as it is written, for columns of these names; defaults are left out.

        >>> SortKey(0, descending=True, nulls_first=True).text(["n"])
        'n DESC NULLS FIRST'
        """
        way = " DESC" if self.descending else ""
        nulls = "" if self.nulls_first is not self.descending else f" NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        return f"{names[self.position]}{way}{nulls}"


@dataclass(frozen=True, slots=True)
class TopK:
    """The rows of the input after the first ``offset`` of an order, at most ``limit`` (None: all).

    Rows that ``order`` leaves equal are ordered by all their columns. Keeps the rows of its input, those outside, too.
    ``partition``: positions of the columns that part the rows; each part has an order and a limit of its own. ``numbered``: the last column
    is not one of the input, but the number of the row in its part.
    """

    input: int
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int
    columns: tuple[OutputColumn, ...]
    partition: tuple[int, ...] = ()
    numbered: bool = False

    @property
    def partition_names(self) -> tuple[str, ...]:
        return tuple(self.columns[i].name for i in self.partition)


@dataclass(frozen=True, slots=True)
class Repeat:
    """Each row of the input as often as ``count`` says; not at all where that is NULL or below 1."""

    input: int
    count: Expression
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Rows of constants, which never change."""

    rows: tuple[tuple[Expression, ...], ...]
    columns: tuple[OutputColumn, ...]


Stage = Core | GroupAggregate | Map | Filter | Distinct | Union | TopK | Repeat | Values


def inputs_of(stage: Stage) -> tuple[int, ...]:
    """The positions of the stages that a stage reads, each once."""
    match stage:
        case Core(query=query):
            return tuple(dict.fromkeys(a.source.stage for a in query.atoms if isinstance(a.source, StageSource)))
        case Union(inputs=inputs):
            return tuple(dict.fromkeys(inputs))
        case Values():
            return ()
        case _:
            return (stage.input,)


@dataclass(frozen=True, slots=True)
class LogicalView:
    """A view: its stages, the last of which is the result.

    ``order``: in which reads give the rows, where it is not that of a TopK on top; deltas have none. ``warnings``: what is less than a join tree could give.
    ``meaning``: a hash of what the query says, whatever its plan.
    """

    name: str
    sql: str
    stages: tuple[Stage, ...]
    order: tuple[SortKey, ...] = ()
    warnings: tuple[str, ...] = ()
    meaning: str = ""

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.stages[-1].columns

    @property
    def read_order(self) -> tuple[str, ...]:
        """What reads are ordered by, as text: ``order``, or what a TopK on top has, whose rows come in its order."""
        if self.order:
            return tuple(key.text([c.name for c in self.columns]) for key in self.order)
        last = self.stages[-1]
        while isinstance(last, Map):
            last = self.stages[last.input]
        if not isinstance(last, TopK) or last.partition:
            return ()
        return tuple(key.text([c.name for c in last.columns]) for key in last.order)

    @property
    def expressions(self) -> Iterator[Expression]:
        """All expressions of all stages."""
        for stage in self.stages:
            match stage:
                case Core(query=query):
                    for atom in query.atoms:
                        yield from (e for _, e in atom.bindings)
                        yield from (e for e in (atom.filter, *atom.factors) if e is not None)
                case GroupAggregate(aggregates=aggregates):
                    yield from (e for a in aggregates for e in a.arguments)
                case Map(expressions=expressions):
                    yield from (e for _, e in expressions)
                case Filter(predicate=predicate):
                    yield predicate
                case Repeat(count=count):
                    yield count
                case Values(rows=rows):
                    yield from (e for row in rows for e in row)
                case Distinct() | Union() | TopK():
                    pass
