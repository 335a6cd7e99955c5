"""The engine as the rest of the package sees it: the only module that imports the native kernel.

It turns the kernel's refusals into everview's errors, with a way out for each, and nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from everview._kernel import (
    Cursor,
    Database,
    KernelError,
    change_and_note,
    commit_and_notify,
    evaluate,
    group_rows,
    hash_rows,
    net_rows,
)
from everview.errors import (
    AccessPatternError,
    ChangeError,
    EverviewError,
    InternalError,
    SchemaError,
    StaleIteratorError,
)

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow as pa

__all__ = [
    "Cursor",
    "Database",
    "ExpressionError",
    "KernelError",
    "change_and_note",
    "commit_and_notify",
    "compute",
    "group_rows",
    "hash_rows",
    "net_rows",
    "refusals",
    "translate",
]

_BUGS = frozenset({"INTERNAL_ERROR", "INVALID_PLAN", "INVALID_EXPRESSION"})
_CLASSES: dict[str, type[EverviewError]] = {
    "STALE_ITERATOR": StaleIteratorError,
    "NO_INDEX": AccessPatternError,
    "ROWS_NOT_KEPT": SchemaError,
}
_HINTS = {
    "ARITHMETIC_OVERFLOW": "use a wider type: CAST the operands or the column to BIGINT, DECIMAL or DOUBLE",
    "CAST_INVALID_INPUT": "correct the value, or keep such rows out with WHERE",
    "CAST_OVERFLOW": "cast to a wider type, or keep such rows out with WHERE",
    "DATETIME_OVERFLOW": "dates and timestamps end with the year 9999",
    "DELTA_TOO_LARGE": "pass deltas=False and read the view, take the delta in pieces with apply_stream(), split the batch, or raise"
    " the limit with connect(delta_limit=...)",
    "DIVIDE_BY_ZERO": "guard the divisor, for example x / NULLIF(y, 0)",
    "REMAINDER_BY_ZERO": "guard the divisor, for example x % NULLIF(y, 0)",
    "EXCEED_LIMIT_LENGTH": "shorten the text, or declare the column wider",
    "INVALID_CHANGE": "every change needs its type or multiplicity",
    "INVALID_FORMAT": "correct the pattern",
    "NULL_NOT_ALLOWED": "give a value, or declare the column without NOT NULL",
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": "decimals have at most 38 digits; cast to DOUBLE",
    "NUMERIC_VALUE_OUT_OF_RANGE": "use a decimal of more digits, or DOUBLE",
}


class _Refusals:
    """Raises the kernel's refusals as everview's errors."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, KernelError):
            raise translate(error) from None
        if kind is not None and kind.__name__ == "PanicException":
            raise InternalError("INTERNAL_ERROR", f"the kernel failed: {error}", hint="please report this") from error


_REFUSALS = _Refusals()


def refusals() -> _Refusals:
    """A context in which the kernel's refusals are raised as everview's errors."""
    return _REFUSALS


class ExpressionError(Exception):
    """An expression fails on a row of a batch."""

    def __init__(self, code: str, reason: str, row: int) -> None:
        super().__init__(code, reason, row)
        self.code = code
        self.reason = reason
        self.row = row

    def as_change_error(self, table: str, row: int | None = None, column: str | None = None) -> ChangeError:
        """The refusal of a batch of a table, for a value of a row and a column if these are named."""
        named: dict[str, Any] = {"row": row, "column": column}
        named = {name: value for name, value in named.items() if value is not None}
        where = (
            [f"table `{table}`"]
            + ([f"row {row}"] if row is not None else [])
            + ([f"column `{column}`"] if column else [])
        )
        hint = _HINTS.get(self.code)
        return ChangeError(self.code, f"{', '.join(where)}: {self.reason}", hint=hint, table=table, **named)


_FAILURE = re.compile(r"\[(\w+)\] (.*) \(row (\d+)\)", re.DOTALL)


def compute(expression: str, rows: pa.RecordBatch) -> pa.Array:
    """An expression, in its plan form as JSON, on every row of a batch."""
    try:
        return evaluate(expression, rows)
    except ValueError as error:
        found = _FAILURE.fullmatch(str(error))
        if found is None:
            raise InternalError(
                "INVALID_EXPRESSION", str(error), hint="this is a bug in everview: please report it"
            ) from None
        raise ExpressionError(found[1], found[2], int(found[3])) from None


def translate(error: KernelError) -> EverviewError:
    """The everview error for a kernel refusal."""
    code, message, table, row, hint = error.args
    if code in _BUGS:
        return InternalError(code, message, hint="this is a bug in everview: please report it")
    where = [f"table `{table}`"] if table is not None else []
    where += [f"row {row}"] if row is not None else []
    text = f"{', '.join(where)}: {message}" if where else message
    parameters = {k: v for k, v in (("table", table), ("row", row)) if v is not None}
    return _CLASSES.get(code, ChangeError)(code, text, hint=hint or _HINTS.get(code), **parameters)
