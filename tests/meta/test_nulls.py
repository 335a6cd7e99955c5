"""What Python says of operations and NULLs is what the kernel does."""

import re
from pathlib import Path

from everview.query.expression import ignores_nulls

FUNCTIONS = Path(__file__).parents[2] / "crates" / "expr" / "src" / "functions"
_DEFINED = re.compile(r'^ {4}function\("(?P<name>\w+)".*?(?=^ {4}function\(|^\];)', re.M | re.S)


def test_functions_that_see_nulls_are_known():
    found = {
        match["name"]: "Nulls::Seen" in match[0]
        for path in FUNCTIONS.glob("*.rs")
        for match in _DEFINED.finditer(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 50
    assert {name for name, seen in found.items() if seen} <= {name for name in found if ignores_nulls(name)}
    assert any(found.values())
