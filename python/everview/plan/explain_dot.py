"""``explain`` as a Graphviz digraph.

What: per core its join tree, hubs as ellipses and nodes as boxes, with the finishing operators above.
Representation: built from ``explain_facts``; vertices are named by position, so the text is deterministic.
Cost: linear in the facts.
"""

from __future__ import annotations

from collections.abc import Iterator

from everview.plan.explain_facts import Facts


def explain_dot(facts: Facts) -> str:
    """The dot text of a view's facts."""
    lines = [f"digraph {_quoted(facts['view'])} {{", '  node [fontname="Helvetica"];', "  edge [dir=none];"]
    for stage in facts["stages"]:
        name = f"s{stage['position']}"
        if stage["stage"] == "core":
            lines.append(f'  {name} [label="root", shape=ellipse];')
            for i, child in enumerate(stage["tree"]["root"]["children"]):
                lines.extend(_node_lines(child, f"{name}_{i}", name))
        else:
            label = f"{stage['stage']}\n{stage['text']}"
            lines.append(f'  {name} [label={_quoted(label)}, shape=box, style="rounded"];')
            lines += [f"  {name} -> s{below};" for below in stage["inputs"]]
    return "\n".join([*lines, "}"]) + "\n"


def _node_lines(node: Facts, name: str, above: str) -> Iterator[str]:
    fill = ', style=filled, fillcolor="#dbe9f6"' if node["connex"] else ""
    shape = "box" if node["kind"] == "relation" else "hexagon"
    yield f"  {name} [label={_quoted(node['name'])}, shape={shape}{fill}];"
    dashed = f" [style=dashed, label={_quoted('value: ' + node['cost'])}]" if node["edge"] == "value" else ""
    yield f"  {above} -> {name}{dashed};"
    for i, hub in enumerate(node["hubs"]):
        below = f"{name}_h{i}"
        label = ("guard " if hub["guard"] else "") + f"({', '.join(hub['key'])})"
        yield f"  {below} [label={_quoted(label)}, shape=ellipse];"
        yield f"  {name} -> {below};"
        for j, child in enumerate(hub["children"]):
            yield from _node_lines(child, f"{below}_{j}", below)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
