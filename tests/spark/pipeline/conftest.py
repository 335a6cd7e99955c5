"""Scenarios: tables as directories of change files, views of them run by Spark, and Spark SQL as the oracle."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def scenario(spark, streaming, tmp_path):
    """Makes scenarios of its own directory each."""
    from stream_runs import Scenario

    made = []

    def make(tables):
        made.append(Scenario(spark, streaming, tmp_path / f"scenario-{len(made)}", tables))
        return made[-1]

    return make
