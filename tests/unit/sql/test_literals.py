"""Text literals: what is between the quotes is the value, wherever the literal stands."""

import pytest

from everview.query.expression import Literal
from everview.query.logical_view import Map
from everview.lower import lower_query
from everview.sql import CreateTable, parse_statements

TEXTS = {
    "''": "",
    "''''": "'",
    "'it''s'": "it's",
    "'O''Brien  Jr'": "O'Brien  Jr",
    "'  ''  ''\n\t''  '": "  '  '\n\t'  ",
    "'a'''": "a'",
    "'''a'": "'a",
    "''''''": "''",
    '"it""s  so"': 'it"s  so',
    "\"it''s\"": "it''s",
    "'a' 'b'": "ab",
    "'a'  '  b'": "a  b",
    "'a'/* x */'b'": "ab",
    "'a'\n-- it's a comment\n'  b''  c'": "a  b'  c",
    "'a' \"b\"": "ab",
    "'a'\"b\"": "ab",
    r"'it\'s  so'": "it's  so",
    r"'\\''\\'": "\\'\\",
    r"'a\tb\nc\0'": "a\tb\nc\0",
    r"'a\%b\_c'": r"a\%b\_c",
    r"'\u00e4\x'": "äx",
    "'-- no comment /* either */'": "-- no comment /* either */",
    "'a;b'": "a;b",
    "'日本  語'": "日本  語",
}


@pytest.mark.parametrize(("text", "value"), TEXTS.items(), ids=TEXTS)
@pytest.mark.parametrize("place", ["SELECT {} AS z, 1 AS one FROM t", "SELECT\n( {}\n) AS z, 1 AS one FROM t"])
def test_a_text_in_a_select_list(text, value, place, tables):
    stage = lower_query("v", place.format(text), tables).stages[-1]
    assert isinstance(stage, Map)
    literal = stage.expressions[0][1]
    assert isinstance(literal, Literal)
    assert literal.value == value


@pytest.mark.parametrize(("text", "value"), TEXTS.items(), ids=TEXTS)
@pytest.mark.parametrize(
    "condition", ["s = {}", "s IN ({}, 'other')", "concat(s, {}) = s", "CASE WHEN s = {} THEN TRUE END"]
)
def test_a_text_in_a_condition(text, value, condition, tables):
    core = lower_query("v", f"SELECT s FROM t WHERE {condition.format(text)}", tables).stages[0]
    found, open_nodes = [], [core.query.atoms[0].filter]
    while open_nodes:
        node = open_nodes.pop()
        open_nodes += getattr(node, "args", ())
        if isinstance(node, Literal):
            found.append(node.value)
    assert value in found


def test_a_doubled_quote_in_a_definition():
    (statement,) = parse_statements("CREATE TABLE t (`a``b` INT COMMENT 'it''s  a', c INT) COMMENT 'it''s'")
    assert isinstance(statement, CreateTable)
    assert [c.name for c in statement.table.columns] == ["a`b", "c"]


NINES = "9" * 38
LONG = "12345678901234567890123456789012345678"


@pytest.mark.parametrize(
    ("text", "value"),
    {
        f"-({LONG})": f"-{LONG}",
        f"-(-{LONG})": LONG,
        f"-{NINES}": f"-{NINES}",
        f"CAST('{NINES}' AS DECIMAL(38,0))": NINES,
        f"CAST('-{NINES}' AS DECIMAL(38,0))": f"-{NINES}",
        f"-CAST('{LONG[:20]}.{LONG[20:]}' AS DECIMAL(38,18))": f"-{LONG[:20]}.{LONG[20:]}",
        f"{LONG[:20]}.{LONG[20:]}": f"{LONG[:20]}.{LONG[20:]}",
    }.items(),
)
def test_no_digit_of_a_number_is_lost(text, value, tables):
    stage = lower_query("v", f"SELECT {text} AS z, 1 AS one FROM t", tables).stages[-1]
    assert str(stage.expressions[0][1].value) == value
