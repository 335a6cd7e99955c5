"""What state belongs to, and what differs where it belongs to something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from everview.errors import CheckpointError

GO_BACK = "go on with what the checkpoint was written with, or start with a new checkpoint directory"


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table as a view depends on it, for people: what its rows mean, its key, the columns that are read, and those that only tell rows apart."""

    kind: str
    key: tuple[str, ...]
    columns: Mapping[str, str]
    unread: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"kind": self.kind, "key": self.key, "columns": dict(self.columns), "unread": dict(self.unread)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> TableShape:
        """The inverse of ``to_json``."""
        return cls(found["kind"], tuple(found["key"]), found["columns"], found["unread"])


@dataclass(frozen=True, slots=True)
class Identity:
    """What state belongs to. Only ``fingerprint`` decides; the rest tells the user what differs."""

    fingerprint: str
    sql: str
    shards: int
    tables: Mapping[str, TableShape] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        tables = {name: shape.to_json() for name, shape in self.tables.items()}
        return {"fingerprint": self.fingerprint, "sql": self.sql, "shards": self.shards, "tables": tables}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Identity:
        """The inverse of ``to_json``; raises ValueError, KeyError or TypeError for what is none. Further values are passed over."""
        tables = {name: TableShape.from_json(shape) for name, shape in found.get("tables", {}).items()}
        return cls(found["fingerprint"], found["sql"], found["shards"], tables)


def refuse_other(stored: Identity, wanted: Identity) -> None:
    """Refuse state that was written for something else, with what differs."""
    if stored.fingerprint == wanted.fingerprint:
        return
    text, hint = _difference(stored, wanted)
    raise mismatch(text, hint)


def mismatch(text: str, hint: str = GO_BACK) -> CheckpointError:
    """The refusal of state that belongs to something else."""
    return CheckpointError("CHECKPOINT_MISMATCH", f"the checkpoint belongs to another view: {text}", hint=hint)


def _difference(stored: Identity, wanted: Identity) -> tuple[str, str]:
    if stored.sql != wanted.sql:
        return f"it was written for the SQL\n  {stored.sql}\nand this is\n  {wanted.sql}", GO_BACK
    if stored.shards != wanted.shards:
        return f"it was written with shards={stored.shards} and this is shards={wanted.shards}", GO_BACK
    for name in sorted(stored.tables.keys() & wanted.tables.keys()):
        for found in _differences(name, stored.tables[name], wanted.tables[name]):
            return found
    return "columns, keys or options of its tables differ, or it was planned by another version of everview", GO_BACK


def _differences(name: str, was: TableShape, now: TableShape) -> Iterator[tuple[str, str]]:
    if was.kind != now.kind:
        yield f"table `{name}` was read as {was.kind} and is read as {now.kind}", GO_BACK
    if was.key != now.key:
        yield f"the primary key of table `{name}` was ({', '.join(was.key)}) and is ({', '.join(now.key)})", GO_BACK
    for columns, others in ((now.columns, was.columns), (now.unread, was.unread)):
        for column in columns:
            kind = others.get(column)
            if kind is not None and kind != columns[column]:
                yield f"column `{column}` of table `{name}` was {kind} and is {columns[column]}", GO_BACK
    counts = "which counts although the view does not read it: of a table of changes all columns tell rows apart"
    for column in now.unread:
        if column not in was.unread:
            hint = f"leave `{column}` out, by a drop in the DataFrame or from the schema of the job; or start with a new checkpoint directory"
            yield f"table `{name}` has a new column `{column}`, {counts}", hint
    for column in was.unread:
        if column not in now.unread:
            yield f"table `{name}` lacks the column `{column}`, {counts}", GO_BACK
    if list(was.unread) != list(now.unread) or list(was.columns) != list(now.columns):
        yield f"the columns of table `{name}` are in another order", GO_BACK
