"""Snapshots: the rows of the base tables and all definitions in one file.

The base rows determine everything else, so a snapshot holds nothing of the views but their SQL; restoring builds them from the rows.

Layout: the magic ``EVERVIEW``, a format version (4 bytes, little endian), the length of the header (8 bytes), the header (JSON: tables, views,
version, the length of each table's rows), the rows of each table (an Arrow IPC stream), and the SHA-256 of everything before it.
A snapshot is written beside its target and moved over it once it is on disk: a reader sees the old file or the new one, never a part.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.errors import EverviewError, SchemaError, SnapshotError, cut
from everview.schema.datatype import parse_type
from everview.schema.table import Column, ForeignKey, Retention, Table
from everview.session.commit import commit
from everview.session.definitions import ViewOptions, create_table, create_view
from everview.session.state import SessionState

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from everview.session.session import Session
    from everview.session.state import BaseTable

_MAGIC = b"EVERVIEW"
FORMAT_VERSION = 1
_PREFIX = len(_MAGIC) + 4 + 8


def save(state: SessionState, path: str | PathLike[str]) -> None:
    """Write a snapshot to ``path``. The caller holds the session's lock."""
    bases = list(state.tables.values())
    _require_rows(bases)
    rows = [_ipc(state.kernel.table_rows(base.handle)) for base in bases]
    views = [{"name": v.name, "sql": v.planned.view.sql, "rates": v.rates} for v in state.views.values()]
    header = {
        "version": state.version,
        "tables": [_table_to_json(base.table) for base in bases],
        "updates": [base.updates for base in bases],
        "windows": [state.kernel.window_state(base.handle) for base in bases],
        "rows": [len(blob) for blob in rows],
        "views": views,
    }
    text = json.dumps(header).encode()
    prefix = _MAGIC + FORMAT_VERSION.to_bytes(4, "little") + len(text).to_bytes(8, "little")
    _write_atomically(Path(path), (prefix, text, *rows))


def _require_rows(bases: list[BaseTable]) -> None:
    passing = [base.table.name for base in bases if base.table.keep == "views"]
    if passing:
        message = f"a snapshot is made of the rows of all tables, and `{passing[0]}` keeps none"
        hint = "create the table without keep = 'views', or feed a new session from the source of the changes"
        raise SchemaError("ROWS_NOT_KEPT", message, hint=hint, table=passing[0])


def _write_atomically(target: Path, parts: Iterable[bytes]) -> None:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            digest = hashlib.sha256()
            for part in parts:
                file.write(part)
                digest.update(part)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(target.parent)


def _sync_directory(directory: Path) -> None:
    """Make the move last; where directories cannot be synced (Windows), it lasts once the system writes it."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def restore(path: str | PathLike[str]) -> Session:
    """A new session with the tables, rows and views of a snapshot."""
    from everview.session.session import Session

    header, blobs = _parse(Path(path).read_bytes(), str(path))
    state = SessionState()
    try:
        _load(state, header, blobs, str(path))
    except SnapshotError:
        state.close()
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, pa.ArrowException) as error:
        state.close()
        raise _damaged(str(path), f"its content is not a session: {error}") from error
    return Session(state)


def _load(state: SessionState, header: dict[str, Any], blobs: list[bytes], path: str) -> None:
    for definition, window, blob in zip(header["tables"], _windows(header), blobs, strict=True):
        table = _table_from_json(definition)
        create_table(state, table)
        base = state.table(table.name)
        if window is not None:  # before the rows: they are no jump of time
            state.kernel.restore_window(base.handle, tuple(window))
        rows = pa.ipc.open_stream(pa.py_buffer(blob)).read_all()
        for part in rows.to_batches():
            commit(state, [(table.name, "changes", part)], deltas=False)
        base.updates = 0  # the trees are chosen by the rates of their time, as they were
    for view in header["views"]:
        try:
            create_view(state, view["name"], view["sql"], ViewOptions(view["rates"]))
        except EverviewError as error:
            raise SnapshotError(
                "SNAPSHOT_SQL",
                f"`{path}` is whole, but this everview refuses the SQL text of its view `{cut(str(view['name']))}`: {error}",
                hint="restore it with the everview that wrote it, and drop the view or change its text there",
                view=view["name"],
            ) from error
    for base, updates in zip(state.tables.values(), header["updates"], strict=True):
        base.updates = updates
    state.version = header["version"]


def _windows(header: dict[str, Any]) -> list[Any]:
    """What the windows have seen and done; earlier snapshots had the largest times alone, and what had expired is not known."""
    if "windows" in header:
        return list(header["windows"])
    return [
        (latest, 0, 1, 0) if table["retention"] else None
        for table, latest in zip(header["tables"], header["window_times"], strict=True)
    ]


def _parse(content: bytes, path: str) -> tuple[dict[str, Any], list[bytes]]:
    if not content.startswith(_MAGIC):
        raise SnapshotError(
            "NOT_A_SNAPSHOT", f"`{path}` is not an everview snapshot", hint="snapshots are written by Session.save()"
        )
    if len(content) < _PREFIX + 32:
        raise _damaged(path, "it ends too early")
    version = int.from_bytes(content[8:12], "little")
    if version != FORMAT_VERSION:
        raise SnapshotError(
            "SNAPSHOT_VERSION",
            f"`{path}` has format {version} and this everview reads format {FORMAT_VERSION}",
            hint="restore it with the everview that wrote it",
        )
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise _damaged(path, "its checksum does not match")
    start = _PREFIX + int.from_bytes(content[12:20], "little")
    try:
        header = json.loads(content[_PREFIX:start])
        lengths = [int(length) for length in header["rows"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"its header cannot be read: {error}") from None
    blobs = []
    for length in lengths:
        blobs.append(content[start : start + length])
        start += length
    return header, blobs


def _damaged(path: str, why: str) -> SnapshotError:
    return SnapshotError("SNAPSHOT_DAMAGED", f"`{path}` is damaged: {why}", hint="use an earlier snapshot")


def _ipc(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def _table_to_json(table: Table) -> dict[str, Any]:
    definition = asdict(table)
    definition["columns"] = [{"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in table.columns]
    return definition


def _table_from_json(definition: dict[str, Any]) -> Table:
    columns = tuple(Column(c["name"], parse_type(c["type"]), c["nullable"]) for c in definition["columns"])
    foreign = tuple(
        ForeignKey(tuple(f["columns"]), f["table"], tuple(f["referenced"])) for f in definition["foreign_keys"]
    )
    retention = Retention(**definition["retention"]) if definition["retention"] else None
    return Table(definition["name"], columns, tuple(definition["primary_key"]), foreign, retention)
