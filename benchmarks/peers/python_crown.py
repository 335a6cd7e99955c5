"""Hand-written maintenance in pure Python: CROWN (CROWN) for three queries, on dicts and sets, one event at a time.

The tables of a self-join are kept as separate relations and an event is applied to one after the other, as CROWN does. The deltas of an event
are built as a list of tuples; the timed runs count and drop them, ``evidence`` runs once more and sums them up.
"""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.checksum import MASK, row_checksum
from benchmarks.contest import Evidence, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.generate import Stream

    Event = tuple[int, int, int]
    Sink = Callable[[int, Iterable[tuple[int, ...]]], Any]  # (multiplicity, rows)

NOTHING: frozenset[int] = frozenset()


class PythonPeer:
    """A function that maintains a query, as a contestant. ``maintain`` returns the number of deltas and gives them to a sink, if there is one."""

    def __init__(self, name: str, maintain: Callable[..., int], stream: Stream) -> None:
        self.name = name
        self._maintain = maintain
        self._events = stream.events()

    def run(self) -> Run:
        start = perf_counter()
        deltas = self._maintain(self._events)
        return Run(perf_counter() - start, deltas)

    def evidence(self) -> Evidence:
        rows = checksum = 0

        def add(multiplicity: int, delta: Iterable[tuple[int, ...]]) -> None:
            nonlocal rows, checksum
            for row in delta:
                rows += multiplicity
                checksum += multiplicity * row_checksum(row)

        self._maintain(self._events, add)
        return Evidence(rows, checksum & MASK)


def three_hop(events: Iterable[Event], sink: Sink | None = None) -> int:
    """Rows (a, b, c, d) of g(a, b), g(b, c), g(c, d) with d % 10 = 0. Returns the number of deltas."""
    heads, middle, middle_back, tails = (defaultdict(set) for _ in range(4))  # b: {a}; b: {c}; c: {b}; c: {d}
    onward = defaultdict(set)  # b: {c} of the middle edges with a tail
    backward = defaultdict(set)  # c: {b} of the middle edges with a head
    count = 0
    for op, src, dst in events:
        delta = []
        if op > 0:
            for c in onward.get(dst, NOTHING):
                delta += [(src, dst, c, d) for d in tails[c]]
            group = heads[dst]
            if not group:
                for c in middle.get(dst, NOTHING):
                    backward[c].add(dst)
            group.add(src)

            middle[src].add(dst)
            middle_back[dst].add(src)
            before = heads.get(src)
            after = tails.get(dst)
            if before:
                backward[dst].add(src)
            if after:
                onward[src].add(dst)
                if before:
                    delta += [(a, src, dst, d) for a in before for d in after]

            if dst % 10 == 0:
                for b in backward.get(src, NOTHING):
                    delta += [(a, b, src, dst) for a in heads[b]]
                group = tails[src]
                if not group:
                    for b in middle_back.get(src, NOTHING):
                        onward[b].add(src)
                group.add(dst)
        else:
            group = heads[dst]
            group.discard(src)
            if not group:
                for c in middle.get(dst, NOTHING):
                    backward[c].discard(dst)
            for c in onward.get(dst, NOTHING):
                delta += [(src, dst, c, d) for d in tails[c]]

            middle[src].discard(dst)
            middle_back[dst].discard(src)
            before = heads.get(src)
            after = tails.get(dst)
            if before:
                backward[dst].discard(src)
            if after:
                onward[src].discard(dst)
                if before:
                    delta += [(a, src, dst, d) for a in before for d in after]

            if dst % 10 == 0:
                group = tails[src]
                group.discard(dst)
                if not group:
                    for b in middle_back.get(src, NOTHING):
                        onward[b].discard(src)
                for b in backward.get(src, NOTHING):
                    delta += [(a, b, src, dst) for a in heads[b]]
        count += len(delta)
        if sink is not None:
            sink(op, delta)
    return count


def three_hop_projected(events: Iterable[Event], sink: Sink | None = None) -> int:
    """Rows DISTINCT (b, c) of the three-hop query: the middle edges with a head and a tail. Returns the number of deltas.

    Keeps the live views ``onward`` and ``backward`` like CROWN, though this query can do without: see ``python_tight``.
    """
    heads, middle, middle_back, tails, onward, backward = (defaultdict(set) for _ in range(6))
    count = 0
    for op, src, dst in events:
        delta = []
        if op > 0:
            group = heads[dst]
            if not group:
                for c in middle.get(dst, NOTHING):
                    backward[c].add(dst)
                    if tails.get(c):
                        delta.append((dst, c))
            group.add(src)

            middle[src].add(dst)
            middle_back[dst].add(src)
            before = heads.get(src)
            after = tails.get(dst)
            if before:
                backward[dst].add(src)
            if after:
                onward[src].add(dst)
                if before:
                    delta.append((src, dst))

            if dst % 10 == 0:
                group = tails[src]
                if not group:
                    for b in middle_back.get(src, NOTHING):
                        onward[b].add(src)
                        if heads.get(b):
                            delta.append((b, src))
                group.add(dst)
        else:
            group = heads[dst]
            group.discard(src)
            if not group:
                for c in middle.get(dst, NOTHING):
                    backward[c].discard(dst)
                    if tails.get(c):
                        delta.append((dst, c))

            middle[src].discard(dst)
            middle_back[dst].discard(src)
            before = heads.get(src)
            after = tails.get(dst)
            if before:
                backward[dst].discard(src)
            if after:
                onward[src].discard(dst)
                if before:
                    delta.append((src, dst))

            if dst % 10 == 0:
                group = tails[src]
                group.discard(dst)
                if not group:
                    for b in middle_back.get(src, NOTHING):
                        onward[b].discard(src)
                        if heads.get(b):
                            delta.append((b, src))
        count += len(delta)
        if sink is not None:
            sink(op, delta)
    return count


def star(events: Iterable[Event], sink: Sink | None = None) -> int:
    """Rows (src, count) of the 4-way self-join on src. Returns the number of changes of a count."""
    degrees = [defaultdict(int) for _ in range(4)]
    counts: defaultdict[int, int] = defaultdict(int)
    count = 0
    for op, src, _ in events:
        for own in degrees:
            combinations = 1
            for other in degrees:
                if other is not own:
                    combinations *= other[src]
            own[src] += op
            if combinations:
                old = counts[src]
                counts[src] = new = old + op * combinations
                count += 1
                if sink is not None:
                    if old:
                        sink(-1, [(src, old)])
                    if new:
                        sink(1, [(src, new)])
    return count


QUERIES = {"three_hop": three_hop, "three_hop_projected": three_hop_projected, "star": star}


def python_crown(query: str, stream: Stream) -> PythonPeer:
    """The peer for one of the queries."""
    return PythonPeer("python CROWN", QUERIES[query], stream)
