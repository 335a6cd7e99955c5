"""Queries written as datalog, the named textbook queries, and a Hypothesis strategy for random ones.

``parse("Q(a, c) :- G1:g(a, b), G2:g(b, c)")``: atoms G1 and G2 of table g; without a colon the table is named after the
atom. Columns of a table are c1, c2, ... by position; all are BIGINT.
"""

import re

from everview.query.conjunctive import Atom, ConjunctiveQuery, Variable, TableSource
from everview.query.expression import ColumnRef
from everview.query.logical_view import Core, LogicalView
from everview.schema.datatype import BIGINT
from everview.schema.table import Column, Table
from hypothesis import strategies as st

_ATOM = re.compile(r"(?:(\w+):)?(\w+)\(([^)]*)\)")


def _names(text):
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse(text, distinct=False):
    head_text, body = text.split(":-")
    head = _ATOM.search(head_text)
    atoms = []
    for name, table, args in _ATOM.findall(body):
        bindings = tuple((v, ColumnRef(f"c{i}", BIGINT)) for i, v in enumerate(_names(args), 1))
        atoms.append(Atom(name or table, TableSource(table.lower()), bindings))
    variables = {v: Variable(v, BIGINT, False) for a in atoms for v in a.variables}
    return ConjunctiveQuery(head[2], _names(head[3]), tuple(atoms), variables, distinct=distinct)


def tables_of(query):
    found = {}
    for atom in query.atoms:
        columns = tuple(Column(f"c{i}", BIGINT) for i in range(1, len(atom.bindings) + 1))
        found[atom.table] = Table(atom.table, columns)
    return found


def view_of(query):
    return LogicalView(query.name.lower(), f"-- {query}", (Core(query),))


TEXTBOOK = {
    "scan": "Q(a, b) :- R(a, b)",
    "projected_scan": "Q(a) :- R(a, b)",
    "two_hop": "Q(a, b, c) :- G1:g(a, b), G2:g(b, c)",
    "two_hop_ends": "Q(a, c) :- G1:g(a, b), G2:g(b, c)",
    "three_hop": "Q(a, b, c, d) :- G1:g(a, b), G2:g(b, c), G3:g(c, d)",
    "three_hop_projected": "Q(b, c) :- G1:g(a, b), G2:g(b, c), G3:g(c, d)",
    "four_hop": "Q(a, b, c, d, e) :- G1:g(a, b), G2:g(b, c), G3:g(c, d), G4:g(d, e)",
    "four_hop_projected": "Q(b, c, d) :- G1:g(a, b), G2:g(b, c), G3:g(c, d), G4:g(d, e)",
    "figure_1": "Q(x1, x2, x3, x4) :- R1(x1, x2), R2(x2, x3), R3(x3, x4), R4(x4, x5)",
    "two_comb": "Q(a, b, c, d) :- G1:g(a, b), G2:g(b, c), G3:g(c, d), V1(a), V2(d)",
    "star": "Q(a) :- G1:g(a, b), G2:g(a, c), G3:g(a, d), G4:g(a, e)",
    "guarded": "Q(a, b, c, d) :- R1(a, b, z), R2(b, c), R3(a, d)",
    "theorem_6_7": "Q(x1) :- R1(x1, x2), R2(x2)",
    "theorem_6_2": "Q(x1, x2, x3, x4) :- R1(x1), R2(x1, x2), R3(x2, x3), R4(x3, x4), R5(x4)",
    "example_6": "Q(t, u, z, w) :- r1(s, t, u), r2(t, u), r3(u, w, x), r4(s, v), r5(w, z, y)",
    "global": "Q() :- R(a, b), S(b, c)",
    "product": "Q(a, b, c) :- R(a, b), S(c)",
    "triangle": "Q(a, b, c) :- G1:g(a, b), G2:g(b, c), G3:g(c, a)",
    "dumbbell": ("Q(a, b, c, d, e, f) :- R1(a, b), R2(a, c), R3(b, c), R4(e, f), R5(d, e), R6(d, f), R7(c, d)"),
}


@st.composite
def queries(draw, max_atoms=4, max_variables=5, max_arity=3):
    """Random queries, cyclic ones and cross products included."""
    names = "abcdefgh"[: draw(st.integers(1, max_variables))]
    arity = min(max_arity, len(names))
    shape = st.lists(st.sampled_from(names), min_size=1, max_size=arity, unique=True)
    bodies = draw(st.lists(shape, min_size=1, max_size=max_atoms))
    used = sorted({v for body in bodies for v in body})
    head = draw(st.lists(st.sampled_from(used), unique=True, max_size=len(used)))
    body = ", ".join(f"R{i}({', '.join(b)})" for i, b in enumerate(bodies, 1))
    return parse(f"Q({', '.join(head)}) :- {body}", distinct=draw(st.booleans()))
