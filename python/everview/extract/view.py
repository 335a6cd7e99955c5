"""A relational plan to a logical view: join blocks become cores, what is left becomes operators.

``Extractor.rows`` adds the stages of a node, inputs first, and says which is the last of them. Shapes over a block, each
a function: a plain select (core, Map), DISTINCT (a distinct core, or core, Map, Distinct), grouping without aggregates (a
distinct core over the keys) and grouping with aggregates (core, GroupAggregate, Filter for HAVING, Map). A Map that would
change nothing is left out: the variables of the core then carry the output names. A leaf of a block that is no scan is
extracted first, and the core reads that stage. What stands above a stage without a join is operators alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everview.errors import cut
from everview.extract.attach import NotAttachableError, UnfitConditionError
from everview.extract.block import Leaf, block_of, is_block
from everview.extract.core_builder import CoreBuilder
from everview.extract.grouped import Above, extract_grouped
from everview.extract.kept_values import warnings_of_values
from everview.extract.partners import with_partners
from everview.extract.regrouped import extract_regrouped, over
from everview.query.conjunctive import StageSource
from everview.query.expression import ColumnRef, Expression, PlanColumn, conjunction
from everview.query.logical_view import (
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
)
from everview.query.logical_view import inputs_of as stages_below
from everview.query.names import unique_name
from everview.relational.canonical import canonical
from everview.relational.columns import new_ids
from everview.relational.plan import (
    Aggregate,
    Join,
    Node,
    Project,
    UnionAll,
    columns_read,
    expressions_of,
    inputs_of,
    with_inputs,
)
from everview.relational.plan import Distinct as DistinctRows
from everview.relational.plan import Filter as FilterRows
from everview.relational.plan import Repeat as RepeatRows
from everview.relational.plan import TopK as TopRows
from everview.relational.plan import Values as ValueRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from everview.extract.core_builder import Term
    from everview.relational.plan import Condition, Query

Item = tuple[str, Expression]


def extract_view(name: str, sql: str, query: Query) -> LogicalView:
    """The logical view of a query whose plan the rules have rewritten."""
    extractor = Extractor(name, sql, new_ids(query.node))
    extractor.rows(query.node, query.names)
    extractor.warn_of_kept_joins()
    extractor.warnings += warnings_of_values(extractor.stages)
    return LogicalView(name, sql, tuple(extractor.stages), query.order, tuple(extractor.warnings))


class Extractor:
    """Collects the ``stages`` of a view."""

    def __init__(self, name: str, sql: str, ids: Iterator[int]) -> None:
        self.stages: list[Stage] = []
        self.warnings: list[str] = []
        self._known: dict[Node, int] = {}  # the stages that cores read, by canonical plan: equal ones are one
        self._name = name
        self._sql = sql
        self._ids = ids

    def rows(self, node: Node, names: Sequence[str]) -> int:
        """Add stages for a node; the last of them, which is returned, has its columns under these names, in order."""
        match node:
            case Project(input=below):
                self._project(below, [(n, e) for n, (_, e) in zip(names, node.items, strict=True)])
            case DistinctRows(input=below):
                self._distinct(below, names)
            case UnionAll():
                self._union(node, names)
            case TopRows(input=below):
                self._top(node, self.rows(below, names[: len(below.columns)]), names)
            case ValueRows():
                columns = zip(names, node.columns, strict=True)
                self.stages.append(Values(node.rows, tuple(OutputColumn(n, c.type, c.nullable) for n, c in columns)))
            case RepeatRows(input=below):
                stage = self.rows(below, names)
                count = over(node.count, self._columns(below, stage))
                self.stages.append(Repeat(stage, count, self.stages[stage].columns))
            case _:
                self._project(node, list(zip(names, node.columns, strict=True)))
        return len(self.stages) - 1

    def warn_of_kept_joins(self) -> None:
        """Add a warning for every atom that reads the results of a join: they are its rows, which are kept."""
        for at, stage in enumerate(self.stages):
            for atom in stage.query.atoms if isinstance(stage, Core) else ():
                joined = joined_below(self.stages, atom.source.stage) if isinstance(atom.source, StageSource) else ()
                if joined:
                    names = ", ".join(f"`{name}`" for name in joined)
                    self.warnings.append(
                        f"stage {at} reads the join of {names} as a table, so its result is kept in the columns read: space and the work of a "
                        "change follow that result; no edge of a join tree takes it as it is written"
                    )

    def leaf(self, node: Node) -> Leaf:
        """A node as a stage that a core reads."""
        stage = self._stage(node)
        columns = self._columns(node, stage)
        path = getattr(node, "path", ()) or (type(node).__name__.lower(),)
        return Leaf(StageSource(stage), path, tuple(columns.items()), self._keys(node, columns))

    def _keys(self, node: Node, columns: Mapping[PlanColumn, ColumnRef]) -> tuple[frozenset[str], ...]:
        match node:
            case Aggregate(keys=keys):
                return (frozenset(columns[c].name for c, _ in keys),)
            case DistinctRows():
                return (frozenset(c.name for c in columns.values()),)
            case TopRows(limit=1):
                return (frozenset(columns[node.columns[i]].name for i in node.partition),)
            case TopRows(input=below):
                return self._keys(below, columns)
            case ValueRows(rows=(_,)):
                return (frozenset(),)
            case _:
                return ()

    def _stage(self, node: Node) -> int:
        """The stage of a node under names of its own, made if it is not there yet."""
        plan = canonical(node)
        if plan not in self._known:
            taken: set[str] = set()
            names = [unique_name(column.name or "column", taken) for column in node.columns]
            self._known[plan] = self.rows(node, names)
        return self._known[plan]

    def _columns(self, node: Node, stage: int) -> dict[PlanColumn, ColumnRef]:
        """The columns of a node in its stage."""
        named = zip(node.columns, self.stages[stage].columns, strict=True)
        return {column: ColumnRef(output.name, output.type, output.nullable) for column, output in named}

    def _block(self, node: Node) -> CoreBuilder:
        """The core of a block. Where a side of a join cannot be an edge as it is, it becomes a stage of its own, which can."""
        while True:
            try:
                return CoreBuilder(self._name, block_of(node, self.leaf))
            except NotAttachableError as error:
                node = _with_stage(node, error.join, error.side)
            except UnfitConditionError as error:
                node = with_partners(node, error.join, self._ids)

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def _project(self, below: Node, items: Sequence[Item]) -> None:
        if is_block(below):
            self._plain(self._block(below), items)
            return
        conditions, below = _split(below)
        if isinstance(below, Aggregate):
            self._group(below, Above(conditions, items))
        elif [e for _, e in items] == list(below.columns) and not conditions:
            self.rows(below, [n for n, _ in items])
        else:
            stage, columns = self._filtered(conditions, below)
            self.stages.append(Map(stage, tuple((n, over(e, columns)) for n, e in items)))

    def _group(self, node: Aggregate, above: Above) -> None:
        if not is_block(node.input):
            extract_regrouped(self.stages, *self._filtered(*_split(node.input)), node, above)
            return
        core = self._block(node.input)
        if core.unplaced:
            columns = self._checked(core, expressions_of(node))
            extract_regrouped(self.stages, len(self.stages) - 1, columns, node, above)
        else:
            extract_grouped(self.stages, core, node, above)

    def _checked(self, core: CoreBuilder, read: Iterable[Expression]) -> dict[PlanColumn, Expression]:
        """Add a core, and the conditions on its results that it cannot hold itself; the columns ``read``, in terms of it."""
        read = [*read, *(c.expression for c in core.unplaced)]
        self.warnings += [self._warning(core, c) for c in core.unplaced]
        core.request_columns(read)
        core.freeze({}, {})
        self.stages.append(Core(core.build()))
        columns = {column: core.reference(column) for e in read for column in columns_read(e)}
        predicate = conjunction([over(c.expression, columns) for c in core.unplaced])
        assert predicate is not None
        self.stages.append(Filter(len(self.stages) - 1, predicate, self.stages[-1].columns))
        return columns

    def _warning(self, core: CoreBuilder, condition: Condition) -> str:
        text = " ".join(self._sql[condition.span.start : condition.span.end].split())
        names = core.block.atoms_of(condition.expression)
        atoms = ", ".join(f"`{name}`" for name in names[:-1]) + f" and `{names[-1]}`"
        return (
            f"`{cut(text, 100)}` over {atoms} is no edge of a join tree: it is checked on every result of the join without it, so that a "
            "change costs as much as it changes there, and reading skips what does not pass"
        )

    def _filtered(self, conditions: Sequence[Condition], below: Node) -> tuple[int, Mapping[PlanColumn, Expression]]:
        """The stage of a node, filtered, and the node's columns in it."""
        stage = self._stage(below)
        columns = self._columns(below, stage)
        predicate = conjunction([over(c.expression, columns) for c in conditions])
        if predicate is None:
            return stage, columns
        self.stages.append(Filter(stage, predicate, self.stages[stage].columns))
        return len(self.stages) - 1, columns

    def _plain(self, core: CoreBuilder, items: Sequence[Item]) -> None:
        if core.unplaced:
            columns = self._checked(core, [e for _, e in items])
            self.stages.append(Map(len(self.stages) - 1, tuple((n, over(e, columns)) for n, e in items)))
            return
        if _is_bare(core, items):
            roots = [core.request(e) for _, e in items]
            if len(set(roots)) == len(roots):
                core.freeze({r: n for r, (n, _) in zip(roots, items, strict=True)}, {})
                self.stages.append(Core(core.build()))
                return
        core.request_columns(e for _, e in items)
        core.freeze({}, {})
        self.stages.append(Core(core.build()))
        self.stages.append(Map(len(self.stages) - 1, tuple((n, core.over_head(e)) for n, e in items)))

    def _distinct(self, below: Node, names: Sequence[str]) -> None:
        if isinstance(below, Project) and is_block(below.input):
            items = [(n, e) for n, (_, e) in zip(names, below.items, strict=True)]
            self._distinct_block(self._block(below.input), items)
        elif is_block(below):
            self._distinct_block(self._block(below), list(zip(names, below.columns, strict=True)))
        else:
            stage = self.rows(below, names)
            self.stages.append(Distinct(stage, self.stages[stage].columns))

    def _distinct_block(self, core: CoreBuilder, items: Sequence[Item]) -> None:
        if core.unplaced:
            self._plain(core, items)
            self.stages.append(Distinct(len(self.stages) - 1, self.stages[-1].columns))
            return
        if not all(core.can_bind(e) for _, e in items):
            core.request_columns(e for _, e in items)
            core.freeze({}, {})
            self.stages.append(Core(core.build(distinct=True)))
            mapped = Map(len(self.stages) - 1, tuple((n, core.over_head(e)) for n, e in items))
            self.stages.append(mapped)
            self.stages.append(Distinct(len(self.stages) - 1, mapped.columns))
            return
        preferred: dict[Term, str] = {}
        for name, expression in items:
            if columns_read(expression):
                preferred.setdefault(core.request(expression), name)
        core.freeze(preferred, {})
        query = Core(core.build(distinct=True))
        self.stages.append(query)
        expressions = tuple((n, core.reference(e) if columns_read(e) else e) for n, e in items)
        plain = all(isinstance(e, ColumnRef) and e.name == n for n, e in expressions)
        if not plain or len(expressions) != len(query.columns):
            self.stages.append(Map(len(self.stages) - 1, expressions))

    def _union(self, node: UnionAll, names: Sequence[str]) -> None:
        inputs = tuple(self.rows(below, names) for below in node.inputs)
        below = [self.stages[i].columns for i in inputs]
        columns = tuple(
            OutputColumn(name, column.type, any(c[at].nullable for c in below))
            for at, (name, column) in enumerate(zip(names, node.columns, strict=True))
        )
        self.stages.append(Union(inputs, columns))

    def _warn_of_numbers(self, node: TopRows) -> None:
        if node.limit is None:
            rows = "its partition" if node.partition else "the query"
            self.warnings.append(
                f"row_number() is shown for all rows: a row that comes or goes changes the number of every row behind it in {rows}, and "
                "each of these changes is part of the delta; with a condition on the number, as in QUALIFY ... <= 10, only those are kept up"
            )

    def _top(self, node: TopRows, below: int, names: Sequence[str]) -> None:
        columns = self.stages[below].columns
        if node.rank is not None:
            columns += (OutputColumn(names[-1], node.rank.type, node.rank.nullable),)
            self._warn_of_numbers(node)
        numbered = node.rank is not None
        self.stages.append(TopK(below, node.order, node.limit, node.offset, columns, node.partition, numbered))
        joined = joined_below(self.stages, below)
        if joined and node.limit != 0:
            atoms = ", ".join(f"`{name}`" for name in joined)
            self.warnings.append(
                f"LIMIT keeps the whole result of the join of {atoms}, in order, so that the next row comes in when one "
                "leaves: space and the work of a change follow the join's result; a LIMIT over groups keeps the groups alone"
            )


def joined_below(stages: Sequence[Stage], stage: int) -> tuple[str, ...]:
    """The atoms of the joins whose results, and not groups or distinct rows of them, reach a stage."""
    found = stages[stage]
    match found:
        case Core(query=query):
            atoms = tuple(atom.name for atom in query.result_atoms)
            return atoms if len(atoms) > 1 and not query.distinct else ()
        case GroupAggregate() | Distinct() | TopK() | Values():
            return ()
        case _:
            return tuple(dict.fromkeys(atom for below in stages_below(found) for atom in joined_below(stages, below)))


def _with_stage(node: Node, join: Join, side: str) -> Node:
    """The plan with one side of a join as a leaf."""
    if node is join:
        below = node.left if side == "left" else node.right
        leaf = Project(below, tuple((column, column) for column in below.columns))
        return replace(node, left=leaf) if side == "left" else replace(node, right=leaf)
    return with_inputs(node, tuple(_with_stage(below, join, side) for below in inputs_of(node)))


def _split(node: Node) -> tuple[tuple[Condition, ...], Node]:
    """The conditions on top of a node, and what they are on."""
    conditions: tuple[Condition, ...] = ()
    while isinstance(node, FilterRows):
        conditions, node = node.conditions + conditions, node.input
    return conditions, node


def _is_bare(core: CoreBuilder, items: Sequence[Item]) -> bool:
    """Whether the items are columns whose variables have their types."""
    return all(isinstance(e, PlanColumn) and not core.needs_cast(e) for _, e in items)
