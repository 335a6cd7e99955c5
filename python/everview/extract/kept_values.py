"""Warnings of values that are kept for every group, where they may be more than the tables have rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everview.aggregates import FUNCTIONS
from everview.query.logical_view import Core, Filter, GroupAggregate, Map, Stage


def warnings_of_values(stages: Sequence[Stage]) -> Iterator[str]:
    """A warning for every aggregate that keeps values over a join, unless one table has both them and the keys of the groups."""
    for stage in stages:
        if not isinstance(stage, GroupAggregate):
            continue
        names = dict.fromkeys(a.function.upper() for a in stage.aggregates if FUNCTIONS[a.function].keeps_values)
        below: Stage = stages[stage.input]
        while isinstance(below, Map | Filter):
            below = stages[below.input]
        if not names or not isinstance(below, Core) or len(below.query.result_atoms) < 2:
            continue
        query = below.query
        if any(set(query.head) <= set(atom.variables) for atom in query.atoms):
            continue
        listed = ", ".join(f"`{atom.name}`" for atom in query.result_atoms)
        yield (
            f"{' and '.join(names)} over the join of {listed} keeps the distinct values of every group in order, and no table has both values and "
            "keys: space and the work of a change follow the distinct pairs of group and value in the join's result"
        )
