"""Tables of up to 1,000 columns and queries over all of them, against recomputation in DuckDB."""

import pytest
from everview.testing.replay import Replay
from everview.testing.wide import CHANGES, QUERIES, make_wide, wide_scenarios
from hypothesis import given, settings
from hypothesis import strategies as st

WIDTHS = (2, 40, 63, 64, 65, 66, 80, 127, 128, 129, 200)


def run(scenario, oracle):
    replay = Replay(scenario, oracle)
    try:
        replay.run()
    finally:
        replay.close()


@pytest.mark.parametrize("name", QUERIES, ids=lambda n: n.replace(" ", "_"))
@settings(max_examples=4)
@given(data=st.data())
def test_around_the_words_of_a_mask(name, oracle, data):
    run(data.draw(wide_scenarios(name, WIDTHS)), oracle)


@pytest.mark.parametrize("name", QUERIES, ids=lambda n: n.replace(" ", "_"))
def test_a_thousand_columns(name, oracle, seed):
    run(make_wide(name, seed, bytes([1] * CHANGES), (1000,)), oracle)
