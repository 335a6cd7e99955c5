"""Aggregate calls: what a call of SQL is in terms of the functions that are maintained.

FILTER makes the argument NULL where the condition is not true, since no function looks at NULLs. DISTINCT is kept with the call, for a rule;
where it does not matter it is dropped. Some functions are others in disguise (``DERIVED``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from everview.aggregates import FUNCTIONS, SPELLINGS
from everview.query.expression import Expression, Literal, PlanColumn, parts
from everview.relational.plan import AggregateCall
from everview.schema.datatype import BIGINT, NULL
from everview.sql.coercion import as_number, case, compare, condition, logical
from everview.sql.functions import is_null
from everview.sql.reject import reject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from everview.aggregates import AggregateFunction
    from everview.sql.bind import Binder
    from everview.sql.expressions import ExpressionLowering

_NOTHING = Literal(None, NULL)
_ONE = Literal(1, BIGINT)
_ZERO = Literal(0, BIGINT)


def is_aggregate(name: str) -> bool:
    """Whether SQL calls an aggregate function by this name, in lower case."""
    return name in SPELLINGS or name in DERIVED


class AggregateCollector:
    """Collects the aggregate calls of a block, equal ones once; expressions refer to them by their columns.

    ``grouped``: there are keys for sure, so that no group is empty.
    """

    def __init__(self, binder: Binder, *, grouped: bool) -> None:
        self.calls: dict[AggregateCall, PlanColumn] = {}
        self._binder = binder
        self._grouped = grouped

    def lower(
        self, lowering: ExpressionLowering, name: str, node: exp.Anonymous, where: exp.Expr | None = None
    ) -> Expression:
        """The value of an aggregate call over the rows for which ``where`` is true."""
        given = node.expressions
        distinct = any(isinstance(a, exp.Distinct) for a in given)
        if distinct:
            given = given[0].expressions
        inner = lowering.without_aggregates()
        only = None if where is None else condition(inner.lower(where))
        function = SPELLINGS.get(name)
        is_count = function is FUNCTIONS["count"]
        if is_count and not distinct and len(given) == 1 and isinstance(given[0], exp.Star):
            return self.count([_where(only, _ONE)])
        takes = 1 if function is None else function.arity
        if len(given) != takes and not (is_count and given):
            why, hint = f"it is called with {len(given)} arguments", f"it takes {'one' if takes == 1 else 'two'}"
            raise reject("UNSUPPORTED_FUNCTION", lowering.sql, node, name=name.upper(), why=why, hint=hint)
        values = [inner.lower(argument) for argument in given]
        if function is None:
            return DERIVED[name](self, [condition(values[0]) if name != "any_value" else values[0]], only, distinct)
        if only is not None:
            values = [_where(only, value) for value in values]
        if is_count:
            return self.count(values, distinct=distinct)
        return self.call(function, values, distinct=distinct)

    def count(self, values: Sequence[Expression], *, distinct: bool = False) -> Expression:
        """The number of rows in which no value is NULL, or of such values that are distinct."""
        nullable = [value for value in values if value.nullable]
        argument: Expression | None = nullable[0] if nullable else None
        if len(nullable) > 1:
            present = logical("and", *(is_null(value, negated=True) for value in nullable))
            argument = _where(present, _ONE)
        kept = tuple(dict.fromkeys(values)) if distinct else ()
        return self._column(AggregateCall("count", argument, BIGINT, nullable=False, distinct=kept))

    def call(self, function: AggregateFunction, values: Sequence[Expression], *, distinct: bool = False) -> Expression:
        """A function of one or two arguments, for which rows in which one of them is NULL do not count."""
        if function.takes_numbers:
            values = [as_number(value, function.name.upper()) for value in values]
            if len(values) > 1:  # then the first tells of both whether the row counts
                values = [_where(is_null(values[1], negated=True), values[0]), values[1]]
        nullable = function.is_nullable(argument_nullable=any(v.nullable for v in values), grouped=self._grouped)
        call = AggregateCall(
            function.name,
            values[0],
            function.result_type(values[0].type),
            nullable,
            values[1] if len(values) > 1 else None,
            tuple(dict.fromkeys(values)) if distinct and function.counts_duplicates else (),
        )
        return self._column(call)

    def has_values(self, value: Expression) -> Expression | None:
        """Whether there is a value that is not NULL; None if there is one in any case."""
        if self._grouped and not value.nullable:
            return None
        return compare("gt", self.count([value]), _ZERO)

    def contains(self, expression: Expression) -> bool:
        """Whether an expression reads an aggregate."""
        found = set(self.calls.values())
        return any(part in found for part in parts(expression))

    def _column(self, call: AggregateCall) -> PlanColumn:
        if call not in self.calls:
            self.calls[call] = PlanColumn(self._binder.new_id(), call.type, call.nullable, call.function)
        return self.calls[call]


def _where(only: Expression | None, value: Expression) -> Expression:
    """The value where a condition is true, else NULL."""
    return value if only is None else case([(only, value)], _NOTHING)


def _both(only: Expression | None, test: Expression) -> Expression:
    return test if only is None else logical("and", only, test)


def _count_if(
    collector: AggregateCollector, values: Sequence[Expression], only: Expression | None, distinct: bool
) -> Expression:
    """COUNT of the rows that fulfil a condition."""
    return collector.count([_where(_both(only, values[0]), _ONE)], distinct=distinct)


def _every(collector: AggregateCollector, values: Sequence[Expression], only: Expression | None, _: bool) -> Expression:
    """No row fails the condition; NULL where it is nowhere true or false."""
    failing = collector.count([_where(_both(only, logical("not", values[0])), _ONE)])
    return _where(collector.has_values(_where(only, values[0])), compare("eq", failing, _ZERO))


def _some(collector: AggregateCollector, values: Sequence[Expression], only: Expression | None, _: bool) -> Expression:
    """Some row fulfils the condition; NULL where it is nowhere true or false."""
    passing = collector.count([_where(_both(only, values[0]), _ONE)])
    return _where(collector.has_values(_where(only, values[0])), compare("gt", passing, _ZERO))


def _any_value(
    collector: AggregateCollector, values: Sequence[Expression], only: Expression | None, _: bool
) -> Expression:
    """The least value: which one does not depend on the order of changes."""
    return collector.call(FUNCTIONS["min"], [_where(only, values[0])])


DERIVED: Mapping[str, Callable[[AggregateCollector, Sequence[Expression], Expression | None, bool], Expression]] = {
    "count_if": _count_if,
    "bool_and": _every,
    "every": _every,
    "bool_or": _some,
    "any": _some,
    "some": _some,
    "any_value": _any_value,
}
"""Functions that are others in disguise: of the argument, the condition of FILTER, and whether DISTINCT is said."""
