"""The result of a one-off query, as the user holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everview.errors import cut
from everview.session.display import columns_text, to_html
from everview.session.rows import CHUNK, named_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


class Result:
    """The rows of a query at one moment. Later commits do not change it; it is read as a view is."""

    def __init__(self, sql: str, table: pa.Table) -> None:
        self._sql = sql
        self._table = table

    @property
    def sql(self) -> str:
        return self._sql

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result."""
        return self._table.schema

    def to_arrow(self) -> pa.Table:
        """The rows, in the order of ORDER BY if there is one; duplicates repeated as in SQL."""
        return self._table

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self._table.to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        import polars as pl

        return pl.from_arrow(self._table)

    def batches(self, rows: int = CHUNK) -> Iterator[pa.RecordBatch]:
        """The rows in record batches of at most ``rows`` rows."""
        return iter(self._table.to_batches(rows))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Any]:
        """The rows as named tuples."""
        return named_rows(self._table.to_batches(CHUNK), self.schema)

    def rows(self) -> list[Any]:
        """The rows as a list of named tuples."""
        return list(self)

    def count(self) -> int:
        """The number of rows."""
        return int(self._table.num_rows)

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        return f"<Result({columns_text(self.schema)}): {self.count():,} rows>"

    def _repr_html_(self) -> str:
        return to_html(self, cut(" ".join(self._sql.split()), 200))
