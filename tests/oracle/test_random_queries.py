"""Random acyclic queries over random tables under random changes, against recomputation in DuckDB.

``Replay`` checks after every commit: the result, listed and counted; the running sum of deltas, bit by bit; late views against early ones.
"""

import pytest
from everview.aggregates import FUNCTIONS
from everview.analysis.classification import QueryClass
from everview.testing.replay import Replay
from everview.testing.shapes import is_of_class
from everview.testing.strategies import QueryKind, scenarios
from hypothesis import event, given
from hypothesis import strategies as st

CLASSES = [QueryClass.Q_HIERARCHICAL, QueryClass.FREE_CONNEX, QueryClass.ACYCLIC]
PAIRS = [(c, k) for c in CLASSES for k in QueryKind if (c, k) != (QueryClass.ACYCLIC, QueryKind.FULL)]


def keeps_values(view):
    """Whether the head of a core holds more than was asked for: the values of MIN and MAX, which change the class."""
    found = (a.function for s in view.plan.view.stages for a in getattr(s, "aggregates", ()))
    return any(FUNCTIONS[function].keeps_values for function in found)


def rows_of_nothing(view, kind):
    """What a view over empty tables keeps: nothing but the one group of every aggregate without keys, and their join."""
    groups = sum(hasattr(s, "aggregates") for s in view.plan.view.stages)
    return 0 if kind is not QueryKind.GLOBAL else 1 if groups == 1 else 2 * groups


def replay(scenario, oracle, query_class=None, kind=None):
    run = Replay(scenario, oracle)
    try:
        view = run.run()
        if query_class is not None and not keeps_values(view):
            assert is_of_class(view.classification, query_class), (query_class, view.classification.answers)
        event(f"{len(scenario.tables)} tables, {len(scenario.batches)} batches")
        for watched in run.watched:
            metrics = watched.view.metrics()
            assert metrics.state_rows <= rows_of_nothing(watched.view, kind), metrics
    finally:
        run.close()


@pytest.mark.parametrize(("query_class", "kind"), PAIRS, ids=lambda p: str(p).replace(" ", "_"))
@given(data=st.data())
def test_class_and_kind(query_class, kind, oracle, data):
    replay(data.draw(scenarios(query_class, kind)), oracle, query_class, kind)


@pytest.mark.parametrize("kind", QueryKind, ids=lambda k: str(k).replace(" ", "_"))
@given(data=st.data())
def test_any_class_with_every_expression(kind, oracle, data):
    replay(data.draw(scenarios(None, kind)), oracle, None, kind)


@pytest.mark.parametrize(
    "kind", [QueryKind.GROUP, QueryKind.OVER, QueryKind.HAVING], ids=lambda k: str(k).replace(" ", "_")
)
@given(data=st.data())
def test_group_keys_over_several_tables(kind, oracle, data):
    replay(data.draw(scenarios(None, kind, spanning=True)), oracle, None, kind)
