"""INSERT, UPDATE and DELETE: what a statement reads becomes one batch, committed as ``apply`` would. Callers hold the session's lock."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.engine import ExpressionError, compute
from everview.errors import ChangeError, SchemaError
from everview.interop.batch import MULTIPLICITY
from everview.interop.literals import literal_of
from everview.query.expression import Literal, to_json
from everview.schema.arrow import arrow_type
from everview.session.commit import commit
from everview.session.query import read_once
from everview.sql.change import ChangeByQuery, InsertValues, bind_change, has_values
from everview.sql.parameters import give_parameters, give_rows, is_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everview.errors import Span
    from everview.schema.datatype import DataType
    from everview.schema.table import Table
    from everview.session.state import SessionState
    from everview.sql.statement import ChangeRows


@dataclass(frozen=True)
class Executed:
    """What a call of ``execute`` has changed.

    ``rows``: how many rows were inserted, updated or deleted. ``deltas``: by name of the view what ``apply`` returns, of several statements
    one after another.
    """

    rows: int = 0
    deltas: dict[str, pa.Table] = field(default_factory=dict)


def execute_change(
    state: SessionState, sql: str, change: ChangeRows, parameters: object, *, deltas: bool
) -> tuple[int, dict[str, pa.Table]]:
    """Run one statement as one commit: the number of rows concerned, and the deltas of views."""
    batch = _values(state, sql, change, parameters) if is_many(parameters) else _batch(state, sql, change, parameters)
    try:
        found = commit(state, [(batch.table.name, "changes", batch.rows)], deltas=deltas)
    except ChangeError as error:
        raise _in_statement(error, sql, change.span, batch.places) from None
    return batch.count, found


@dataclass(frozen=True)
class _Batch:
    """The changes of a statement: rows with multiplicities.

    ``places``: where in the text each is written; empty if they were read; None if they are those of parameters.
    """

    table: Table
    rows: pa.Table
    count: int
    places: Sequence[Span] | None = ()


def _batch(state: SessionState, sql: str, change: ChangeRows, parameters: object) -> _Batch:
    give_parameters(change.tree, sql, parameters, literal_of)
    bound = bind_change(change, sql, *state.schemas())
    if isinstance(bound, InsertValues):
        return _Batch(bound.table, _evaluated(sql, bound, _Given()), len(bound.rows), bound.spans)
    try:
        _, batches = read_once(state, sql, lambda *_: bound.query)
    except ChangeError as error:
        raise error.located(sql, change.span) from None
    return _changes(bound, batches)


def _values(state: SessionState, sql: str, change: ChangeRows, parameters: Any) -> _Batch:
    """INSERT ... VALUES for every row of the parameters, all in one batch: bound once, and evaluated column by column."""
    if not has_values(change):
        message = "rows of parameters are for INSERT ... VALUES"
        hint = "run the statement once for each row of them"
        raise SchemaError("PARAMETER_STYLE", message, hint=hint, sql=sql, span=change.span)
    columns = give_rows(change.tree, sql, parameters, literal_of)
    bound = bind_change(change, sql, *state.schemas())
    assert isinstance(bound, InsertValues)
    arrays = [_constants(values, column.type) for column, values in columns]
    given = _Given({column.name: i for i, (column, _) in enumerate(columns)}, arrays, len(parameters))
    return _Batch(bound.table, _evaluated(sql, bound, given), len(bound.rows) * given.rows, None)


def _changes(bound: ChangeByQuery, batches: list[pa.RecordBatch]) -> _Batch:
    """What was read as changes of rows: those that leave first, so that a window has room for those that come."""
    table = pa.Table.from_batches(batches)
    names = [*(column.name for column in bound.table.columns), MULTIPLICITY]
    count = pc.sum(pc.cast(table.columns[-1], pa.decimal128(38, 0))).as_py() or 0
    *columns, weights = table.columns
    width = len(bound.table.columns)
    old = columns[:width]
    gone = pa.table([*old, pc.negate(weights)], names=names)
    if bound.kind == "insert":
        return _Batch(bound.table, pa.table([*old, weights], names=names), int(count))
    if bound.kind == "delete":
        return _Batch(bound.table, gone, int(count))
    new = list(old)
    for position, column in zip(bound.assigned, columns[width:], strict=True):
        new[position] = column
    return _Batch(bound.table, pa.concat_tables([gone, pa.table([*new, weights], names=names)]), int(count))


def _in_statement(error: ChangeError, sql: str, span: Span, places: Sequence[Span] | None) -> ChangeError:
    """A refusal of a batch, pointing at the row or, where rows are not in the text, at the statement. Of what was read, rows have no number."""
    row = error.parameters.get("row")
    if row is None or places is None:
        return error.located(sql, span)
    if row < len(places):
        return error.located(sql, places[row])
    named = {name: value for name, value in error.parameters.items() if name != "row"}
    message = error.message.replace(f", row {row}:", ":", 1)
    return ChangeError(error.code, message, hint=error.hint, sql=sql, span=span, **named)


# ---- VALUES --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Given:
    """The parameters of several rows: where each is, and their columns. Without parameters there is one row."""

    places: dict[str, int] = field(default_factory=dict)
    columns: list[pa.Array] = field(default_factory=list)
    rows: int = 1

    def batch(self) -> pa.RecordBatch:
        columns = [*self.columns, pa.nulls(self.rows)]
        return pa.RecordBatch.from_arrays(columns, names=[*self.places, "_"])


def _evaluated(sql: str, bound: InsertValues, given: _Given) -> pa.Table:
    """The rows of VALUES, for each row of the parameters in turn."""
    batch, names = given.batch(), [column.name for column in bound.table.columns]
    if given.rows == 1 and not given.columns:  # rows of literals, in a text that may be long
        arrays = []
        for i, column in enumerate(bound.table.columns):
            values = [row[i] for row in bound.rows]
            if all(isinstance(value, Literal) for value in values):
                arrays.append(_constants([v.value for v in values if isinstance(v, Literal)], column.type))
            else:
                cells = [_cell(sql, bound, (row, i), given, batch) for row in range(len(values))]
                arrays.append(pa.concat_arrays(cells))
        return pa.table(arrays, names=names)
    parts = []
    for row in range(len(bound.rows)):
        cells = [_cell(sql, bound, (row, i), given, batch) for i in range(len(names))]
        parts.append(pa.table(cells, names=names))
    if len(parts) == 1:
        return parts[0]
    in_turn = [part * given.rows + row for row in range(given.rows) for part in range(len(parts))]
    return pa.concat_tables(parts).take(pa.array(in_turn, type=pa.int64()))


def _cell(sql: str, bound: InsertValues, place: tuple[int, int], given: _Given, batch: pa.RecordBatch) -> pa.Array:
    """A value of VALUES, for all rows of the parameters."""
    row, i = place
    value, column = bound.rows[row][i], bound.table.columns[i]
    if isinstance(value, Literal):
        return _constants([value.value] * given.rows, column.type)
    try:
        return compute(json.dumps(to_json(value, given.places)), batch).cast(arrow_type(column.type))
    except ExpressionError as error:
        which = None if not given.columns else error.row
        raise error.as_change_error(bound.table.name, which, column.name).located(sql, bound.places[row][i]) from None


def _constants(values: list[Any], data_type: DataType) -> pa.Array:
    """Values of literals as an array: dates are days and timestamps microseconds."""
    target = arrow_type(data_type)
    if data_type.is_datetime:
        whole = pa.int64() if data_type.is_timestamp else pa.int32()
        return pa.array(values, type=whole).cast(target)
    return pa.array(values, type=target)
