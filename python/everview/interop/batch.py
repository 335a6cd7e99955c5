"""Batches of rows, however they come, as record batches in a table's column order.

Accepted: pyarrow tables, batches and readers, anything else with the Arrow PyCapsule interface (polars, DuckDB relations, ...), pandas
frames, lazy frames of polars, columns by name, and lists or other iterables of dicts or tuples. Values are converted only where nothing can be
lost and no meaning is guessed: integers among each other and into decimals and doubles as far as they fit, doubles to the nearest float, texts
among text types, dates and naive timestamps as UTC. Everything else is refused by column and row, all columns at once.
Texts and byte strings stay in the layout they come in (64-bit offsets, views, dictionaries): the kernel reads all of them, and a copy to
32-bit offsets would end at 2 GiB.

Nothing is taken on trust: arrays are validated (the kernel relies on texts being UTF-8), dates and timestamps are those of the years 1 to 9999,
and whatever a foreign library raises while it is read is a refusal of the batch.

What leaves this module has nullable fields only: NOT NULL is judged by the kernel, which names the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import ChangeError, cut, listed, shown
from everview.interop.chunks import combined
from everview.interop.pandas_frames import is_pandas, pandas_column, pandas_columns
from everview.interop.values import array_of, check_finite
from everview.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from everview.schema.table import Table

MULTIPLICITY = "_multiplicity"
CHANGE_TYPE = "_change_type"
_SPECIAL = {MULTIPLICITY: pa.int64(), CHANGE_TYPE: pa.string()}
_REFUSALS = (pa.ArrowException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

Column: TypeAlias = pa.Array | list[Any] | Exception
"""An array, values that are to become one, or why there is none."""


@dataclass
class _Given:
    """A batch as it was given: columns by name. ``first_rows`` has the first row with a column, where rows have their own."""

    names: list[Any]
    columns: list[Column]
    rows: int
    sparse: bool = False
    first_rows: dict[int, int] = field(default_factory=dict)


class _ColumnError(Exception):
    """What is wrong with a column."""

    def __init__(
        self, code: str, message: str, *, hint: str | None = None, row: int | None = None, column: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.row = row
        self.column = column

    def as_dict(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "row": self.row, "column": self.column}


class BatchReader:
    """Reads batches for one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._names = [c.name for c in table.columns]
        self._nullable = {c.name for c in table.columns if c.nullable}
        self._types = {c.name: arrow_type(c.type) for c in table.columns}
        self._schema = pa.schema(list(self._types.items()))
        self._sql_types = {c.name: str(c.type).upper() for c in table.columns} | {
            MULTIPLICITY: "BIGINT",
            CHANGE_TYPE: "STRING",
        }
        self._counted_schema = self._schema.append(pa.field(MULTIPLICITY, pa.int64()))
        self._column_of = {name.lower(): name for name in self._names} | {name: name for name in _SPECIAL}
        self._dated = [(i, c.name) for i, c in enumerate(table.columns) if c.type.is_datetime]
        self._in_place: pa.Schema | None = None

    def changes(self, data: Any) -> pa.RecordBatch:
        """Whole rows in the table's order, with ``_multiplicity`` or ``_change_type`` last where it is given."""
        if type(data) is pa.Table and len(parts := data.to_batches()) == 1:
            data = parts[0]
        if self._is_in_place(data):
            return data
        batch = self._changes(data)
        if isinstance(data, pa.RecordBatch) and _layout(data.schema) == _layout(batch.schema):
            self._in_place = data.schema
        return batch

    def _is_in_place(self, data: Any) -> bool:
        """Whether a batch is of the last schema that had all columns in their places and types, and its values are valid.

        Then it is taken as it is: streams of small batches come with one schema, and this costs a microsecond instead of twenty.
        """
        if self._in_place is None or type(data) is not pa.RecordBatch or not data.schema.equals(self._in_place):
            return False
        try:
            data.validate(full=True)
            for position, name in self._dated:
                self._in_calendar(data.column(position), name)
        except (pa.ArrowException, _ColumnError):
            return False  # what is wrong is told by whoever looks at one column after another
        return True

    def _changes(self, data: Any) -> pa.RecordBatch:
        given = self._given(data, self._names, sparse=True)
        special = [name for name in given.names if name in _SPECIAL]
        if len(set(special)) > 1:
            raise self._error(
                "AMBIGUOUS_CHANGE", f"the batch has both `{MULTIPLICITY}` and `{CHANGE_TYPE}`", hint="pass one of them"
            )
        return self._pick(given, self._names + special[:1])

    def rows(self, data: Any, *, sparse: bool = False) -> pa.RecordBatch:
        """Whole rows in the table's order. With ``sparse``, what a dict leaves out is NULL."""
        return self._pick(self._given(data, self._names, sparse=sparse), self._names)

    def deletes(self, data: Any) -> tuple[Literal["rows", "keys"], pa.RecordBatch]:
        """Whole rows with ``_multiplicity`` -1, or, where the data have just the primary key's columns, keys in the key's order."""
        key = list(self.table.primary_key)
        by_key = 0 < len(key) < len(self._names)
        data = _listed(data)
        width = _tuple_width(data) if by_key else None
        given = self._given(data, key if width == len(key) else self._names, sparse=False)
        if by_key and {str(name).lower() for name in given.names} == {name.lower() for name in key}:
            return "keys", self._pick(given, key)
        batch = self._pick(given, self._names)
        return "rows", batch.append_column(MULTIPLICITY, pa.repeat(pa.scalar(-1, pa.int64()), batch.num_rows))

    # ---- by name -------------------------------------------------------------------------------------------------

    def _pick(self, given: _Given, wanted: list[str]) -> pa.RecordBatch:
        """The wanted columns, by name whatever its case, converted to their types; all that is wrong with them is told at once."""
        if not given.names and not given.rows:
            return _empty(pa.schema([(name, self._type(name)) for name in wanted]))
        problems: list[_ColumnError] = []
        position: dict[str, int] = {}
        for i, name in enumerate(given.names):
            try:
                position[self._place(name, wanted, position, given.first_rows.get(i))] = i
            except _ColumnError as problem:
                problems.append(problem)
        arrays = []
        for name in wanted:
            try:
                arrays.append(self._wanted(given, name, position.get(name)))
            except _ColumnError as problem:
                problems.append(problem)
        if problems:
            raise self._refusal(problems)
        return pa.RecordBatch.from_arrays(arrays, names=wanted)

    def _place(self, given: Any, wanted: list[str], position: dict[str, int], row: int | None) -> str:
        name = (self._column_of.get(given) or self._column_of.get(given.lower())) if isinstance(given, str) else None
        written = cut(given) if isinstance(given, str) else shown(given)
        if name is None:
            raise _ColumnError("UNKNOWN_COLUMN", f"there is no column `{written}`", row=row, column=written)
        if name not in wanted:
            hint = "use apply()" if name in _SPECIAL else f"expected are {listed(wanted)}"
            raise _ColumnError("UNEXPECTED_COLUMN", f"column `{written}` has no place here", hint=hint, column=written)
        if name in position:
            message = f"the batch has the column `{name}` twice"
            raise _ColumnError("DUPLICATE_COLUMN", message, hint="pass it once", column=name)
        return name

    def _wanted(self, given: _Given, name: str, position: int | None) -> pa.Array:
        if position is not None:
            return self._convert(given.columns[position], self._type(name), name)
        if given.sparse and name in self._nullable:
            return pa.nulls(given.rows, self._types[name])
        raise _ColumnError("MISSING_COLUMN", f"the batch lacks the column `{name}`", column=name)

    def _type(self, name: str) -> pa.DataType:
        return _SPECIAL.get(name) or self._types[name]

    def _expected(self, name: Any) -> pa.DataType | None:
        """The type of the column that a name means, if it means one."""
        found = self._column_of.get(name.lower()) if isinstance(name, str) else None
        return None if found is None else self._type(found)

    # ---- conversion ----------------------------------------------------------------------------------------------

    def _convert(self, column: Column, expected: pa.DataType, name: str) -> pa.Array:
        if isinstance(column, _ColumnError):
            raise column
        if isinstance(column, Exception):
            message = f"column `{name}` cannot be read: {cut(str(column), 200)}"
            raise _ColumnError("WRONG_TYPE", message, hint=f"convert the column to {expected}", column=name)
        if isinstance(column, list):
            array = self._array(name, column, expected)
        else:
            array = self._cast_column(column, expected, name)
        return self._in_calendar(array, name)

    def _cast_column(self, array: pa.Array, expected: pa.DataType, name: str) -> pa.Array:
        try:
            array.validate(full=True)
        except pa.ArrowException as error:
            row = _first_bad_row(array, lambda part: part.validate(full=True))
            message = f"column `{name}` is {self._sql_types[name]} and got an invalid value"
            raise _ColumnError("WRONG_TYPE", message, hint=cut(str(error), 200), row=row, column=name) from None
        if array.type == expected or (name not in _SPECIAL and _is_layout_of(array.type, expected)):
            return array
        try:
            array = _decoded(array)
            convertible = _is_convertible(array.type, expected)
        except _REFUSALS:
            convertible = False
        if not convertible:
            message = f"column `{name}` is {self._sql_types[name]} and got {cut(str(array.type))}"
            raise _ColumnError("WRONG_TYPE", message, hint=f"convert the column to {expected}", column=name)
        try:
            return _cast(array, expected)
        except _REFUSALS as error:
            row = _first_bad_row(array, lambda part: _cast(part, expected))
            raise self._wrong_value(name, row, array[row], error) from None

    def _in_calendar(self, array: pa.Array, name: str) -> pa.Array:
        """Dates and timestamps of the years 1 to 9999: others cannot be told by a calendar, in Python or elsewhere."""
        unit = (
            "days" if pa.types.is_date32(array.type) else "microseconds" if pa.types.is_timestamp(array.type) else None
        )
        if unit is None or not len(array):
            return array
        first, last = _CALENDAR[unit]
        numbers = array.view(pa.int32() if unit == "days" else pa.int64())
        bounds = pc.min_max(numbers).as_py()
        if bounds["min"] is None or (bounds["min"] >= first and bounds["max"] <= last):
            return array
        row = pc.index(pc.or_(pc.less(numbers, first), pc.greater(numbers, last)), True).as_py()
        message = f"column `{name}` is {self._sql_types[name]} and got {numbers[row].as_py()} {unit} since 1970"
        hint = "dates and timestamps are those of the years 1 to 9999"
        raise _ColumnError("DATETIME_OVERFLOW", message, hint=hint, row=row, column=name)

    def _array(self, name: str, values: list[Any], expected: pa.DataType) -> pa.Array:
        try:
            return array_of(values, expected)
        except _REFUSALS as error:
            row = next((i for i, v in enumerate(values) if not _is_value(v, expected)), 0)
            raise self._wrong_value(name, row, values[row], error) from None

    def _wrong_value(self, name: str, row: int, value: Any, error: Exception) -> _ColumnError:
        kind = type(value).__name__
        if isinstance(value, pa.Scalar):
            try:
                value = value.as_py()
                kind = type(value).__name__
            except Exception:  # noqa: BLE001 not every scalar is a Python value
                kind = str(value.type)
        message = f"column `{name}` is {self._sql_types[name]} and got {shown(value)} ({kind})"
        return _ColumnError("WRONG_TYPE", message, hint=cut(str(error), 200), row=row, column=name)

    # ---- from what is given --------------------------------------------------------------------------------------

    def _given(self, data: Any, names: list[str], *, sparse: bool) -> _Given:
        data = _listed(data)
        if isinstance(data, list):
            return self._from_sequence(data, names, sparse=sparse)
        try:
            if is_pandas(data):
                return _Given(*pandas_columns(data, self._expected), rows=len(data))
            if isinstance(data, Mapping):
                return self._from_mapping(data, sparse=sparse)
            given = _from_arrow(data)
        except ChangeError:
            raise
        except Exception as error:
            message = f"cannot read the {type(data).__name__}: {cut(str(error), 200)}"
            raise self._error("WRONG_TYPE", message, hint=_FORMS) from error
        if given is not None:
            return given
        raise self._error("WRONG_TYPE", f"cannot read a batch from {type(data).__name__}", hint=_FORMS)

    def _from_mapping(self, data: Mapping[Any, Any], *, sparse: bool) -> _Given:
        columns = [_column_of(values, self._expected(name)) for name, values in data.items()]
        lengths = {shown(name): len(c) for name, c in zip(data, columns, strict=True) if not isinstance(c, Exception)}
        if len(set(lengths.values())) > 1:
            different = listed(f"{name} has {length}" for name, length in lengths.items())
            raise self._error(
                "WRONG_TYPE", f"columns of different lengths: {different}", hint="pass as many values of each"
            )
        return _Given(list(data), columns, next(iter(lengths.values()), 0), sparse=sparse)

    def _from_sequence(self, data: Sequence[Any], names: list[str], *, sparse: bool) -> _Given:
        if not data:
            return _Given([], [], 0)
        if type(data[0]) is not tuple and isinstance(data[0], Mapping):
            return self._from_dicts(data, sparse=sparse)
        width = len(names)
        for i, row in enumerate(data):
            if type(row) is not tuple and (not isinstance(row, Sequence) or isinstance(row, str | bytes)):
                raise self._error(
                    "WRONG_TYPE", f"a row is {type(row).__name__}", hint="rows are dicts or tuples, all alike", row=i
                )
            if len(row) != width:
                raise self._error("COLUMN_COUNT", f"a row has {len(row)} values, not {width}", row=i)
        return _Given(list(names), [[row[i] for row in data] for i in range(width)], len(data))

    def _from_dicts(self, data: Sequence[Any], *, sparse: bool) -> _Given:
        for i, row in enumerate(data):
            if not isinstance(row, Mapping):
                raise self._error(
                    "WRONG_TYPE", f"a row is {type(row).__name__}", hint="rows are dicts or tuples, all alike", row=i
                )
        names = list(dict.fromkeys(key for row in data for key in row))
        given = _Given(names, [], len(data), sparse=sparse)
        for at, key in enumerate(names):
            given.first_rows[at] = next(i for i, row in enumerate(data) if key in row)
            column: Column = [row.get(key) for row in data]
            if not sparse or key in _SPECIAL:
                absent = next((i for i, row in enumerate(data) if key not in row), None)
                if absent is not None:
                    message = f"the row lacks the column `{cut(str(key))}`"
                    column = _ColumnError("MISSING_COLUMN", message, row=absent, column=cut(str(key)))
            given.columns.append(column)
        return given

    # ---- refusals ------------------------------------------------------------------------------------------------

    def _refusal(self, problems: list[_ColumnError]) -> ChangeError:
        """One error for all that is wrong; it has the code of what was found first."""
        first = problems[0]
        if len(problems) == 1:
            column = {} if first.column is None else {"column": first.column}
            return self._error(first.code, first.message, hint=first.hint, row=first.row, **column)
        lines = [
            f"{'' if p.row is None else f'row {p.row}: '}{p.message} [{p.code}]" for p in problems[:_PROBLEMS_SHOWN]
        ]
        if len(problems) > _PROBLEMS_SHOWN:
            lines.append(f"and {len(problems) - _PROBLEMS_SHOWN} more")
        message = "\n  ".join([f"{len(problems)} columns do not fit", *lines])
        found: list[tuple[str, Any]] = [("row", first.row), ("column", first.column)]
        place: dict[str, Any] = {key: value for key, value in found if value is not None}
        return ChangeError(
            first.code,
            f"table `{self.table.name}`: {message}",
            hint=first.hint or f"the columns are {listed(self._names)}",
            table=self.table.name,
            problems=[problem.as_dict() for problem in problems],
            **place,
        )

    def _error(
        self, code: str, message: str, *, hint: str | None = None, row: int | None = None, **parameters: Any
    ) -> ChangeError:
        if hint is None:
            hint = f"the columns are {listed(self._names)}"
        where = f"table `{self.table.name}`"
        if row is not None:
            where += f", row {row}"
            parameters["row"] = row
        return ChangeError(code, f"{where}: {message}", hint=hint, table=self.table.name, **parameters)


_PROBLEMS_SHOWN = 20
_CALENDAR = {"days": (-719162, 2932896), "microseconds": (-62135596800000000, 253402300799999999)}


_FORMS = "pass an Arrow, pandas or polars table, columns by name, or a list of dicts or tuples"


def _listed(data: Any) -> Any:
    """Rows that come one by one, as a list; what they raise is their own."""
    if isinstance(data, list):
        return data
    known = isinstance(data, Mapping | str | bytes | bytearray | memoryview) or is_pandas(data)
    if known or any(hasattr(data, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "collect", "dtype")):
        return data
    return list(data) if isinstance(data, Iterable) else data


def _column_of(values: Any, expected: pa.DataType | None) -> Column:
    """A column that was given by itself."""
    if isinstance(values, pa.Array):
        return values
    try:
        if type(values).__module__.split(".")[0] == "pandas":
            return pandas_column(values, expected)
        if isinstance(values, pa.ChunkedArray):
            return combined(values)
        if hasattr(values, "__arrow_c_stream__"):
            return combined(pa.chunked_array(values))
        if hasattr(values, "__arrow_c_array__"):
            return pa.array(values)
        if hasattr(values, "dtype") and str(values.dtype) != "object":
            return pa.array(values)
        if isinstance(values, Iterable) and not isinstance(values, Mapping | str | bytes):
            return list(values)
    except Exception as error:  # noqa: BLE001 whatever a foreign library raises
        return error
    message = f"a column is a list of values, not {type(values).__name__}"
    return _ColumnError("WRONG_TYPE", message, hint="pass columns by name, or rows as a list of dicts")


def _from_arrow(data: Any) -> _Given | None:
    """The columns of a table of pyarrow, polars or the PyCapsule interface."""
    if type(data).__module__.split(".")[0] == "polars":
        if hasattr(data, "collect"):
            data = data.collect()
        if any(str(kind) == "Object" for kind in getattr(data, "dtypes", ())):
            raise TypeError("it has a column of Python objects")  # Arrow would get their addresses
    if not isinstance(data, pa.Table | pa.RecordBatch):
        if hasattr(data, "__arrow_c_stream__"):
            data = pa.table(data)
        elif hasattr(data, "__arrow_c_array__"):
            data = pa.record_batch(data)
        else:
            return None
    columns = data.columns if isinstance(data, pa.RecordBatch) else [combined(column) for column in data.columns]
    return _Given(data.schema.names, columns, data.num_rows)


def _layout(schema: pa.Schema) -> tuple[list[str], list[pa.DataType]]:
    return schema.names, schema.types


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _tuple_width(data: Any) -> int | None:
    if isinstance(data, Sequence) and data and isinstance(data[0], Sequence) and not isinstance(data[0], str | bytes):
        return len(data[0])
    return None


def _is_layout_of(given: pa.DataType, expected: pa.DataType) -> bool:
    """Whether a column holds texts or byte strings, as expected, in whatever layout."""
    types = pa.types
    values = given.value_type if types.is_dictionary(given) else given
    if types.is_string(expected):
        return bool(types.is_string(values) or types.is_large_string(values) or types.is_string_view(values))
    if types.is_binary(expected):
        large = types.is_large_binary(values) or types.is_binary_view(values)
        return bool(types.is_binary(values) or large or types.is_fixed_size_binary(values))
    return False


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
        aware_for_naive = types.is_timestamp(given) and given.tz is not None and expected.tz is None
        return bool(types.is_timestamp(given) or types.is_date(given)) and not aware_for_naive
    if types.is_date(expected):
        return bool(types.is_date(given))
    return False


def _cast(array: pa.Array, expected: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(expected) and pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))  # Arrow judges an integer by its type, a decimal by its value
    found = array.cast(expected)
    if pa.types.is_float32(expected) and pa.types.is_float64(array.type):
        check_finite(found, array)
    return found


def _decoded(array: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(array.type):
        return array
    if pa.types.is_string_view(array.type.value_type):  # for which Arrow has no `take`
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array.dictionary_decode()


def _is_value(value: Any, expected: pa.DataType) -> bool:
    try:
        array_of([value], expected)
    except _REFUSALS:
        return False
    return True


def _first_bad_row(array: pa.Array, check: Callable[[pa.Array], object]) -> int:
    """The first row that fails a check, by halving."""
    start, count = 0, len(array)
    while count > 1:
        half = count // 2
        try:
            check(array.slice(start, half))
        except _REFUSALS:
            count = half
        else:
            start, count = start + half, count - half
    return start
