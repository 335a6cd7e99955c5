"""The opening of ``explain``: in a few sentences what is kept, what a change costs, how results are read, and what is not promised.

What: one sentence or two each for space, updates, reading and what is missing, with what would give it.
Representation: built from the facts alone (``explain.facts``), so that it says nothing they do not; sentences, in a fixed order.
Invariants: S1, no bound is stated that some core does not have: of several cores the weakest counts, and a core that reads stages counts by its
bound for arbitrary streams.
Cost: linear in the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Facts = dict[str, Any]

_STREAMS = {
    "update, arbitrary stream": "on arbitrary streams",
    "update, FIFO stream": "on FIFO windows",
    "update, insert-only stream": "where rows only come",
}
_CONSTANT = "O(1) amortised"


def summary_of(facts: Facts) -> list[str]:
    """The sentences, one topic each."""
    cores = [s for s in facts["stages"] if s["stage"] == "core"]
    operators = [s for s in facts["stages"] if s["stage"] != "core"]
    return [_kept(facts, cores, operators), _update(cores, operators), _reading(facts, cores), _missing(facts, cores)]


def _kept(facts: Facts, cores: list[Facts], operators: list[Facts]) -> str:
    tables = _listed(dict.fromkeys(f"`{a['source']}`" for c in cores for a in c["atoms"] if a["stage"] is None))
    joins = any(len(core["atoms"]) > 1 for core in cores)
    kept = f"Kept are the columns of {tables} that the view needs" if tables else "Nothing is kept of tables"
    text = f"{kept}, linear in the data{', and no result of a join' if joins else ''}."
    read = {a["stage"] for core in cores for a in core["atoms"] if a["stage"] is not None}
    results = [at for at in sorted(read) if _has_results(facts, at)]
    if results:
        text = text.replace(", and no result of a join", "")
        text += f" Kept is the result of {_listed(f'stage {at}' for at in results)}, a join that another reads."
    states = [s for s in operators if s["state"] and not s["state"].startswith("nothing")]
    if states:
        told = (f"stage {s['position']} ({s['stage']}) keeps {s['state'].partition(';')[0]}" for s in states)
        text += f" Beside that {'; '.join(told)}."
    if any("whole result of the join" in s["state"] for s in states):
        text = text.replace(", and no result of a join", "")
    return text


def _has_results(facts: Facts, position: int) -> bool:
    """Whether the rows of a stage are results of a join, and not groups or distinct rows."""
    stage = facts["stages"][position]
    if stage["stage"] == "core":
        return len(stage["atoms"]) > 1 and stage["mode"] == "bag"
    return stage["stage"] in ("map", "filter", "union", "repeat") and any(
        _has_results(facts, at) for at in stage["inputs"]
    )


def _update(cores: list[Facts], operators: list[Facts]) -> str:
    if not cores:
        return "Nothing changes the view: it reads no table."
    bounds = {stream: _weakest(_bound(core, _met(core, stream)) for core in cores) for stream in _STREAMS}
    if len(set(bounds.values())) == 1:
        text = f"A change costs {next(iter(bounds.values()))} on any stream"
    else:
        text = "A change costs " + ", ".join(f"{bound} {_STREAMS[s]}" for s, bound in bounds.items())
    if any("lambda_T" in bound for bound in bounds.values()):
        text += " (lambda_T: how often rows below come and go while one above stays)"
    if any(s["stage"] == "topk" for s in operators):
        text += "; what reaches LIMIT costs O(log n) for every row, and what enters or leaves"
    if any(s["stage"] == "topk" and "its number" in s["text"] for s in operators):
        text += "; a row that comes or goes costs every row behind it whose number is shown"
    if len(cores) > 1 or any(s["state"].endswith("whether deltas are wanted or not") for s in operators):
        text += "; stages above follow the delta of those below"
    return text + "."


def _reading(facts: Facts, cores: list[Facts]) -> str:
    extended = any(core["head"] != core["maintained_head"] for core in cores)
    filters = any(s["stage"] in ("filter", "repeat") for s in facts["stages"])
    if extended:
        text = "The delay between results is not bounded"
    elif filters:
        text = "Results are read with constant delay, apart from those that a filter passes over"
    else:
        text = "Results are read with constant delay"
    return text + (f", in the order of {', '.join(facts['order'])}." if facts["order"] else ".")


def _missing(facts: Facts, cores: list[Facts]) -> str:
    found = [*(gap for core in cores for gap in _gaps(core))]
    if facts["warnings"]:
        found.append("what the warnings below say")
    return f"Not promised: {'; '.join(dict.fromkeys(found))}." if found else "This holds without exception."


def _gaps(core: Facts) -> Iterator[str]:
    added = [v for v in core["maintained_head"] if v not in core["head"]]
    if added:
        yield f"constant delay, which selecting {_listed(added)}, too, would give (a view over this one can leave it out again)"
    fans_out = dict.fromkeys(e["parent"] for e in core["value_edges"] if e["cost"] == "fan-out")
    if fans_out:
        columns = {node["name"]: node["columns"] for node in _nodes(core["tree"]["root"])}
        missing = dict.fromkeys(v for name in fans_out for v in columns[name] if v not in core["maintained_head"])
        yield (
            f"O(1) where sums below {_listed(fans_out)} change, which concerns every row there with the key (f); keeping "
            f"{_listed(missing)} in the result would give it"
        )
    for edge in core["forbids"]:
        if edge["inner"]:
            yield (
                f"amortised bounds above {edge['parent']}, whose rows come back when those of {edge['child']} go; with "
                "NOT EXISTS on the table that is on top of the tree they would hold"
            )
    if _bound(core, "update, arbitrary stream") != _CONSTANT:
        if any(a["class"] == "q-hierarchical" and a["holds"] for a in core["classes"]):
            yield "O(1) on arbitrary streams, because a row that comes and goes below an edge changes all rows above with its key"
        else:
            yield "O(1) on arbitrary streams, which only q-hierarchical queries have"
        if core["tree"]["height"] > 2:
            yield f"O(1) on FIFO windows, which trees of height 2 have and this one of height {core['tree']['height']} has not"


def _nodes(hub: Facts) -> Iterator[Facts]:
    for node in hub["children"]:
        yield node
        for below in node["hubs"]:
            yield from _nodes(below)


def _met(core: Facts, stream: str) -> str:
    """The stream that a core sees: one that reads stages sees their deltas, which are arbitrary whatever the tables' changes are."""
    return "update, arbitrary stream" if core["inputs"] else stream


def _bound(core: Facts, name: str) -> str:
    return str(next(g["bound"] for g in core["guarantees"] if g["name"] == name))


def _weakest(bounds: Iterable[str]) -> str:
    return max(bounds, key=lambda bound: (not bound.startswith("O("), "+ f" in bound, "lambda_T" in bound))


def _listed(names: Iterable[str]) -> str:
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last
