"""Random shapes of conjunctive queries: atoms as sets of variables, and a head, of a chosen class.

The class is forced by construction, and by definitions of their own (not those of ``everview.analysis``): q-hierarchical shapes grow from a
forest of variables, the others from a join tree around a core that keeps the query out of the better class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from everview.analysis.classification import QueryClass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hypothesis.strategies import DrawFn

    from everview.analysis.classification import Classification


@dataclass(frozen=True, slots=True)
class Shape:
    """Variables are numbers. ``head`` holds at least one of them unless an empty head was asked for."""

    atoms: tuple[tuple[int, ...], ...]
    head: tuple[int, ...]


def is_of_class(found: Classification, wanted: QueryClass) -> bool:
    """Whether a query is in the class and in no better one."""
    if wanted is QueryClass.Q_HIERARCHICAL:
        return found.holds(QueryClass.Q_HIERARCHICAL)
    if wanted is QueryClass.FREE_CONNEX:
        return found.holds(QueryClass.FREE_CONNEX) and not found.holds(QueryClass.Q_HIERARCHICAL)
    return found.holds(QueryClass.ACYCLIC) and not found.holds(QueryClass.FREE_CONNEX)


def is_acyclic(edges: Iterable[Iterable[int]]) -> bool:
    """Whether a hypergraph is alpha-acyclic, by ear removal.

    >>> is_acyclic([(0, 1), (1, 2)]), is_acyclic([(0, 1), (1, 2), (2, 0)])
    (True, False)
    """
    left = [set(e) for e in edges]
    changed = True
    while changed and left:
        changed = False
        for i, edge in enumerate(left):
            others = left[:i] + left[i + 1 :]
            shared = {v for v in edge if any(v in o for o in others)}
            if not shared or any(shared <= o for o in others):
                left = others
                changed = True
                break
    return not left


def is_free_connex(atoms: Iterable[Iterable[int]], head: Iterable[int]) -> bool:
    """Whether an acyclic query stays acyclic with its head as one more edge."""
    return is_acyclic([*atoms, tuple(head)])


@st.composite
def shapes(draw: DrawFn, query_class: QueryClass, *, head: str = "some", max_atoms: int = 4) -> Shape:
    """Shapes of a class. ``head``: "all" variables, "some" (at least one), "any" number, or "none"."""
    if query_class is QueryClass.Q_HIERARCHICAL:
        return draw(_q_hierarchical(head, max_atoms))
    if query_class is QueryClass.FREE_CONNEX:
        return draw(_free_connex(head, max_atoms))
    if head == "all":
        raise ValueError("an acyclic query with all variables in its head is free-connex")
    return draw(_acyclic_only(max_atoms))


@st.composite
def _q_hierarchical(draw: DrawFn, head: str, max_atoms: int) -> Shape:
    count = draw(st.integers(1, 5))
    parents = [-1] + [draw(st.integers(-1, v - 1)) for v in range(1, count)]
    leaves = [v for v in range(count) if v not in parents]
    ends = leaves[:max_atoms]
    ends += draw(st.lists(st.sampled_from(range(count)), max_size=max_atoms - len(ends)))
    ends = draw(st.permutations(ends))

    def path(v: int) -> tuple[int, ...]:
        return () if v < 0 else (*path(parents[v]), v)

    atoms = tuple(path(v) for v in ends)
    used = {v for atom in atoms for v in atom}
    chosen: set[int] = set()
    for v in sorted(used):
        above = parents[v] < 0 or parents[v] in chosen
        if above and (head == "all" or (head != "none" and draw(st.booleans()))):
            chosen.add(v)
    if head == "some" and not chosen:
        chosen.add(atoms[0][0])
    return Shape(atoms, tuple(draw(st.permutations(sorted(chosen)))))


@st.composite
def _grown(draw: DrawFn, core: list[tuple[int, ...]], max_atoms: int) -> list[tuple[int, ...]]:
    """The core with further atoms hung on it: each shares some variables with one atom, or none (a cross join)."""
    atoms = list(core)
    fresh = max(v for atom in core for v in atom) + 1
    for _ in range(draw(st.integers(0, max_atoms - len(core)))):
        host = draw(st.sampled_from(atoms))
        shared = [v for v in host if draw(st.integers(0, 3))]
        new = draw(st.integers(0 if shared else 1, 2))
        atoms.append((*shared, *range(fresh, fresh + new)))
        fresh += new
    widened = []
    for atom in atoms:
        if draw(st.integers(0, 3)) == 3:
            widened.append((*atom, fresh))
            fresh += 1
        else:
            widened.append(atom)
    return draw(st.permutations(widened))


@st.composite
def _free_connex(draw: DrawFn, head: str, max_atoms: int) -> Shape:
    long = head in ("all", "none") or draw(st.booleans())
    atoms = draw(_grown([(0,), (0, 1), (1,)] if long else [(0, 1), (1,)], max_atoms))
    variables = sorted({v for atom in atoms for v in atom})
    if head == "all":
        return Shape(tuple(atoms), tuple(draw(st.permutations(variables))))
    if head == "none":
        return Shape(tuple(atoms), ())
    order = draw(st.permutations(variables))
    chosen = {order[0]} if long else {0}
    for v in order:
        if (long or v != 1) and v not in chosen and draw(st.booleans()) and is_free_connex(atoms, chosen | {v}):
            chosen.add(v)
    return Shape(tuple(atoms), tuple(v for v in order if v in chosen))


@st.composite
def _acyclic_only(draw: DrawFn, max_atoms: int) -> Shape:
    atoms = draw(_grown([(0, 1), (1, 2)], max_atoms))
    variables = sorted({v for atom in atoms for v in atom} - {1})
    order = draw(st.permutations(variables))
    return Shape(tuple(atoms), tuple(v for v in order if v in (0, 2) or draw(st.integers(0, 2)) == 2))
