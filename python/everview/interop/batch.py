"""Batches of rows, however they come, as record batches in a table's column order.

Accepted: anything with the Arrow PyCapsule interface (pyarrow, polars, pandas 2.2+, DuckDB relations, ...), other pandas frames, lists of
dicts, lists of tuples. Values are converted only where nothing can be lost and no meaning is guessed: integers among each other and
into decimals and doubles as far as they fit, texts among text types, naive timestamps as UTC. Everything else is refused by column
and row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.errors import ChangeError
from everview.schema.arrow import arrow_schema

if TYPE_CHECKING:
    from everview.schema.table import Table

MULTIPLICITY = "_multiplicity"
CHANGE_TYPE = "_change_type"
_SPECIAL = {MULTIPLICITY: pa.int64(), CHANGE_TYPE: pa.string()}


class BatchReader:
    """Reads batches for one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.schema = arrow_schema(table)
        self._names = self.schema.names
        self._types = self.schema.types
        self._nulls = [None] * len(self._names)

    def rows(self, data: Any) -> pa.RecordBatch:
        """Whole rows in the table's order, with ``_multiplicity`` or ``_change_type`` last where it is given."""
        batch = self._record_batch(data, self._names)
        names = batch.schema.names
        if names == self._names and batch.schema.types == self._types:
            return batch
        special = [name for name in names if name in _SPECIAL]
        if len(special) > 1:
            raise ChangeError(
                "AMBIGUOUS_CHANGE",
                f"a batch for table `{self.table.name}` has both `{MULTIPLICITY}` and `{CHANGE_TYPE}`",
                hint="pass one of them",
                table=self.table.name,
            )
        return self._pick(batch, self._names + special)

    def keys(self, data: Any) -> pa.RecordBatch:
        """Primary keys, in the key's order."""
        key = list(self.table.primary_key)
        return self._pick(self._record_batch(data, key), key)

    def is_key_only(self, data: Any) -> bool:
        """Whether the data name just the primary key's columns."""
        key = {name.lower() for name in self.table.primary_key}
        if not key or len(key) == len(self._names):
            return False
        names = _names_of(data)
        if names is None:
            width = _tuple_width(data)
            return width is not None and width == len(key)
        return {name.lower() for name in names} == key

    def _pick(self, batch: pa.RecordBatch, wanted: list[str]) -> pa.RecordBatch:
        """The wanted columns, by name whatever its case, converted to their types."""
        position = {name.lower(): i for i, name in enumerate(batch.schema.names)}
        unknown = [n for n in batch.schema.names if n.lower() not in {w.lower() for w in wanted}]
        if unknown:
            raise self._error("UNKNOWN_COLUMN", f"table `{self.table.name}` has no column `{unknown[0]}`")
        missing = [n for n in wanted if n.lower() not in position]
        if missing:
            raise self._error("MISSING_COLUMN", f"the batch for table `{self.table.name}` lacks the column `{missing[0]}`")
        columns, fields = [], []
        for name in wanted:
            expected = _SPECIAL.get(name) or self.schema.field(name).type
            columns.append(self._convert(batch.column(position[name.lower()]), expected, name))
            fields.append(pa.field(name, expected))
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _convert(self, array: pa.Array, expected: pa.DataType, name: str) -> pa.Array:
        if array.type == expected:
            return array
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if not _is_convertible(array.type, expected):
            raise self._error(
                "WRONG_TYPE", f"column `{name}` of table `{self.table.name}` is {expected} and got {array.type}", column=name
            )
        try:
            return array.cast(expected)
        except pa.ArrowInvalid as error:
            row = _first_bad_row(array, expected)
            raise self._error(
                "WRONG_TYPE",
                f"row {row}: column `{name}` of table `{self.table.name}` is {expected} and got {array[row].as_py()!r}: {error}",
                row=row,
                column=name,
            ) from None

    def _record_batch(self, data: Any, names: list[str]) -> pa.RecordBatch:
        if isinstance(data, pa.RecordBatch):
            return data
        if isinstance(data, pa.Table):
            return _one_batch(data)
        if hasattr(data, "__arrow_c_stream__"):
            return _one_batch(pa.table(data))
        if hasattr(data, "__arrow_c_array__"):
            return pa.record_batch(data)
        if type(data).__module__.split(".")[0] == "pandas":
            return _one_batch(pa.Table.from_pandas(data, preserve_index=False))
        if isinstance(data, Sequence) and not isinstance(data, str | bytes):
            return self._from_sequence(data, names)
        raise self._error(
            "WRONG_TYPE",
            f"cannot read a batch for table `{self.table.name}` from {type(data).__name__}",
            hint="pass an Arrow, pandas or polars table, or a list of dicts or tuples",
        )

    def _from_sequence(self, data: Sequence[Any], names: list[str]) -> pa.RecordBatch:
        if not data:
            return pa.RecordBatch.from_pylist([], schema=pa.schema([self.schema.field(n) for n in names]))
        if isinstance(data[0], Mapping):
            given = list(dict.fromkeys(key for row in data for key in row))
            known = {n.lower() for n in given}
            given += [n for n in names if n.lower() not in known and self.schema.field(n).nullable]
            return self._from_columns({name: [row.get(name) for row in data] for name in given})
        if not isinstance(data[0], Sequence) or isinstance(data[0], str | bytes):
            raise self._error(
                "WRONG_TYPE",
                f"row 0 of the batch for table `{self.table.name}` is {type(data[0]).__name__}",
                hint="rows are dicts or tuples",
                row=0,
            )
        for i, row in enumerate(data):
            if len(row) != len(names):
                raise self._error(
                    "COLUMN_COUNT", f"row {i} for table `{self.table.name}` has {len(row)} values, not {len(names)}", row=i
                )
        return self._from_columns({name: [row[i] for row in data] for i, name in enumerate(names)})

    def _from_columns(self, columns: dict[str, list[Any]]) -> pa.RecordBatch:
        arrays = []
        for name, values in columns.items():
            column = self.table.find(name)
            expected = _SPECIAL.get(name) or (None if column is None else self.schema.field(column.name).type)
            arrays.append(self._from_values(name, values, expected))
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _from_values(self, name: str, values: list[Any], expected: pa.DataType | None) -> pa.Array:
        try:
            array = pa.array(values, type=expected)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError) as error:
            row = next((i for i, v in enumerate(values) if not _fits(v, expected)), 0)
            raise self._error(
                "WRONG_TYPE",
                f"row {row}: column `{name}` of table `{self.table.name}` is {expected} and got {values[row]!r}: {error}",
                row=row,
                column=name,
            ) from None
        if expected is not None and not pa.types.is_boolean(expected):
            row = next((i for i, v in enumerate(values) if isinstance(v, bool)), -1)
            if row >= 0:
                raise self._error(
                    "WRONG_TYPE",
                    f"row {row}: column `{name}` of table `{self.table.name}` is {expected} and got {values[row]!r}",
                    row=row,
                    column=name,
                )
        return array

    def _error(self, code: str, message: str, *, hint: str | None = None, **parameters: Any) -> ChangeError:
        if hint is None and code in ("UNKNOWN_COLUMN", "MISSING_COLUMN", "COLUMN_COUNT"):
            hint = f"the columns are {', '.join(self._names)}"
        return ChangeError(code, message, hint=hint, table=self.table.name, **parameters)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=table.schema)
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _names_of(data: Any) -> list[str] | None:
    """The column names of a batch, where it has them."""
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return [str(k) for k in data[0]] if data and isinstance(data[0], Mapping) else None
    schema = getattr(data, "schema", None)
    names = getattr(schema, "names", None)
    if callable(names):
        names = names()
    if names is None:
        names = getattr(data, "columns", None)
    return None if names is None else [str(n) for n in names]


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


def _fits(value: Any, expected: pa.DataType | None) -> bool:
    try:
        pa.array([value], type=expected)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError):
        return False
    return True


def _first_bad_row(array: pa.Array, expected: pa.DataType) -> int:
    for row in range(len(array)):
        try:
            array.slice(row, 1).cast(expected)
        except pa.ArrowInvalid:
            return row
    return 0
