"""Rewrites a query into an equivalent smaller one before it is classified.

What: atoms that read the same rows of the same table and bind the same variables are one atom counted several times. In
``q(x) :- R(x), R(x), R(x)`` the multiplicity of x is that of R's row to the power of three, and under DISTINCT two of the
three are redundant (they fold into the query's core).
Representation: the merged atom keeps the first one's name and has a ``power``.
Invariants: N1, results, multiplicities and components are those of the given query; N2, a variable that was joined by
``=`` is still never NULL.
Cost: quadratic in the number of atoms.
Source: query minimisation (Chandra and Merlin) for DISTINCT; for bags only equal atoms fold, and their weights multiply.
"""

from __future__ import annotations

from dataclasses import replace

from everview.query.conjunctive import Atom, ConjunctiveQuery
from everview.query.expression import Call, Expression
from everview.schema.datatype import BOOLEAN


def merge_equal_atoms(query: ConjunctiveQuery) -> ConjunctiveQuery:
    """The query with equal atoms merged; one with attached blocks stays as it is."""
    if query.attached:
        return query
    kept: list[Atom] = []
    for atom in query.atoms:
        at = next((i for i, other in enumerate(kept) if _are_equal(atom, other)), None)
        if at is None:
            kept.append(atom)
        else:
            power = 1 if query.distinct else kept[at].power + atom.power
            kept[at] = replace(kept[at], power=power, factors=_joined(kept[at], atom))
    if len(kept) == len(query.atoms):
        return query
    merged = replace(query, atoms=tuple(kept))
    alone = {v for v in query.join_variables if len(merged.occurrences[v]) == 1 and not query.variables[v].null_safe}
    variables = {n: replace(v, nullable=False) if n in alone else v for n, v in query.variables.items()}
    return replace(merged, atoms=tuple(_not_null(a, alone) for a in kept), variables=variables)


def _are_equal(left: Atom, right: Atom) -> bool:
    """Whether the atoms read the same rows and bind the same variables, and no component has a factor of both."""
    same = left.source == right.source and left.filter == right.filter
    disjoint = all(f is None or g is None for f, g in zip(left.factors, right.factors, strict=False))
    return same and disjoint and dict(left.bindings) == dict(right.bindings)


def _joined(left: Atom, right: Atom) -> tuple[Expression | None, ...]:
    width = max(len(left.factors), len(right.factors))
    padded = [a.factors + (None,) * (width - len(a.factors)) for a in (left, right)]
    return tuple(f if f is not None else g for f, g in zip(*padded, strict=True))


def _not_null(atom: Atom, variables: set[str]) -> Atom:
    """The atom without the rows that bind one of these variables to NULL."""
    terms = [] if atom.filter is None else [atom.filter]
    terms += [
        Call("is_not_null", (e,), BOOLEAN, nullable=False) for v, e in atom.bindings if v in variables and e.nullable
    ]
    if len(terms) <= 1:
        return replace(atom, filter=terms[0] if terms else None)
    return replace(atom, filter=Call("and", tuple(terms), BOOLEAN, nullable=any(t.nullable for t in terms)))
