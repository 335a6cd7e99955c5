"""``explain`` as a picture.

What: per core its join tree with hubs, drawn top down, the finishing operators above it, and a legend.
Representation: built from ``explain_facts``, placed by ``tidy_tree``; plain SVG without scripts, fonts or ids.
Invariants: deterministic: coordinates are printed with one decimal; all text is escaped.
Cost: linear in the facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from everview.plan.explain_facts import Facts
from everview.plan.tidy_tree import Box, Placed, place

ROW, MARGIN, CHARACTER, LINE = 62.0, 24.0, 7.3, 16.0
TITLE = 34.0
SMALL = 0.85  # small print, relative to CHARACTER
LONGEST = 60
INK, SOFT, CONNEX, PLAIN, OPERATOR = "#1f2933", "#52606d", "#dbe9f6", "#ffffff", "#f3efe4"
LEGEND = (
    "box: relation; hexagon: projection; pill: hub with its key; blue: connex part; dashed: value edge",
    "a changed value: O(1) at root and guard; only existence at unit;",
    "with deltas the live rows above at connex; all rows above at fan-out",
)
FONT = 'font-family="Helvetica, Arial, sans-serif"'


def explain_svg(facts: Facts) -> str:
    """The SVG text of a view's facts."""
    pictures = [place(_core_box(facts, s)) for s in facts["stages"] if s["stage"] == "core"]
    body: list[str] = []
    top = MARGIN + TITLE
    widest = max([CHARACTER * SMALL * len(line) for line in LEGEND] + [extent for _, extent in pictures])
    for placed, extent in pictures:
        body.extend(_picture(placed, MARGIN + (widest - extent) / 2, top))
        top += (max(p.level for p in placed) + 1) * ROW
    width, height = widest + 2 * MARGIN, top + LINE * len(LEGEND) + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}"'
    heights = [str(s["tree"]["height"]) for s in facts["stages"] if s["stage"] == "core"]
    title = f"view {facts['view']}: join tree of height {', '.join(heights)}"
    return (
        "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
                f"<title>{escape(title)}</title>",
                f'<rect width="100%" height="100%" fill="{PLAIN}"/>',
                _text(MARGIN, MARGIN + 8, title, size=15, anchor="start", weight="bold"),
                *body,
                *_legend(top),
                "</svg>",
            ]
        )
        + "\n"
    )


def _core_box(facts: Facts, core: Facts) -> Box:
    """The tree of a core, below the finishing operators that lead from it to the view."""
    children = tuple(_node_box(n) for n in core["tree"]["root"]["children"])
    box = _box(("root",), "hub", "plain", "support", children)
    above = core["position"]
    while (reader := _only_reader(facts, above)) is not None:
        box = _box((reader["stage"], _shortened(reader["text"])), "operator", "operator", "support", (box,))
        above = reader["position"]
    return box


def _only_reader(facts: Facts, position: int) -> Facts | None:
    readers = [s for s in facts["stages"] if s["stage"] != "core" and position in s["inputs"]]
    return readers[0] if len(readers) == 1 else None


def _node_box(node: Facts) -> Box:
    hubs = tuple(
        _box(
            (f"{'guard ' if h['guard'] else ''}({', '.join(h['key'])})",),
            "hub",
            "plain",
            "support",
            tuple(_node_box(c) for c in h["children"]),
        )
        for h in node["hubs"]
    )
    cost = f"value: {node['cost']}" if node["edge"] == "value" else ""
    lines = (node["name"], cost) if cost else (node["name"],)
    return _box(lines, node["kind"], "connex" if node["connex"] else "plain", node["edge"], hubs)


def _box(lines: tuple[str, ...], shape: str, style: str, edge: str, children: tuple[Box, ...]) -> Box:
    width = max(_text_width(line) for line in lines) + 24
    return Box(lines, shape, style, edge, width, children)


def _picture(placed: tuple[Placed, ...], left: float, top: float) -> Iterator[str]:
    for p in placed:
        if p.parent is not None:
            above = placed[p.parent]
            dash = ' stroke-dasharray="5 4"' if p.box.edge == "value" else ""
            yield (
                f'<line x1="{left + above.x:.1f}" y1="{_y(above, top):.1f}" x2="{left + p.x:.1f}" '
                f'y2="{_y(p, top):.1f}" stroke="{SOFT}" stroke-width="1.4"{dash}/>'
            )
    for p in placed:
        yield from _shape(p.box, left + p.x, _y(p, top))


def _y(placed: Placed, top: float) -> float:
    return top + placed.level * ROW + 20


def _shape(box: Box, x: float, y: float) -> Iterator[str]:
    height = 14.0 + LINE * len(box.lines) - (4.0 if box.shape == "hub" else 0.0)
    left, upper = x - box.width / 2, y - height / 2
    fill = {"connex": CONNEX, "operator": OPERATOR}.get(box.style, PLAIN)
    stroke = f'fill="{fill}" stroke="{INK}" stroke-width="1.2"'
    if box.shape == "projection":
        cut, right, lower = 9.0, x + box.width / 2, y + height / 2
        points = [(left + cut, upper), (right - cut, upper), (right, y), (right - cut, lower), (left + cut, lower)]
        text = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*points, (left, y)])
        yield f'<polygon points="{text}" {stroke}/>'
    else:
        round_ = {"hub": height / 2, "operator": 6.0}.get(box.shape, 0.0)
        yield (
            f'<rect x="{left:.1f}" y="{upper:.1f}" width="{box.width:.1f}" height="{height:.1f}" '
            f'rx="{round_:.1f}" {stroke}/>'
        )
    first = y + 4.5 - LINE * (len(box.lines) - 1) / 2
    for i, line in enumerate(box.lines):
        small = i > 0 or box.shape == "hub"
        yield _text(x, first + i * LINE, line, size=11 if small else 13, colour=SOFT if small else INK)


def _text(
    x: float, y: float, text: str, *, size: int, anchor: str = "middle", weight: str = "normal", colour: str = INK
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" {FONT} font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def _legend(y: float) -> Iterator[str]:
    for i, line in enumerate(LEGEND, 1):
        yield _text(MARGIN, y + i * LINE, line, size=11, anchor="start", colour=SOFT)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _text_width(text: str) -> float:
    return CHARACTER * len(text)
