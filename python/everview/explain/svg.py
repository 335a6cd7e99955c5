"""``explain`` as a picture.

What: the graph of stages, drawn top down from the last one: operators above what they read, cores as their join trees with hubs, below an atom
the stage that it reads, and a legend. A stage that is read twice is drawn once, and named where it is read again.
Representation: built from ``explain.facts``, placed by ``explain.tidy_tree``; plain SVG without scripts, fonts or ids.
Invariants: deterministic: coordinates are printed with one decimal; all text is escaped.
Cost: linear in the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape

from everview.explain.facts import Facts
from everview.explain.tidy_tree import Box, Placed, place

ROW, MARGIN, CHARACTER, LINE = 62.0, 24.0, 7.3, 16.0
TITLE = 34.0
SMALL = 0.85  # small print, relative to CHARACTER
LONGEST = 60
INK, SOFT, CONNEX, PLAIN, OPERATOR = "#1f2933", "#52606d", "#dbe9f6", "#ffffff", "#f3efe4"
LEGEND = (
    "box: relation; hexagon: projection; pill: hub with its key; blue: connex part; dashed: value edge",
    "a changed value: O(1) at root and guard; only existence at unit;",
    "with deltas the live rows above at connex; all rows above at fan-out",
    "exists, forbids, optional: EXISTS and IN, NOT EXISTS and NOT IN, LEFT JOIN",
)
FONT = 'font-family="Helvetica, Arial, sans-serif"'


def explain_svg(facts: Facts) -> str:
    """The SVG text of a view's facts."""
    placed, extent = place(_Boxes(facts).stage(facts["stages"][-1]["position"]))
    top = MARGIN + TITLE
    widest = max([CHARACTER * SMALL * len(line) for line in LEGEND] + [extent])
    body = list(_picture(placed, MARGIN + (widest - extent) / 2, top))
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


class _Boxes:
    """The boxes of a view's stages; ``drawn``: those that are in the picture already."""

    def __init__(self, facts: Facts) -> None:
        self._stages = {stage["position"]: stage for stage in facts["stages"]}
        self._drawn: set[int] = set()
        readers = [p for s in facts["stages"] for p in s["inputs"]]
        self._several = {p for p in readers if readers.count(p) > 1}

    def stage(self, position: int) -> Box:
        """A stage and what it reads."""
        stage = self._stages[position]
        if position in self._drawn:
            return _box((f"stage {position}",), "operator", "operator", "support", ())
        self._drawn.add(position)
        number = f"stage {position}: " if position in self._several else ""
        if stage["stage"] != "core":
            lines = (f"{number}{stage['stage']}", _shortened(stage["text"]))
            return _box(lines, "operator", "operator", "support", tuple(self.stage(i) for i in stage["inputs"]))
        sources = {a["name"]: a["stage"] for a in stage["atoms"] if a["stage"] is not None}
        children = tuple(self._node(n, sources) for n in stage["tree"]["root"]["children"])
        return _box((f"{number}root",), "hub", "plain", "support", children)

    def _node(self, node: Facts, sources: Mapping[str, int]) -> Box:
        hubs = tuple(
            _box((_hub_label(h),), "hub", "plain", "support", tuple(self._node(c, sources) for c in h["children"]))
            for h in node["hubs"]
        )
        if node["atom"] in sources:
            hubs += (self.stage(sources[node["atom"]]),)
        cost = f"value: {node['cost']}" if node["edge"] == "value" else ""
        lines = (node["name"], cost) if cost else (node["name"],)
        return _box(lines, node["kind"], "connex" if node["connex"] else "plain", node["edge"], hubs)


def _hub_label(hub: Facts) -> str:
    kind = "" if hub["kind"] == "required" else f"{hub['kind']} "
    return f"{'guard ' if hub['guard'] else ''}{kind}({', '.join(hub['key'])})"


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
