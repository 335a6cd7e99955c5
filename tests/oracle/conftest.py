"""Hypothesis profiles: the default is fast and deterministic; HYPOTHESIS_PROFILE=fuzz runs long and at random."""

import os

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, settings

CHECKS = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.function_scoped_fixture,
    HealthCheck.filter_too_much,
]
settings.register_profile(
    "default",
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=CHECKS,
    print_blob=True,
)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "3000")),
    deadline=None,
    suppress_health_check=CHECKS,
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def oracle():
    from everview.testing.oracle import Oracle

    with Oracle() as found:
        yield found
