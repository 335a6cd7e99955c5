"""What a join tree guarantees: update time, enumeration delay and space, each with the theorem it follows from.

What: bounds for arbitrary, FIFO and insert-only streams, for the delay of full and delta enumeration, for space, and
for the tree's value edges, which have bounds of their own.
Representation: the tree enters only through its ``TreeShape`` (height and value edges), so this module knows the
theory and not the trees.
Invariants: B1, a bound that a value edge would break is never stated without that edge's cost; B2, no constant delay
and no work bound relative to the net delta is stated for an extended head; B3, no amortised bound is stated above a forbids edge.
Cost: constant.
Source: CROWN: Lemma 4.1 (space), 5.4 and 5.9 (delay), Theorem 6.6 (update time), Lemma 6.8, 6.9, 6.10 and
Theorem 6.11 (streams), Theorem 6.2 (FIFO lower bound), section 7.1 (not free-connex), section 7.3 (annotations). The
bounds of value edges are ours, and so is what is said of forbids and optional edges: per edge as many rows change their status as with a
semi-join, but above a forbids edge statuses are not monotone in the data, so that lifespans below do not bound those above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from everview.analysis.classification import Classification, QueryClass

OWN = "value edges (everview)"
EDGES = "kinds of edges (everview)"


class ValueCost(StrEnum):
    """What a changed value on a value edge costs."""

    ROOT = "root"  # the root hub has one entry
    GUARD = "guard"  # one projection row per entry
    UNIT = "unit"  # keys force the value to be 0 or 1, so it changes only with existence
    CONNEX = "connex"  # multiplied lazily, parents visited only for deltas
    FAN_OUT = "fan-out"  # every parent row of the entry is visited


@dataclass(frozen=True, slots=True)
class ValueEdge:
    """A value edge: printable names of its ends and its key, and its cost."""

    child: str
    parent: str
    key: tuple[str, ...]
    cost: ValueCost


@dataclass(frozen=True, slots=True)
class ForbidsEdge:
    """A forbids edge. ``inner``: there are rows above its parent whose status depends on that of the parent's rows."""

    child: str
    parent: str
    inner: bool


@dataclass(frozen=True, slots=True)
class TreeShape:
    """What the theorems need to know about a join tree."""

    height: int
    value_edges: tuple[ValueEdge, ...]
    forbids: tuple[ForbidsEdge, ...] = ()
    has_optional: bool = False

    @property
    def fan_outs(self) -> tuple[ValueEdge, ...]:
        return tuple(e for e in self.value_edges if e.cost is ValueCost.FAN_OUT)


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound and where it comes from; ``note`` is a sentence or empty."""

    bound: str
    source: str
    note: str = ""

    def __str__(self) -> str:
        note = f"; {self.note}" if self.note else ""
        return f"{self.bound} [{self.source}]{note}"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The bounds of one core on one tree."""

    arbitrary: Bound
    fifo: Bound
    insert_only: Bound
    full_delay: Bound
    delta_delay: Bound
    space: Bound
    value_edges: tuple[tuple[ValueEdge, Bound], ...]

    @property
    def bounds(self) -> tuple[tuple[str, Bound], ...]:
        """The bounds with their printable names, value edges apart."""
        return (
            ("update, arbitrary stream", self.arbitrary),
            ("update, FIFO stream", self.fifo),
            ("update, insert-only stream", self.insert_only),
            ("delay, full result", self.full_delay),
            ("delay, delta", self.delta_delay),
            ("space", self.space),
        )


def guarantee_of(classification: Classification, shape: TreeShape, *, always_deltas: bool = False) -> Guarantee:
    """The bounds that hold for a query on a tree of this shape.

    ``always_deltas``: an operator above keeps state, or may refuse a row, and reads the core's delta in any case.
    """
    full_delay, delta_delay = _delays(classification, shape)
    insert_only = Bound("O(1) amortised", "CROWN Lemma 6.10, Theorem 6.11")
    return Guarantee(
        arbitrary=_qualified(_arbitrary(classification, shape), classification, shape),
        fifo=_qualified(_fifo(shape), classification, shape),
        insert_only=_qualified(insert_only, classification, shape),
        full_delay=full_delay,
        delta_delay=delta_delay,
        space=Bound(
            "O(|D|)", "CROWN Lemma 4.1", "linear in the current data; operators above the core state what they keep"
        ),
        value_edges=tuple((edge, _value_bound(edge, always_deltas=always_deltas)) for edge in shape.value_edges),
    )


def _arbitrary(classification: Classification, shape: TreeShape) -> Bound:
    if shape.height <= 1:
        return Bound("O(1) amortised", "CROWN Theorem 6.6, Lemma 6.8", "lambda_T = 1 on a tree of height 1")
    note = "lambda_T, the stream's enclosureness on this tree, is at most |D|"
    if not classification.holds(QueryClass.Q_HIERARCHICAL) and not classification.is_extended:
        note += "; without keys, O(1) with O(1) delay is possible only for q-hierarchical queries (OMv)"
    return Bound("O(lambda_T) amortised", "CROWN Theorem 6.6", note)


def _fifo(shape: TreeShape) -> Bound:
    if shape.height <= 1:
        return Bound("O(1) amortised", "CROWN Theorem 6.6, Lemma 6.8")
    if shape.height == 2:
        return Bound("O(1) amortised", "CROWN Theorem 6.6, Lemma 6.9", "lambda_T = 1 on a tree of height 2")
    note = f"height {shape.height}: no O(1) bound for every query of height 3 or more (Theorem 6.2)"
    return Bound("O(lambda_T) amortised", "CROWN Theorem 6.6", note)


def _qualified(bound: Bound, classification: Classification, shape: TreeShape) -> Bound:
    """The bound with what forbids and value edges and an extended head do to it (B1, B2, B3)."""
    inner = [edge for edge in shape.forbids if edge.inner]
    if inner:
        edges = ", ".join(f"{e.child} -> {e.parent}" for e in inner)
        note = (
            f"above a forbids edge ({edges}) rows die when rows come below and live again when they go, so the amortised bounds end there: a change "
            "costs as many rows as change their status"
        )
        bound = Bound("not bounded", EDGES, note)
    elif shape.forbids:
        edges = ", ".join(f"{e.child} -> {e.parent}" for e in shape.forbids)
        bound = replace(
            bound, note="; ".join(filter(None, [bound.note, f"a forbids edge ({edges}) costs what a semi-join does"]))
        )
    notes = [bound.note] if bound.note else []
    text, source = bound.bound, bound.source
    if shape.fan_outs and not inner:
        base = text.removesuffix(" amortised").removeprefix("O(").removesuffix(")")
        edges = ", ".join(f"{e.child} -> {e.parent}" for e in shape.fan_outs)
        text, source = f"O({base} + f)", f"{source}; {OWN}"
        notes.append(f"f: rows above that carry the key of a changed value, at most |D| ({edges})")
    if any(e.cost is ValueCost.CONNEX for e in shape.value_edges):
        notes.append("with deltas, value edges into connex parents add their own bound")
    if classification.is_extended:
        notes.append("of the extended core; with deltas, work above it follows its delta")
    return Bound(text, source, "; ".join(notes))


_PHANTOMS = "; a batch that changes several tables of a left join is added up before it leaves"


def _delays(classification: Classification, shape: TreeShape) -> tuple[Bound, Bound]:
    if classification.is_extended:
        extra = ", ".join(v for v in classification.maintained_head if v not in classification.head)
        note = f"the core also keeps {extra}; its rows are projected and merged above"
        return (
            Bound("unbounded between distinct rows", "CROWN section 7.1", note),
            Bound(
                "unbounded",
                "CROWN section 7.1",
                "work follows the delta of the extended core, which may be larger than the net delta without bound",
            ),
        )
    return (
        Bound("O(1)", "CROWN Lemma 5.4"),
        Bound(
            "O(1)",
            "CROWN Lemma 5.9",
            "for changes of one row, after live marking, which is O(|delta|) and precedes an insert's first row; in a"
            " larger batch, results that combine a row it inserts with one it deletes are passed over"
            + _PHANTOMS
            * shape.has_optional,
        ),
    )


def _value_bound(edge: ValueEdge, *, always_deltas: bool) -> Bound:
    if edge.cost is ValueCost.ROOT:
        return Bound("O(1)", OWN, "the root keeps one total; with deltas each changed result is written")
    if edge.cost is ValueCost.GUARD:
        return Bound("O(1)", OWN, "one projection row per key")
    if edge.cost is ValueCost.UNIT:
        return Bound(
            "as a support edge", "CROWN Theorem 6.6", "keys force the value 0 or 1: it changes only with existence"
        )
    if edge.cost is ValueCost.CONNEX and always_deltas:
        return Bound(
            "O(live rows of the parent with the key)",
            OWN,
            "also without deltas: an operator above keeps state, or may refuse a row, and reads the core's delta",
        )
    if edge.cost is ValueCost.CONNEX:
        return Bound(
            "O(1) without deltas, O(live rows of the parent with the key) with deltas",
            OWN,
            "the sum stays at the hub entry; each of these rows changes at least one result",
        )
    return Bound(
        "O(rows of the parent with the key), at most |D|",
        OWN,
        "also on insert-only streams; no algorithm avoids it in general (OMv)",
    )
