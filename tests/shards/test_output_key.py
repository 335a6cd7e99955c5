"""The key of a view's rows."""

import pytest

from everview.analysis.normalise import merge_equal_atoms
from everview.plan.output_key import output_key
from everview.query.logical_view import Core, LogicalView
from everview.schema.datatype import BIGINT, STRING
from everview.schema.table import Column, Table
from everview.lower import lower_query

TABLES = {
    t.name: t
    for t in (
        Table("c", (Column("ck", BIGINT, False), Column("name", STRING)), ("ck",)),
        Table("o", (Column("ok", BIGINT, False), Column("ck", BIGINT), Column("day", BIGINT)), ("ok",)),
        Table("l", (Column("ok", BIGINT, False), Column("line", BIGINT, False), Column("qty", BIGINT)), ("ok", "line")),
        Table("t", (Column("a", BIGINT), Column("b", BIGINT))),
    )
}
KEYS = {
    # joins
    "SELECT ck, name FROM c": ("ck",),
    "SELECT name FROM c": None,
    "SELECT name, ck FROM c": ("ck",),
    "SELECT a, b FROM t": None,
    "SELECT line, ok FROM l": ("line", "ok"),
    "SELECT line FROM l": None,
    "SELECT o.ok, c.name FROM c, o WHERE c.ck = o.ck": ("ok",),
    "SELECT o.day, c.ck FROM c, o WHERE c.ck = o.ck": None,
    "SELECT l.line, o.ok, c.name FROM c, o, l WHERE c.ck = o.ck AND o.ok = l.ok": ("line", "ok"),
    "SELECT c.ck, o.ok FROM c CROSS JOIN o": ("ck", "ok"),
    "SELECT c.ck, t.a FROM c, t WHERE c.ck = t.b": None,
    "SELECT x.ok, y.ok AS other FROM o x, o y WHERE x.day = y.day": ("ok", "other"),
    "SELECT x.ck, y.name FROM c x, c y WHERE x.ck = y.ck": ("ck",),
    "SELECT ok, ck FROM o WHERE day = 1": ("ok",),
    # what maps do to it
    "SELECT ck AS k, ck AS again FROM c": ("k",),
    "SELECT ck + 1 AS k FROM c": None,
    "SELECT ck + 1 AS k, ck FROM c": ("ck",),
    "SELECT 1 AS one FROM c": None,
    # distinct
    "SELECT DISTINCT name FROM c": None,
    # groups
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a": ("a",),
    "SELECT COUNT(*) AS n, b, a FROM t GROUP BY a, b": ("b", "a"),
    "SELECT COUNT(*) AS n FROM t GROUP BY a": None,
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a, b": None,
    "SELECT a AS k, SUM(b) AS s FROM t GROUP BY a HAVING COUNT(*) > 1": ("k",),
    "SELECT a % 2 AS k, COUNT(*) AS n FROM t GROUP BY a % 2": ("k",),
    "SELECT c.ck, COUNT(*) AS n FROM c, o WHERE c.ck = o.ck GROUP BY c.ck": ("ck",),
    "SELECT DISTINCT a, COUNT(*) AS n FROM t GROUP BY a": ("a",),
    "SELECT DISTINCT COUNT(*) AS n FROM t GROUP BY a": None,
    # one row
    "SELECT COUNT(*) AS n FROM t": (),
    "SELECT SUM(b) + 1 AS n FROM t": (),
    "SELECT COUNT(*) AS n FROM t HAVING COUNT(*) > 5": (),
}


def key_of(sql):
    view = lower_query("v", sql, TABLES)
    core = Core(merge_equal_atoms(view.stages[0].query))
    return output_key(LogicalView(view.name, view.sql, (core, *view.stages[1:])))


@pytest.mark.parametrize("sql", KEYS)
def test_key(sql):
    assert key_of(sql) == KEYS[sql]


def test_a_group_key_leaves_out_what_other_columns_determine():
    assert key_of("SELECT c.ck, c.name, COUNT(*) AS n FROM c, o WHERE c.ck = o.ck GROUP BY c.ck, c.name") == ("ck",)
