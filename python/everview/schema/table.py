"""Table definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from everview.schema.datatype import DataType


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. ``nullable`` is False for NOT NULL and primary-key columns."""

    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """FOREIGN KEY (columns) REFERENCES table (referenced); recorded, not enforced."""

    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retention:
    """A FIFO window: keep the last ``rows`` rows, or those within ``micros`` of the largest ``time_column``.

    ``max_jump``: how many microseconds the largest time may move at once; without it, a month or the window if that is longer.
    """

    rows: int | None = None
    micros: int | None = None
    time_column: str | None = None
    max_jump: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A base table. Names are case-insensitive and stored in the case of their declaration.

    ``keep``: all rows, or nothing but what views read. What keeps no rows has neither a primary key nor a retention.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    retention: Retention | None = None
    keep: Literal["rows", "views"] = "rows"
    unreadable: tuple[tuple[str, str], ...] = ()
    """Columns of types that views cannot read, with these: they are there, and are refused by name."""

    def find(self, name: str) -> Column | None:
        """The column of this name, whatever its case."""
        lowered = name.lower()
        return next((c for c in self.columns if c.name.lower() == lowered), None)
