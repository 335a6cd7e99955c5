"""``explain`` as text.

What: the facts of a view as indented lines, the join tree drawn with lines.
Representation: built from ``explain.facts``; notes are wrapped at ``WIDTH`` characters.
Invariants: deterministic; no trailing blanks.
Cost: linear in the facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

from everview.explain.facts import Facts

WIDTH = 110
_LIST = re.compile(r"\([\w, ]*\)")
_GLUE = "\0"


def explain_text(facts: Facts) -> str:
    """The text of a view's facts."""
    return "\n".join(line.rstrip() for line in _view_lines(facts)) + "\n"


def _view_lines(facts: Facts) -> Iterator[str]:
    yield f"view {facts['view']}"
    yield ""
    for sentence in facts["summary"]:
        yield from _wrapped(sentence, "  ", "    ")
    yield ""
    yield "sql"
    for line in facts["sql"].strip().splitlines():
        yield f"  {line}"
    if facts["warnings"]:
        yield ""
        yield "warnings"
        for warning in facts["warnings"]:
            yield from _wrapped(warning, "  ", "    ")
    for stage in facts["stages"]:
        yield ""
        if stage["stage"] == "core":
            yield f"stage {stage['position']}: core"
            yield from _core_lines(stage)
        else:
            of = f" of stage {', '.join(map(str, stage['inputs']))}" if stage["inputs"] else ""
            yield f"stage {stage['position']}: {stage['stage']}{of}"
            yield from _wrapped(stage["text"], "  ", "    ")
            if stage["state"]:
                yield f"  keeps {stage['state']}"
    yield ""
    yield "output"
    for column in facts["columns"]:
        yield f"  {column['name']} {column['type']}{'' if column['nullable'] else ' not null'}"
    if facts["order"]:
        yield f"read in   the order of {', '.join(facts['order'])}; deltas have none"
    yield f"lookups   {_sets(facts['lookups'])}"
    yield f"plan      version {facts['plan_version']}, sha256 {facts['plan_hash'][:16]}"
    yield "sources"
    used = _used_sources(facts)
    for name, title in facts["sources"].items():
        if name in used:
            yield f"  {name}: {title}"


def _core_lines(core: Facts) -> Iterator[str]:
    yield f"  query       {core['datalog']}"
    for atom in core["atoms"]:
        columns = ", ".join(f"{v} = {e}" for v, e in atom["columns"].items())
        yield from _wrapped(f"{atom['name']} = {atom['source']}: {columns}", "    ", "      ")
        if atom["filter"] is not None:
            yield from _wrapped(f"where {atom['filter']}", "      ", "        ")
    if core["components"]:
        yield from _component_lines(core)
    if core["null_safe"]:
        yield f"  null-safe   {', '.join(core['null_safe'])}: joined by <=>, so that NULL joins NULL"
    edges = ", ".join(f"{e['name']}{{{', '.join(e['variables'])}}}" for e in core["hypergraph"])
    yield from _wrapped(f"hypergraph  {edges}", "  ", "              ")
    yield f"  mode        {core['mode']}{' (DISTINCT: support edges only)' if core['mode'] == 'set' else ''}"
    yield "  classes"
    for answer in core["classes"]:
        verdict = "yes" if answer["holds"] else f"no: {answer['witness']}"
        yield from _wrapped(f"{answer['class']:<15} {verdict}", "    ", " " * 24)
    added = [v for v in core["maintained_head"] if v not in core["head"]]
    if added:
        yield f"  head        extended by {', '.join(added)} to the smallest free-connex head [GDYN Theorem 4]"
    yield f"  join tree   height {core['tree']['height']}; * marks the connex part"
    yield "    root"
    yield from _children_lines(core["tree"]["root"]["children"], "    ")
    yield from _wrapped(f"chosen      {core['choice']['reason']}", "  ", "              ")
    yield "  guarantees of this core"
    if core["inputs"]:
        stages = " and ".join(f"stage {position}" for position in core["inputs"])
        yield f"    its streams are the deltas of {stages}, with deletes whatever happens to the tables"
    for g in core["guarantees"]:
        yield f"    {g['name']:<27} {g['bound']} [{g['source']}]"
        yield from _wrapped(g["note"], " " * 32)
    if core["value_edges"]:
        yield "  value edges"
        for e in core["value_edges"]:
            yield f"    {e['child']} -> {e['parent']} on ({', '.join(e['key'])})"
            yield from _wrapped(f"{e['bound']}; {e['note']}", " " * 8)
    yield f"  lookups     {_sets(core['lookups'])}"


def _component_lines(core: Facts) -> Iterator[str]:
    for i, name in enumerate(core["components"]):
        held = ((a["name"], a["factors"][i] if i < len(a["factors"]) else None) for a in core["atoms"])
        product = " * ".join(f"({factor} of {atom})" for atom, factor in held if factor is not None)
        yield from _wrapped(f"sum {name} = {product or 'multiplicity'}", "    ", "      ")


def _children_lines(children: list[Facts], prefix: str, label: str = "") -> Iterator[str]:
    for i, node in enumerate(children):
        last = i == len(children) - 1
        yield f"{prefix}{'└─ ' if last else '├─ '}{label}{node_text(node)}"
        yield from _hub_lines(node["hubs"], prefix + ("   " if last else "│  "))


def _hub_lines(hubs: list[Facts], prefix: str) -> Iterator[str]:
    for i, hub in enumerate(hubs):
        last = i == len(hubs) - 1
        yield f"{prefix}{'└─ ' if last else '├─ '}{hub_text(hub)}"
        yield from _children_lines(hub["children"], prefix + ("   " if last else "│  "))


def node_text(node: Facts) -> str:
    """``G1(a, b)*  support``."""
    cost = f" ({node['cost']})" if node["cost"] else ""
    return f"{node['name']}{'*' if node['connex'] else ''}  {node['edge']}{cost}"


def hub_text(hub: Facts) -> str:
    """``hub (a, b)`` or ``guard (a, b)``; kinds of edges by name: ``forbids (a)``."""
    kind = "" if hub["kind"] == "required" else hub["kind"]
    return f"{' '.join(filter(None, ['guard' if hub['guard'] else '', kind])) or 'hub'} ({', '.join(hub['key'])})"


def _sets(sets: list[list[str]]) -> str:
    return ", ".join(f"({', '.join(s)})" for s in sets) or "none"


def _used_sources(facts: Facts) -> set[str]:
    bounds = [b for s in facts["stages"] if s["stage"] == "core" for b in (*s["guarantees"], *s["value_edges"])]
    used = {name for name in facts["sources"] for b in bounds if name in b["source"]}
    extended = any(s["stage"] == "core" and s["head"] != s["maintained_head"] for s in facts["stages"])
    return used | {"GDYN"} if extended else used


def _wrapped(text: str, indent: str, later: str | None = None) -> list[str]:
    """``text`` in lines; lists in parentheses are kept together."""
    lines = wrap(
        _LIST.sub(lambda m: m[0].replace(" ", _GLUE), text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if later is None else later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]
