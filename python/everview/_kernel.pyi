# The native part of everview: tables and views as word slabs, the commit of batches, scalar expressions.

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, final

import pyarrow as pa

__all__ = [
    "PLAN_VERSION",
    "Cursor",
    "Database",
    "KernelError",
    "change_and_note",
    "commit_and_notify",
    "evaluate",
    "group_rows",
    "hash_rows",
    "net_rows",
]

PLAN_VERSION: int

_Result = TypeVar("_Result")

class KernelError(Exception): ...  # A refusal: ``args`` is (code, message, table, row, hint).

@final
class Database:
    # Tables, views and the commit of batches. Safe to share between threads; commits are serialised.

    def __new__(cls, threads: int = 1, delta_bytes: int | None = None, text_bytes: int | None = None) -> Database: ...
    def create_table(
        self,
        name: str,
        columns: list[tuple[str, str, bool]],
        key: list[int],
        retention: tuple[str, int, int, int] | None = None,
        keeps_rows: bool = True,
    ) -> int: ...
    def drop_table(self, table: int) -> None: ...
    def create_view(self, plan: str) -> int: ...
    def read_once(self, plan: str) -> list[pa.RecordBatch]: ...
    def drop_view(self, view: int) -> None: ...
    def commit(
        self,
        changes: list[tuple[int, Literal["rows", "upsert", "update", "keys"], pa.RecordBatch]],
        deltas: bool,
        ignore_missing: bool,
        pieces: Callable[[int, pa.RecordBatch], object] | None = None,
    ) -> list[tuple[int, list[pa.RecordBatch]]]: ...
    def open(self, view: int) -> Cursor: ...
    def lookup(self, view: int, columns: list[int], values: pa.RecordBatch) -> Cursor: ...
    def count(self, view: int) -> int | None: ...
    def table_rows(self, table: int) -> list[pa.RecordBatch]: ...
    def copies_of(self, table: int, rows: pa.RecordBatch) -> pa.Array: ...
    def rows_with_keys(self, table: int, keys: pa.RecordBatch) -> tuple[pa.Array, pa.RecordBatch]: ...
    def window_state(self, table: int) -> tuple[int | None, int, int, int] | None: ...
    def restore_window(self, table: int, state: tuple[int | None, int, int, int]) -> None: ...
    def table_size(self, table: int) -> tuple[int, int, int]: ...
    def texts_size(self) -> tuple[int, int]: ...
    def metrics(self, view: int) -> dict[str, Any]: ...

@final
class Cursor:
    # The reading of a result; a later commit makes it stale.

    def require_fresh(self) -> None: ...
    def read(self, limit: int) -> pa.RecordBatch | None: ...

def change_and_note(
    change: Callable[[], _Result],
    notes: list[tuple[object, str, object]],
    keep: tuple[object, str] | None = None,
    then: Callable[[], object] | None = None,
) -> _Result: ...
def commit_and_notify(
    commit: Callable[[], list[tuple[int, list[pa.RecordBatch]]]],
    notes: list[tuple[object, str, object]],
    audience: Sequence[tuple[int, tuple[object, ...]]],
    state: object,
    table: Callable[[list[pa.RecordBatch]], pa.Table],
    breathe: Callable[[], None],
    rest: Callable[[dict[int, pa.Table]], None] | None = None,
) -> tuple[dict[int, pa.Table], list[tuple[int, Exception]], BaseException | None]: ...
def evaluate(expression: str, batch: pa.RecordBatch) -> pa.Array: ...
def hash_rows(batch: pa.RecordBatch) -> pa.Array: ...
def group_rows(batch: pa.RecordBatch) -> pa.Array: ...
def net_rows(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]: ...
