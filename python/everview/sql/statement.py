"""The statements a session executes, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from everview.errors import Span

if TYPE_CHECKING:
    from sqlglot import exp

    from everview.schema.table import Table

_NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE [IF NOT EXISTS]."""

    table: Table
    if_not_exists: bool = False
    span: Span = _NOWHERE


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE [OR REPLACE] [MATERIALIZED] VIEW [IF NOT EXISTS] name AS query.

    ``sql_of_query`` is the exact source text of the query and ``span`` its place in the text that was parsed.
    """

    name: str
    sql_of_query: str
    span: Span
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS]."""

    name: str
    if_exists: bool = False
    span: Span = _NOWHERE


@dataclass(frozen=True, slots=True)
class DropView:
    """DROP [MATERIALIZED] VIEW [IF EXISTS]."""

    name: str
    if_exists: bool = False
    span: Span = _NOWHERE


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """INSERT, UPDATE or DELETE. ``tree`` is bound when the statement runs: its table may be one that the text creates."""

    kind: Literal["insert", "update", "delete"]
    tree: exp.Expr
    span: Span = _NOWHERE


Statement = CreateTable | CreateView | DropTable | DropView | ChangeRows
