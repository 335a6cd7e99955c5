"""Scalar SQL expressions to typed expressions.

``ExpressionLowering`` walks a sqlglot tree. Names are resolved by the callback it is given; aggregate calls are handed
to a second callback where they are allowed (SELECT list, HAVING) and refused elsewhere; so are subqueries to a third. BETWEEN, simple CASE, ILIKE
and the like are written in terms of other operations here, so evaluators see a small set.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from everview.aggregates import SPELLINGS
from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import BINARY, BOOLEAN, DATE, INT, NULL, STRING, Kind
from everview.sql import functions
from everview.sql.bind_aggregates import DERIVED, is_aggregate
from everview.sql.coercion import arithmetic, case, cast_to, compare, in_list, logical, negate
from everview.sql.differences import Difference, difference_of
from everview.sql.intervals import Interval, add_interval, interval_of
from everview.sql.literal import CoercionError, in_range, number_literal
from everview.sql.parameters import value_of
from everview.sql.reject import HAS_NO_PARTNER, HAS_PARTNER, ONE_VALUE, close_matches, mismatch, reject
from everview.sql.spans import source_of, text_of
from everview.sql.types import data_type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Resolve = Callable[[exp.Column], Expression]
    LowerAggregate = Callable[["ExpressionLowering", str, exp.Anonymous, exp.Expr | None], Expression]
    LowerSubquery = Callable[["ExpressionLowering", exp.Expr], Expression]

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "eq_null_safe",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.IntDiv: "int_div",
    exp.Mod: "modulo",
}
# The operators that sqlglot parses on one level, and their levels in Spark, the tightest first.
_BITS: dict[type[exp.Expr], int] = {
    exp.DPipe: 0,
    exp.BitwiseLeftShift: 1,
    exp.BitwiseRightShift: 1,
    exp.BitwiseAnd: 2,
    exp.BitwiseXor: 3,
    exp.BitwiseOr: 4,
}
_BIT_OPERATIONS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "bit_and",
    exp.BitwiseXor: "bit_xor",
    exp.BitwiseOr: "bit_or",
}
_SHIFTS: dict[type[exp.Expr], str] = {exp.BitwiseLeftShift: "shift_left", exp.BitwiseRightShift: "shift_right"}
_VALUES = (exp.Exists, exp.Subquery, exp.Select, exp.SetOperation)
_SUBQUERIES = (exp.Subquery, exp.Select, exp.SetOperation, exp.Exists, exp.Any, exp.All)


class ExpressionLowering:
    """Lowers expressions of one query block. ``window``: binds window functions, where these are allowed."""

    window: Callable[[ExpressionLowering, exp.Window], Expression] | None = None

    def __init__(
        self,
        sql: str,
        resolve: Resolve,
        aggregate: LowerAggregate | None = None,
        subquery: LowerSubquery | None = None,
    ) -> None:
        self.sql = sql
        self._resolve = resolve
        self._aggregate = aggregate
        self._bind_subquery = subquery
        self._known: dict[int, Expression] = {}  # by the id of the node, which the tree keeps alive

    def without_aggregates(self) -> ExpressionLowering:
        """The same names, aggregates refused: for the arguments of an aggregate."""
        return ExpressionLowering(self.sql, self._resolve, None, self._bind_subquery)

    def lower(self, node: exp.Expr) -> Expression:
        """The typed expression of a node; the same value when it is asked for again."""
        if id(node) not in self._known:
            try:
                self._known[id(node)] = self._lower(node)
            except CoercionError as error:
                raise mismatch(self.sql, node, str(error)) from None
        return self._known[id(node)]

    def _lower(self, node: exp.Expr) -> Expression:
        kind = type(node)
        if kind in COMPARISONS:
            if (
                self._bind_subquery is not None
                and isinstance(node.expression, exp.Any | exp.All)
                and _is_query(node.expression.this)
            ):
                return self._bind_subquery(self, node)
            return compare(COMPARISONS[kind], self.lower(node.this), self.lower(node.expression))
        if kind in _ARITHMETIC:
            return self._arithmetic(node)
        handler = self._HANDLERS.get(kind)
        if handler is not None:
            return handler(self, node)
        if isinstance(node, _VALUES) and self._bind_subquery is not None:
            return self._bind_subquery(self, node)
        if isinstance(node, _SUBQUERIES):
            raise self._subquery(node, _subquery_name(node))
        if isinstance(node, exp.Window) and self.window is not None:
            return self.window(self, node)
        if isinstance(node, exp.Window):
            raise reject("WINDOW_FUNCTION", self.sql, node)
        if isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentUser | exp.SessionUser):
            raise reject("NONDETERMINISTIC_FUNCTION", self.sql, node, name=text_of(node, self.sql).upper())
        if isinstance(node, exp.Interval):
            raise self._interval_alone(node)
        raise reject("UNSUPPORTED_EXPRESSION", self.sql, node, name=f"`{text_of(node, self.sql)}`")

    # Names, constants, parentheses.

    def _column(self, node: exp.Column) -> Expression:
        if isinstance(node.this, exp.Star):
            raise reject("UNSUPPORTED_EXPRESSION", self.sql, node, name="`*` inside an expression")
        return self._resolve(node)

    def _literal(self, node: exp.Literal) -> Expression:
        return Literal(node.this, STRING) if node.is_string else number_literal(node.this)

    def _adjacent_strings(self, node: exp.Concat) -> Expression:
        """``'a' 'b'`` is ``'ab'``."""
        return Literal("".join(part.name for part in node.expressions), STRING)

    def _hexadecimal(self, node: exp.HexString) -> Expression:
        if text_of(node, self.sql)[:1] not in ("x", "X"):
            raise reject("UNSUPPORTED_EXPRESSION", self.sql, node, name=f"`{text_of(node, self.sql)}`")
        digits = node.this if len(node.this) % 2 == 0 else "0" + node.this
        return Literal(bytes.fromhex(digits), BINARY)

    def _paren(self, node: exp.Paren) -> Expression:
        return self.lower(node.this)

    # Arithmetic.

    def _arithmetic(self, node: exp.Expr) -> Expression:
        """A chain of operators, from its first operand on: long chains are deep on the left."""
        chain: list[exp.Expr] = []
        while type(node) in _ARITHMETIC and interval_of(node) is None:
            chain.append(node)
            node = node.this
        interval = interval_of(node)
        if interval is None:
            found = self.lower(node)
        elif chain and isinstance(chain[-1], exp.Add):
            found = self._interval_first(interval, chain.pop())
        else:
            raise self._interval_alone(chain[-1] if chain else node)
        for link in reversed(chain):
            found = self._with_right(found, link)
        return found

    def _interval_first(self, interval: Interval, node: exp.Expr) -> Expression:
        try:
            return add_interval(self.lower(node.expression), interval)
        except CoercionError as error:
            raise mismatch(self.sql, node, str(error)) from None

    def _with_right(self, left: Expression, node: exp.Expr) -> Expression:
        """A binary operation whose left operand is lowered."""
        try:
            return self._binary(left, node)
        except CoercionError as error:
            raise mismatch(self.sql, node, str(error)) from None

    def _binary(self, left: Expression, node: exp.Expr) -> Expression:
        op = _ARITHMETIC[type(node)]
        interval = interval_of(node.expression) if op in ("add", "subtract") else None
        if interval is not None:
            return add_interval(left, -interval if op == "subtract" else interval)
        right = self.lower(node.expression)
        if op in ("add", "subtract") and Kind.DATE in (left.type.kind, right.type.kind):
            return self._date_arithmetic(op, node, left, right)
        if op == "subtract" and left.type.is_timestamp:
            hint = "timestampdiff(SECOND, start, end) has the seconds; CAST(end - start AS BIGINT) too"
            raise reject("INTERVAL_VALUE", self.sql, node, name="the difference of two timestamps", hint=hint)
        return arithmetic(op, left, right)

    def _interval_alone(self, node: exp.Expr) -> Exception:
        hint = "add it to a date or timestamp"
        return reject("INTERVAL_VALUE", self.sql, node, name="an interval on its own", hint=hint)

    def _date_arithmetic(self, op: str, node: exp.Expr, left: Expression, right: Expression) -> Expression:
        if op == "subtract" and right.type.is_datetime:
            hint = "use datediff(end, start) for the number of days"
            raise reject("INTERVAL_VALUE", self.sql, node, name="the difference of two dates", hint=hint)
        if left.type.kind is not Kind.DATE and op == "add":
            left, right = right, left
        if right.type.kind not in (Kind.TINYINT, Kind.SMALLINT, Kind.INT):
            raise CoercionError(f"`{op}` takes a date and an int, not `{left.type}` and `{right.type}`")
        step = cast_to(right, INT)
        return Call("date_add" if op == "add" else "date_sub", (left, step), DATE, left.nullable or step.nullable)

    def _neg(self, node: exp.Neg) -> Expression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number_literal("-" + node.this.this)
        if self._is_suffixed_number(node.this):  # -128Y is a TINYINT though 128Y is none
            return cast_to(number_literal("-" + node.this.this.this), data_type_of(node.this.args["to"], self.sql))
        operand = self.lower(node.this)
        if isinstance(operand, Literal) and operand.type.is_numeric:
            if isinstance(operand.value, int):
                return Literal(in_range(-operand.value, operand.type), operand.type)
            if isinstance(operand.value, float | Decimal):
                return Literal(_negated(operand.value), operand.type)
        return negate(operand)

    def _is_suffixed_number(self, node: exp.Expr) -> bool:
        """Whether a node, which sqlglot has as a cast, is a number like ``5L``."""
        number = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and not node.this.is_string
        return number and re.fullmatch(r"[0-9.][0-9.a-zA-Z+-]*", source_of(node, self.sql)) is not None

    # Conditions.

    def _and(self, node: exp.And) -> Expression:
        return logical("and", *(self.lower(part) for part in _flatten(node, exp.And)))

    def _or(self, node: exp.Or) -> Expression:
        return logical("or", *(self.lower(part) for part in _flatten(node, exp.Or)))

    def _not(self, node: exp.Not) -> Expression:
        if isinstance(node.this, exp.Is):
            return self._is(node.this, negated=True)
        return logical("not", self.lower(node.this))

    def _is(self, node: exp.Is, *, negated: bool = False) -> Expression:
        operand, what = self.lower(node.this), node.expression
        if isinstance(what, exp.Null):
            return functions.is_null(operand, negated=negated)
        if isinstance(what, exp.Boolean):
            test = compare("eq_null_safe", operand, Literal(what.this, BOOLEAN))
            return logical("not", test) if negated else test
        raise reject("UNSUPPORTED_EXPRESSION", self.sql, node, name=f"`{text_of(node, self.sql)}`")

    def _distinct_from(self, node: exp.NullSafeNEQ) -> Expression:
        return logical("not", compare("eq_null_safe", self.lower(node.this), self.lower(node.expression)))

    def _between(self, node: exp.Between) -> Expression:
        if node.args.get("symmetric"):
            raise reject("UNSUPPORTED_EXPRESSION", self.sql, node, name="BETWEEN SYMMETRIC")
        subject = self.lower(node.this)
        low, high = self.lower(node.args["low"]), self.lower(node.args["high"])
        # Spark pads CHAR operands of comparisons, but not those of BETWEEN.
        return logical("and", compare("ge", subject, low, pad=False), compare("le", subject, high, pad=False))

    def _in(self, node: exp.In) -> Expression:
        if node.args.get("query") is not None:
            if self._bind_subquery is not None:
                return self._bind_subquery(self, node)
            raise self._subquery(node, "IN (subquery)")
        return in_list(self.lower(node.this), [self.lower(choice) for choice in node.expressions])

    def _like(self, node: exp.Expr, escape: Expression | None = None) -> Expression:
        subject, pattern = cast_to(self.lower(node.this), STRING), cast_to(self.lower(node.expression), STRING)
        if isinstance(node, exp.ILike):
            subject = Call("lower", (subject,), STRING, subject.nullable)
            pattern = Call("lower", (pattern,), STRING, pattern.nullable)
        args = (subject, pattern) if escape is None else (subject, pattern, escape)
        _check_pattern(pattern, escape)
        found: Expression = Call("like", args, BOOLEAN, subject.nullable or pattern.nullable)
        return logical("not", found) if node.args.get("negate") else found

    def _escape(self, node: exp.Escape) -> Expression:
        escape = self.lower(node.expression)
        if not isinstance(escape, Literal) or not isinstance(escape.value, str) or len(escape.value) != 1:
            raise CoercionError("ESCAPE takes one character")
        return self._like(node.this, escape)

    def _subquery(self, node: exp.Expr, name: str) -> Exception:
        parent = node.parent
        while isinstance(parent, exp.Paren):
            parent = parent.parent
        if isinstance(node, exp.Select | exp.Subquery | exp.SetOperation):
            hint = ONE_VALUE
        elif isinstance(parent, exp.Not):
            name, hint = f"NOT {name}", HAS_NO_PARTNER
        else:
            hint = HAS_NO_PARTNER if isinstance(node, exp.All) else HAS_PARTNER
        return reject("SUBQUERY_EXPRESSION", self.sql, node, name=name, hint=hint)

    # CASE, CAST and the functions with a syntax of their own.

    def _case(self, node: exp.Case) -> Expression:
        subject = None if node.this is None else self.lower(node.this)
        branches = []
        for branch in node.args["ifs"]:
            when = self.lower(branch.this)
            if subject is not None:
                when = compare("eq", subject, when)
            branches.append((when, self.lower(branch.args["true"])))
        default = node.args.get("default")
        return case(branches, Literal(None, NULL) if default is None else self.lower(default))

    def _cast(self, node: exp.Cast) -> Expression:
        target = data_type_of(node.args["to"], self.sql)
        difference = self._difference(node.this)
        if difference is not None and target.is_numeric and not target.is_floating:
            return difference.cast(target)
        return functions.explicit_cast(self.lower(node.this), target)

    def _try_cast(self, node: exp.TryCast) -> Expression:
        why, hint = "a failed cast refuses the batch", "use CAST"
        raise reject("UNSUPPORTED_FUNCTION", self.sql, node, name="TRY_CAST", why=why, hint=hint)

    def _extract(self, node: exp.Extract) -> Expression:
        field = node.this.name.lower()
        difference = self._difference(node.expression)
        found = (
            functions.extract(field, self.lower(node.expression)) if difference is None else difference.extract(field)
        )
        if found is None:
            hint = "supported are " + ", ".join(sorted({f.upper() for f in functions.EXTRACT_FIELDS if len(f) > 3}))
            why = "the field is not supported"
            name = f"EXTRACT({node.this.name.upper()} FROM ...)"
            raise reject("UNSUPPORTED_FUNCTION", self.sql, node, name=name, why=why, hint=hint)
        return found

    def _difference(self, node: exp.Expr) -> Difference | None:
        """What ``a - b`` of two dates or timestamps is: an interval that only EXTRACT and CAST can read."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Sub) or interval_of(node.expression) is not None:
            return None
        return difference_of(self.lower(node.this), self.lower(node.expression))

    def _substring(self, node: exp.Substring) -> Expression:
        parts = [node.this, node.args.get("start"), node.args.get("length")]
        if parts[1] is None:
            raise CoercionError("SUBSTRING needs a position")
        return functions.substring([self.lower(p) for p in parts if p is not None])

    def _trim(self, node: exp.Trim) -> Expression:
        op = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
        parts = [node.this, node.args.get("expression")]
        return functions.trim(op, [self.lower(p) for p in parts if p is not None])

    def _position(self, node: exp.StrPosition) -> Expression:
        parts = [node.args["substr"], node.this, node.args.get("position")]
        return functions.locate([self.lower(p) for p in parts if p is not None])

    def _regexp_like(self, node: exp.RegexpLike) -> Expression:
        return functions.regexp_like([self.lower(node.this), self.lower(node.expression)])

    def _bit_not(self, node: exp.BitwiseNot) -> Expression:
        return functions.bitwise("bit_not", self.lower(node.this))

    def _bits(self, node: exp.Expr) -> Expression:
        """A chain of ``||``, shifts, ``&``, ``^`` and ``|``, which sqlglot takes from left to right: here by their precedence."""
        operators: list[type[exp.Expr]] = []
        operands: list[Expression] = []
        while type(node) in _BITS:
            operators.append(type(node))
            operands.append(self.lower(node.expression))
            node = node.this
        operands.append(self.lower(node))
        operators.reverse()
        operands.reverse()
        for level in dict.fromkeys(_BITS.values()):
            operators, operands = _joined(operators, operands, {k for k, v in _BITS.items() if v == level})
        return operands[0]

    def _aggregate_filter(self, node: exp.Filter) -> Expression:
        call = node.this
        if not isinstance(call, exp.Anonymous) or not is_aggregate(call.name.lower()):
            raise reject("AGGREGATE_FILTER", self.sql, node)
        return self._aggregate_call(call, node.expression.this)

    # Calls.

    def _call(self, node: exp.Anonymous) -> Expression:
        name = node.name.lower()
        if is_aggregate(name):
            return self._aggregate_call(node)
        function = functions.SCALARS.get(name)
        count = len(node.expressions)
        if function is None or (not count and name in functions.NONDETERMINISTIC):
            raise self._unknown_function(node, name)
        if count < function.least or (function.most is not None and count > function.most):
            expected = str(function.least) if function.least == function.most else f"{function.least} or more"
            if function.most is not None and function.most > function.least:
                expected = f"{function.least} to {function.most}"
            why = f"it is called with {count} arguments"
            hint = f"it takes {expected}" + (", for units use + INTERVAL" if name.startswith("date") else "")
            raise reject("UNSUPPORTED_FUNCTION", self.sql, node, name=name.upper(), why=why, hint=hint)
        arguments = [self.lower(argument) for argument in node.expressions[1:]]
        if count:
            unit = node.expressions[0] if count == 3 and name in functions.UNIT_FIRST else None
            named = isinstance(unit, exp.Column) and not unit.table
            arguments.insert(0, Literal(unit.name, STRING) if named and unit else self.lower(node.expressions[0]))
        return function.build(arguments)

    def _aggregate_call(self, node: exp.Anonymous, where: exp.Expr | None = None) -> Expression:
        if self._aggregate is None:
            raise reject("MISPLACED_AGGREGATE", self.sql, node, name=node.name.upper())
        return self._aggregate(self, node.name.lower(), node, where)

    def _unknown_function(self, node: exp.Anonymous, name: str) -> Exception:
        if name in functions.OTHER_AGGREGATES:
            return reject("AGGREGATE_FUNCTION", self.sql, node, name=name.upper())
        if name in functions.NONDETERMINISTIC:
            return reject("NONDETERMINISTIC_FUNCTION", self.sql, node, name=name.upper())
        if name in functions.WINDOW_ONLY:
            return reject("WINDOW_FUNCTION", self.sql, node)
        known = [*functions.SCALARS, *SPELLINGS, *DERIVED]
        hint = close_matches(name, known) or ""
        why = "it is not among the supported functions"
        return reject("UNSUPPORTED_FUNCTION", self.sql, node, name=name.upper(), why=why, hint=hint)

    _HANDLERS: ClassVar[dict[type[exp.Expr], Callable[[Any, Any], Expression]]] = {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Null: lambda _, __: Literal(None, NULL),
        exp.Boolean: lambda _, node: Literal(node.this, BOOLEAN),
        exp.Placeholder: lambda _, node: value_of(node),
        exp.HexString: _hexadecimal,
        exp.Concat: _adjacent_strings,
        exp.Paren: _paren,
        exp.Neg: _neg,
        exp.And: _and,
        exp.Or: _or,
        exp.Not: _not,
        exp.Is: _is,
        exp.NullSafeNEQ: _distinct_from,
        exp.Between: _between,
        exp.In: _in,
        exp.Like: _like,
        exp.ILike: _like,
        exp.Escape: _escape,
        exp.Case: _case,
        exp.Cast: _cast,
        exp.TryCast: _try_cast,
        exp.Extract: _extract,
        exp.Substring: _substring,
        exp.Trim: _trim,
        exp.DPipe: _bits,
        exp.BitwiseAnd: _bits,
        exp.BitwiseOr: _bits,
        exp.BitwiseXor: _bits,
        exp.BitwiseLeftShift: _bits,
        exp.BitwiseRightShift: _bits,
        exp.BitwiseNot: _bit_not,
        exp.RegexpLike: _regexp_like,
        exp.StrPosition: _position,
        exp.Filter: _aggregate_filter,
        exp.Anonymous: _call,
    }


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that are combined by AND, parentheses removed."""
    found, open_nodes = [], [node]
    while open_nodes:  # chains of AND are deep on the left: no recursion
        part = open_nodes.pop()
        if isinstance(part, exp.Paren):
            open_nodes.append(part.this)
        elif isinstance(part, exp.And):
            open_nodes += [part.expression, part.this]
        else:
            found.append(part)
    return found


def _flatten(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    found, open_nodes = [], [node]
    while open_nodes:
        part = open_nodes.pop()
        if isinstance(part, kind):
            open_nodes += [part.args["expression"], part.args["this"]]
        else:
            found.append(part)
    return found


def _joined(
    operators: list[type[exp.Expr]], operands: list[Expression], level: set[type[exp.Expr]]
) -> tuple[list[type[exp.Expr]], list[Expression]]:
    """A chain after the operators of one level are applied, from left to right; ``||`` takes all its operands at once."""
    left: list[type[exp.Expr]] = []
    groups: list[list[Expression]] = [[operands[0]]]
    for operator, operand in zip(operators, operands[1:], strict=True):
        if operator not in level:
            left.append(operator)
            groups.append([operand])
        elif operator is exp.DPipe:
            groups[-1].append(operand)
        elif operator in _SHIFTS:
            groups[-1] = [functions.shift(_SHIFTS[operator])([groups[-1][0], operand])]
        else:
            groups[-1] = [functions.bitwise(_BIT_OPERATIONS[operator], groups[-1][0], operand)]
    return left, [group[0] if len(group) == 1 else functions.concat(group) for group in groups]


def _negated(value: float | Decimal) -> float | Decimal:
    return value.copy_negate() if isinstance(value, Decimal) else -value  # `-` would round to 28 digits


def _check_pattern(pattern: Expression, escape: Expression | None) -> None:
    """Refuses a constant pattern in which the escape character precedes an ordinary one or nothing."""
    mark = escape.value if isinstance(escape, Literal) else "\\"
    text = iter(pattern.value if isinstance(pattern, Literal) and isinstance(pattern.value, str) else "")
    for character in text:
        if character == mark and next(text, "") not in ("%", "_", mark):
            raise CoercionError(f"the escape character `{mark}` must precede `%`, `_` or itself")


def _is_query(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Subquery | exp.Select | exp.SetOperation)


def _subquery_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Exists):
        return "EXISTS (subquery)"
    return "ANY/ALL (subquery)" if isinstance(node, exp.Any | exp.All) else "a scalar subquery"
