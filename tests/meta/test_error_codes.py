"""Every error code that can be raised is documented, and every documented one can be raised."""

import ast
import re

import pytest

CODE = re.compile(r"[A-Z][A-Z0-9_]+")
IN_RUST = re.compile(r"""(?:\w+::(?:new|in_row|of_table)\(|\bcode:)\s*"([A-Z][A-Z0-9_]+)"[,\s]""")
RAISERS = re.compile(r"\w*[eE]rror|reject")


def in_python(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if RAISERS.fullmatch(name) and isinstance(first, ast.Constant) and CODE.fullmatch(str(first.value)):
                yield first.value
        elif isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "REASONS":
            yield from (key.value for key in node.value.keys)


@pytest.fixture(scope="module")
def raised(root, modules):
    codes = {code for tree in modules.values() for code in in_python(tree)}
    for path in (root / "crates").glob("*/src/**/*.rs"):
        text = path.read_text().split("#[cfg(test)]")[0]
        codes |= set(IN_RUST.findall(text))
    return codes


@pytest.fixture(scope="module")
def documented(root):
    page = (root / "docs" / "reference" / "errors.md").read_text()
    rows = re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, flags=re.MULTILINE)
    assert all(cell.strip() for row in rows for cell in row)
    return [row[0] for row in rows]


def test_every_code_is_documented(raised, documented):
    assert sorted(raised - set(documented)) == []


def test_every_documented_code_is_raised(raised, documented):
    assert sorted(set(documented) - raised) == []


def test_codes_are_documented_once_and_in_order(documented):
    assert len(documented) == len(set(documented))


def test_the_search_finds_codes_of_every_kind(raised):
    assert {
        "LIMIT",
        "SYNTAX_ERROR",
        "WRONG_TYPE",
        "DUPLICATE_KEY",
        "DIVIDE_BY_ZERO",
        "STALE_ITERATOR",
        "INVALID_EXPRESSION",
    } <= raised
