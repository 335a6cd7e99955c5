"""Every rule, pinned by a golden file of titled pairs: a query, its plan before the rule and after it.

The file of a rule is ``tests/golden/rules/<rule>.txt``; titles and queries are written by hand, EVERVIEW_GOLDEN=rewrite
computes the plans anew.
"""

import os
import re
from pathlib import Path

import pytest
from everview.relational.display import plan_text
from everview.relational.plan import inputs_of, nodes_of
from everview.rules import RULES
from everview.sql import parse_statements
from everview.sql.bind import bind_query

FOLDER = Path(__file__).parents[2] / "golden" / "rules"
DDL = """
CREATE TABLE r (a INT, b INT, c STRING);
CREATE TABLE s (b INT, d DECIMAL(10,2), e INT NOT NULL);
CREATE TABLE k (id BIGINT PRIMARY KEY, v INT)
"""
TABLES = {s.table.name: s.table for s in parse_statements(DDL)}
_PAIR = re.compile(
    r"^== (?P<title>.+)\n(?P<sql>(?:.+\n)+)-- before\n(?P<before>(?:.+\n)+)-- after\n(?P<after>(?:.+\n)+)", re.M
)


def pairs_of(rule):
    path = FOLDER / f"{rule.__name__}.txt"
    text = path.read_text(encoding="utf-8")
    found = list(_PAIR.finditer(text))
    assert len(found) == text.count("== ") > 0, f"{path.name} is not a list of titled pairs"
    return path, found


def plans(rule, sql):
    """The plan that a rule is given for a query, and what it makes of it."""
    node = bind_query(sql, TABLES).node
    for earlier in RULES[: RULES.index(rule)]:
        node = earlier(node)
    return node, rule(node)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_golden_pairs(rule):
    path, found = pairs_of(rule)
    written = []
    for pair in found:
        before, after = (plan_text(plan) + "\n" for plan in plans(rule, pair["sql"]))
        written.append(f"== {pair['title']}\n{pair['sql']}-- before\n{before}-- after\n{after}")
    text = "\n".join(written)
    if os.environ.get("EVERVIEW_GOLDEN") == "rewrite":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_no_golden_file_is_orphaned():
    assert {p.stem for p in FOLDER.iterdir()} == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_a_rule_says_its_law(rule):
    import importlib

    module = importlib.import_module(rule.__module__)
    assert rule.__module__ == f"everview.rules.{rule.__name__}"
    assert module.__doc__
    assert rule.__doc__


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_applied_twice_a_rule_does_nothing_more(rule):
    for pair in pairs_of(rule)[1]:
        _, after = plans(rule, pair["sql"])
        assert plan_text(rule(after)) == plan_text(after), pair["title"]


def test_nodes_come_parents_first():
    node = bind_query("SELECT r.a FROM r JOIN s ON r.b = s.b WHERE e > 1", TABLES).node
    seen = list(nodes_of(node))
    assert all(seen.index(n) < seen.index(below) for n in seen for below in inputs_of(n))
