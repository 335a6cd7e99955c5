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
from everview.layout.placement import Placed, Placement
from everview.query.conjunctive import Atom, StageSource, TableSource, ViewSource
from everview.query.logical_view import Core, LogicalView, Stage, Union, inputs_of


def build_views(
    placement: Placement, fragment: int, feeds: Mapping[tuple[int, str], str], view: LogicalView
) -> Iterator[tuple[int, LogicalView]]:
    """The views of a fragment, each with the number of the stage that is its result."""
    owner = _owners(placement, fragment)
    for stage in sorted(set(owner.values())):
        last = stage == len(placement.stages) - 1
        name = view.name if last else _local_name(stage)
        members = [at for at, owned_by in owner.items() if owned_by == stage]
        yield stage, _view(name, view, placement.stages, sorted(members), owner, feeds)


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
        by = readers.get(at, [])
        owners = {owner.get(reader) for reader in by}  # None: a reader in another fragment
        only = owners.pop() if len(owners) == 1 else None
        owner[at] = at if only is None else only
    return owner


def _view(
    name: str,
    view: LogicalView,
    stages: tuple[Placed, ...],
    members: list[int],
    owner: Mapping[int, int],
    feeds: Mapping[tuple[int, str], str],
) -> LogicalView:
    built: list[Stage] = []
    position: dict[int, int] = {}

    def atom_of(at: int, atom: Atom) -> Atom:
        feed = feeds.get((at, atom.name))
        if feed is not None:
            return replace(atom, source=TableSource(feed))
        assert isinstance(atom.source, StageSource)
        stage = atom.source.stage
        here = StageSource(position[stage]) if stage in position else ViewSource(_local_name(owner[stage]))
        return replace(atom, source=here)

    def place(stage: int) -> int:
        if stage not in position:
            query = reading(stage, stages[stage].stage.columns)
            source = ViewSource(_local_name(owner[stage]))
            built.append(Core(replace(query, atoms=tuple(replace(a, source=source) for a in query.atoms))))
            position[stage] = len(built) - 1
        return position[stage]

    for at in members:
        stage = stages[at].stage
        match stage:
            case Core(query=query):
                built.append(Core(replace(query, atoms=tuple(atom_of(at, a) for a in query.atoms))))
            case Union(inputs=inputs):
                built.append(replace(stage, inputs=tuple(place(i) for i in inputs)))
            case _:
                built.append(replace(stage, input=place(stage.input)))
        position[at] = len(built) - 1
    warnings = view.warnings if name == view.name else ()
    return LogicalView(name, view.sql, tuple(built), warnings=warnings)
