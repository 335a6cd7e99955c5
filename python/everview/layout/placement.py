"""Where each stage of a view runs: in which fragment, and on which shard each of its rows stands.

What: stages are placed in their order. A core that reads tables alone is in the first fragment and has a grid of its own. A core that reads
stages runs beside them if their rows already stand where its grid would send them; otherwise (or if that would bring tables to one shard) it
begins the next fragment, and they are exchanged. Stages that treat each row alone run where their input is. One that puts rows together runs there too if all it puts together
stands on one shard; otherwise it is split, and its second half begins the next fragment. Rows that never change (VALUES) are on every shard, and
a core beside them joins them where its other atoms are; elsewhere those of the first shard count.
Representation: ``Placement`` has the stages with splits done: every exchange is an atom of a core that reads a stage of an earlier fragment.
A ``Spread`` names the columns whose hashes tell the shard of a row; None if the row does not tell.
Invariants: F1, a stage reads stages of its own fragment where they stand, or is a core; F2, the rows of a stage over all shards are those of
the stage without shards: none is on two, but those of a distinct core of which nobody minds duplicates; F3, the rows of a stage with an empty spread are on the first shard; other shards may hold rows of
it that do not count (a group without keys has a row even of nothing).
Cost: that of choosing the shares of each core; otherwise quadratic in the stages.
Source: own; shares as in CROWN, section 8. Few fragments rather than even load: each is a stateful hop, which costs tenths of a second per
micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from everview.aggregates.duplicates import minds_duplicates
from everview.analysis.normalise import merge_equal_atoms
from everview.layout.partials import gathers, reading, split_stage
from everview.layout.shares import Dimension, Shares, choose_shares, judge, spreading_variables
from everview.plan.output_key import group_key
from everview.query.conjunctive import Atom, ConjunctiveQuery, StageSource
from everview.query.expression import ColumnRef
from everview.query.logical_view import Core, GroupAggregate, LogicalView, Map, Stage, TopK, Union, Values, inputs_of


@dataclass(frozen=True, slots=True)
class Spread:
    """Per dimension of the grid the columns that are hashed, and the share."""

    dimensions: tuple[tuple[tuple[str, ...], int], ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(c for columns, _ in self.dimensions for c in columns)

    @property
    def is_one_place(self) -> bool:
        return not self.dimensions

    def renamed(self, names: Mapping[str, str]) -> Spread | None:
        """The same under other names; None if a column has none."""
        if not self.columns <= names.keys():
            return None
        return Spread(tuple((tuple(names[c] for c in columns), share) for columns, share in self.dimensions))


ONE_PLACE = Spread()


@dataclass(frozen=True, slots=True)
class Placed:
    """A stage, its inputs numbered as they are placed. ``shares``: how a core's atoms are spread."""

    stage: Stage
    fragment: int
    spread: Spread | None
    shares: Shares | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The stages of a view over so many shards; the last is the result."""

    stages: tuple[Placed, ...]
    shards: int

    @property
    def fragments(self) -> int:
        return max(p.fragment for p in self.stages) + 1


Heaviest = Mapping[int, Mapping[tuple[str, str], float]]
"""As in ``choose_shares``, by the number of the core."""


def place_view(
    view: LogicalView, shards: int, sizes: Mapping[str, float] | None = None, heaviest: Heaviest | None = None
) -> Placement:
    """Place the stages of a view over at most ``shards`` shards."""
    return _Placer(view, shards, sizes or {}, heaviest or {}).place()


class _Placer:
    def __init__(self, view: LogicalView, shards: int, sizes: Mapping[str, float], heaviest: Heaviest) -> None:
        smaller = (Core(merge_equal_atoms(s.query)) if isinstance(s, Core) else s for s in view.stages)
        self._logical = tuple(smaller)
        self._sizes = sizes
        self._heaviest = heaviest
        self._placed: list[Placed] = []
        self._at: list[int] = []  # per logical stage where it is placed
        self._chosen = {
            at: choose_shares(stage.query, shards, sizes, heaviest.get(at))
            for at, stage in enumerate(self._logical)
            if isinstance(stage, Core) and not inputs_of(stage)
        }
        self._shards = max((shares.shards for shares in self._chosen.values()), default=shards)

    def place(self) -> Placement:
        for at, stage in enumerate(self._logical):
            moved = _moved(stage, self._at.__getitem__)
            match moved:
                case Core():
                    self._core(at, moved)
                case Union():
                    self._union(at, moved)
                case Values():
                    self._add(moved, 0, ONE_PLACE)  # every shard has them; those of the first count
                case _:
                    self._above(at, moved)
            self._at.append(len(self._placed) - 1)
        return Placement(tuple(self._placed), self._shards)

    def _add(self, stage: Stage, fragment: int, spread: Spread | None, shares: Shares | None = None) -> None:
        self._placed.append(Placed(stage, fragment, spread, shares))

    # ---- cores -------------------------------------------------------------------------------------------------------

    def _core(self, at: int, stage: Core) -> None:
        query = stage.query
        below = [self._placed[i] for i in inputs_of(stage)]
        fragment = max((p.fragment for p in below), default=0)
        shares = self._chosen.get(at)
        constant = frozenset(a.name for a in query.atoms if fragment == 0 and self._is_constant(a))
        if all(a.name in constant for a in query.joined_atoms):
            constant = frozenset()
        beside = [a for a in query.atoms if self._fragment_of(a) == fragment and a.name not in constant]
        if constant and not beside:
            shares = choose_shares(query, self._shards, self._sizes, self._heaviest.get(at), constant)
        elif shares is None:
            grids = (self._grid_of(query, a) for a in beside)
            fitting = (g for g in grids if g is not None and all(self._stands(a, g) for a in beside))
            found = next(fitting, None)
            gathers_tables = found == () and self._shards > 1 and _reads_tables(query)
            if found is None or gathers_tables:
                fragment += 1
                shares = choose_shares(query, self._shards, self._sizes, self._heaviest.get(at))
            else:
                shares = judge(query, found, self._sizes, self._heaviest.get(at))
        spread = _spread_of(query, shares)
        if query.distinct and spread is None and minds_duplicates(self._logical, at):
            self._split(at, stage, fragment, shares)
        else:
            self._add(stage, fragment, spread, shares)

    def _is_constant(self, atom: Atom) -> bool:
        """Whether an atom reads rows that are the same on every shard."""
        if not isinstance(atom.source, StageSource):
            return False
        return self._is_made_of_values(self._placed[atom.source.stage].stage)

    def _is_made_of_values(self, stage: Stage) -> bool:
        below = [self._placed[i].stage for i in inputs_of(stage)]
        return isinstance(stage, Values) or (
            bool(below) and _reads_stages(stage) and all(map(self._is_made_of_values, below))
        )

    def _fragment_of(self, atom: Atom) -> int | None:
        return self._placed[atom.source.stage].fragment if isinstance(atom.source, StageSource) else None

    def _grid_of(self, query: ConjunctiveQuery, atom: Atom) -> tuple[Dimension, ...] | None:
        """The grid of a core on which the rows of an atom already stand."""
        assert isinstance(atom.source, StageSource)
        spread = self._placed[atom.source.stage].spread
        if spread is None:
            return None
        joined = {v for a in query.joined_atoms for v in a.variables}
        variable = {e.name: v for v, e in atom.bindings if isinstance(e, ColumnRef) and v in joined}
        grid = spread.renamed(variable)
        return None if grid is None else tuple(Dimension(variables, share) for variables, share in grid.dimensions)

    def _stands(self, atom: Atom, grid: tuple[Dimension, ...]) -> bool:
        """Whether the rows of an atom that reads a stage stand where the grid would send them."""
        assert isinstance(atom.source, StageSource)
        spread = self._placed[atom.source.stage].spread
        if spread is None or not all(d.spreads(atom) for d in grid):
            return False
        column = {v: e.name for v, e in atom.bindings if isinstance(e, ColumnRef)}
        return spread.dimensions == tuple((tuple(column.get(v, "") for v in d.variables), d.share) for d in grid)

    # ---- operators ---------------------------------------------------------------------------------------------------

    def _above(self, at: int, stage: Stage) -> None:
        (source,) = inputs_of(stage)
        below = self._placed[source]
        spread = None if below.spread is None else below.spread.renamed(_passed(stage, below.spread.columns))
        if spread is None and gathers(stage):
            self._split(at, stage, below.fragment, None)
        else:
            self._add(stage, below.fragment, spread)

    def _split(self, at: int, stage: Stage, fragment: int, shares: Shares | None) -> None:
        split = split_stage(stage, len(self._placed))
        self._add(split.partial, fragment, None, shares)
        keys = _together(stage)
        if isinstance(stage, GroupAggregate):
            below = self._placed[stage.input].stage
            if isinstance(below, Core):
                keys = group_key(below.query, keys)  # rows whose other keys change are one update: they must meet
        core, *others = split.merging
        assert isinstance(core, Core)
        self._exchange(core, fragment + 1, self._kept_together(at, keys))
        for other in others:
            (source,) = inputs_of(other)
            below_it = self._placed[source]
            assert below_it.spread is not None
            self._add(other, fragment + 1, below_it.spread.renamed(_passed(other, below_it.spread.columns)))

    def _exchange(self, core: Core, fragment: int, columns: tuple[str, ...]) -> None:
        """Add a core that only reads a stage, whose rows are sent by a hash of some columns."""
        query = core.query
        grid = (Dimension(columns, self._shards, query.atoms[0].name),) if columns and self._shards > 1 else ()
        shares = judge(query, grid)
        self._add(core, fragment, _spread_of(query, shares), shares)

    def _union(self, at: int, stage: Union) -> None:
        below = [self._placed[i] for i in stage.inputs]
        fragment = max(p.fragment for p in below)
        one_place = {p.spread == ONE_PLACE for p in below if p.fragment == fragment}
        if len(one_place) > 1:
            fragment, one_place = fragment + 1, {False}
        inputs = []
        for i, placed in zip(stage.inputs, below, strict=True):
            if placed.fragment < fragment:
                columns = placed.stage.columns
                together = () if True in one_place else self._kept_together(at, tuple(c.name for c in stage.columns))
                position = {c.name: n for n, c in enumerate(stage.columns)}
                wanted = tuple(columns[position[name]].name for name in together)
                self._exchange(Core(reading(i, columns)), fragment, wanted)
                inputs.append(len(self._placed) - 1)
            else:
                inputs.append(i)
        spreads = {self._renamed_by_position(i, stage) for i in inputs}
        spread = spreads.pop() if len(spreads) == 1 else None
        self._add(replace(stage, inputs=tuple(inputs)), fragment, spread)

    def _renamed_by_position(self, at: int, stage: Union) -> Spread | None:
        below = self._placed[at]
        names = {c.name: mine.name for c, mine in zip(below.stage.columns, stage.columns, strict=True)}
        return None if below.spread is None else below.spread.renamed(names)

    def _kept_together(self, at: int, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Of some columns of a logical stage those by which it is best spread: all that reads it then needs no further exchange.

        None of them if a later stage puts everything together: then it is done in one place, rather than exchanged once more.
        """
        carried = {c: c for c in columns}
        while True:
            readers = [i for i, s in enumerate(self._logical) if at in inputs_of(s)]
            if len(readers) != 1:
                return tuple(carried)
            stage = self._logical[readers[0]]
            if isinstance(stage, Union):
                return tuple(carried)
            if isinstance(stage, Core):
                joined = _joined_columns(stage.query, at)
                found = [c for c, name in carried.items() if name in joined]
                return (max(found, key=lambda c: joined[carried[c]]),) if found else tuple(carried)
            names = _passed(stage, frozenset(carried.values()))
            carried = {c: names[name] for c, name in carried.items() if name in names}
            at = readers[0]


def _passed(stage: Stage, columns: frozenset[str]) -> Mapping[str, str]:
    """Which columns of its input a stage passes on, and under which names."""
    match stage:
        case Map(expressions=expressions):
            return {e.name: name for name, e in reversed(expressions) if isinstance(e, ColumnRef)}
        case GroupAggregate() | TopK():
            return {name: name for name in _together(stage)}
        case _:
            return {c: c for c in columns}


def _together(stage: Stage) -> tuple[str, ...]:
    """Rows that agree on these columns are put together by a stage that gathers; without columns all are."""
    match stage:
        case GroupAggregate(keys=keys):
            return tuple(k.name for k in keys)
        case TopK():
            return stage.partition_names
        case _:
            return tuple(c.name for c in stage.columns)


def _joined_columns(query: ConjunctiveQuery, stage: int) -> dict[str, int]:
    """The columns of a stage by which a core can be spread together with other atoms, and with how many."""
    by = spreading_variables(query)
    found: dict[str, int] = {}
    for atom in query.atoms:
        if atom.source == StageSource(stage):
            mine = {e.name: v for v, e in atom.bindings if v in by and isinstance(e, ColumnRef)}
            found.update((name, len(query.occurrences[v])) for name, v in mine.items())
    return found


def _reads_tables(query: ConjunctiveQuery) -> bool:
    return any(not isinstance(a.source, StageSource) for a in query.atoms)


def _reads_stages(stage: Stage) -> bool:
    return not isinstance(stage, Core) or not _reads_tables(stage.query)


def _spread_of(query: ConjunctiveQuery, shares: Shares) -> Spread | None:
    """Where the results of a core stand."""
    if not shares.are_told_by(query.head):
        return None
    return Spread(tuple((d.variables, d.share) for d in shares.dimensions))


def _moved(stage: Stage, place: Callable[[int], int]) -> Stage:
    """A stage whose inputs are elsewhere."""
    match stage:
        case Core(query=query):
            return Core(replace(query, atoms=tuple(_moved_atoms(query, place))))
        case Union(inputs=inputs):
            return replace(stage, inputs=tuple(place(i) for i in inputs))
        case Values():
            return stage
        case _:
            return replace(stage, input=place(stage.input))


def _moved_atoms(query: ConjunctiveQuery, place: Callable[[int], int]) -> Iterator[Atom]:
    for atom in query.atoms:
        if isinstance(atom.source, StageSource):
            yield replace(atom, source=StageSource(place(atom.source.stage)))
        else:
            yield atom
