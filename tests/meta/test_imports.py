"""The order of the layers, the confinement of dependencies, and what `import everview` loads."""

import subprocess
import sys

import pytest

LAYERS = [
    ("errors", "machine"),
    ("schema",),
    ("query",),
    ("aggregates",),
    ("relational",),
    ("sql", "analysis"),
    ("rules", "extract"),
    ("lower",),
    ("trees",),
    ("plan",),
    ("layout",),
    ("explain",),
    ("engine", "interop"),
    ("session", "shards"),
    ("spark",),
    ("cli", "testing"),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def layer(module):
    parts = module.removesuffix(".py").replace("/", ".").removeprefix("everview.").split(".")
    return parts[0]


def test_every_module_has_a_layer(modules):
    assert {layer(path) for path in modules} - {"__init__"} == set(RANK)


def test_the_left_never_imports_the_right(imports):
    for path, names in imports.items():
        here = layer(path)
        if here == "__init__":
            continue
        for name in names:
            if not name.startswith("everview.") or layer(name) not in RANK:
                continue
            there = layer(name)
            assert there == here or RANK[there] < RANK[here], f"{path} imports {name}"


CONFINED = {
    "sqlglot": lambda path: path.startswith("sql/"),
    "everview._kernel": lambda path: path == "engine.py",
    "duckdb": lambda path: path.startswith("testing/"),
    "hypothesis": lambda path: path.startswith("testing/"),
    "pyspark": lambda path: path.startswith("spark/"),
    "deltalake": lambda path: path.startswith("spark/sinks/"),
    "psycopg": lambda path: path.startswith("spark/sinks/"),
    "typer": lambda path: path.startswith("cli/"),
    "rich": lambda path: path.startswith("cli/"),
}


@pytest.mark.parametrize("dependency", CONFINED)
def test_dependencies_are_confined(imports, dependency):
    users = {
        path for path, names in imports.items() for n in names if n == dependency or n.startswith(dependency + ".")
    }
    assert {path for path in users if not CONFINED[dependency](path)} == set()


def test_import_everview_is_light():
    heavy = ["pyspark", "pandas", "polars", "duckdb", "hypothesis", "typer", "rich"]
    code = f"import sys, everview; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
