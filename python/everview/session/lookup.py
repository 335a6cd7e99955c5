"""The arguments of a lookup, checked against what the view's tree supports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.errors import AccessPatternError, cut, listed, shown
from everview.interop.values import array_of
from everview.plan.view_lookup import view_lookups
from everview.schema.arrow import arrow_type
from everview.schema.datatype import DataType, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everview.plan.lower import PlannedView
    from everview.plan.view_lookup import Lookup


def lookup_arguments(
    planned: PlannedView, names: Sequence[str], values: Mapping[str, Any]
) -> tuple[list[int], pa.RecordBatch]:
    """The positions in the core's head and, as one row, the values to look for."""
    wanted = {name.lower(): value for name, value in values.items()}
    lookups = [lk for lk in view_lookups(planned) if lk.columns]
    chosen = next((lk for lk in lookups if {c.lower() for c in lk.columns} == wanted.keys()), None)
    if chosen is None:
        raise _refusal(planned.view.name, names, list(values), lookups)
    core = planned.plan.stages[0]
    variables = [v.name for v in core.variables]  # type: ignore[union-attr]
    head = [variables[v] for v in core.head]  # type: ignore[union-attr]
    arrays = []
    for column, variable in zip(chosen.columns, chosen.variables, strict=True):
        data_type = planned.cores[0].query.variables[variable].type
        try:
            arrays.append(array_of([_fit(wanted[column.lower()], data_type)], arrow_type(data_type)))
        except (pa.ArrowException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            value = shown(wanted[column.lower()])
            raise AccessPatternError(
                "WRONG_TYPE",
                f"view `{planned.view.name}`: column `{column}` is {str(data_type).upper()} and got {value}",
                hint=cut(str(error), 200),
            ) from None
    return [head.index(v) for v in chosen.variables], pa.RecordBatch.from_arrays(arrays, names=list(chosen.columns))


def _fit(value: Any, data_type: DataType) -> Any:
    """CHAR(n) compares padded, as in SQL."""
    return value.ljust(data_type.length) if data_type.kind is Kind.CHAR and isinstance(value, str) else value


def _refusal(view: str, names: Sequence[str], given: list[str], lookups: Sequence[Lookup]) -> AccessPatternError:
    known = {name.lower() for name in names}
    unknown = [name for name in given if name.lower() not in known]
    if not given:
        reason = "lookup() needs columns"
    elif unknown:
        reason = f"there is no column `{cut(unknown[0])}`"
    else:
        reason = f"there is no index on ({listed(given)})"
    choices = "; ".join("(" + ", ".join(lk.columns) + ")" for lk in lookups)
    hint = f"look up by one of: {choices}" if choices else "this view has no index; filter to_arrow() instead"
    return AccessPatternError(
        "NO_INDEX", f"view `{view}`: {reason}", hint=hint, supported=[lk.columns for lk in lookups]
    )
