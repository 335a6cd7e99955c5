"""Join blocks: the parts of a relational plan that one core can hold.

A block is a tree of scans, filters and inner joins. Its atoms are the scans, its conditions those of all its filters and
joins: for inner joins it does not matter where a condition stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from everview.query.expression import Expression, PlanColumn
from everview.relational.plan import Condition, Filter, Join, Node, Scan, columns_read


@dataclass(frozen=True, slots=True)
class Block:
    """Atoms by name, the conditions that join and filter them, and the atom that each column belongs to."""

    atoms: Mapping[str, Scan]
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
    """Whether a node is a join block."""
    match node:
        case Scan():
            return True
        case Filter(input=below):
            return is_block(below)
        case Join(left=left, right=right):
            return is_block(left) and is_block(right)
        case _:
            return False


def block_of(node: Node) -> Block:
    """The block of a node for which ``is_block`` holds."""
    scans: list[Scan] = []
    conditions: list[Condition] = []
    _collect(node, scans, conditions)
    names = _names(scans)
    owner = {column: name for name, scan in zip(names, scans, strict=True) for column in scan.columns}
    return Block(dict(zip(names, scans, strict=True)), tuple(conditions), owner)


def _collect(node: Node, scans: list[Scan], conditions: list[Condition]) -> None:
    match node:
        case Scan():
            scans.append(node)
        case Filter(input=below):
            _collect(below, scans, conditions)
            conditions += node.conditions
        case Join(left=left, right=right):
            _collect(left, scans, conditions)
            _collect(right, scans, conditions)
            conditions += node.conditions
        case _:
            raise TypeError(f"{type(node).__name__} is no part of a join block")


def _names(scans: list[Scan]) -> list[str]:
    """A name for each atom, which no other has: its alias, with that of the derived table around it if it is taken.

    Atoms of derived tables leave the names that the outermost FROM shows to the atoms there.
    """
    reserved = {scan.path[-1].lower() for scan in scans if len(scan.path) == 1}
    taken: set[str] = set()
    names: list[str] = []
    for *around, alias in (scan.path for scan in scans):
        name = alias
        if name.lower() in (taken | reserved if around else taken):
            base = f"{around[-1]}_{alias}" if around else alias
            name, number = base, 2
            while name.lower() in taken | reserved:
                name, number = f"{base}_{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names
