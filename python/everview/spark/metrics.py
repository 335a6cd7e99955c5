"""What stages tell of their engines, in the progress of the streaming query (``observedMetrics``).

Per stage one observation named ``everview_<view>_<stage>``: totals over the engines, and state rows, state bytes and rows in of each, from which
the skew of the shares can be read. A query may have several views, if their names differ.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from everview.errors import PipelineError
from everview.spark.told import warnings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

PREFIX = "everview_"
_TOTALS = (
    "held",
    "rebuilt",
    "rows_in",
    "rows_out",
    "state_rows",
    "state_bytes",
    "bytes_written",
    "stale_rows",
    "bad_rows",
    "seconds",
)
_FACTS = "facts"
_EACH = ("rows_in", "rows_out", "state_rows", "state_bytes")


def observed(rows: DataFrame, view: str, stage: str, engines: int) -> DataFrame:
    """A stage's rows with its metrics in the query's progress."""
    columns = [f.count("engine").alias("engines")]
    columns.append(f.concat_ws("\n", f.collect_list(_FACTS)).alias(_FACTS))
    columns += [f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in _TOTALS]
    for at in range(engines):
        here = f.col("engine") == at
        columns += [f.coalesce(f.max(f.when(here, f.col(name))), f.lit(0)).alias(f"{name}_{at}") for name in _EACH]
    return rows.observe(f"{PREFIX}{view}_{stage}", *columns)


def read_metrics(progress: Mapping[str, Any], view: str | None = None) -> dict[str, dict[str, float]]:
    """The metrics of a progress, by stage; ``skew`` is the rows of the fullest engine over the mean.

    ``view``: the name that ``maintain`` was given, where a query has several views.
    """
    found = {}
    for stage, values in _observed(progress, view).items():
        counts = [v for k, v in values.items() if k.startswith("state_rows_")]
        skew = max(counts) * len(counts) / sum(counts) if counts and sum(counts) else 1.0
        found[stage] = {k: v for k, v in values.items() if k != _FACTS} | {"skew": skew}
    return found


def read_warnings(progress: Mapping[str, Any], view: str | None = None) -> list[str]:
    """What the stages of a view warn of in a progress, such as a column that no event has; ``view`` as in ``read_metrics``."""
    texts = [values.get(_FACTS) or "" for values in _observed(progress, view).values()]
    return [warning for text in texts for warning in warnings_of(map(json.loads, text.splitlines()))]


def _observed(progress: Mapping[str, Any], view: str | None) -> dict[str, dict[str, Any]]:
    """What was observed of a view, by stage, in the order in which rows pass them."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, row in (progress.get("observedMetrics") or {}).items():
        if name.startswith(PREFIX):
            of_view, stage = name.removeprefix(PREFIX).rsplit("_", 1)
            found.setdefault(of_view, {})[stage] = row if isinstance(row, dict) else row.asDict()
    stages = found.get(view or only_view(list(found)), {})
    return {stage: stages[stage] for stage in sorted(stages, key=_order)}


def _order(stage: str) -> tuple[bool, bool, int, str]:
    """Stages in the order in which rows pass them."""
    return stage != "normalise", stage != "shard", len(stage), stage


def only_view(names: list[str]) -> str:
    """The name of the view, where there is but one; an empty name where there is none."""
    if len(names) > 1:
        listed = ", ".join(sorted(names))
        raise PipelineError(
            "AMBIGUOUS_VIEW", f"the query has the views {listed}", hint=f"pass view={min(names)!r}, say"
        )
    return names[0] if names else ""
