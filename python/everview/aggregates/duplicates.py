"""Who minds how often a row is there."""

from __future__ import annotations

from collections.abc import Sequence

from everview.aggregates import FUNCTIONS
from everview.query.logical_view import Filter, GroupAggregate, Map, Stage, inputs_of


def minds_duplicates(stages: Sequence[Stage], at: int) -> bool:
    """Whether something that reads a stage gives another result if rows of it are there more often, or the stage is the last."""
    readers = [i for i, stage in enumerate(stages) if at in inputs_of(stage)]
    return not readers or any(_minds(stages, i) for i in readers)


def _minds(stages: Sequence[Stage], reader: int) -> bool:
    stage = stages[reader]
    if isinstance(stage, GroupAggregate):
        return any(FUNCTIONS[a.function].counts_duplicates for a in stage.aggregates)
    return not isinstance(stage, Map | Filter) or minds_duplicates(stages, reader)
