"""Blobs: sections of rows in one piece of bytes, the form in which rows travel between engines and lie in logs.

A section is a number (which table of the receiving engine it is for) and record batches of one schema as an Arrow IPC stream. A blob has a
magic number with the format's version, a CRC-32 of what follows, and the sections one after another. Damage is found on reading.

Integers travel in the narrowest type that holds those of the section, and their field says which type they have: that costs a fifth of
what compressing them costs, for about the same bytes, and leaves the compressor little to do.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from everview.errors import CheckpointError

_MAGIC = b"EVB2"
_HEAD = struct.Struct("<4sI")
_SECTION = struct.Struct("<IQ")
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")

_WIDE = b"wide"
_NARROWER = {
    pa.int64(): (pa.int8(), pa.int16(), pa.int32()),
    pa.int32(): (pa.int8(), pa.int16()),
    pa.int16(): (pa.int8(),),
}

LARGEST = 8 << 20
"""Bytes beyond which rows are put into another blob: state stores take tens of megabytes in one value, not hundreds."""

Section = tuple[int, list[pa.RecordBatch]]


def pack(sections: Iterable[tuple[int, Sequence[pa.RecordBatch]]]) -> bytes:
    """A blob of these sections."""
    return assemble([(number, pack_section(batches)) for number, batches in sections])


def pack_section(batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    """The body of a section: record batches of one schema."""
    narrow = pa.schema([_narrowed(at, field, batches) for at, field in enumerate(batches[0].schema)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, narrow, options=_OPTIONS) as writer:
        for batch in batches:
            writer.write_batch(_cast(batch, narrow))
    return sink.getvalue()


def _narrowed(at: int, field: pa.Field, batches: Sequence[pa.RecordBatch]) -> pa.Field:
    """The field of a column in its narrowest type."""
    if field.type not in _NARROWER:
        return field
    ends = [pc.min_max(batch.column(at)).as_py() for batch in batches]
    least = min((e["min"] for e in ends if e["min"] is not None), default=0)
    most = max((e["max"] for e in ends if e["max"] is not None), default=0)
    for kind in _NARROWER[field.type]:
        limit = 1 << (kind.bit_width - 1)
        if -limit <= least and most < limit:
            return field.with_type(kind).with_metadata({_WIDE: str(field.type)})
    return field


def _widened(field: pa.Field) -> pa.Field:
    """The field of a column in the type it had before it was narrowed."""
    wide = (field.metadata or {}).get(_WIDE)
    return field if wide is None else pa.field(field.name, pa.type_for_alias(wide.decode()), field.nullable)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Columns in the types of a schema that are known to hold their values."""
    columns = [
        c if c.type == field.type else c.cast(field.type, safe=False)
        for c, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def assemble(sections: Sequence[tuple[int, pa.Buffer]]) -> bytes:
    """A blob of packed sections."""
    parts: list[bytes | pa.Buffer] = []
    crc = 0
    for number, body in sections:
        head = _SECTION.pack(number, body.size)
        crc = zlib.crc32(body, zlib.crc32(head, crc))
        parts += [head, body]
    return b"".join([_HEAD.pack(_MAGIC, crc), *parts])


def unpack(blob: bytes) -> list[Section]:
    """The sections of a blob."""
    view = memoryview(blob)
    if len(view) < _HEAD.size:
        raise damaged("it is cut off")
    magic, crc = _HEAD.unpack_from(view)
    if magic != _MAGIC:
        raise damaged("it is not one of this version of everview")
    if zlib.crc32(view[_HEAD.size :]) != crc:
        raise damaged("its checksum is wrong")
    sections: list[Section] = []
    at = _HEAD.size
    while at < len(view):
        number, size = _SECTION.unpack_from(view, at)
        at += _SECTION.size
        with pa.ipc.open_stream(pa.py_buffer(view[at : at + size])) as reader:
            schema = pa.schema([_widened(field) for field in reader.schema])
            sections.append((number, [_cast(batch, schema) for batch in reader]))
        at += size
    return sections


def damaged(why: str) -> CheckpointError:
    """The refusal of state that cannot be read."""
    return CheckpointError(
        "CHECKPOINT_DAMAGED",
        f"the view's state in the checkpoint cannot be read: {why}",
        hint="start with a new checkpoint directory, or restore this one from a backup",
    )


def by_number(sections: Iterable[Section]) -> dict[int, pa.RecordBatch]:
    """The rows of each section number as one batch; sections without rows are left out."""
    found: dict[int, list[pa.RecordBatch]] = {}
    for number, batches in sections:
        found.setdefault(number, []).extend(b for b in batches if b.num_rows)
    return {number: concat(batches) for number, batches in sorted(found.items()) if batches}


def slices(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Rows in pieces that fit a blob."""
    if not rows.num_rows:
        return
    step = max(1, rows.num_rows * LARGEST // max(1, 2 * rows.nbytes))
    for at in range(0, rows.num_rows, step):
        yield rows.slice(at, step)


def concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of the same columns as one, whatever their fields say of NULLs."""
    first, *others = batches
    return pa.concat_batches([first, *(like(b, first.schema) for b in others)]) if others else first


def like(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows under an equivalent schema."""
    return rows if rows.schema.equals(schema) else pa.RecordBatch.from_arrays(rows.columns, schema=schema)
