"""Typed scalar expressions.

An expression is closed over the columns of one input: in a relational plan by number (``PlanColumn``), in a logical view
by name (``ColumnRef``: the table of an atom, the head of a core, the output of an operator). Types are explicit everywhere and implicit casts are written out, so an evaluator infers nothing.
``to_json`` gives the form that plans carry; the operations and their meaning are listed in
``docs/reference/expressions.md``.

Expressions are values, and a value may be part of several others: an alias that is used twice is one object with two
parents. So an expression is a DAG, whose tree may be exponentially larger. Everything here is linear in the DAG: a
call knows its hash, its size and its depth, equality compares each pair of parts once, and what visits or rewrites an
expression visits each part once. Nothing recurses, since chains of operators may be long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from everview.schema.datatype import BOOLEAN, DataType


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of the input, by name."""

    name: str
    type: DataType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column of a relational plan, by the number that no other column has. Its ``name`` serves messages."""

    id: int
    type: DataType = field(compare=False)
    nullable: bool = field(default=True, compare=False)
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Dates are days and timestamps microseconds since 1970-01-01 UTC; decimals are ``Decimal``."""

    value: bool | int | float | str | bytes | Decimal | None
    type: DataType

    @property
    def nullable(self) -> bool:
        return self.value is None


_NESTING_OPERATIONS = "and or case if coalesce in nullif eq_null_safe is_null is_not_null greatest least"
_NESTING = frozenset(_NESTING_OPERATIONS.split())
"""The operations that evaluators recurse into, because they evaluate arguments on some rows only or look at NULLs."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """An operation applied to arguments whose types are exactly those the operation takes.

    ``size``: the number of nodes of its tree; ``depth``: the levels of its tree; ``levels``: those of them at which an
    evaluator has to recurse.
    """

    op: str
    args: tuple[Expression, ...]
    type: DataType
    nullable: bool = True
    size: int = field(init=False, repr=False)
    depth: int = field(init=False, repr=False)
    levels: int = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        calls = [a for a in self.args if isinstance(a, Call)]
        levels = max((c.levels for c in calls), default=0) + (self.op in _NESTING)
        object.__setattr__(self, "size", 1 + sum(c.size for c in calls) + len(self.args) - len(calls))
        object.__setattr__(self, "depth", 1 + max((c.depth for c in calls), default=1))
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "_hash", hash((self.op, self.args, self.type, self.nullable)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Call) and _are_equal(self, other))


Expression = ColumnRef | PlanColumn | Literal | Call


def _are_equal(one: Call, two: Call) -> bool:
    pairs: list[tuple[Expression, Expression]] = [(one, two)]
    seen: set[tuple[int, int]] = set()
    while pairs:
        a, b = pairs.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        if not (isinstance(a, Call) and isinstance(b, Call)):
            if a != b:
                return False
            continue
        if hash(a) != hash(b) or (a.op, len(a.args), a.type, a.nullable) != (b.op, len(b.args), b.type, b.nullable):
            return False
        seen.add((id(a), id(b)))
        pairs += zip(a.args, b.args, strict=True)
    return True


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first; what is shared comes once."""
    seen: set[int] = set()
    open_parts = [expression]
    while open_parts:
        part = open_parts.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Call):
            open_parts += reversed(part.args)


def occurrences(expression: Expression) -> Iterator[Expression]:
    """The nodes of the expression's tree, parents first: as many as its size, so take the first ones only."""
    open_parts = [expression]
    while open_parts:
        part = open_parts.pop()
        yield part
        if isinstance(part, Call):
            open_parts += reversed(part.args)


def calls_of(expression: Expression) -> list[Call]:
    """The calls of an expression, each once, arguments before the calls that take them."""
    found: list[Call] = []
    seen: set[int] = set()
    open_calls = [expression] if isinstance(expression, Call) else []
    while open_calls:
        call = open_calls[-1]
        waiting = [a for a in call.args if isinstance(a, Call) and id(a) not in seen]
        if waiting and id(call) not in seen:
            open_calls += waiting
            continue
        open_calls.pop()
        if id(call) not in seen:
            seen.add(id(call))
            found.append(call)
    return found


def columns_of(expression: Expression) -> frozenset[str]:
    """The names of the columns an expression reads."""
    return frozenset(e.name for e in parts(expression) if isinstance(e, ColumnRef))


_OPERATIONS_THAT_NEVER_FAIL = (
    "eq ne lt le gt ge eq_null_safe and or not in is_null is_not_null case coalesce if nullif year month day quarter dayofweek"
    " dayofyear weekofyear hour minute second substring upper lower trim ltrim rtrim length concat replace left right"
    " starts_with ends_with contains greatest least"
)
_NEVER_FAIL = frozenset(_OPERATIONS_THAT_NEVER_FAIL.split())


def may_fail(expression: Expression) -> bool:
    """Whether evaluating an expression may refuse a row. Says yes in doubt (some casts and additions never fail)."""
    return any(isinstance(e, Call) and e.op not in _NEVER_FAIL for e in parts(expression))


def rewrite(expression: Expression, replacement: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with parts replaced, and shared where it was.

    ``replacement`` is asked once for each part, parents first; None leaves the part as it is, with its own parts
    replaced.
    """
    done: dict[int, Expression] = {}
    entered: set[int] = set()
    open_parts = [expression]
    while open_parts:
        part = open_parts.pop()
        if id(part) in done:
            continue
        if isinstance(part, Call) and id(part) in entered:
            args = tuple(done[id(a)] for a in part.args)
            same = all(a is b for a, b in zip(args, part.args, strict=True))
            done[id(part)] = part if same else Call(part.op, args, part.type, part.nullable)
            continue
        found = replacement(part)
        if found is not None or not isinstance(part, Call):
            done[id(part)] = part if found is None else found
        else:
            entered.add(id(part))
            open_parts.append(part)
            open_parts += reversed(part.args)
    return done[id(expression)]


_SEES_NULLS = _NESTING | {"concat_ws"}
"""The operations that may have a value where an argument is NULL; in the kernel those with ``Nulls::Seen``."""


def is_null_on_nulls(expression: Expression) -> bool:
    """Whether an expression is NULL where all columns are. Says no in doubt."""
    reads = any(isinstance(part, ColumnRef | PlanColumn) for part in parts(expression))
    return reads and not any(isinstance(part, Call) and part.op in _SEES_NULLS for part in parts(expression))


def ignores_nulls(operation: str) -> bool:
    """Whether an operation may have a value where an argument is NULL. The others are NULL then."""
    return operation in _SEES_NULLS


def conjunction(conditions: Sequence[Expression]) -> Expression | None:
    """What is true where all conditions are; None where there is no condition."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return Call("and", tuple(conditions), BOOLEAN, any(c.nullable for c in conditions))


_TREE_SIZE, _TREE_DEPTH = 500, 50
"""What is written as a tree in plans. Larger expressions name their shared parts; readers of JSON have a bounded stack."""


def to_json(expression: Expression, index: Mapping[str, int]) -> dict[str, Any]:
    """The plan form of an expression; ``index`` gives the position of each column in the input."""
    shared: dict[Call, int] = {}
    if not isinstance(expression, Call) or (expression.size <= _TREE_SIZE and expression.depth <= _TREE_DEPTH):
        return _node_json(expression, index, shared)
    written = []
    for call in _shared_calls(expression):
        written.append(_node_json(call, index, shared))
        shared[call] = len(shared)
    body = _node_json(expression, index, shared)
    return {"op": "let", "shared": written, "in": body, "type": str(expression.type)}


def _shared_calls(expression: Call) -> list[Call]:
    """The calls to be written once: those of several parents, and every so many levels one; parts before wholes."""
    distinct = list(dict.fromkeys(calls_of(expression)))
    parents = Counter(a for call in distinct for a in call.args if isinstance(a, Call))
    found: list[Call] = []
    heights: dict[Call, int] = {}
    for call in distinct[:-1]:  # the last is the whole
        height = 1 + max((heights[a] for a in call.args if isinstance(a, Call)), default=1)
        if parents[call] > 1 or height >= _TREE_DEPTH:
            found.append(call)
            height = 1
        heights[call] = height
    return found


def _node_json(expression: Expression, index: Mapping[str, int], shared: Mapping[Call, int]) -> dict[str, Any]:
    if isinstance(expression, ColumnRef):
        return {"op": "column", "index": index[expression.name], "type": str(expression.type)}
    if isinstance(expression, Literal):
        value = str(expression.value) if isinstance(expression.value, Decimal) else expression.value
        if isinstance(value, bytes):
            value = value.hex()
        elif isinstance(value, float) and not -1.8e308 < value < 1.8e308:
            value = str(value)  # inf, -inf and nan have no JSON number
        return {"op": "literal", "value": value, "type": str(expression.type)}
    if isinstance(expression, PlanColumn):
        raise TypeError(f"column {expression.name} has no place in an input yet")
    if expression in shared:
        return {"op": "shared", "index": shared[expression], "type": str(expression.type)}
    return {
        "op": expression.op,
        "args": [_node_json(a, index, shared) for a in expression.args],
        "type": str(expression.type),
    }
