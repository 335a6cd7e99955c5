"""The stages of one fragment as views of one engine.

What: what leaves a fragment is a view, and so is what several of these read; every other stage belongs to the view that reads it. A stage
that reads what another view holds, or what another fragment sent, reads it through a core.
Representation: logical views over feeds and over each other, in an order in which each reads earlier ones.
Cost: linear in the stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from everview.layout.partials import reading
from everview.layout.placement import Placement
from everview.query.conjunctive import Atom, StageSource, TableSource, ViewSource
from everview.query.logical_view import Core, LogicalView, Stage, Union, Values, inputs_of


def build_views(
    placement: Placement, fragment: int, feeds: Mapping[tuple[int, str], str], view: LogicalView
) -> Iterator[tuple[int, LogicalView]]:
    """The views of a fragment, each with the number of the stage that is its result. ``feeds``: the feed of a core's atom."""
    owner = _owners(placement, fragment)
    for stage in sorted(set(owner.values())):
        builder = _Builder(placement, owner, feeds)
        for member in sorted(at for at, owned_by in owner.items() if owned_by == stage):
            builder.add(member)
        if stage == len(placement.stages) - 1:
            yield stage, replace(view, stages=tuple(builder.built))
        else:
            yield stage, LogicalView(_local_name(stage), view.sql, tuple(builder.built))


def _local_name(stage: int) -> str:
    return f"_stage_{stage}"


def _owners(placement: Placement, fragment: int) -> dict[int, int]:
    """For each stage of the fragment the stage whose view it belongs to."""
    stages = placement.stages
    readers: dict[int, list[int]] = {}
    for at, placed in enumerate(stages):
        for source in inputs_of(placed.stage):
            readers.setdefault(source, []).append(at)
    owner: dict[int, int] = {}
    for at in reversed(range(len(stages))):
        if stages[at].fragment != fragment:
            continue
        owners = {owner.get(reader) for reader in readers.get(at, [])}  # None: a reader in another fragment
        only = owners.pop() if len(owners) == 1 else None
        owner[at] = at if only is None else only
    return owner


class _Builder:
    """Collects the stages of one view in ``built``."""

    def __init__(self, placement: Placement, owner: Mapping[int, int], feeds: Mapping[tuple[int, str], str]) -> None:
        self.built: list[Stage] = []
        self._position: dict[int, int] = {}
        self._stages = placement.stages
        self._owner = owner
        self._feeds = feeds

    def add(self, at: int) -> None:
        """Add a stage of the placement; those it reads are added before."""
        stage = self._stages[at].stage
        match stage:
            case Core(query=query):
                stage = Core(replace(query, atoms=tuple(self._atom(at, a) for a in query.atoms)))
            case Union(inputs=inputs):
                stage = replace(stage, inputs=tuple(self._place(i) for i in inputs))
            case Values():
                pass
            case _:
                stage = replace(stage, input=self._place(stage.input))
        self.built.append(stage)
        self._position[at] = len(self.built) - 1

    def _atom(self, at: int, atom: Atom) -> Atom:
        feed = self._feeds.get((at, atom.name))
        if feed is not None:
            return replace(atom, source=TableSource(feed))
        assert isinstance(atom.source, StageSource)
        return replace(atom, source=self._source(atom.source.stage))

    def _source(self, stage: int) -> StageSource | ViewSource:
        """A stage of this fragment as an atom reads it: of this view, or another view's result."""
        if stage in self._position:
            return StageSource(self._position[stage])
        return ViewSource(_local_name(self._owner[stage]))

    def _place(self, stage: int) -> int:
        """The position of a stage; the result of another view is read through a core."""
        if stage not in self._position:
            query = reading(stage, self._stages[stage].stage.columns)
            self.built.append(
                Core(replace(query, atoms=tuple(replace(a, source=self._source(stage)) for a in query.atoms)))
            )
            self._position[stage] = len(self.built) - 1
        return self._position[stage]
