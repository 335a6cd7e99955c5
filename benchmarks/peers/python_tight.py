"""Pure Python tightened beyond CROWN for one query each: what its author could do who knows all of the query. Informational only.

The peers that the targets speak of are in ``python_crown``; these tell how much of a ratio is owed to the algorithm being general.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from benchmarks.peers.python_crown import NOTHING, PythonPeer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.generate import Stream
    from benchmarks.peers.python_crown import Event, Sink


def three_hop_projected(events: Iterable[Event], sink: Sink | None = None) -> int:
    """The middle edges with a head and a tail: a projection onto them needs no live views."""
    heads, middle, middle_back, tails = (defaultdict(set) for _ in range(4))
    count = 0
    for op, src, dst in events:
        delta = []
        if op > 0:
            group = heads[dst]
            if not group:
                delta += [(dst, c) for c in middle.get(dst, NOTHING) if tails.get(c)]
            group.add(src)
            middle[src].add(dst)
            middle_back[dst].add(src)
            if heads.get(src) and tails.get(dst):
                delta.append((src, dst))
            if dst % 10 == 0:
                group = tails[src]
                if not group:
                    delta += [(b, src) for b in middle_back.get(src, NOTHING) if heads.get(b)]
                group.add(dst)
        else:
            group = heads[dst]
            group.discard(src)
            if not group:
                delta += [(dst, c) for c in middle.get(dst, NOTHING) if tails.get(c)]
            middle[src].discard(dst)
            middle_back[dst].discard(src)
            if heads.get(src) and tails.get(dst):
                delta.append((src, dst))
            if dst % 10 == 0:
                group = tails[src]
                group.discard(dst)
                if not group:
                    delta += [(b, src) for b in middle_back.get(src, NOTHING) if heads.get(b)]
        count += len(delta)
        if sink is not None:
            sink(op, delta)
    return count


def star(events: Iterable[Event], sink: Sink | None = None) -> int:
    """The four relations are one table: the count of a group is the fourth power of its degree."""
    degrees: dict[int, int] = {}
    count = 0
    for op, src, _ in events:
        before = degrees.get(src, 0)
        degrees[src] = after = before + op
        count += 1
        if sink is not None:
            if before:
                sink(-1, [(src, before**4)])
            if after:
                sink(1, [(src, after**4)])
    return count


QUERIES = {"three_hop_projected": three_hop_projected, "star": star}


def python_tight(query: str, stream: Stream) -> PythonPeer | None:
    """The peer for one of the queries, where there is one."""
    return PythonPeer("python, tightened", QUERIES[query], stream) if query in QUERIES else None
