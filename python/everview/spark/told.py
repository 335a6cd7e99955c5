"""What a dispatching task tells the guard of the next stage: how many rows it set aside, and which columns its events had.

The guard hears from every task of a batch after all of them are done, and so knows what holds for the batch as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

_SHOWN_NAMES = 20


@dataclass(frozen=True, slots=True)
class Told:
    """``absent``: the columns for which no event of the task had a value or a name; None where it saw no event. ``names``: some that they had."""

    table: str
    part: int
    bad: int
    absent: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()

    def to_blob(self) -> bytes:
        """As the blob that travels."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_blob(cls, blob: bytes) -> Told:
        """The inverse of ``to_blob``."""
        found = json.loads(blob)
        absent = None if found["absent"] is None else tuple(found["absent"])
        return cls(found["table"], found["part"], found["bad"], absent, tuple(found["names"]))


def absent_columns(told: Sequence[Told]) -> Iterable[str]:
    """A sentence for each column that no event of a batch has, though the table's schema does."""
    for table in dict.fromkeys(t.table for t in told):
        parts = [t for t in told if t.table == table and t.absent is not None]
        if not parts:
            continue
        absent = set[str].intersection(*(set(t.absent or ()) for t in parts))
        names = sorted({name for t in parts for name in t.names})
        shown = ", ".join(names[:_SHOWN_NAMES]) + (", ..." if len(names) > _SHOWN_NAMES else "")
        for column in sorted(absent):
            yield f"table `{table}`: no event of the batch has the column `{column}`, which is NULL then; their columns are {shown}"
