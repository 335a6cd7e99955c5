"""Explain in all formats, pinned by golden files; EVERVIEW_GOLDEN=rewrite writes them anew."""

import json
import os
import xml.dom.minidom
from pathlib import Path

import pytest
import views
from everview.errors import EverviewError
from everview.explain.formats import explain
from everview.explain.facts import facts_of
from everview.plan.lower import plan_view
from everview.explain.tidy_tree import GAP, Box, place
from hypothesis import given
from hypothesis import strategies as st

FOLDER = Path(__file__).parents[2] / "golden" / "explain"
PICTURED = ("figure_1", "tpch_q3", "two_hop_ends_distinct", "never_ordered", "busiest")
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


@pytest.mark.parametrize("name", views.GOLDEN)
def test_it_opens_with_a_summary(name):
    planned = plan_view(*views.GOLDEN[name]())
    facts = facts_of(planned)
    kept, update, reading, missing = facts["summary"]
    assert kept.startswith("Kept") and update.startswith("A change costs") and "delay" in reading
    text = explain(planned)
    assert text.index("Kept") < text.index("A change costs") < text.index("\nsql")
    weaker = [
        g
        for s in facts["stages"]
        if s["stage"] == "core"
        for g in s["guarantees"][:3]
        if g["bound"] != "O(1) amortised"
    ]
    assert (missing == "This holds without exception.") <= (not weaker)
    assert kept in explain(planned, "json") and explain(planned, "html").count("<li>") == 4


def test_the_picture_has_all_stages_and_the_kinds_of_edges():
    edges = plan_view(*views.GOLDEN["never_ordered"]())
    for format_ in ("text", "dot", "svg"):
        picture = explain(edges, format_)
        assert "forbids" in picture and "optional" in picture
    graph = plan_view(*views.GOLDEN["busiest"]())
    svg, dot = explain(graph, "svg"), explain(graph, "dot")
    assert svg.count(">stage 1: aggregate<") == 1 and svg.count(">stage 1<") == 2  # computed once, read three times
    assert dot.count("subgraph cluster_") == len(graph.cores) == 3
    assert dot.count("-> s1 [style=bold]") == 3


def test_amortised_bounds_end_above_a_forbids_edge():
    sql = """
    SELECT c_custkey, o_orderkey, o_orderdate, l_extendedprice FROM customer JOIN orders ON c_custkey = o_custkey
    JOIN lineitem ON o_orderkey = l_orderkey
    WHERE NOT EXISTS (SELECT 1 FROM customer c WHERE c.c_custkey = l_extendedprice)
    """
    planned = plan_view(*views.from_sql("v", sql), update_rates={"orders": 1})
    (core,) = [s for s in facts_of(planned)["stages"] if s["stage"] == "core"]
    for g in core["guarantees"][:3]:
        assert g["bound"] == "not bounded" and "amortised bounds end there" in g["note"]
    assert [e["inner"] for e in core["forbids"]] == [True]
    assert "amortised bounds above lineitem" in facts_of(planned)["summary"][3]
    top = plan_view(
        *views.from_sql("v", "SELECT c_custkey FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders)")
    )
    (core,) = [s for s in facts_of(top)["stages"] if s["stage"] == "core"]
    assert [g["bound"] for g in core["guarantees"][1:3]] == ["O(1) amortised"] * 2
    assert "costs what a semi-join does" in core["guarantees"][2]["note"]


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
