"""Everything ``explain`` tells, as plain values.

What: one nested dict per planned view: SQL, and for each stage of the plan its facts; the JSON format is this dict and
the other formats print it, so that they cannot disagree.
Representation: dicts, lists, strings, numbers and booleans only; keys in a fixed order.
Invariants: F1, no ids, addresses or times: equal plans give equal facts; F2, one entry per stage of the plan, in order.
Cost: linear in the plan.
Source: the papers named in ``SOURCES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everview.aggregates import FUNCTIONS
from everview.explain.summary import summary_of
from everview.plan.lower import PlannedCore, PlannedView
from everview.plan.view_lookup import holds_groups, view_lookups
from everview.query.conjunctive import ConjunctiveQuery, StageSource
from everview.query.expression_text import expression_text
from everview.query.logical_view import (
    Core,
    Distinct,
    Filter,
    GroupAggregate,
    LogicalView,
    Map,
    Repeat,
    Stage,
    TopK,
    Union,
    Values,
    inputs_of,
)
from everview.trees.join_tree import EdgeKind, JoinTree, lookups

SOURCES = {
    "CROWN": "Wang, Hu, Dai, Yi: Change Propagation Without Joins. VLDB 2023",
    "GDYN": "Idris, Ugarte, Vansummeren, Voigt, Lehner: Conjunctive Queries with Theta Joins Under Updates. VLDBJ",
    "value edges (everview)": "bounds of everview's own for edges that pass sums; see ARCHITECTURE.md",
    "kinds of edges (everview)": "what everview says of EXISTS, NOT EXISTS and left joins in a tree; see ARCHITECTURE.md",
}

HELD = "one entry per group{with_values}; work above it follows its delta, whether deltas are wanted or not"
STATE = {
    "aggregate": "nothing: totals are read from the tree",
    "distinct": "one count per distinct row; work above it follows its delta, whether deltas are wanted or not",
    "map": "",
    "filter": "",
    "union": "",
    "topk": "the {rows} in order, inside the limit and outside, so that the next comes in when one leaves",
    "repeat": "",
    "values": "its rows",
}
"""What a finishing operator keeps."""

_OPERATORS = {
    GroupAggregate: "aggregate",
    Map: "map",
    Filter: "filter",
    Distinct: "distinct",
    Union: "union",
    TopK: "topk",
    Repeat: "repeat",
    Values: "values",
}

Facts = dict[str, Any]


def facts_of(planned: PlannedView) -> Facts:
    """All facts about a planned view."""
    cores = {c.stage: c for c in planned.cores}
    stages: list[Facts] = []
    for i, stage in enumerate(planned.view.stages):
        if isinstance(stage, Core):
            stages.append(_core_facts(cores[i], len(stages), planned.positions))
            stages.extend(_projection_facts(cores[i], planned.positions[i]))
        else:
            stages.append(_operator_facts(stage, i, planned))
    facts = {
        "view": planned.view.name,
        "summary": [],
        "sql": planned.view.sql,
        "plan_version": planned.plan.version,
        "plan_hash": planned.plan.plan_hash,
        "columns": [{"name": c.name, "type": c.type, "nullable": c.nullable} for c in planned.plan.output],
        "lookups": [list(found.columns) for found in view_lookups(planned)],
        "order": list(planned.view.read_order),
        "warnings": list(planned.view.warnings),
        "stages": stages,
        "sources": SOURCES,
    }
    return {**facts, "summary": summary_of(facts)}


def _core_facts(core: PlannedCore, position: int, positions: Sequence[int]) -> Facts:
    query, classification, choice = core.query, core.classification, core.choice
    return {
        "stage": "core",
        "position": position,
        "inputs": list(
            dict.fromkeys(positions[a.source.stage] for a in query.atoms if isinstance(a.source, StageSource))
        ),
        "datalog": str(query),
        "mode": "set" if query.distinct else "bag",
        "atoms": _atom_facts(query, positions),
        "null_safe": [v.name for v in query.variables.values() if v.null_safe],
        "components": list(query.components),
        "hypergraph": [{"name": e.name, "variables": list(e.members)} for e in classification.hypergraph.edges],
        "classes": [
            {
                "class": a.query_class.value,
                "holds": a.holds,
                "witness": None if a.witness is None else a.witness.sentence,
            }
            for a in classification.answers
        ],
        "reduction": [{"stage": s.stage, "step": str(s)} for s in classification.reduction.steps],
        "head": list(classification.head),
        "maintained_head": list(classification.maintained_head),
        "tree": {"height": choice.tree.height, "root": _hub_facts(choice.tree, 0)},
        "choice": {"considered": choice.considered, "complete": choice.complete, "reason": choice.reason},
        "guarantees": [
            {"name": name, "bound": b.bound, "source": b.source, "note": b.note} for name, b in choice.guarantee.bounds
        ],
        "value_edges": [
            {
                "child": edge.child,
                "parent": edge.parent,
                "key": list(edge.key),
                "cost": edge.cost.value,
                "bound": b.bound,
                "source": b.source,
                "note": b.note,
            }
            for edge, b in choice.guarantee.value_edges
        ],
        "forbids": [{"child": e.child, "parent": e.parent, "inner": e.inner} for e in choice.tree.shape.forbids],
        "lookups": [list(s) for s in lookups(choice.tree)],
    }


def _atom_facts(query: ConjunctiveQuery, positions: Sequence[int]) -> list[Facts]:
    stages = {a.name: positions[a.source.stage] for a in query.atoms if isinstance(a.source, StageSource)}
    return [
        {
            "name": a.name,
            "source": f"stage {stages[a.name]}" if a.name in stages else str(a.source),
            "stage": stages.get(a.name),
            "columns": {v: expression_text(e) for v, e in a.bindings},
            "filter": None if a.filter is None else expression_text(a.filter),
            "factors": [None if f is None else expression_text(f) for f in a.factors],
        }
        for a in query.atoms
    ]


def _hub_facts(tree: JoinTree, hub: int) -> Facts:
    return {
        "key": list(tree.hubs[hub].key),
        "kind": tree.hubs[hub].kind.value,
        "guard": tree.is_guard(hub),
        "children": [_node_facts(tree, n) for n in tree.hubs[hub].children],
    }


def _node_facts(tree: JoinTree, node: int) -> Facts:
    found = tree.nodes[node]
    edge = tree.edge_kind(node)
    return {
        "kind": found.kind.value,
        "name": str(found),
        "atom": found.atom,
        "columns": list(found.columns),
        "connex": found.connex,
        "edge": edge.value,
        "cost": tree.value_cost(node).value if edge is EdgeKind.VALUE else None,
        "hubs": [_hub_facts(tree, h) for h in found.down],
    }


def _projection_facts(core: PlannedCore, last: int) -> list[Facts]:
    """The map and the distinct that follow a core whose head was extended."""
    names = ["map", "distinct"][: last - core.plan_stage]
    head = ", ".join(core.classification.head)
    texts = {"map": f"back to the head: {head}", "distinct": "each row once"}
    return [
        {
            "stage": name,
            "position": core.plan_stage + i,
            "inputs": [core.plan_stage + i - 1],
            "text": texts[name],
            "state": STATE[name],
        }
        for i, name in enumerate(names, 1)
    ]


def _operator_facts(stage: Stage, index: int, planned: PlannedView) -> Facts:
    assert not isinstance(stage, Core)
    name = _OPERATORS[type(stage)]
    return {
        "stage": name,
        "position": planned.positions[index],
        "inputs": [planned.positions[i] for i in inputs_of(stage)],
        "text": operator_text(stage),
        "state": _state(stage, name, planned),
    }


def _state(stage: Stage, name: str, planned: PlannedView) -> str:
    if isinstance(stage, GroupAggregate) and holds_groups(planned, stage):
        kept = dict.fromkeys(
            FUNCTIONS[a.function].kept.format(", ".join(map(expression_text, a.arguments)))
            for a in stage.aggregates
            if FUNCTIONS[a.function].kept
        )
        return HELD.format(with_values=f", with {' and '.join(kept)}" if kept else "")
    if isinstance(stage, TopK):
        return "nothing" if stage.limit == 0 else STATE[name].format(rows=_ranked(planned.view, stage.input))
    return STATE[name]


def _ranked(view: LogicalView, stage: int) -> str:
    """What the rows are that reach a TopK."""
    found = view.stages[stage]
    match found:
        case GroupAggregate():
            return "groups"
        case Core(query=query) if not query.distinct:
            return "whole result of the join" if len(query.result_atoms) > 1 else f"rows of {query.atoms[0].source}"
        case Distinct() | Core():
            return "distinct rows"
        case Map() | Filter():
            return _ranked(view, found.input)
        case _:
            return "rows of its input"


def operator_text(stage: Stage) -> str:
    """One line about a finishing operator."""
    if isinstance(stage, GroupAggregate):
        keys = ", ".join(k.name for k in stage.keys)
        parts = []
        for a in stage.aggregates:
            over = ", ".join(map(expression_text, a.arguments)) or a.sum or a.count or "*"
            parts.append(f"{a.name} = {a.function.upper()}({over})")
        return f"{'by ' + keys if keys else 'one row'}: {', '.join(parts) or 'keys only'}"
    if isinstance(stage, Map):
        texts = ((n, expression_text(e)) for n, e in stage.expressions)
        return ", ".join(n if n == text else f"{n} = {text}" for n, text in texts)
    if isinstance(stage, Filter):
        return expression_text(stage.predicate)
    if isinstance(stage, TopK):
        by = ", ".join(key.text([c.name for c in stage.columns]) for key in stage.order)
        limit = (
            "all rows" if stage.limit is None else f"the first {stage.limit}" if stage.limit != 1 else "the first row"
        )
        after = f" after {stage.offset}" if stage.offset else ""
        per = f" per {', '.join(stage.partition_names)}" if stage.partition else ""
        numbered = (
            f"; {stage.columns[-1].name} = its number, each change of which is a change of the row"
            if stage.numbered
            else ""
        )
        return f"{limit}{after}{per} by {by + ', then by ' if by else ''}all columns{numbered}"
    if isinstance(stage, Repeat):
        return f"each row {expression_text(stage.count)} times"
    if isinstance(stage, Values):
        return f"{len(stage.rows)} constant {'row' if len(stage.rows) == 1 else 'rows'}"
    return "the rows of all of them" if isinstance(stage, Union) else "each row once"
