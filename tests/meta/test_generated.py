"""Generated tests: which examples they run on, how a run is repeated, and how the runner counts."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

TESTS = """
import pathlib
from hypothesis import given, settings, strategies as st

def note(kind, value):
    with pathlib.Path(__file__).with_name("noted").open("a") as file:
        file.write(f"{kind} {value}\\n")

@settings(max_examples=3)
@given(st.binary(min_size=8, max_size=8))
def test_examples(drawn):
    note("drawn", drawn.hex())

def test_seed(seed):
    note("seed", seed)

def test_plain():
    note("plain", 0)
"""


@pytest.fixture
def runs(tmp_path, root):
    """Runs pytest on some tests; gives what they noted, by kind, and what was printed."""
    shutil.copy(root / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(*arguments, tests=TESTS, fails=False, **environment):
        (tmp_path / "test_some.py").write_text(tests)
        (tmp_path / "noted").write_text("")
        without = {k: v for k, v in os.environ.items() if k not in ("CI", "EVERVIEW_SEED")}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=without | environment, capture_output=True, text=True)
        assert (done.returncode == 1) == fails, done.stdout
        noted = {}
        for line in (tmp_path / "noted").read_text().splitlines():
            kind, value = line.split()
            noted.setdefault(kind, []).append(value)
        return noted, done.stdout

    return run


def test_fixed_examples_stay_and_fresh_ones_follow_the_seed(runs):
    one, printed = runs(EVERVIEW_SEED="7")
    assert "EVERVIEW_SEED=7" in printed
    assert runs(EVERVIEW_SEED="7")[0] == one
    two, _ = runs(EVERVIEW_SEED="8")
    assert [len(one[kind]) for kind in ("drawn", "seed", "plain")] == [6, 2, 1]
    assert one["drawn"][:3] == two["drawn"][:3]
    assert not set(one["drawn"][3:]) & set(two["drawn"][4:])
    assert one["seed"][0] == two["seed"][0] == "0"
    assert one["seed"][1] != two["seed"][1]


def test_a_run_without_a_seed_takes_another_each_time(runs):
    (one, printed), (two, _) = runs(), runs()
    assert one["seed"][1] != two["seed"][1]
    chosen = re.search(r"EVERVIEW_SEED=(\d+)", printed)[1]
    assert runs(EVERVIEW_SEED=chosen)[0] == one


def test_continuous_integration_sees_fixed_examples_only(runs):
    noted, printed = runs(CI="true")
    assert [len(noted[kind]) for kind in ("drawn", "seed", "plain")] == [3, 1, 1]
    assert noted["seed"] == ["0"]
    assert "EVERVIEW_SEED" not in printed


def test_fuzzing_repeats_fresh_tests_with_other_seeds(runs):
    noted, _ = runs("--fuzz", "0.02", CI="true")
    assert "plain" not in noted
    assert len(set(noted["seed"])) == len(noted["seed"]) > 3
    assert len(noted["drawn"]) > 9


def test_a_failure_found_by_fuzzing_says_how_to_repeat_it(runs):
    failing = "def test_seed(seed):\n    assert seed % 5\n"
    _, printed = runs("--fuzz", "1", tests=failing.replace("assert", "assert seed < 10 or"), fails=True)
    chosen, test = re.search(r"EVERVIEW_SEED=(\d+) python -m pytest '?(\S+?)'?\n", printed).groups()
    assert test == "test_some.py::test_seed[fresh]"
    runs(test, tests=failing, fails=True, EVERVIEW_SEED=chosen)


def test_parts_of_a_run_are_all_of_it(runs, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(f"from test_some import note\ndef test():\n    note({name!r}, 0)\n")
    found = [runs("--part", f"{part}/2", CI="true")[0] for part in (1, 2)]
    assert sorted(kind for noted in found for kind in noted) == ["a", "b", "drawn", "plain", "seed"]
    assert all(found)


@pytest.mark.parametrize(
    ("output", "code", "expected"),
    [
        ("....\n12 passed in 3.2s\n", 0, (12, 0)),
        ("FAILED x - 9 passed\n2 failed, 10 passed, 1 skipped in 3.2s\n", 1, (10, 2)),
        ("1 failed, 10 passed, 3 errors in 3.2s\n", 1, (10, 4)),
        ("test result: ok. 3 passed; 0 failed;\n\ntest result: FAILED. 4 passed; 1 failed;\nerror\n", 101, (7, 1)),
        ("Fatal Python error: Segmentation fault\n", -11, (0, 1)),
        ("", 1, (0, 1)),
    ],
)
def test_the_runner_counts(root, output, code, expected):
    spec = importlib.util.spec_from_file_location("run", root / "tests" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.counted(output, code) == expected


def test_nothing_is_random_beside_the_seed(root):
    """Random choices come from ``random.Random(seed)``, or from the module after ``random.seed(...)``."""
    for path in (root / "tests").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        named = [(ast.unparse(call.func), len(call.args)) for call in calls]
        functions = {name for name, _ in named if re.fullmatch(r"random\.\w+", name)}
        for name, count in named:
            assert name not in ("Random", "random.Random") or count, f"{path}: Random() without a seed"
        loose = functions - {"random.Random", "random.SystemRandom", "random.seed"}
        assert not loose or "random" not in modules or "random.seed" in functions, (
            f"{path}: {loose} without random.seed"
        )
