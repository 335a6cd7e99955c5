"""Batches of rows, however they come, as record batches in a table's column order.

Accepted: pyarrow tables, batches and readers, anything else with the Arrow PyCapsule interface (polars, DuckDB relations, ...), pandas
frames, lists of dicts, lists of tuples. Values are converted only where nothing can be lost and no meaning is guessed: integers among each
other and into decimals and doubles as far as they fit, texts among text types, dates and naive timestamps as UTC. Everything else is refused
by column and row.

What leaves this module has nullable fields only: NOT NULL is judged by the kernel, which names the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from everview.errors import ChangeError
from everview.interop.values import array_of
from everview.schema.arrow import arrow_type

if TYPE_CHECKING:
    from everview.schema.table import Table

MULTIPLICITY = "_multiplicity"
CHANGE_TYPE = "_change_type"
_SPECIAL = {MULTIPLICITY: pa.int64(), CHANGE_TYPE: pa.string()}
_REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError)


class BatchReader:
    """Reads batches for one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._names = [c.name for c in table.columns]
        self._types = {c.name: arrow_type(c.type) for c in table.columns}
        self._schema = pa.schema(list(self._types.items()))
        self._sql_types = {c.name: str(c.type).upper() for c in table.columns} | {
            MULTIPLICITY: "BIGINT",
            CHANGE_TYPE: "STRING",
        }
        self._counted_schema = self._schema.append(pa.field(MULTIPLICITY, pa.int64()))
        self._column_of = {name.lower(): name for name in self._names} | {name: name for name in _SPECIAL}

    def changes(self, data: Any) -> pa.RecordBatch:
        """Whole rows in the table's order, with ``_multiplicity`` or ``_change_type`` last where it is given."""
        batch = self._record_batch(data, self._names, sparse=True)
        if batch.schema.equals(self._schema) or batch.schema.equals(self._counted_schema):
            return batch
        special = [name for name in batch.schema.names if name in _SPECIAL]
        if len(set(special)) > 1:
            raise self._error(
                "AMBIGUOUS_CHANGE", f"the batch has both `{MULTIPLICITY}` and `{CHANGE_TYPE}`", hint="pass one of them"
            )
        return self._pick(batch, self._names + special[:1])

    def rows(self, data: Any, *, sparse: bool = False) -> pa.RecordBatch:
        """Whole rows in the table's order. With ``sparse``, what a dict leaves out is NULL."""
        batch = self._record_batch(data, self._names, sparse=sparse)
        return batch if batch.schema.equals(self._schema) else self._pick(batch, self._names)

    def deletes(self, data: Any) -> tuple[Literal["rows", "keys"], pa.RecordBatch]:
        """Whole rows with ``_multiplicity`` -1, or, where the data have just the primary key's columns, keys in the key's order."""
        key = list(self.table.primary_key)
        by_key = 0 < len(key) < len(self._names)
        width = _tuple_width(data) if by_key else None
        batch = self._record_batch(data, key if width == len(key) else self._names, sparse=False)
        if by_key and {name.lower() for name in batch.schema.names} == {name.lower() for name in key}:
            return "keys", self._pick(batch, key)
        batch = self._pick(batch, self._names)
        return "rows", batch.append_column(MULTIPLICITY, pa.repeat(pa.scalar(-1, pa.int64()), batch.num_rows))

    # ---- by name -------------------------------------------------------------------------------------------------

    def _pick(self, batch: pa.RecordBatch, wanted: list[str]) -> pa.RecordBatch:
        """The wanted columns, by name whatever its case, converted to their types."""
        position: dict[str, int] = {}
        for i, given in enumerate(batch.schema.names):
            name = self._column_of.get(given) or self._column_of.get(given.lower())
            if name is None:
                raise self._error("UNKNOWN_COLUMN", f"there is no column `{given}`", column=given)
            if name not in wanted:
                hint = "use apply()" if name in _SPECIAL else f"expected are {', '.join(wanted)}"
                raise self._error("UNEXPECTED_COLUMN", f"column `{given}` has no place here", hint=hint, column=given)
            if name in position:
                raise self._error(
                    "DUPLICATE_COLUMN", f"the batch has the column `{name}` twice", hint="pass it once", column=name
                )
            position[name] = i
        missing = next((n for n in wanted if n not in position), None)
        if missing is not None:
            raise self._error("MISSING_COLUMN", f"the batch lacks the column `{missing}`", column=missing)
        types = [_SPECIAL.get(name) or self._types[name] for name in wanted]
        columns = [
            self._convert(batch.column(position[name]), kind, name) for name, kind in zip(wanted, types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(zip(wanted, types, strict=True))))

    def _convert(self, array: pa.Array, expected: pa.DataType, name: str) -> pa.Array:
        if array.type == expected:
            return array
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if not _is_convertible(array.type, expected):
            raise self._error(
                "WRONG_TYPE",
                f"column `{name}` is {self._sql_types[name]} and got {array.type}",
                hint=f"convert the column to {expected}",
                column=name,
            )
        try:
            return _cast(array, expected)
        except _REFUSALS as error:
            raise self._wrong_value(name, _first_bad_row(array, expected), array, error) from None

    # ---- as a record batch ---------------------------------------------------------------------------------------

    def _record_batch(self, data: Any, names: list[str], *, sparse: bool) -> pa.RecordBatch:
        if isinstance(data, pa.RecordBatch):
            return data
        if isinstance(data, list):
            return self._from_sequence(data, names, sparse=sparse)
        try:
            batch = _from_arrow(data)
        except _REFUSALS as error:
            raise self._error("WRONG_TYPE", f"cannot read the {type(data).__name__}: {error}", hint=_FORMS) from None
        if batch is not None:
            return batch
        if isinstance(data, Sequence) and not isinstance(data, str | bytes):
            return self._from_sequence(data, names, sparse=sparse)
        raise self._error("WRONG_TYPE", f"cannot read a batch from {type(data).__name__}", hint=_FORMS)

    def _from_sequence(self, data: Sequence[Any], names: list[str], *, sparse: bool) -> pa.RecordBatch:
        if not data:
            return _empty(pa.schema([(name, self._types[name]) for name in names]))
        if type(data[0]) is not tuple and isinstance(data[0], Mapping):
            return self._from_dicts(data, names, sparse=sparse)
        width = len(names)
        for i, row in enumerate(data):
            if type(row) is not tuple and (not isinstance(row, Sequence) or isinstance(row, str | bytes)):
                raise self._error(
                    "WRONG_TYPE", f"a row is {type(row).__name__}", hint="rows are dicts or tuples, all alike", row=i
                )
            if len(row) != width:
                raise self._error("COLUMN_COUNT", f"a row has {len(row)} values, not {width}", row=i)
        arrays = [self._array(name, [row[i] for row in data]) for i, name in enumerate(names)]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _from_dicts(self, data: Sequence[Any], names: list[str], *, sparse: bool) -> pa.RecordBatch:
        for i, row in enumerate(data):
            if not isinstance(row, Mapping):
                raise self._error(
                    "WRONG_TYPE", f"a row is {type(row).__name__}", hint="rows are dicts or tuples, all alike", row=i
                )
        given = list(dict.fromkeys(key for row in data for key in row))
        arrays = []
        for key in given:
            name = self._column_of.get(key) or self._column_of.get(key.lower()) if isinstance(key, str) else None
            row = next((i for i, row in enumerate(data) if key in row), 0)
            if name is None:
                raise self._error("UNKNOWN_COLUMN", f"there is no column `{key}`", row=row, column=str(key))
            if not sparse or name in _SPECIAL:
                absent = next((i for i, row in enumerate(data) if key not in row), None)
                if absent is not None:
                    raise self._error("MISSING_COLUMN", f"the row lacks the column `{name}`", row=absent, column=name)
            arrays.append(self._array(name, [row.get(key) for row in data]))
        if sparse:
            known = {key.lower() for key in given}
            left = [n for n in names if n.lower() not in known and self.table.columns[self._names.index(n)].nullable]
            arrays += [pa.nulls(len(data), self._types[name]) for name in left]
            given += left
        return pa.RecordBatch.from_arrays(arrays, names=given)

    def _array(self, name: str, values: list[Any]) -> pa.Array:
        expected = _SPECIAL.get(name) or self._types[name]
        try:
            return array_of(values, expected)
        except _REFUSALS as error:
            row = next((i for i, v in enumerate(values) if not _is_value(v, expected)), 0)
            raise self._wrong_value(name, row, values, error) from None

    # ---- refusals ------------------------------------------------------------------------------------------------

    def _wrong_value(self, name: str, row: int, values: Any, error: Exception) -> ChangeError:
        value = values[row].as_py() if isinstance(values, pa.Array) else values[row]
        message = f"column `{name}` is {self._sql_types[name]} and got {value!r} ({type(value).__name__})"
        return self._error("WRONG_TYPE", message, hint=str(error), row=row, column=name)

    def _error(
        self, code: str, message: str, *, hint: str | None = None, row: int | None = None, **parameters: Any
    ) -> ChangeError:
        if hint is None:
            hint = f"the columns are {', '.join(self._names)}"
        where = f"table `{self.table.name}`"
        if row is not None:
            where += f", row {row}"
            parameters["row"] = row
        return ChangeError(code, f"{where}: {message}", hint=hint, table=self.table.name, **parameters)


_FORMS = "pass an Arrow, pandas or polars table, or a list of dicts or tuples"


def _from_arrow(data: Any) -> pa.RecordBatch | None:
    """The rows of a table of pyarrow, pandas or the PyCapsule interface."""
    if isinstance(data, pa.Table):
        return _one_batch(data)
    if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
        return _one_batch(pa.Table.from_pandas(data, preserve_index=False))  # its own capsule would add the index
    if hasattr(data, "__arrow_c_stream__"):
        return _one_batch(pa.table(data))
    if hasattr(data, "__arrow_c_array__"):
        return pa.record_batch(data)
    return None


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if not batches:
        return _empty(table.schema)
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], type=field.type) for field in schema], schema=schema)


def _tuple_width(data: Any) -> int | None:
    if isinstance(data, Sequence) and data and isinstance(data[0], Sequence) and not isinstance(data[0], str | bytes):
        return len(data[0])
    return None


def _is_convertible(given: pa.DataType, expected: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(given):
        return True
    if types.is_integer(expected):
        return bool(types.is_integer(given))
    if types.is_floating(expected):
        return bool(types.is_integer(given) or types.is_floating(given))
    if types.is_decimal(expected):
        return bool(types.is_integer(given) or types.is_decimal(given))
    if types.is_string(expected):
        return bool(types.is_string(given) or types.is_large_string(given) or types.is_string_view(given))
    if types.is_timestamp(expected):
        return bool(types.is_timestamp(given) or types.is_date(given))
    if types.is_date(expected):
        return bool(types.is_date(given))
    return False


def _cast(array: pa.Array, expected: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(expected) and pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))  # Arrow judges an integer by its type, a decimal by its value
    return array.cast(expected)


def _is_value(value: Any, expected: pa.DataType) -> bool:
    try:
        array_of([value], expected)
    except _REFUSALS:
        return False
    return True


def _first_bad_row(array: pa.Array, expected: pa.DataType) -> int:
    """The first row that does not cast, by halving."""
    start, count = 0, len(array)
    while count > 1:
        half = count // 2
        try:
            _cast(array.slice(start, half), expected)
        except _REFUSALS:
            count = half
        else:
            start, count = start + half, count - half
    return start
