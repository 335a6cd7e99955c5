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
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.errors import SnapshotError
from everview.schema.datatype import parse_type
from everview.schema.table import Column, ForeignKey, Retention, Table

if TYPE_CHECKING:
    from os import PathLike

    from everview.session.session import Session

_MAGIC = b"EVERVIEW"
FORMAT_VERSION = 1
_PREFIX = len(_MAGIC) + 4 + 8


def save(session: Session, path: str | PathLike[str]) -> None:
    """Write a snapshot of the session to ``path``."""
    rows = [_ipc(session.table_rows(name)) for name in session.tables]
    header = {
        "version": session.version,
        "tables": [_table_to_json(table) for table in session.tables.values()],
        "rows": [len(blob) for blob in rows],
        "views": [{"name": view.name, "sql": view.sql} for view in session.views.values()],
    }
    text = json.dumps(header).encode()
    prefix = _MAGIC + FORMAT_VERSION.to_bytes(4, "little") + len(text).to_bytes(8, "little")
    target = Path(path)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            digest = hashlib.sha256()
            for part in (prefix, text, *rows):
                file.write(part)
                digest.update(part)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def restore(path: str | PathLike[str]) -> Session:
    """A new session with the tables, rows and views of a snapshot."""
    from everview.session.session import Session

    content = Path(path).read_bytes()
    header, blobs = _parse(content, str(path))
    session = Session()
    for definition, blob in zip(header["tables"], blobs, strict=True):
        table = _table_from_json(definition)
        session._create_table(table, if_not_exists=False)
        rows = pa.ipc.open_stream(pa.py_buffer(blob)).read_all()
        if rows.num_rows:
            session.apply({table.name: rows}, deltas=False)
    for view in header["views"]:
        session.create_view(view["name"], view["sql"])
    session._version = header["version"]
    return session


def _parse(content: bytes, path: str) -> tuple[dict[str, Any], list[bytes]]:
    if not content.startswith(_MAGIC) or len(content) < _PREFIX + 32:
        raise SnapshotError("NOT_A_SNAPSHOT", f"`{path}` is not an everview snapshot")
    version = int.from_bytes(content[8:12], "little")
    if version != FORMAT_VERSION:
        raise SnapshotError(
            "SNAPSHOT_VERSION",
            f"`{path}` has format {version} and this everview reads format {FORMAT_VERSION}",
            hint="restore it with the everview that wrote it",
        )
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise SnapshotError("SNAPSHOT_DAMAGED", f"`{path}` is damaged: its checksum does not match", hint="use an earlier snapshot")
    start = _PREFIX + int.from_bytes(content[12:20], "little")
    header = json.loads(content[_PREFIX:start])
    blobs = []
    for length in header["rows"]:
        blobs.append(content[start : start + length])
        start += length
    return header, blobs


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _table_to_json(table: Table) -> dict[str, Any]:
    definition = asdict(table)
    definition["columns"] = [{"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in table.columns]
    return definition


def _table_from_json(definition: dict[str, Any]) -> Table:
    columns = tuple(Column(c["name"], parse_type(c["type"]), c["nullable"]) for c in definition["columns"])
    foreign = tuple(ForeignKey(tuple(f["columns"]), f["table"], tuple(f["referenced"])) for f in definition["foreign_keys"])
    retention = Retention(**definition["retention"]) if definition["retention"] else None
    return Table(definition["name"], columns, tuple(definition["primary_key"]), foreign, retention)
