"""The tables that a text mentions, whether they are known or not."""

from __future__ import annotations

from sqlglot import exp

from everview.sql.spans import parse


def tables_mentioned(sql: str) -> frozenset[str]:
    """The names in FROM and JOIN anywhere in a text, in lower case; names of CTEs are among them.

    >>> sorted(tables_mentioned("SELECT a.x FROM A JOIN `b` c ON a.x = c.x WHERE a.x IN (SELECT d FROM e)"))
    ['a', 'b', 'e']
    """
    return frozenset(table.name.lower() for tree in parse(sql) for table in tree.find_all(exp.Table))
