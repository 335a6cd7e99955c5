"""FROM: which atoms a query has, and which columns its names stand for, in every way of writing joins."""

import pytest

from everview.errors import SchemaError
from everview.query.logical_view import Core

MERGED = {
    "a derived table, then a join in parentheses": (
        "SELECT d.src, g.dst, h.x FROM (SELECT src FROM g) d JOIN (g JOIN u h ON g.dst = h.id) ON d.src = g.src",
        "v(src, dst, x) :- d_g(src), g(src, dst), h(dst, x)",
    ),
    "a join in parentheses, then a derived table": (
        "SELECT d.src, g.dst FROM (g JOIN u ON g.dst = u.id) JOIN (SELECT src FROM g) d ON d.src = g.src",
        "v(src, dst) :- g(src, dst), u(dst), d_g(src)",
    ),
    "parentheses around parentheses": (
        "SELECT g.src, u.x FROM ((g JOIN (t) ON g.src = t.id)) JOIN ((u)) ON g.dst = u.id",
        "v(src, x) :- g(src, dst), t(src), u(dst, x)",
    ),
    "joins in parentheses with an alias": (
        "SELECT z.src, g.src AS other FROM (g JOIN t ON g.dst = t.id) z JOIN g ON z.id = g.src",
        "v(src, other) :- z_g(src, other), t(other), g(other)",
    ),
    "an alias and column names": (
        "SELECT z.b FROM (g a JOIN g b ON a.dst = b.src) AS z(a, b, c, d) WHERE z.c = z.d",
        "v(b) :- a(b), b(b)",
    ),
    "derived tables in derived tables over one table": (
        "SELECT p.src FROM (SELECT q.src FROM (SELECT src FROM g) q JOIN g ON q.src = g.dst) p JOIN g ON p.src = g.src",
        "v(src) :- q_g(src), p_g(src), g(src)",
    ),
    "one alias in two derived tables": (
        "SELECT p.src, q.src AS other FROM (SELECT a.src FROM g a) p, (SELECT a.src FROM g a) q",
        "v(src, other) :- a(src), q_a(other)",
    ),
    "a CTE used twice": (
        "WITH c AS (SELECT src FROM g) SELECT a.src, b.src AS other FROM c a, c b",
        "v(src, other) :- g(src), b_g(other)",
    ),
    "an atom's name as an alias": (
        "SELECT d.src, d_g.dst FROM (SELECT g.src FROM g) d JOIN g d_g ON d.src = d_g.src JOIN g ON g.src = d.src",
        "v(src, dst) :- d_g_2(src), d_g(src, dst), g(src)",
    ),
    "JOIN binds stronger than a comma": (
        "SELECT t.x FROM t, g NATURAL JOIN (SELECT id AS dst, x FROM u) d",
        "v(x) :- t(x), g(dst), u(dst)",
    ),
    "USING sees its own side of a comma": (
        "SELECT t.id FROM t, u JOIN (SELECT src AS id FROM g) d USING (id)",
        "v(id) :- t(id), u(u_id), g(u_id)",
    ),
    "USING over joins in parentheses": (
        "SELECT id, dst FROM u JOIN (t JOIN g ON t.id = g.src) USING (id)",
        "v(id, dst) :- u(id), t(id), g(id, dst)",
    ),
    "a comma, then ON": (
        "SELECT a.src FROM g a, g b JOIN g c ON b.dst = c.src WHERE a.dst = b.src",
        "v(src) :- a(src, a_dst), b(a_dst, b_dst), c(b_dst)",
    ),
    "derived tables without a name": (
        "SELECT src, id FROM (SELECT src, dst FROM g) JOIN (SELECT id FROM t) ON dst = id",
        "v(src, id) :- g(src, id), t(id)",
    ),
}


@pytest.mark.parametrize(("sql", "expected"), MERGED.values(), ids=MERGED)
def test_atoms_and_variables(sql, expected, lower):
    (core, *_) = lower(sql).stages
    assert isinstance(core, Core)
    names = [a.name.lower() for a in core.query.atoms]
    assert len(set(names)) == len(names)
    assert str(core.query) == expected


REFUSED = {
    "ON sees the joins of its own item": ("SELECT a.src FROM g a, g b JOIN g c ON a.dst = c.src", "UNKNOWN_TABLE"),
    "ON in parentheses sees what is in them": (
        "SELECT a.src FROM g a JOIN (g b JOIN g c ON a.dst = c.src) ON a.dst = b.src",
        "UNKNOWN_TABLE",
    ),
    "an alias hides the names inside": ("SELECT g.src FROM (g JOIN t ON g.dst = t.id) z", "UNKNOWN_TABLE"),
    "a name in and outside of parentheses": ("SELECT 1 AS x FROM g JOIN (t JOIN g ON TRUE) ON TRUE", "DUPLICATE_ALIAS"),
    "USING finds two": (
        "SELECT 1 AS x FROM (SELECT id FROM t) d JOIN (t JOIN u ON t.id = u.id) USING (id)",
        "AMBIGUOUS_COLUMN",
    ),
    "USING of types that do not compare": (
        "SELECT 1 AS x FROM t JOIN (SELECT d AS id FROM t) o USING (id)",
        "TYPE_MISMATCH",
    ),
    "an unnamed derived table has no name": ("SELECT derived_1.src FROM (SELECT src FROM g)", "UNKNOWN_TABLE"),
    "too few column names": ("SELECT 1 AS x FROM (g JOIN t ON TRUE) AS z(a, b)", "COLUMN_COUNT"),
}


@pytest.mark.parametrize(("sql", "code"), REFUSED.values(), ids=REFUSED)
def test_refused(sql, code, lower):
    with pytest.raises(SchemaError) as caught:
        lower(sql)
    assert caught.value.code == code
    assert caught.value.span is not None
