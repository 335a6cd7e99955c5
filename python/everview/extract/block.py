"""Join blocks: the parts of a relational plan that one core can hold.

A block is a tree of filters and inner joins. Its leaves are scans and whatever else gives rows (groups, unions, ...),
which are stages of their own. Each leaf is an atom; the conditions are those of all filters and joins: for inner joins
it does not matter where a condition stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from everview.query.conjunctive import Source, TableSource, ViewSource
from everview.query.expression import ColumnRef, Expression, PlanColumn
from everview.relational.plan import Condition, Filter, Join, Node, Scan, columns_read


@dataclass(frozen=True, slots=True)
class Leaf:
    """What an atom reads: a source, and its columns under the names that they have there.

    ``path``: the alias, after those of the derived tables around it; ``keys``: sets of names that determine the row.
    """

    source: Source
    path: tuple[str, ...]
    columns: tuple[tuple[PlanColumn, ColumnRef], ...]
    keys: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Atoms by name, the conditions that join and filter them, and the atom that each column belongs to."""

    atoms: Mapping[str, Leaf]
    conditions: tuple[Condition, ...]
    owner: Mapping[PlanColumn, str]

    @property
    def first_atom(self) -> str:
        """The atom that takes what reads no atom."""
        return next(iter(self.atoms))

    def atoms_of(self, expression: Expression) -> tuple[str, ...]:
        """The atoms an expression reads, each once, in order."""
        return tuple(dict.fromkeys(self.owner[c] for c in columns_read(expression)))


def is_block(node: Node) -> bool:
    """Whether a node is a join block, and not a single leaf that is a stage of its own."""
    match node:
        case Scan() | Join():
            return True
        case Filter(input=below):
            return is_block(below)
        case _:
            return False


def block_of(node: Node, stage: Callable[[Node], Leaf]) -> Block:
    """The block of a node for which ``is_block`` holds; ``stage`` makes a stage of a leaf that is no scan."""
    leaves: list[Leaf] = []
    conditions: list[Condition] = []
    _collect(node, stage, leaves, conditions)
    names = _names(leaves)
    owner = {column: name for name, leaf in zip(names, leaves, strict=True) for column, _ in leaf.columns}
    return Block(dict(zip(names, leaves, strict=True)), tuple(conditions), owner)


def _collect(node: Node, stage: Callable[[Node], Leaf], leaves: list[Leaf], conditions: list[Condition]) -> None:
    match node:
        case Scan():
            leaves.append(_scanned(node))
        case Filter(input=below):
            _collect(below, stage, leaves, conditions)
            conditions += node.conditions
        case Join(left=left, right=right):
            _collect(left, stage, leaves, conditions)
            _collect(right, stage, leaves, conditions)
            conditions += node.conditions
        case _:
            leaves.append(stage(node))


def _scanned(scan: Scan) -> Leaf:
    named = zip(scan.columns, scan.table.columns, strict=True)
    columns = tuple((column, ColumnRef(c.name, c.type, c.nullable)) for column, c in named)
    keys = (frozenset(scan.table.primary_key),) if scan.table.primary_key else ()
    source = ViewSource(scan.table.name) if scan.is_view else TableSource(scan.table.name)
    return Leaf(source, scan.path, columns, keys)


def _names(leaves: list[Leaf]) -> list[str]:
    """A name for each atom, which no other has: its alias, with that of the derived table around it if it is taken.

    Atoms of derived tables leave the names that the outermost FROM shows to the atoms there.
    """
    reserved = {leaf.path[-1].lower() for leaf in leaves if len(leaf.path) == 1}
    taken: set[str] = set()
    names: list[str] = []
    for *around, alias in (leaf.path for leaf in leaves):
        name = alias
        if name.lower() in (taken | reserved if around else taken):
            base = f"{around[-1]}_{alias}" if around else alias
            name, number = base, 2
            while name.lower() in taken | reserved:
                name, number = f"{base}_{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names
