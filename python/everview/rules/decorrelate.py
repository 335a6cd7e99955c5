"""Subqueries become joins.

    filter[c](apply[c = EXISTS S](R))      =  semi join[p](R, S')              S', p: the rows of S, and the conditions that compare them with R
    filter[NOT c](apply[c = EXISTS S](R))  =  anti join[p](R, S')
    filter[c](apply[c = x ANY S](R))       =  semi join[p AND x = s](R, S')    or another comparison
    filter[NOT c](apply[c = x ANY S](R))   =  anti join[p AND x = s] and, where NULLs can be met:
                                              anti join[p AND s IS NULL], anti join[p AND (x IS NULL) = TRUE]
    apply[c = EXISTS S](R)                 =  project[c = (n IS NOT NULL)](R left join[p] aggregate[k; n = COUNT(*)](S'))     k: what p compares
    apply[c = x ANY S](R)                  =  likewise: TRUE if one matches; else NULL if one may; else FALSE
    apply[c = the value of S](R)           =  project[c](R left join[p] aggregate[k; c = SINGLE(s)](S'))
    apply[c = the value of aggregate S](R) =  project[c](R left join[p] aggregate[k; a](S')), counts being 0 without a partner
    lateral[q](R, S)                       =  join[p AND q](R, S')

x NOT IN S is not true if some s equals x, if some s is NULL, or if x is NULL and there is an s at all. What S projects, orders or makes
distinct does not matter to whether it has a row, nor does LIMIT if it leaves one. ``subquery_rows`` finds S' and p.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from everview.errors import Span
from everview.query.expression import Call, Expression, Literal, PlanColumn, conjunction
from everview.relational.canonical import copied
from everview.relational.columns import (
    conditions_over,
    domain_of,
    new_column,
    new_ids,
    over,
    same,
)
from everview.relational.plan import (
    Aggregate,
    AggregateCall,
    Apply,
    Condition,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Lateral,
    Node,
    Project,
    TopK,
    as_nullable,
    columns_read,
    inputs_of,
    outer_columns,
    with_inputs,
)
from everview.rules.dependent import groups_or_none
from everview.rules.subquery_rows import Rows, key_of, subquery_rows
from everview.schema.datatype import BIGINT, BOOLEAN
from everview.sql.coercion import case, coalesce, compare, logical
from everview.sql.functions import is_null

_TRUE = Literal(True, BOOLEAN)


def decorrelate(node: Node) -> Node:
    """The plan without subqueries in expressions, and without lateral joins."""
    return _Decorrelation(new_ids(node)).node(node)


@dataclass(frozen=True, slots=True)
class _Value:
    """A node that has the columns of another, and maybe more, and an expression over it."""

    node: Node
    expression: Expression


class _Decorrelation:
    """One pass over a plan, subqueries before what reads them."""

    def __init__(self, ids: Iterator[int]) -> None:
        self._ids = ids

    def node(self, node: Node) -> Node:
        match node:
            case Filter(input=Apply()):
                return self._filtered(node)
            case Apply():
                below, subquery = (self.node(n) for n in inputs_of(node))
                return self._valued(below, replace(node, subquery=subquery))
        node = with_inputs(node, tuple(self.node(below) for below in inputs_of(node)))
        return self._lateral(node) if isinstance(node, Lateral) else node

    def _filtered(self, node: Filter) -> Node:
        applied: list[Apply] = []
        below: Node = node.input
        while isinstance(below, Apply):
            applied.append(replace(below, subquery=self.node(below.subquery)))
            below = below.input
        below = self.node(below)
        made = {apply.column for apply in applied}
        conditions = [c for c in node.conditions if not made.isdisjoint(columns_read(c.expression))]
        plain = tuple(c for c in node.conditions if c not in conditions)
        if plain:
            below = Filter(below, plain)
        for apply in reversed(applied):  # the innermost first
            own = [c for c in conditions if c.expression in (apply.column, _negated(apply.column))]
            used = sum(apply.column in columns_read(c.expression) for c in conditions)
            used += sum(apply.column in outer_columns(other.subquery) for other in applied)
            used += sum(apply.column in columns_read(e) for other in applied for e in other.operands)
            if apply.scalar or not own or used > 1:
                below = self._valued(below, apply)
                continue
            test = self._included if own[0].expression == apply.column else self._excluded
            below = test(below, apply)
            conditions.remove(own[0])
        return Filter(below, tuple(conditions)) if conditions else below

    # ---- conditions of their own --------------------------------------------------------------------------------------

    def _included(self, below: Node, apply: Apply) -> Node:
        rows = self._rows(below, apply)
        tests = [Condition(e, apply.span) for e in _tests(apply, _values(apply, rows))]
        return Join(JoinKind.SEMI, below, rows.node, (*rows.conditions, *tests))

    def _excluded(self, below: Node, apply: Apply) -> Node:
        rows = self._rows(below, apply)
        values = _values(apply, rows)
        tests: list[tuple[Expression, ...]] = [tuple(_tests(apply, values))]
        if len(apply.operands) == 1:
            tests += [(test,) for test in _null_tests(apply.operands[0], values[0])]
        elif apply.operands:
            tests = [tuple(_possible(one, two) for one, two in zip(apply.operands, values, strict=True))]
        for test in tests:
            other = self._copied(rows, test)
            below = Join(JoinKind.ANTI, below, other.node, _at(other.conditions, apply.span))
        return below

    def _copied(self, rows: Rows, tests: Sequence[Expression]) -> Rows:
        """The rows, with columns of their own, that pass tests: those of the rows alone are checked, the others join the conditions."""
        node, _ = copied(rows.node, self._ids)
        columns = dict(zip(rows.node.columns, node.columns, strict=True))
        known = set(node.columns)
        added = conditions_over((Condition(test, Span(0, 0)) for test in tests), columns)
        inside = tuple(c for c in added if known.issuperset(columns_read(c.expression)))
        outside = tuple(c for c in added if c not in inside)
        return Rows(Filter(node, inside) if inside else node, (*conditions_over(rows.conditions, columns), *outside))

    def _rows(self, below: Node, apply: Apply) -> Rows:
        return subquery_rows(_tested(apply), below, apply.span, self._ids)

    # ---- values -------------------------------------------------------------------------------------------------------

    def _valued(self, below: Node, apply: Apply) -> Node:
        """The rows with the column of a subquery."""
        found = self._scalar(below, apply) if apply.scalar else self._tested_value(below, apply)
        return Project(found.node, (*((c, c) for c in below.columns), (apply.column, found.expression)))

    def _tested_value(self, below: Node, apply: Apply) -> _Value:
        rows = self._rows(below, apply)
        values = _values(apply, rows)
        found = self._flag(below, rows, tuple(_tests(apply, values)), apply)
        if not apply.column.nullable or not apply.operands:
            return found
        if len(apply.operands) == 1:
            unknown: list[Expression] = []
            node = found.node
            for test in _null_tests(apply.operands[0], values[0]):
                flag = self._flag(node, rows, (test,), apply)
                node = flag.node
                unknown.append(flag.expression)
        else:
            possible = tuple(_possible(one, two) for one, two in zip(apply.operands, values, strict=True))
            flag = self._flag(found.node, rows, possible, apply)
            node, unknown = flag.node, [flag.expression]
        branches = [(found.expression, _TRUE), *((u, Literal(None, BOOLEAN)) for u in unknown)]
        return _Value(node, case(branches, Literal(False, BOOLEAN)))

    def _flag(self, below: Node, rows: Rows, tests: tuple[Expression, ...], apply: Apply) -> _Value:
        """Whether there is a row that passes tests. The node may be ``below`` itself, joined with more."""
        rows = self._copied(rows, tests)
        count = AggregateCall("count", None, BIGINT, nullable=False)
        column = PlanColumn(next(self._ids), BIGINT, nullable=False, name="partners")
        if not rows.conditions:
            counted = Aggregate(rows.node, (), ((column, count),), ("subquery",))
            return _Value(_crossed(below, counted), compare("gt", column, Literal(0, BIGINT)))
        key = key_of(rows, self._ids)
        if key is None:
            inner = set(rows.node.columns)
            read = {c for condition in rows.conditions for c in columns_read(condition.expression)}
            columns = tuple(c for c in below.columns if c in read and c not in inner)
            values, given = domain_of(below, columns, self._ids)
            partners = Join(JoinKind.INNER, values, rows.node, conditions_over(rows.conditions, given))
            made = {c: new_column(self._ids, g) for c, g in given.items()}
            keys = tuple((made[c], g) for c, g in given.items())
            counted = Aggregate(partners, keys, ((column, count),), ("subquery",))
            on = same({c: c for c in columns}, made, apply.span)
        else:
            counted = Aggregate(rows.node, key.items, ((column, count),), ("subquery",))
            on = _at(key.conditions, apply.span)
        (found,) = as_nullable([column])
        zero = Literal(0, BIGINT)
        # A group is there if it has rows, but for the one without keys, which always is.
        value = is_null(found, negated=True) if counted.keys else compare("gt", coalesce([found, zero]), zero)
        return _Value(Join(JoinKind.LEFT, below, counted, on), value)

    def _scalar(self, below: Node, apply: Apply) -> _Value:
        single = _peeled(apply.subquery)
        if single is not None:
            node, columns = self._with_group(below, single.aggregate, apply.span)
            value = over(single.value, columns)
            having = [over(c.expression, columns) for c in single.having]
            test = conjunction(having)
            return _Value(node, value if test is None else case([(test, value)], Literal(None, value.type)))
        rows = subquery_rows(apply.subquery, below, apply.span, self._ids, keyed=True)
        (value,) = apply.subquery.columns
        column = PlanColumn(next(self._ids), value.type, nullable=True, name=value.name)
        key = key_of(rows, self._ids)
        assert key is not None
        call = AggregateCall("single", value, value.type, nullable=True)
        grouped = Aggregate(rows.node, key.items, ((column, call),), ("subquery",))
        if not rows.conditions:
            return _Value(_crossed(below, grouped), column)
        return _Value(Join(JoinKind.LEFT, below, grouped, _at(key.conditions, apply.span)), column)

    def _with_group(self, below: Node, aggregate: Aggregate, span: Span) -> tuple[Node, dict[PlanColumn, Expression]]:
        """Rows with the one group that an aggregate without keys gives for each, and its aggregates in terms of that."""
        if outer_columns(aggregate).isdisjoint(below.columns):
            return _crossed(below, aggregate), {}
        arguments = [e for _, call in aggregate.calls for e in call.expressions]
        # The arguments are computed below, so that outer columns in them are found as those of conditions are.
        computed = {e: new_column(self._ids, e) for e in dict.fromkeys(arguments)}
        projected = Project(aggregate.input, tuple((column, e) for e, column in computed.items()))
        rows = subquery_rows(projected, below, span, self._ids, keyed=True)
        key = key_of(rows, self._ids)
        assert key is not None
        calls = tuple((column, call.changed(computed.__getitem__)) for column, call in aggregate.calls)
        grouped = replace(aggregate, input=rows.node, keys=key.items, calls=calls)
        node, columns = groups_or_none(below, grouped, _at(key.conditions, span), self._ids)
        return node, dict(columns)

    # ---- lateral joins ------------------------------------------------------------------------------------------------

    def _lateral(self, node: Lateral) -> Node:
        left, right, conditions = node.left, node.right, node.conditions
        span = conditions[0].span if conditions else Span(0, 0)
        peeled = _peeled(right)
        if peeled is not None and not conditions and (node.kind is JoinKind.INNER or not peeled.having):
            below, columns = self._with_group(left, peeled.aggregate, span)
            if peeled.having:
                below = Filter(below, conditions_over(peeled.having, columns))
            items = tuple((column, over(e, columns)) for column, e in peeled.items)
            return Project(below, (*((c, c) for c in left.columns), *items))
        rows = subquery_rows(right, left, span, self._ids)
        return Join(node.kind, left, rows.node, (*rows.conditions, *conditions))


def _crossed(one: Node, two: Node) -> Node:
    return Join(JoinKind.INNER, one, two, ())


def _at(conditions: Sequence[Condition], span: Span) -> tuple[Condition, ...]:
    """Conditions that are of a subquery, at its place where they have none."""
    return tuple(c if c.span.end else replace(c, span=span) for c in conditions)


def _negated(column: PlanColumn) -> Expression:
    return Call("not", (column,), BOOLEAN, column.nullable)


def _values(apply: Apply, rows: Rows) -> Sequence[PlanColumn]:
    return rows.node.columns[: len(apply.operands)]


def _tests(apply: Apply, values: Sequence[PlanColumn]) -> list[Expression]:
    return [compare(apply.comparison, one, two) for one, two in zip(apply.operands, values, strict=True)]


def _null_tests(operand: Expression, value: Expression) -> list[Expression]:
    """The conditions under which a comparison is NULL, each on one side."""
    found = [is_null(value, negated=False)] if value.nullable else []
    if operand.nullable:
        found.append(compare("eq", is_null(operand, negated=False), _TRUE))
    return found


def _possible(one: Expression, two: Expression) -> Expression:
    """That two values are equal, or may be because one is NULL."""
    tests = [compare("eq", one, two), *(is_null(e, negated=False) for e in (one, two) if e.nullable)]
    return logical("or", *tests) if len(tests) > 1 else tests[0]


def _tested(apply: Apply) -> Node:
    """The subquery; of EXISTS without what does not change whether there is a row."""
    node = apply.subquery
    while not apply.operands:
        match node:
            case Project(input=below) | Distinct(input=below):
                node = below
            case TopK(input=below, limit=limit, offset=0) if limit != 0:
                node = below
            case Aggregate(input=below, keys=keys) if keys:
                node = below
            case _:
                break
    return node


@dataclass(frozen=True, slots=True)
class _Peeled:
    """An aggregate without keys, conditions on its row, and what is computed from it."""

    aggregate: Aggregate
    having: tuple[Condition, ...]
    items: tuple[tuple[PlanColumn, Expression], ...]

    @property
    def value(self) -> Expression:
        return self.items[0][1]


def _peeled(node: Node) -> _Peeled | None:
    """A node as filters and projections over an aggregate without keys."""
    match node:
        case Aggregate(keys=()):
            return _Peeled(node, (), tuple((c, c) for c in node.columns))
        case Project(input=below, items=items):
            found = _peeled(below)
            if found is None:
                return None
            computed = dict(found.items)
            return replace(found, items=tuple((column, over(e, computed)) for column, e in items))
        case Filter(input=below, conditions=conditions):
            found = _peeled(below)
            if found is None:
                return None
            return replace(found, having=(*found.having, *conditions_over(conditions, dict(found.items))))
        case _:
            return None
