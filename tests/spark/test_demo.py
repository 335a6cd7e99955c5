"""The demo as `everview demo` runs it, smaller, on the session of the tests."""

import io

import pytest
from rich.console import Console

from everview.cli import demo as shown


@pytest.fixture
def small(monkeypatch, streaming):
    from everview.spark import demo

    monkeypatch.setattr(demo, "start", lambda _: streaming)
    monkeypatch.setattr(streaming, "stop", lambda: None, raising=False)
    monkeypatch.setattr(demo, "HOT_ROWS", 40)
    monkeypatch.setattr(demo, "REVENUE_BATCHES", 2)
    monkeypatch.setattr(demo, "_ORDERS_PER_BATCH", 60)
    return demo


def test_the_demo_proves_its_result(small, monkeypatch):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=160, highlight=False)
    monkeypatch.setattr(shown, "Console", lambda **_: console)
    shown.run()
    text = out.getvalue()
    assert "81 rows" in text  # everview's state: its input
    assert "1,681 rows" in text  # Spark's: 40 * 40 pairs more
    assert "the sum of all changes equals the maintained table" in text
    assert "0 rows only here, 0 rows only there" in text


def test_a_wrong_result_is_not_called_right(small, monkeypatch, streaming, tmp_path):
    live = small.Revenue(only_maintained=1, summed_equal=True)
    with pytest.raises(shown.InternalError, match="differs from recomputation"):
        shown._show_revenue(Console(file=io.StringIO()), live)
