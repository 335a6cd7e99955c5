"""What a dispatching task tells the guard of the next stage: how many rows it set aside, and which columns its events had.

The guard hears from every task of a batch after all of them are done, and so knows what holds for the batch as a whole. What guards and engines
have to say of it travels on as *facts*, plain values in the metrics of the stage, and becomes sentences where the metrics are read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

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


def absent_columns(told: Sequence[Told]) -> Iterable[dict[str, Any]]:
    """The columns that no event of a batch has, though the table's schema does."""
    for table in dict.fromkeys(t.table for t in told):
        parts = [t for t in told if t.table == table and t.absent is not None]
        if not parts:
            continue
        absent = set[str].intersection(*(set(t.absent or ()) for t in parts))
        names = sorted({name for t in parts for name in t.names})
        for column in sorted(absent):
            yield {"table": table, "absent": column, "names": names[:_SHOWN_NAMES], "more": len(names) > _SHOWN_NAMES}


def warnings_of(facts: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is odd in the facts of a stage, as sentences."""
    warnings, known, behind = [], Counter[str](), Counter[str]()
    for fact in facts:
        table = fact["table"]
        if "absent" in fact:
            names = ", ".join([*fact["names"], *(["..."] if fact["more"] else [])])
            warnings.append(
                f"table `{table}`: no event of the batch has the column `{fact['absent']}`, which is NULL then; their columns are {names}"
            )
        else:  # each engine tells of its keys
            known[table] += fact["known"]
            behind[table] += fact["behind"]
    warnings += [
        f"table `{table}`: {count} rows are older than what is held, and none of a known key is newer; if its sequence began anew, as places in a"
        " log do after a failover, start from a new checkpoint and an empty target"
        for table, count in sorted(behind.items())
        if count and count == known[table]
    ]
    return warnings
