"""Random batches over several tables that must be refused, and such as only look like it.

``Trying`` checks after every batch that a refused one has left no trace and that a valid one was taken (see ``everview.testing.refusals``).
"""

import pytest
from everview.errors import ChangeError
from everview.testing.fallible import trials
from everview.testing.refusals import Trying
from everview.testing.strategies import QueryKind
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st


def run(trial):
    try:
        trying = Trying(trial)
    except ChangeError:
        reject()  # a view that neither empty tables nor the first rows allow
    try:
        trying.run()
        event(f"{min(trying.refused, 3)} refused")
    finally:
        trying.close()


@pytest.mark.parametrize("kind", QueryKind, ids=lambda k: str(k).replace(" ", "_"))
@settings(max_examples=30)
@given(data=st.data())
def test_one_view(kind, data):
    run(data.draw(trials(kind)))


@pytest.mark.parametrize(
    "kind", [QueryKind.BAG, QueryKind.GROUP, QueryKind.HAVING], ids=lambda k: str(k).replace(" ", "_")
)
@settings(max_examples=20)
@given(data=st.data())
def test_several_views(kind, data):
    run(data.draw(trials(kind, max_views=4, max_atoms=2)))


@pytest.mark.parametrize("kind", QueryKind, ids=lambda k: str(k).replace(" ", "_"))
@settings(max_examples=15)
@given(data=st.data())
def test_rows_that_come_very_often(kind, data):
    """Multiplicities whose products and sums leave 64 bits."""
    run(data.draw(trials(kind, largest=2**40)))
