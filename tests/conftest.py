"""Generated tests: the same examples in every run, and fresh ones from a seed that the run prints.

A test is generated if Hypothesis makes its examples or if it takes a ``seed`` for random choices of its own (``@pytest.mark.seeds(n)``: the
numbers below n). Each runs on fixed examples and, marked ``fresh``, on those of the run's seed. EVERVIEW_SEED repeats a run; with CI=true
nothing is fresh. With ``--fuzz=MINUTES`` only fresh tests run, each again and again with other seeds for its share of the time.
"""

import os
import random
import shlex
import time
from itertools import count

import pytest
from _pytest.runner import runtestprotocol

try:
    import hypothesis
except ImportError:  # those tests are skipped
    hypothesis = None

if hypothesis is not None:
    hypothesis.settings.register_profile(
        "everview",
        max_examples=7,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.data_too_large,
            hypothesis.HealthCheck.function_scoped_fixture,
            hypothesis.HealthCheck.filter_too_much,
        ],
        print_blob=True,
    )
    hypothesis.settings.load_profile("everview")


def pytest_addoption(parser):
    parser.addoption("--fuzz", type=float, metavar="MINUTES", help="run fresh generated tests only, for so long")
    parser.addoption("--part", default="1/1", metavar="I/N", help="run the I-th of N parts of the test files")


def pytest_configure(config):
    config.addinivalue_line("markers", "seeds(n): the fixed values of `seed` are the numbers below n")
    config.addinivalue_line("markers", "fresh: a generated test with the seed of this run")
    if os.environ.get("CI") == "true" and config.getoption("--fuzz") is None:
        config.fresh = None
    else:
        config.fresh = int(os.environ.get("EVERVIEW_SEED") or random.SystemRandom().getrandbits(32))


# ---- fixed and fresh examples ----------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc):
    generated = getattr(metafunc.function, "is_hypothesis_test", False)
    fresh = [] if metafunc.config.fresh is None else [pytest.param("fresh", marks=pytest.mark.fresh)]
    if generated:
        metafunc.parametrize("_examples", ["fixed", *fresh], indirect=True)
    elif "seed" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("seeds")
        metafunc.parametrize("seed", [*range(marker.args[0] if marker else 1), *fresh], indirect=True)


def number_of(item):
    """The number that EVERVIEW_SEED must be to repeat a fresh test: the run's, and one more in each round of fuzzing."""
    return item.config.fresh + getattr(item, "round", 0)


def fresh_seed(item):
    return random.Random(f"{number_of(item)} {item.nodeid}").getrandbits(64)


@pytest.fixture(autouse=True)
def _examples(request):
    """Tells Hypothesis what to start from."""
    if hasattr(request, "param"):
        test = getattr(request.function, "__func__", request.function)
        hypothesis.seed(fresh_seed(request.node) if request.param == "fresh" else None)(test)


@pytest.fixture
def seed(request):
    """The number that a test makes its random choices from, as with ``random.Random(seed)``."""
    return fresh_seed(request.node) if request.param == "fresh" else request.param


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and item.get_closest_marker("fresh"):
        command = f"EVERVIEW_SEED={number_of(item)} python -m pytest {shlex.quote(item.nodeid)}"
        report.sections.append(("repeat with", command))
    return report


def pytest_terminal_summary(terminalreporter, config):
    if config.fresh is not None:
        terminalreporter.write_line(f"fresh examples are those of EVERVIEW_SEED={config.fresh}")


# ---- fuzzing ---------------------------------------------------------------------------------------------------------


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    part, parts = map(int, config.getoption("--part").split("/"))
    files = list(dict.fromkeys(item.path for item in items))
    ours = set(files[part - 1 :: parts])
    minutes = config.getoption("--fuzz")
    chosen = [i for i in items if i.path in ours and (minutes is None or i.get_closest_marker("fresh"))]
    config.hook.pytest_deselected(items=[i for i in items if i not in set(chosen)])
    items[:] = chosen
    if minutes is not None:
        config.pluginmanager.register(Rounds(60 * minutes, len(items)))


class Rounds:
    """Runs each test again and again, with other seeds, for its share of the time that is left. One that fails is not run again."""

    def __init__(self, seconds, tests):
        self.end = time.monotonic() + seconds
        self.tests = tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        now = time.monotonic()
        share = now + (self.end - now) / self.tests
        self.tests -= 1
        for item.round in count():
            item._initrequest()  # fixtures of the function are made anew; those of its module stay
            reports = runtestprotocol(item, log=False, nextitem=Beside(item))
            if time.monotonic() >= share or not all(report.passed for report in reports):
                break
        item.session._setupstate.teardown_exact(nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


class Beside:
    """Stands for a next test in the same place, so that a round ends only what is the function's own."""

    def __init__(self, item):
        self.listchain = item.parent.listchain
