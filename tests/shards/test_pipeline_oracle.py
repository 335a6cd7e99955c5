"""Random acyclic queries under random changes: a pipeline of any number of shards holds what a session holds."""

from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from watching import MODES, Comparison

from everview.analysis.classification import QueryClass
from everview.shards import durable
from everview.testing.strategies import QueryKind, scenarios

CLASSES = [QueryClass.Q_HIERARCHICAL, QueryClass.FREE_CONNEX, QueryClass.ACYCLIC, None]
PAIRS = [(c, k) for c in CLASSES for k in QueryKind if (c, k) != (QueryClass.ACYCLIC, QueryKind.FULL)]


def named(value):
    return str(value).replace(" ", "_")


@pytest.mark.parametrize(("query_class", "kind"), PAIRS, ids=named)
@settings(max_examples=3)
@given(data=st.data())
def test_shards_hold_what_a_session_holds(query_class, kind, data):
    run(data.draw(scenarios(query_class, kind)), data)


@pytest.mark.parametrize("kind", [QueryKind.GROUP, QueryKind.OVER, QueryKind.HAVING], ids=named)
@settings(max_examples=3)
@given(data=st.data())
def test_groups_over_several_tables(kind, data):
    run(data.draw(scenarios(None, kind, spanning=True)), data)


def run(scenario, data):
    seed = data.draw(st.integers(0, 2**16))
    modes = {t.name: data.draw(st.sampled_from(MODES)) for t in scenario.tables if t.primary_key}
    losses = data.draw(st.sampled_from([0.0, 0.5]))
    parts = data.draw(st.integers(1, 3))
    threshold = data.draw(st.sampled_from([0, 3000, 4 << 20]))
    with (
        patch.object(durable, "_SMALLEST_SNAPSHOT", threshold),
        Comparison(scenario.query.spark, scenario.tables, seed=seed, modes=modes) as found,
    ):
        for batch in scenario.batches:
            changes = [(c.table, c.row, c.sign) for c in batch.changes]
            found.step(changes, losses=losses, parts=parts, change_types=batch.form == "change_type")
        found.empty()
