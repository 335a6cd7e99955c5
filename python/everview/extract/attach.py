"""Semi-joins, anti-joins and left joins as blocks that hang on an atom.

An ON condition is one of: a condition on the right side alone, which filters it; an equality, ``=`` or ``<=>``, between a term of one atom on the left
and a term of one atom on the right, which is part of the key; a condition on the left alone, which is an equality with TRUE. The left terms of a join must be of
one atom (or of variables that one atom binds), and so must the right terms. What does not fit is made to fit by computing one side in a stage of its
own; joins by conditions of other kinds are made into such by `partners`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from everview.extract.block import Part
from everview.query.conjunctive import HubKind
from everview.query.expression import Call, Expression, Literal
from everview.relational.plan import Join
from everview.schema.datatype import BOOLEAN

Term = tuple[str, Expression]


class NotAttachableError(Exception):
    """One side of a join must be a stage of its own before it can be an edge."""

    def __init__(self, join: Join, side: str) -> None:
        super().__init__(side)
        self.join = join
        self.side = side


class UnfitConditionError(Exception):
    """A condition of a join is none that an edge takes."""

    def __init__(self, join: Join) -> None:
        super().__init__("no edge")
        self.join = join


@dataclass(frozen=True, slots=True)
class Pair:
    """A term above and a term of an attached part that must be equal; ``null_safe``: NULL equals NULL."""

    above: Term
    own: Term
    null_safe: bool


@dataclass(slots=True)
class Hanging:
    """An attached part, its key, and what hangs on it."""

    kind: HubKind
    part: Part
    key: list[Pair]
    attached: list[Hanging] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Equality:
    """The sides of ``=`` or, with ``null_safe``, of ``<=>``."""

    left: Expression
    right: Expression
    null_safe: bool


def equality_of(condition: Expression) -> Equality | None:
    """The sides of an equality."""
    if isinstance(condition, Call) and condition.op in ("eq", "eq_null_safe"):
        left, right = condition.args
        return Equality(left, right, condition.op == "eq_null_safe")
    return None


def is_true(condition: Expression) -> Equality:
    """A condition as an equality."""
    return Equality(condition, Literal(True, BOOLEAN), null_safe=False)


def part_of(atoms: Iterable[str], main: Part, hanging: list[Hanging]) -> tuple[Part, Hanging | None] | None:
    """The part that has all these atoms: the main one, or one that hangs on it."""
    wanted = set(atoms)
    if wanted <= set(main.atoms):
        return main, None
    open_blocks = list(hanging)
    while open_blocks:
        block = open_blocks.pop()
        if wanted <= set(block.part.atoms):
            return block.part, block
        open_blocks += block.attached
    return None
