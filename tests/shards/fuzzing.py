"""How many examples: few and always the same by default; HYPOTHESIS_PROFILE=fuzz tries FUZZ_EXAMPLES (3000) random ones per test."""

import os

from hypothesis import HealthCheck, settings

CHECKS = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.function_scoped_fixture,
    HealthCheck.filter_too_much,
]


def examples(count):
    """Settings for a test that tries ``count`` examples by default."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "fuzz":
        count = int(os.environ.get("FUZZ_EXAMPLES", "3000"))
        return settings(max_examples=count, deadline=None, suppress_health_check=CHECKS, print_blob=True)
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=CHECKS,
        print_blob=True,
    )
