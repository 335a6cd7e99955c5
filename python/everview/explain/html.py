"""``explain`` as one self-contained HTML page.

What: the picture and the facts as tables, no scripts and nothing loaded from elsewhere.
Representation: built from ``explain.facts``, ``explain.svg`` and the text drawing of the tree.
Invariants: deterministic; all text is escaped.
Cost: linear in the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from everview.explain.facts import Facts
from everview.explain.svg import explain_svg
from everview.explain.text import explain_text

STYLE = """
body { font: 15px/1.5 Helvetica, Arial, sans-serif; color: #1f2933; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse } th, td { text-align: left; vertical-align: top; padding: .25rem .9rem .25rem 0 }
td { border-top: 1px solid #e4e7eb } pre { background: #f5f7fa; padding: .8rem; overflow-x: auto }
figure { margin: 1rem 0; overflow-x: auto } .no { color: #b44d12 } .note { color: #52606d }
"""


def explain_html(facts: Facts) -> str:
    """The page about a view's facts."""
    return "\n".join(_page(facts)) + "\n"


def _page(facts: Facts) -> Iterator[str]:
    name = escape(facts["view"])
    yield "<!DOCTYPE html>"
    yield f'<html lang="en"><head><meta charset="utf-8"><title>everview: {name}</title><style>{STYLE}</style></head>'
    yield f"<body><h1>View {name}</h1>"
    yield "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in facts["summary"]) + "</ul>"
    yield f"<pre>{escape(facts['sql'].strip())}</pre>"
    yield f"<figure>{explain_svg(facts)}</figure>"
    yield from (f'<p class="no">{escape(warning)}</p>' for warning in facts["warnings"])
    for stage in facts["stages"]:
        yield f"<h2>Stage {stage['position']}: {escape(stage['stage'])}</h2>"
        if stage["stage"] == "core":
            yield from _core(stage)
        else:
            state = f" (keeps {stage['state']})" if stage["state"] else ""
            of = f"of stage {', '.join(map(str, stage['inputs']))}: " if stage["inputs"] else ""
            yield f"<p>{of}{escape(stage['text'] + state)}</p>"
    lookups = ", ".join(f"({', '.join(s)})" for s in facts["lookups"]) or "none"
    yield f"<h2>Output</h2><p>Lookups: {escape(lookups)}</p>"
    yield from _table(
        ("column", "type", "nullable"), ([c["name"], c["type"], _yes(c["nullable"])] for c in facts["columns"])
    )
    yield f"<h2>As text</h2><pre>{escape(explain_text(facts))}</pre>"
    yield "</body></html>"


def _core(core: Facts) -> Iterator[str]:
    yield f"<pre>{escape(core['datalog'])}</pre>"
    yield from _table(
        ("class", "", "why not"),
        ([a["class"], _yes(a["holds"]), a["witness"] or ""] for a in core["classes"]),
    )
    yield f"<p>Chosen: {escape(core['choice']['reason'])}.</p>"
    yield from _table(
        ("guarantee", "bound", "source", "note"),
        ([g["name"], g["bound"], g["source"], g["note"]] for g in core["guarantees"]),
    )
    if core["value_edges"]:
        yield from _table(
            ("value edge", "cost of a changed value", "note"),
            ([f"{e['child']} → {e['parent']}", e["bound"], e["note"]] for e in core["value_edges"]),
        )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _table(header: tuple[str, ...], rows: Iterable[list[str]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{escape(h)}</th>" for h in header) + "</tr>"
    for row in rows:
        cells = (f'<td class="no">{c}</td>' if c == "no" else f"<td>{escape(c)}</td>" for c in row)
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</table>"
