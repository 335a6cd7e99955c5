"""Explain in all formats, pinned by golden files; EVERVIEW_GOLDEN=rewrite writes them anew."""

import json
import os
import xml.dom.minidom
from pathlib import Path

import pytest
import views
from everview.errors import EverviewError
from everview.plan.explain import explain
from everview.plan.explain_facts import facts_of
from everview.plan.lower import plan_view
from everview.plan.tidy_tree import GAP, Box, place
from hypothesis import given
from hypothesis import strategies as st

FOLDER = Path(__file__).parents[2] / "golden" / "explain"
PICTURED = ("figure_1", "tpch_q3", "two_hop_ends_distinct")
CASES = [(n, "text", "txt") for n in views.GOLDEN] + [(n, f, f) for n in PICTURED for f in ("json", "dot", "svg")]


@pytest.mark.parametrize(("name", "format_", "suffix"), CASES)
def test_golden(name, format_, suffix):
    found = explain(plan_view(*views.GOLDEN[name]()), format_)
    path = FOLDER / f"{name}.{suffix}"
    if os.environ.get("EVERVIEW_GOLDEN") == "rewrite":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


def test_no_golden_file_is_orphaned():
    assert {p.name for p in FOLDER.iterdir()} == {f"{n}.{s}" for n, _, s in CASES}


@pytest.mark.parametrize("name", views.GOLDEN)
def test_every_format_is_well_formed(name):
    planned = plan_view(*views.GOLDEN[name]())
    facts = json.loads(explain(planned, "json"))
    assert facts == facts_of(planned)
    assert [s["position"] for s in facts["stages"]] == list(range(len(planned.plan.stages)))
    assert [s["stage"] for s in facts["stages"]] == [s.stage for s in planned.plan.stages]
    xml.dom.minidom.parseString(explain(planned, "svg"))
    dot = explain(planned, "dot")
    assert dot.count("{") == dot.count("}")
    text = explain(planned)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_html_is_self_contained():
    page = explain(plan_view(*views.tpch_q3()), "html")
    assert page.count("<svg ") == 1
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page
    assert "CROWN Theorem 6.6" in page


def test_unknown_format():
    with pytest.raises(EverviewError, match="use one of text, json, dot, svg, html"):
        explain(plan_view(*views.textbook("star")), "pdf")


boxes = st.deferred(
    lambda: st.builds(
        lambda width, children: Box(("x",), "hub", "plain", "support", float(width), tuple(children)),
        st.integers(10, 200),
        st.lists(boxes, max_size=3),
    )
)


@given(boxes)
def test_layout_never_overlaps_and_centres_parents(root):
    placed, width = place(root)
    levels = {}
    for i, p in enumerate(placed):
        levels.setdefault(p.level, []).append((p.x - p.box.width / 2, p.x + p.box.width / 2))
        children = [c.x for c in placed if c.parent == i]
        assert not children or abs(p.x - (children[0] + children[-1]) / 2) < 1e-6
    for row in levels.values():
        assert all(b[0] - a[1] >= GAP - 1e-6 for a, b in zip(row, row[1:]))
    assert min(left for row in levels.values() for left, _ in row) >= -1e-6
    assert max(right for row in levels.values() for _, right in row) <= width + 1e-6
