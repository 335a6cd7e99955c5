"""The sources of the package, parsed."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "everview"


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def modules():
    """For each file of the package: its path below the package, and its syntax tree."""
    return {str(p.relative_to(PACKAGE)): ast.parse(p.read_text()) for p in sorted(PACKAGE.rglob("*.py"))}


@pytest.fixture(scope="session")
def imports(modules):
    """For each file: the modules it imports, wherever in it and for whatever purpose."""

    def of(tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, "imports are absolute"
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    return {path: set(of(tree)) for path, tree in modules.items()}
