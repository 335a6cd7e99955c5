"""The targets of the sinks: a directory, a Delta table, a table of a PostgreSQL server that lives as long as the tests."""

import os
import sys
from itertools import count
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers import everview; read when the session starts

from postgres_server import serving
from sink_targets import DeltaTarget, ParquetTarget, PostgresTarget

NUMBERS = count()


@pytest.fixture(scope="session")
def postgres():
    """The DSN of a fresh server on a socket."""
    pytest.importorskip("psycopg")
    with serving() as dsn:
        yield dsn


def _made(kind, request, tmp_path):
    if kind == "postgres":
        return PostgresTarget(request.getfixturevalue("postgres"), f"view_{next(NUMBERS)}")
    if kind == "delta":
        pytest.importorskip("deltalake")
        return DeltaTarget(tmp_path / "view")
    return ParquetTarget(tmp_path / "view")


@pytest.fixture(params=["parquet", "delta", "postgres"])
def target(request, tmp_path):
    return _made(request.param, request, tmp_path)


@pytest.fixture
def parquet(request, tmp_path):
    return _made("parquet", request, tmp_path)


@pytest.fixture
def delta(request, tmp_path):
    return _made("delta", request, tmp_path)


@pytest.fixture
def table(request, tmp_path):
    return _made("postgres", request, tmp_path)
