"""``explain`` as a Graphviz digraph.

What: the graph of stages. Cores are clusters with their join trees, hubs as ellipses and nodes as boxes; an atom that reads a stage leads to it.
Representation: built from ``explain.facts``; vertices are named by position, so the text is deterministic.
Cost: linear in the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from everview.explain.facts import Facts


def explain_dot(facts: Facts) -> str:
    """The dot text of a view's facts."""
    lines = [f"digraph {_quoted(facts['view'])} {{", '  node [fontname="Helvetica"];', "  edge [dir=none];"]
    for stage in facts["stages"]:
        name = f"s{stage['position']}"
        if stage["stage"] == "core":
            lines.append(f"  subgraph cluster_{name} {{")
            lines.append(f'    label="stage {stage["position"]}: core"; color="#9aa5b1";')
            lines.append(f'    {name} [label="root", shape=ellipse];')
            reads: list[str] = []
            stages = {a["name"]: a["stage"] for a in stage["atoms"] if a["stage"] is not None}
            for i, child in enumerate(stage["tree"]["root"]["children"]):
                lines.extend(f"  {line}" for line in _node_lines(child, f"{name}_{i}", name, stages, reads))
            lines += ["  }", *reads]
        else:
            label = f"{stage['stage']}\n{stage['text']}"
            lines.append(f'  {name} [label={_quoted(label)}, shape=box, style="rounded"];')
            lines += [f"  {name} -> s{below};" for below in stage["inputs"]]
    return "\n".join([*lines, "}"]) + "\n"


def _node_lines(node: Facts, name: str, above: str, stages: Mapping[str, int], reads: list[str]) -> Iterator[str]:
    if node["atom"] in stages:
        reads.append(f"  {name} -> s{stages[node['atom']]} [style=bold];")
    fill = ', style=filled, fillcolor="#dbe9f6"' if node["connex"] else ""
    shape = "box" if node["kind"] == "relation" else "hexagon"
    yield f"  {name} [label={_quoted(node['name'])}, shape={shape}{fill}];"
    dashed = f" [style=dashed, label={_quoted('value: ' + node['cost'])}]" if node["edge"] == "value" else ""
    yield f"  {above} -> {name}{dashed};"
    for i, hub in enumerate(node["hubs"]):
        below = f"{name}_h{i}"
        label = ("guard " if hub["guard"] else "") + f"({', '.join(hub['key'])})"
        yield f"  {below} [label={_quoted(label)}, shape=ellipse];"
        kind = "" if hub["kind"] == "required" else f" [label={_quoted(hub['kind'])}]"
        yield f"  {name} -> {below}{kind};"
        for j, child in enumerate(hub["children"]):
            yield from _node_lines(child, f"{below}_{j}", below, stages, reads)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
