"""The key of a view's rows, if it has one: columns whose values belong to at most one row of the result.

What: groups are told apart by their keys. Results of a join without grouping are told apart by head variables that determine, through the
primary keys of the tables, one row of every atom. Where neither is in the output there is no key.
Representation: names of output columns, in their order; the empty tuple for a view of one row, None for a view without key.
Invariants: K1, two rows of a result never agree on the key; K2, no column can be left out.
Cost: quadratic in the number of head variables.
"""

from __future__ import annotations

from collections.abc import Collection

from everview.query.conjunctive import Atom, ConjunctiveQuery
from everview.query.expression import ColumnRef
from everview.query.logical_view import (
    Core,
    Distinct,
    Filter,
    GroupAggregate,
    LogicalView,
    Map,
    Repeat,
    TopK,
    Union,
    Values,
)


def output_key(view: LogicalView) -> tuple[str, ...] | None:
    """The key of a view's rows."""
    keys: list[tuple[str, ...] | None] = []
    for stage in view.stages:
        match stage:
            case Core(query=query):
                key = _join_key(query)
            case GroupAggregate(keys=columns):
                key = tuple(k.name for k in columns)
                below = view.stages[stage.input]
                key = group_key(below.query, key) if isinstance(below, Core) else key
            case Map(expressions=expressions):
                key = keys[stage.input]
                names = {e.name: name for name, e in reversed(expressions) if isinstance(e, ColumnRef)}
                key = tuple(names[k] for k in key) if key is not None and all(k in names for k in key) else None
            case TopK(limit=1) if not stage.numbered:
                key = stage.partition_names
            case Distinct() | Filter() | TopK():
                key = keys[stage.input]
            case Values(rows=rows):
                key = () if len(rows) < 2 else None
            case Union() | Repeat():
                key = None
        keys.append(key)
    key = keys[-1]
    if key is None:
        return None
    position = {c.name: i for i, c in enumerate(view.columns)}
    return tuple(sorted(key, key=position.__getitem__))


def is_key(view: LogicalView, columns: Collection[str]) -> bool:
    """Whether no two rows of a result agree on these output columns, as far as groups and primary keys tell."""
    known = frozenset(columns)
    at = len(view.stages) - 1
    while True:
        stage = view.stages[at]
        match stage:
            case Map(expressions=expressions):
                known = frozenset(e.name for name, e in expressions if name in known and isinstance(e, ColumnRef))
            case GroupAggregate(keys=keys):
                names, given = {k.name for k in keys}, view.stages[stage.input]
                if isinstance(given, Core):
                    known = _determined(given.query, known & names)[0]
                return names <= known
            case Distinct(columns=all_columns):
                if {c.name for c in all_columns} <= known:
                    return True
            case Core(query=query):
                known, left = _determined(query, known)
                return known.issuperset(query.head) if query.distinct else not left
            case Values(rows=rows):
                return len(rows) < 2
            case Union() | Repeat():
                return False
            case TopK(limit=1) if known.issuperset(stage.partition_names):
                return True
            case Filter() | TopK():
                pass
        at = stage.input


def _join_key(query: ConjunctiveQuery) -> tuple[str, ...] | None:
    if query.distinct or not _is_key(query, frozenset(query.head)):
        return None
    key = list(query.head)
    for variable in reversed(query.head):
        rest = [v for v in key if v != variable]
        if _is_key(query, frozenset(rest)):
            key = rest
    return tuple(key)


def group_key(query: ConjunctiveQuery, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys of groups without those that others determine."""
    kept = list(keys)
    for variable in reversed(keys):
        rest = [v for v in kept if v != variable]
        if variable in _determined(query, frozenset(rest))[0]:
            kept = rest
    return tuple(kept)


def _is_key(query: ConjunctiveQuery, variables: frozenset[str]) -> bool:
    """Whether variables determine a row of every atom."""
    return not _determined(query, variables)[1]


def _determined(query: ConjunctiveQuery, variables: frozenset[str]) -> tuple[frozenset[str], list[Atom]]:
    """The variables that some variables determine through primary keys, and the atoms of which they determine no row."""
    known, left = set(variables), list(query.atoms)
    while found := [a for a in left if any(key <= known for key in a.keys)]:
        for atom in found:
            known.update(atom.variables)
            left.remove(atom)
    return frozenset(known), left
