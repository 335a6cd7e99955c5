"""The chunks of a column as one array, however much text they hold."""

from __future__ import annotations

import pyarrow as pa

MOST_BYTES = (1 << 31) - 1
"""What an array with 32-bit offsets holds."""
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def combined(column: pa.ChunkedArray) -> pa.Array | Exception:
    """One array, or why there is none. Chunks that are empty are left out: from another library they may have an offset and no buffer."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        return pa.nulls(0, column.type)
    if len(chunks) == 1:
        return chunks[0]
    try:
        for chunk in chunks:
            chunk.validate()  # that offsets and lengths fit; what they hold is checked when they are one
        if column.type in _LARGE and column.nbytes > MOST_BYTES:
            chunks = [chunk.cast(_LARGE[column.type]) for chunk in chunks]
        return pa.concat_arrays(chunks)
    except pa.ArrowException as error:
        return error
