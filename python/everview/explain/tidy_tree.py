"""A layout for small trees: leaves side by side, parents centred above their children, one row per level.

What: places boxes of given widths so that no two of a level overlap and subtrees do not interleave.
Representation: ``Box`` is a tree of labelled boxes; ``place`` returns them with coordinates of their centres.
Invariants: Y1, boxes of one level are at least ``GAP`` apart; Y2, a parent is centred over its first and last child.
Cost: O(boxes * depth): each subtree keeps its outline per level and is moved right as a whole past its left sibling.
Source: the outline method of Reingold and Tilford (1981), without its thread optimisation.
"""

from __future__ import annotations

from dataclasses import dataclass

GAP = 18.0


@dataclass(frozen=True, slots=True)
class Box:
    """A box to place: its text lines, the names of its styles, and the boxes below it."""

    lines: tuple[str, ...]
    shape: str
    style: str
    edge: str
    width: float
    children: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """A box with its centre ``x``, its level, and the position of its parent in the list (None for the root)."""

    box: Box
    x: float
    level: int
    parent: int | None


def place(root: Box) -> tuple[tuple[Placed, ...], float]:
    """The boxes in preorder with their places, and the width of the whole drawing."""
    offsets: dict[int, float] = {}
    outline = _arrange(root, offsets)
    shift = -min(left for left, _ in outline)
    placed: list[Placed] = []

    def walk(box: Box, x: float, level: int, parent: int | None) -> None:
        index = len(placed)
        placed.append(Placed(box, x, level, parent))
        for child in box.children:
            walk(child, x + offsets[id(child)], level + 1, index)

    walk(root, shift, 0, None)
    return tuple(placed), max(right for _, right in outline) + shift


def _arrange(box: Box, offsets: dict[int, float]) -> list[tuple[float, float]]:
    """Set the children's offsets from their parents; return the outline: per level the left and right ends."""
    merged: list[tuple[float, float]] = []
    centres: list[float] = []
    for child in box.children:
        outline = _arrange(child, offsets)
        pairs = zip(merged, outline, strict=False)
        shift = max((right - left + GAP for (_, right), (left, _) in pairs), default=0.0)
        centres.append(shift)
        moved = [(left + shift, right + shift) for left, right in outline]
        joined = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(merged, moved, strict=False)]
        merged = joined + merged[len(joined) :] + moved[len(joined) :]
    middle = (centres[0] + centres[-1]) / 2 if centres else 0.0
    for child, centre in zip(box.children, centres, strict=True):
        offsets[id(child)] = centre - middle
    below = [(left - middle, right - middle) for left, right in merged]
    return [(-box.width / 2, box.width / 2), *below]
