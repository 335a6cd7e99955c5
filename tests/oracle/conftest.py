"""A DuckDB database to recompute views in."""

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("hypothesis")


@pytest.fixture(scope="session")
def oracle():
    from everview.testing.oracle import Oracle

    with Oracle() as found:
        yield found
