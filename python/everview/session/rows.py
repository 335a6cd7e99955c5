"""Results as users read them: their schema, duplicates repeated, rows as named tuples."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.interop.expand import expand
from everview.schema.arrow import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from everview.query.logical_view import LogicalView

CHUNK = 65536


def schema_of(view: LogicalView) -> pa.Schema:
    """The columns of a result."""
    return pa.schema([pa.field(c.name, arrow_type(c.type), c.nullable) for c in view.columns])


def repeated(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Rows with multiplicities as a table with each row as often as it is there."""
    parts = [part for batch in batches for part in expand(batch, schema, CHUNK)]
    return pa.Table.from_batches(parts, schema=schema)


def named_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, before: Callable[[], object] | None = None
) -> Iterator[Any]:
    """The rows of record batches as named tuples; ``before`` is called before each."""
    row: Any = namedtuple("Row", schema.names, rename=True)  # type: ignore[misc]  # noqa: PYI024
    for batch in batches:
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if before is not None:
                before()
            yield row._make(values)
