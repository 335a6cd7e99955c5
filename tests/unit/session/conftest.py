"""A session per test, and the state of a session as one comparable value."""

import pytest

import everview as ev


@pytest.fixture
def db():
    with ev.connect() as session:
        yield session


@pytest.fixture
def bag():
    """Rows of an Arrow table as a sorted list of tuples."""
    return lambda table: sorted(map(tuple, (row.values() for row in table.to_pylist())), key=repr)


@pytest.fixture
def state(bag):
    """All that a session holds and shows: tables, results, counts."""

    def look(session):
        return {
            "version": session.version,
            "tables": {name: bag(session.table_rows(name)) for name in session.tables},
            "views": {name: bag(view.to_arrow(multiplicity=True)) for name, view in session.views.items()},
            "counts": {name: view.count() for name, view in session.views.items()},
            "rows": {name: view.metrics().state_rows for name, view in session.views.items()},
        }

    return look
