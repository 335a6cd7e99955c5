"""The engine as the rest of the package sees it: the only module that imports the native kernel.

It turns the kernel's refusals into everview's errors and nothing else.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from everview._kernel import Cursor, Database, KernelError
from everview.errors import ChangeError, EverviewError, InternalError, StaleIteratorError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Cursor", "Database", "refusals"]

_BUGS = frozenset({"INTERNAL_ERROR", "INVALID_PLAN", "INVALID_EXPRESSION"})


@contextmanager
def refusals() -> Iterator[None]:
    """Raise the kernel's refusals as everview's errors."""
    try:
        yield
    except KernelError as error:
        raise translate(error) from None


def translate(error: KernelError) -> EverviewError:
    """The everview error for a kernel refusal."""
    code, message, table, row, hint = error.args
    if code in _BUGS:
        return InternalError(code, message)
    if code == "STALE_ITERATOR":
        return StaleIteratorError(code, message, hint=hint)
    where = f"table `{table}`, " if table is not None else ""
    where += f"row {row}: " if row is not None else ""
    parameters = {k: v for k, v in (("table", table), ("row", row)) if v is not None}
    return ChangeError(code, where + message, hint=hint, **parameters)
