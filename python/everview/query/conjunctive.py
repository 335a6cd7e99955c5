"""Conjunctive queries: atoms over variables, a head, and annotation components.

A variable is an equality class of columns. An atom binds each of its variables to an expression over the columns of
its table, after its filter. A variable that occurs in two or more atoms is a join variable and never NULL inside the
join: rows that bind it to NULL are dropped at the scan.

The result of a query is a bag of head tuples. Every tuple has a multiplicity (component 0, implicit: the product of
the atoms' multiplicities summed over the bound variables) and one value per further component: the sum over the same
valuations of the product of the atoms' factors. An atom without a factor for a component contributes its multiplicity
alone; an atom with one contributes multiplicity times factor, NULL counting as zero. With ``distinct`` the
multiplicity is 1 and there are no components.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from everview.query.expression import Expression
from everview.schema.datatype import DataType


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a query. ``null_safe``: where atoms are joined by it, NULL is a value like any other."""

    name: str
    type: DataType
    nullable: bool
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class TableSource:
    """The rows of a table."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class StageSource:
    """The rows of an earlier stage of the logical view."""

    stage: int

    def __str__(self) -> str:
        return f"stage {self.stage}"


@dataclass(frozen=True, slots=True)
class ViewSource:
    """The rows of another view."""

    name: str

    def __str__(self) -> str:
        return f"view {self.name}"


Source = TableSource | StageSource | ViewSource


@dataclass(frozen=True, slots=True)
class Atom:
    """One occurrence of a table or a stage. ``keys``: sets of variables that determine the row (from primary keys).

    ``power``: the atom stands for this many equal ones, whose multiplicities multiply.
    """

    name: str
    source: Source
    bindings: tuple[tuple[str, Expression], ...]
    filter: Expression | None = None
    factors: tuple[Expression | None, ...] = ()
    keys: tuple[frozenset[str], ...] = ()
    power: int = 1

    def __str__(self) -> str:
        power = f"^{self.power}" if self.power > 1 else ""
        return f"{self.name}{power}({', '.join(self.variables)})"

    @property
    def table(self) -> str:
        """The name of what it reads."""
        return str(self.source)

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.bindings)


class HubKind(StrEnum):
    """What a hub asks of the rows above it. All but REQUIRED, which is that of joins, come with an ``Attachment``."""

    REQUIRED = "required"
    EXISTS = "exists"
    FORBIDS = "forbids"
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A block of atoms that hangs below an atom which binds all variables of ``key``.

    EXISTS: rows above stay that have a match in the block; FORBIDS: those that have none; neither adds to a result. OPTIONAL: every row stays,
    with each of its matches or, without one, with NULLs. ``attached``: blocks that hang on this one. ``null_safe``: the variables of the key
    that are compared by ``<=>``, so that NULL matches NULL.
    """

    kind: HubKind
    atoms: tuple[str, ...]
    key: tuple[str, ...]
    attached: tuple[Attachment, ...] = ()
    null_safe: frozenset[str] = frozenset()


def every_attachment(attached: tuple[Attachment, ...]) -> Iterator[Attachment]:
    """Attached blocks, and those that hang on them."""
    for block in attached:
        yield block
        yield from every_attachment(block.attached)


@dataclass(frozen=True)
class ConjunctiveQuery:
    """``name(head) :- atoms``. ``components`` names the annotation components beyond the multiplicity."""

    name: str
    head: tuple[str, ...]
    atoms: tuple[Atom, ...]
    variables: Mapping[str, Variable] = field(hash=False)
    components: tuple[str, ...] = ()
    distinct: bool = False
    attached: tuple[Attachment, ...] = ()

    @cached_property
    def joined_atoms(self) -> tuple[Atom, ...]:
        """The atoms that are joined with each other: all but those of attached blocks."""
        below = {name for a in every_attachment(self.attached) for name in a.atoms}
        return tuple(a for a in self.atoms if a.name not in below)

    @cached_property
    def result_atoms(self) -> tuple[Atom, ...]:
        """The atoms that results are made of: those joined, and those of optional blocks."""
        found = {a.name for a in self.joined_atoms}
        open_blocks = list(self.attached)
        while open_blocks:
            block = open_blocks.pop()
            if block.kind is HubKind.OPTIONAL:
                found.update(block.atoms)
                open_blocks += block.attached
        return tuple(a for a in self.atoms if a.name in found)

    @cached_property
    def exposing_keys(self) -> frozenset[str]:
        """The keys of optional blocks that hold head variables: results are found through them."""
        return frozenset(v for block in self.attached for v in self._exposing(block))

    def _exposing(self, block: Attachment) -> frozenset[str]:
        if block.kind is not HubKind.OPTIONAL:
            return frozenset()
        below = frozenset(v for b in block.attached for v in self._exposing(b))
        inside = {v for name in block.atoms for v in self.atoms_by_name[name].variables} - set(block.key)
        return below | frozenset(block.key) if below or inside & set(self.head) else frozenset()

    @cached_property
    def occurrences(self) -> Mapping[str, tuple[str, ...]]:
        """For each variable the names of the atoms it occurs in."""
        found: dict[str, list[str]] = {v: [] for v in self.variables}
        for atom in self.atoms:
            for v in atom.variables:
                found[v].append(atom.name)
        return {v: tuple(names) for v, names in found.items()}

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The position of each variable."""
        return {v: i for i, v in enumerate(self.variables)}

    @cached_property
    def atoms_by_name(self) -> Mapping[str, Atom]:
        return {a.name: a for a in self.atoms}

    @cached_property
    def join_variables(self) -> frozenset[str]:
        return frozenset(v for v, names in self.occurrences.items() if len(names) > 1)

    @property
    def bound_variables(self) -> tuple[str, ...]:
        """The variables that are not in the head."""
        return tuple(v for v in self.variables if v not in self.head)

    @property
    def is_full(self) -> bool:
        """Whether every variable is in the head."""
        return not self.bound_variables

    def __str__(self) -> str:
        atoms = {a.name: str(a) for a in self.atoms}

        def attached(block: Attachment) -> str:
            inside = ", ".join([*(atoms[name] for name in block.atoms), *map(attached, block.attached)])
            return f"{block.kind}[{', '.join(block.key)}]({inside})"

        body = ", ".join([*map(str, self.joined_atoms), *map(attached, self.attached)])
        return f"{self.name}({', '.join(self.head)}) :- {body}"
