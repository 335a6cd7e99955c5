"""Aggregate calls: each becomes components of the core, or an argument over its head.

``SUM(x)`` over one atom is a component to which that atom contributes ``x``; the others contribute their
multiplicities. A product of factors over several atoms is one component with several factors, provided that Spark's
type of the product can neither round nor overflow, so that multiplying in the tree gives what Spark gives. Every other
argument (floating point, not a product, or of a function that is none of a sum) extends the head by the columns
it reads and is accumulated above the core.

A decimal factor counts by its unscaled value: factors of scales s and t make sums of scale s + t, which is the scale
of ``argument_type``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.aggregates import FUNCTIONS, AggregateFunction
from everview.query.expression import Call, Expression, Literal, is_null_on_nulls
from everview.query.logical_view import Aggregate
from everview.relational.plan import AggregateCall
from everview.schema.datatype import BIGINT, MAX_PRECISION, DataType, Kind
from everview.sql.coercion import arithmetic, cast_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everview.extract.block import Block
    from everview.extract.core_builder import CoreBuilder


class AggregatePlanner:
    """Decides for each call between components and an argument. ``factoring`` is off where a Map follows the core."""

    def __init__(self, core: CoreBuilder, *, factoring: bool) -> None:
        self._core = core
        self._factoring = factoring
        self._components: dict[tuple[tuple[str, Expression], ...], str] = {}
        self._count = 0

    def plan(self, call: AggregateCall) -> Aggregate:
        """The aggregate, unnamed, with components added to the core or columns requested from it.

        The argument of the result, if it has one, still reads columns of the plan.
        """
        argument = call.argument
        if argument is None:
            return Aggregate("", call.function, call.type, call.nullable)
        function = FUNCTIONS[call.function]
        argument = cast_to(argument, function.accumulated(argument.type))
        second = None if call.second is None else cast_to(call.second, function.accumulated(call.second.type))
        factors = self._factors(function, argument) if self._factoring and not function.kept else None
        if factors is not None and any(
            self._core.is_optional(a) and not is_null_on_nulls(f) for a, f in factors.items()
        ):
            factors = None  # it may count where there is no row
        if factors is None:
            self._core.request_columns(e for e in (argument, second) if e is not None)
            return Aggregate("", function.name, call.type, call.nullable, argument.type, argument, second=second)
        total = self._component("sum", factors) if function.sums else None
        present = {atom: _is_present(factor) for atom, factor in factors.items() if factor.nullable}
        count = self._component("count", present) if present else None
        return Aggregate("", function.name, call.type, call.nullable, argument.type, sum=total, count=count)

    def _factors(self, function: AggregateFunction, argument: Expression) -> Mapping[str, Expression] | None:
        block = self._core.block
        atoms = block.atoms_of(argument)
        if len(atoms) <= 1:
            if function.sums and argument.type.is_floating:
                return None
            return {atoms[0] if atoms else block.first_atom: argument}
        return _factorised(argument, block) if function.sums else None

    def _component(self, kind: str, factors: Mapping[str, Expression]) -> str:
        key = tuple(factors.items())
        if key not in self._components:
            self._components[key] = f"{kind}_{self._count}"
            self._count += 1
            self._core.add_component(self._components[key], factors)
        return self._components[key]


def _is_present(factor: Expression) -> Expression:
    """1 where the factor is not NULL, else 0. A cast is NULL exactly where its argument is: SUM and COUNT share."""
    while isinstance(factor, Call) and factor.op == "cast":
        factor = factor.args[0]
    missing = Call("is_null", (factor,), DataType(Kind.BOOLEAN), nullable=False)
    return Call("case", (missing, Literal(0, BIGINT), Literal(1, BIGINT)), BIGINT, nullable=False)


def _factorised(product: Expression, block: Block) -> Mapping[str, Expression] | None:
    """The factors of a product by atom; None if it is no product of factors over one atom each, or not exact."""
    leaves = _leaves(product, block)
    if leaves is None:
        return None
    factors: dict[str, Expression] = {}
    constants = []
    for leaf in leaves:
        atoms = block.atoms_of(leaf)
        if len(atoms) > 1:
            return None
        if atoms:
            factors[atoms[0]] = arithmetic("multiply", factors[atoms[0]], leaf) if atoms[0] in factors else leaf
        else:
            constants.append(leaf)
    for constant in constants:
        first = next(iter(factors))
        factors[first] = arithmetic("multiply", factors[first], constant)
    return factors


def _leaves(expression: Expression, block: Block) -> list[Expression] | None:
    """The factors of nested exact multiplications; None if one of these may round or overflow."""
    if not isinstance(expression, Call) or expression.op != "multiply" or len(block.atoms_of(expression)) < 2:
        return [expression]
    left, right = expression.args
    if expression.type.kind is Kind.DECIMAL:
        exact = left.type.precision + right.type.precision + 1 <= MAX_PRECISION
    else:
        exact = expression.type.is_integer and _bits(expression) <= _TYPE_BITS[expression.type.kind]
    if not exact:
        return None
    one, two = _leaves(left, block), _leaves(right, block)
    return [*one, *two] if one is not None and two is not None else None


_TYPE_BITS = {Kind.TINYINT: 7, Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63}


_MOST_FACTORS = 64


def _bits(expression: Expression) -> int:
    """A bound on the size of an integer: the absolute value is at most two to this power. 64 says that none is known."""
    bits, seen, open_parts = 0, 0, [expression]
    while open_parts:
        part, seen = open_parts.pop(), seen + 1
        if isinstance(part, Literal) and isinstance(part.value, int):
            bits += abs(part.value).bit_length()
        elif isinstance(part, Call) and (part.op == "multiply" or (part.op == "cast" and part.args[0].type.is_integer)):
            open_parts += part.args
        else:
            bits += _TYPE_BITS.get(part.type.kind, 64)
        if bits >= 64 or seen > _MOST_FACTORS:
            return 64
    return bits
