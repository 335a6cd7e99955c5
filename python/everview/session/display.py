"""Results in notebooks."""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_SHOWN = 10


class Readable(Protocol):
    """What has rows: a view, or the result of a query."""

    @property
    def schema(self) -> pa.Schema: ...

    def __iter__(self) -> Iterator[Any]: ...

    def count(self) -> int: ...


def to_html(rows_of: Readable, title: str) -> str:
    """The first rows as a table; cheap, because rows are enumerated with constant delay."""
    rows = list(islice(iter(rows_of), _SHOWN + 1))
    head = "".join(f"<th>{escape(f.name)}<br><small>{escape(str(f.type))}</small></th>" for f in rows_of.schema)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(v))}</td>" for v in row) + "</tr>" for row in rows[:_SHOWN])
    more = f"<p>the first {_SHOWN} of {rows_of.count():,} rows</p>" if len(rows) > _SHOWN else ""
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def columns_text(schema: pa.Schema) -> str:
    """The columns and their types in a line."""
    return ", ".join(f"{f.name} {f.type}" for f in schema)
