"""Join blocks: the parts of a relational plan that one core can hold.

A block is a tree of filters and joins. Its leaves are scans and whatever else gives rows (groups, unions, ...), which are
stages of their own. Each leaf is an atom. Atoms that inner joins combine are a part, whose conditions are those of its
filters and inner joins: it does not matter where they stand. The right side of any other join is a part of its own that
hangs on the left one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from everview.query.conjunctive import HubKind, Source, TableSource, ViewSource
from everview.query.expression import ColumnRef, Expression, PlanColumn
from everview.relational.plan import Condition, Filter, Join, JoinKind, Node, Scan, columns_read


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
class Part:
    """Atoms that are joined with each other, the conditions on them, and the parts that hang on them."""

    atoms: tuple[str, ...]
    conditions: tuple[Condition, ...]
    attached: tuple[Attached, ...] = ()

    @property
    def atoms_below(self) -> frozenset[str]:
        """The atoms of the parts that hang on it, on these, and so on."""
        return frozenset().union(*(frozenset(a.part.atoms) | a.part.atoms_below for a in self.attached))


@dataclass(frozen=True, slots=True)
class Attached:
    """A part that hangs on another by a join that is not an inner one, and the conditions of this join."""

    join: Join
    part: Part

    @property
    def kind(self) -> HubKind:
        return _KINDS[self.join.kind]


_KINDS = {JoinKind.SEMI: HubKind.EXISTS, JoinKind.ANTI: HubKind.FORBIDS, JoinKind.LEFT: HubKind.OPTIONAL}


@dataclass(frozen=True, slots=True)
class Block:
    """A part with all that hangs on it: all atoms by name, and the atom that each column belongs to."""

    atoms: Mapping[str, Leaf]
    part: Part
    owner: Mapping[PlanColumn, str]

    @property
    def first_atom(self) -> str:
        """The atom that takes what reads no atom."""
        return self.part.atoms[0]

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
    draft = _Draft()
    _collect(node, stage, leaves, draft)
    names = _names(leaves)
    owner = {column: name for name, leaf in zip(names, leaves, strict=True) for column, _ in leaf.columns}
    return Block(dict(zip(names, leaves, strict=True)), draft.part(names), owner)


@dataclass(slots=True)
class _Draft:
    """A part whose atoms are known by number."""

    atoms: list[int] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    attached: list[tuple[Join, _Draft]] = field(default_factory=list)

    def part(self, names: list[str]) -> Part:
        attached = tuple(Attached(join, draft.part(names)) for join, draft in self.attached)
        return Part(tuple(names[i] for i in self.atoms), tuple(self.conditions), attached)


def _collect(node: Node, stage: Callable[[Node], Leaf], leaves: list[Leaf], draft: _Draft) -> None:
    match node:
        case Filter(input=below):
            _collect(below, stage, leaves, draft)
            draft.conditions += node.conditions
        case Join(kind=JoinKind.INNER, left=left, right=right):
            _collect(left, stage, leaves, draft)
            _collect(right, stage, leaves, draft)
            draft.conditions += node.conditions
        case Join(left=left, right=right):
            _collect(left, stage, leaves, draft)
            hanging = _Draft()
            _collect(right, stage, leaves, hanging)
            draft.attached.append((node, hanging))
        case _:
            draft.atoms.append(len(leaves))
            leaves.append(_scanned(node) if isinstance(node, Scan) else stage(node))


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
