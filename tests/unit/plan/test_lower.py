"""Lowering: the JSON of docs/reference/maintenance-plan.md."""

import json

import pytest
import views
from everview.errors import UnsupportedQueryError
from everview.plan.lower import lower_view, plan_view
from everview.plan.view_lookup import Lookup, view_lookups


def plan(pair, **options):
    view, tables = pair
    return json.loads(lower_view(view, tables, **options).to_json())


def test_tpch_q3_plan():
    found = plan(views.tpch_q3())
    assert list(found) == ["version", "view", "stages", "output"]
    assert found["version"] == 2
    core, aggregate, having, rename = found["stages"]
    assert list(core) == ["stage", "mode", "variables", "components", "atoms", "nodes", "hubs", "head"]
    assert [v["name"] for v in core["variables"]] == ["c_custkey", "o_orderkey", "o_orderdate"]
    assert (core["mode"], core["components"], core["head"]) == ("bag", 1, [1, 2])
    orders = core["atoms"][1]
    assert [(c["variable"], c["expression"]["index"]) for c in orders["columns"]] == [(1, 0), (0, 1), (2, 2)]
    assert orders["filter"]["args"][0] == {"op": "column", "index": 2, "type": "date"}
    assert [a["factors"] for a in core["atoms"]][:2] == [[None], [None]]
    assert core["atoms"][2]["factors"][0]["index"] == 1
    assert aggregate == {
        "stage": "aggregate",
        "input": 0,
        "keys": [0, 1],
        "aggregates": [
            {
                "function": "sum",
                "type": "decimal(22,2)",
                "argument_type": "decimal(12,2)",
                "argument": None,
                "sum": 0,
                "count": None,
            }
        ],
    }
    assert (having["stage"], having["input"], having["predicate"]["args"][0]["index"]) == ("filter", 1, 2)
    assert (rename["stage"], rename["input"]) == ("map", 2)
    assert [(c["name"], c["expression"]["index"]) for c in rename["columns"]] == [("orderkey", 0), ("revenue", 2)]
    assert found["output"][0] == {"name": "orderkey", "type": "bigint", "nullable": False}


def test_figure_1_core():
    core = plan(views.textbook("figure_1"))["stages"][0]
    assert core["nodes"][0] == {"kind": "projection", "columns": [2], "connex": True, "up": 0, "down": [1]}
    assert core["nodes"][1] == {
        "kind": "relation",
        "atom": 1,
        "columns": [1, 2],
        "connex": True,
        "up": 1,
        "down": [2],
    }
    assert core["hubs"][0] == {"key": [], "parent": None, "children": [0], "kind": "required", "phantom": []}
    assert core["hubs"][1] == {"key": [2], "parent": 0, "children": [1, 3], "kind": "required", "phantom": []}


def test_extended_head_is_projected_back():
    core, back = plan(views.textbook("two_hop_ends"))["stages"]
    assert core["head"] == [0, 2, 1]
    assert back == {
        "stage": "map",
        "input": 0,
        "columns": [
            {"name": "a", "expression": {"op": "column", "index": 0, "type": "bigint"}},
            {"name": "c", "expression": {"op": "column", "index": 1, "type": "bigint"}},
        ],
    }


def test_extended_head_of_a_distinct_query():
    core, back, distinct = plan(views.textbook("two_hop_ends", distinct=True))["stages"]
    assert core["mode"] == "set"
    assert (back["stage"], back["input"]) == ("map", 0)
    assert distinct == {"stage": "distinct", "input": 1}


def test_aggregate_reads_the_extended_core_by_position():
    core, aggregate = plan(views.count_by_ends())["stages"]
    assert core["head"] == [0, 2, 1]
    assert (aggregate["input"], aggregate["keys"]) == (0, [1, 0])
    assert aggregate["aggregates"][0]["count"] is None


def test_stages_above_an_inserted_map_are_renumbered():
    stages = plan(views.distinct_above_filter())["stages"]
    assert [(s["stage"], s.get("input")) for s in stages] == [
        ("core", None),
        ("map", 0),
        ("filter", 1),
        ("distinct", 2),
    ]
    assert [a["index"] for a in stages[2]["predicate"]["args"]] == [0, 1]


def test_json_and_hash_are_deterministic():
    first, second = (lower_view(*views.tpch_q3()) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert first.plan_hash == second.plan_hash
    assert len(first.plan_hash) == 64
    assert first.plan_hash != lower_view(*views.textbook("star")).plan_hash


def test_cyclic_query_is_refused():
    with pytest.raises(UnsupportedQueryError, match="CYCLIC_JOIN"):
        lower_view(*views.textbook("triangle"))


def test_lookups_are_told_in_output_columns():
    planned = plan_view(*views.tpch_q3())
    assert view_lookups(planned) == (Lookup(("orderkey",), ("o_orderkey",)),)
    held = plan_view(*views.count_by_ends())  # the engine keeps these groups, so all keys together find one
    assert view_lookups(held) == (Lookup(("c", "a"), ("c", "a")),)


def test_update_rates_reach_the_choice():
    view, tables = views.textbook("figure_1")
    assert plan_view(view, tables, {"r1": 5}).cores[0].choice.rank.depth_by_rate == 6


def test_a_top_k_plan():
    core, top, rename = plan(views.GOLDEN["latest_lines"]())["stages"]
    assert [core["variables"][v]["name"] for v in core["head"]] == ["o_orderkey", "l_extendedprice", "o_orderdate"]
    order = [{"column": 2, "descending": True, "nulls_first": True}]
    assert top == {"stage": "topk", "input": 0, "partition": [], "order": order, "limit": 3, "offset": 0}
    assert [c["expression"]["index"] for c in rename["columns"]] == [0, 1]
