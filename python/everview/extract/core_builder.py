"""From atoms and conditions to a conjunctive query: equality classes become variables.

A term is an expression over one atom. An equality between terms of two atoms puts them into one class; a class that
is joined on, or asked for by ``request``, becomes a variable. Conditions over one atom are its filter.

Casts between exact numbers that lose nothing (INT to BIGINT, BIGINT to DECIMAL) are taken off terms and put back when
the atom is bound, so that ``a.x = b.y AND a.x = c.z`` is one class whatever the integer types are. The variable then
has the widest type, and ``reference`` casts it back to the type of the column that was asked for. Where no type of 38
digits holds all values of the class, the variable has the narrowest one: values that are equal are of every type of the
class, so rows with other values join nothing and are dropped (``_is_among``).

A class is null-safe if all its equalities are ``<=>`` and all its terms may be NULL: then NULL is a value like any other. One
``=`` is enough for the others: what equals something by ``=`` is not NULL, and neither is what equals that.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from everview.extract.acyclic import closing
from everview.extract.attach import (
    Hanging,
    NotAttachableError,
    Pair,
    UnfitConditionError,
    equality_of,
    is_true,
    part_of,
)
from everview.query.conjunctive import Atom, Attachment, ConjunctiveQuery, HubKind, Variable
from everview.query.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    PlanColumn,
    columns_of,
    conjunction,
    is_null_on_nulls,
    occurrences,
    rewrite,
)
from everview.query.names import unique_name
from everview.relational.plan import columns_read
from everview.schema.datatype import BIGINT, DataType, Kind, decimal
from everview.sql.coercion import cast_to, common_type, compare, decimal_for, logical
from everview.sql.functions import is_null

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from everview.extract.block import Attached, Block, Leaf, Part
    from everview.relational.plan import Condition, Join

Term = tuple[str, Expression]
_LONGEST_NAME = 40


class CoreBuilder:
    """Builds one conjunctive query: ``request`` variables, ``freeze`` their names, refer to them, ``build``.

    ``unplaced``: the conditions that the query cannot hold; they are to be checked on its results.
    """

    def __init__(self, name: str, block: Block) -> None:
        self._name = name
        self.block = block
        self._filters: dict[str, list[Expression]] = {atom: [] for atom in block.atoms}
        self._classes: dict[Term, list[Term]] = {}  # of each term its class, in the order in which terms came up
        self._strict: set[Term] = set()  # the terms that are compared by =, and not by <=>
        self._head: list[Term] = []
        self._asked: dict[Term, Expression] = {}
        self._components: list[tuple[str, Mapping[str, Expression]]] = []
        self._variables: dict[Term, Variable] = {}
        self._hanging: list[Hanging] = []
        self.unplaced = self._place(block.part)
        for attached in block.part.attached:
            self._attach(attached, block.part, self._hanging)

    def can_bind(self, expression: Expression) -> bool:
        """Whether a variable can hold an expression: it reads one atom and, where that may have no row, is NULL then."""
        atoms = self.block.atoms_of(expression)
        return len(atoms) <= 1 and (is_null_on_nulls(expression) or not any(map(self.is_optional, atoms)))

    def request(self, expression: Expression) -> Term:
        """Ask for a head variable that holds an expression for which ``can_bind`` holds (a constant counts to the first atom)."""
        root = self._root(expression)
        if root not in self._asked:
            self._asked[root] = expression
            self._head.append(root)
        return root

    def request_columns(self, expressions: Iterable[Expression]) -> None:
        """Ask for a head variable for every column that these expressions read."""
        for expression in expressions:
            for column in columns_read(expression):
                self.request(column)

    def _root(self, expression: Expression) -> Term:
        names = self.block.atoms_of(expression)
        return self._find((names[0] if names else self.block.first_atom, _stripped(expression)))

    def needs_cast(self, expression: Expression) -> bool:
        """Whether the variable of a requested expression has a wider type than the expression."""
        root = self._root(expression)
        return _is_exact(expression.type) and self._type(root) != expression.type

    def add_component(self, name: str, factors: Mapping[str, Expression]) -> None:
        """Add an annotation component; ``factors`` by atom, over columns of the plan."""
        self._components.append((name, factors))

    def freeze(self, preferred: Mapping[Term, str], hints: Mapping[Term, str]) -> None:
        """Name the variables. ``preferred`` names are taken as they are, ``hints`` serve computed variables."""
        roots = list(dict.fromkeys([*self._head, *(self._find(t) for t in self._classes)]))
        taken = {name.lower() for name in preferred.values()}
        bases = {r: self._base_name(r, hints) for r in roots if r not in preferred}
        counts: dict[str, int] = {}
        for base, _ in bases.values():
            counts[base.lower()] = counts.get(base.lower(), 0) + 1
        for root in roots:
            if root in preferred:
                name = preferred[root]
            else:
                base, atom = bases[root]
                clash = counts[base.lower()] > 1 or base.lower() in taken
                name = unique_name(f"{atom}_{base}" if clash else base, taken)
            null_safe = self._is_null_safe(root)
            alone = len(self._members(root)) < 2
            nullable = null_safe or (alone and root[1].nullable) or self.is_optional(root[0])
            self._variables[root] = Variable(name, self._type(root), nullable, null_safe)

    def reference(self, expression: Expression) -> Expression:
        """A requested expression in terms of the head, once names are frozen."""
        root = self._root(expression)
        variable = self._variables[root]
        found = ColumnRef(variable.name, variable.type, variable.nullable)
        return cast_to(found, expression.type) if _is_exact(expression.type) else found

    def over_head(self, expression: Expression) -> Expression:
        """An expression with its columns, which were requested, replaced by head variables."""

        def variable(part: Expression) -> Expression | None:
            return self.reference(part) if isinstance(part, PlanColumn) else None

        return rewrite(expression, variable)

    def variable(self, root: Term) -> Variable:
        """The variable of a class."""
        return self._variables[root]

    def build(self, *, distinct: bool = False) -> ConjunctiveQuery:
        """The query."""
        atoms = tuple(self._atom(name, leaf) for name, leaf in self.block.atoms.items())
        head = tuple(self._variables[r].name for r in self._head)
        variables = {v.name: v for v in self._variables.values()}
        components = tuple(name for name, _ in self._components)
        attached = tuple(map(self._attachment, self._hanging))
        return ConjunctiveQuery(self._name, head, atoms, variables, components, distinct, attached)

    def _attachment(self, hanging: Hanging) -> Attachment:
        variables = [(self._variables[self._find(pair.above)], pair) for pair in hanging.key]
        strict = {v.name for v, pair in variables if not (pair.null_safe and v.nullable)}
        key = tuple(dict.fromkeys(v.name for v, _ in variables))
        attached = tuple(map(self._attachment, hanging.attached))
        return Attachment(hanging.kind, hanging.part.atoms, key, attached, frozenset(key) - strict)

    def _is_null_safe(self, root: Term) -> bool:
        members = self._members(root)
        return len(members) > 1 and not self._strict.intersection(members) and all(e.nullable for _, e in members)

    def _place(self, part: Part) -> tuple[Condition, ...]:
        """Puts the conditions of a part into filters and classes; those that fit neither, or would close a cycle, are returned."""
        joins: list[tuple[Condition, tuple[Term, Term], bool]] = []
        others: list[Condition] = []
        for condition in _split(part.conditions):
            names = self.block.atoms_of(condition.expression)
            terms = self._equal_terms(condition.expression)
            if not set(names) <= set(part.atoms):  # what an outer join gives
                others.append(condition)
            elif len(names) < 2:
                self._filters[names[0] if names else part.atoms[0]].append(condition.expression)
            elif terms is None:
                others.append(condition)
            else:
                joins.append((condition, *terms))
        out = closing([equal for _, equal, _ in joins])
        for i, (condition, equal, null_safe) in enumerate(joins):
            if i in out:
                others.append(condition)
                continue
            self._unite(*equal)
            if not null_safe:
                self._strict.update(equal)
        return tuple(others)

    def _attach(self, attached: Attached, main: Part, hanging: list[Hanging]) -> None:
        """Puts a part that hangs on another into filters, classes and a key."""
        part, join = attached.part, attached.join
        if (attached.kind is HubKind.OPTIONAL and part.attached) or self._place(part):
            raise NotAttachableError(join, "right")
        key = [pair for condition in _split(join.conditions) for pair in self._key_part(condition, part, join)]
        above = part_of([pair.above[0] for pair in key], main, hanging)
        if above is None or self._covering([pair.above for pair in key], above[0]) is None:
            raise NotAttachableError(join, "left")
        top = self._covering([pair.own for pair in key], part)
        if top is None:
            raise NotAttachableError(join, "right")
        key = [replace(pair, own=next(t for t in self._members(pair.own) if t[0] == top)) for pair in key]
        parent = above[1]
        if parent is not None and not (parent.kind is attached.kind is HubKind.OPTIONAL):
            raise NotAttachableError(join, "left")
        if parent is not None and any(pair.null_safe or not is_null_on_nulls(pair.above[1]) for pair in key):
            raise NotAttachableError(join, "left")  # it may match where the row above is not there
        for pair in key:
            self._classes.setdefault(pair.above, [pair.above])
        found = Hanging(attached.kind, part, key)
        for below in part.attached:
            self._attach(below, part, found.attached)
        (hanging if parent is None else parent.attached).append(found)

    def _key_part(self, condition: Condition, part: Part, join: Join) -> list[Pair]:
        """What a condition of a join that is no inner one adds to its key; what concerns the right side alone filters that."""
        names = self.block.atoms_of(condition.expression)
        if part.atoms_below.intersection(names):
            raise NotAttachableError(join, "right")  # it reads what an outer join there gives
        ours = [name for name in names if name in part.atoms]
        if len(ours) == len(names) and len(names) == 1:
            self._filters[names[0]].append(condition.expression)
            return []
        found = equality_of(condition.expression) if ours else is_true(condition.expression)
        sides = None if found is None else (found.left, found.right)
        for left, right in [] if sides is None else [sides, sides[::-1]]:
            one, two = self.block.atoms_of(left), self.block.atoms_of(right)
            if len(one) == 1 and one[0] not in part.atoms and len(two) <= 1 and set(two) <= set(part.atoms):
                child = two[0] if two else part.atoms[0]
                null_safe = found is not None and found.null_safe
                return [Pair((one[0], _stripped(left)), (child, _stripped(right)), null_safe)]
        raise UnfitConditionError(join)

    def _covering(self, terms: Sequence[Term], part: Part) -> str | None:
        """The first atom of a part that binds all these terms."""
        binds = [{atom for atom, _ in self._members(term)} for term in terms]
        return next((atom for atom in part.atoms if all(atom in found for found in binds)), None)

    def _keys_of(self, atom: str) -> dict[Term, list[Pair]]:
        """What the atom's own terms are compared with, by classes above, where it hangs below another."""
        found: dict[Term, list[Pair]] = {}
        open_blocks = list(self._hanging)
        while open_blocks:
            block = open_blocks.pop()
            open_blocks += block.attached
            for pair in block.key:
                if pair.own[0] == atom:
                    found.setdefault(self._find(pair.above), []).append(pair)
        return found

    def is_optional(self, atom: str) -> bool:
        """Whether the columns of an atom may be NULL because it has no row."""
        found = part_of([atom], self.block.part, self._hanging)
        return found is not None and found[1] is not None

    def _equal_terms(self, condition: Expression) -> tuple[tuple[Term, Term], bool] | None:
        """The terms of an equality between two atoms, and whether it is null-safe."""
        found = equality_of(condition)
        if found is None:
            return None
        sides = [(self.block.atoms_of(side), _stripped(side)) for side in (found.left, found.right)]
        if any(len(atoms) != 1 for atoms, _ in sides):
            return None
        (one, left), (two, right) = sides
        return (((one[0], left), (two[0], right)), found.null_safe) if one != two else None

    def _find(self, term: Term) -> Term:
        """The first term of its class."""
        return self._members(term)[0]

    def _unite(self, one: Term, two: Term) -> None:
        first, second = (self._classes.setdefault(term, [term]) for term in (one, two))
        if first is second:
            return
        order = {term: n for n, term in enumerate(self._classes)}
        united = sorted([*first, *second], key=order.__getitem__)
        for term in united:
            self._classes[term] = united

    def _members(self, term: Term) -> list[Term]:
        return self._classes.get(term) or [term]

    def _type(self, root: Term) -> DataType:
        types = [expression.type for _, expression in self._members(root)]
        if len(set(types)) > 1 and all(map(_is_exact, types)):
            return _exact_type(types)
        found = types[0]
        for data_type in types[1:]:
            found = common_type(found, data_type) or found
        return found

    def _base_name(self, root: Term, hints: Mapping[Term, str]) -> tuple[str, str]:
        asked = self._asked.get(root)
        candidates = [root[1] if asked is None else _stripped(asked), *(e for _, e in self._members(root))]
        for expression in candidates:
            if isinstance(expression, PlanColumn):
                return expression.name, self.block.owner[expression]
        return hints.get(root) or identifier_of(candidates[0]), root[0]

    def _atom(self, name: str, leaf: Leaf) -> Atom:
        references = dict(leaf.columns)

        def of_source(expression: Expression) -> Expression:
            return rewrite(expression, lambda part: references[part] if isinstance(part, PlanColumn) else None)

        filters = list(self._filters[name])
        bindings: list[tuple[str, Expression]] = []
        for root, variable in self._variables.items():
            mine = [e for a, e in self._members(root) if a == name]
            if mine:
                filters += _bound(mine, variable, null_safe=variable.null_safe)
                bindings.append((variable.name, of_source(cast_to(mine[0], variable.type))))
        for root, pairs in self._keys_of(name).items():
            variable, terms = self._variables[root], [pair.own[1] for pair in pairs]
            filters += _bound(terms, variable, null_safe=variable.nullable and all(p.null_safe for p in pairs))
            bindings.append((variable.name, of_source(cast_to(terms[0], variable.type))))
        position = {reference.name: i for i, (_, reference) in enumerate(leaf.columns)}
        bindings.sort(key=lambda b: min((position[c] for c in columns_of(b[1])), default=len(position)))
        factors = tuple(of_source(f[name]) if name in f else None for _, f in self._components)
        conditions = conjunction([of_source(f) for f in filters])
        return Atom(name, leaf.source, tuple(bindings), conditions, factors, _keys(leaf, bindings))


def _split(conditions: Iterable[Condition]) -> list[Condition]:
    """Conditions with what AND combines taken apart."""
    return [replace(c, expression=part) for c in conditions for part in _conjuncts(c.expression)]


def identifier_of(expression: Expression) -> str:
    """A readable name for a computed expression: ``year_o_orderdate``."""
    words: list[str] = []
    for part in occurrences(expression):
        if isinstance(part, ColumnRef | PlanColumn):
            words.append(part.name)
        elif isinstance(part, Literal):
            words.append("null" if part.value is None else str(part.value))
        elif part.op != "cast":
            words.append(part.op)
        if len(words) > 2 * _LONGEST_NAME:  # enough, even if half of them are blanks
            break
    text = re.sub(r"\W+", "_", "_".join(words)).strip("_")[:_LONGEST_NAME] or "value"
    return f"c_{text}" if text[0].isdigit() else text


def _conjuncts(expression: Expression) -> Iterable[Expression]:
    """What is combined by AND, each once."""
    seen: set[int] = set()
    open_parts = [expression]
    while open_parts:
        part = open_parts.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Call) and part.op == "and":
            open_parts += reversed(part.args)
        else:
            yield part


def _keys(leaf: Leaf, bindings: Sequence[tuple[str, Expression]]) -> tuple[frozenset[str], ...]:
    bound = {e.name: v for v, b in bindings if isinstance(e := _stripped(b), ColumnRef)}
    return tuple(frozenset(bound[c] for c in key) for key in leaf.keys if all(c in bound for c in key))


def _is_exact(data_type: DataType) -> bool:
    return data_type.is_integer or data_type.kind is Kind.DECIMAL


def _holds(target: DataType, source: DataType) -> bool:
    """Whether an exact number type has all values of another."""
    one, two = decimal_for(source), decimal_for(target)
    return one.scale <= two.scale and one.precision - one.scale <= two.precision - two.scale


def _exact_type(types: Sequence[DataType]) -> DataType:
    """The type in which values of different exact types are joined: one that holds them all, else what all have in common."""
    widest = types[0]
    for data_type in types[1:]:
        widest = common_type(widest, data_type) or widest
    if all(_holds(widest, t) for t in types):
        return widest
    decimals = [decimal_for(t) for t in types]
    digits, scale = min(d.precision - d.scale for d in decimals), min(d.scale for d in decimals)
    return decimal(max(1, digits + scale), scale)


_BITS = {Kind.TINYINT: 7, Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63}


def _bound(terms: Sequence[Expression], variable: Variable, *, null_safe: bool) -> list[Expression]:
    """The conditions under which terms of one atom have a common value of the variable's type."""
    found = [compare("eq_null_safe" if null_safe else "eq", terms[0], other) for other in terms[1:]]
    among = conjunction(_is_among(terms[0], variable.type))
    if among is not None:
        found.append(logical("or", is_null(terms[0], negated=False), among) if null_safe else among)
    return found


def _is_among(expression: Expression, target: DataType) -> list[Expression]:
    """The conditions, none of which can fail, under which a cast to ``target`` keeps the value."""
    if not (_is_exact(expression.type) and _is_exact(target)) or _holds(target, expression.type):
        return []
    if target.is_integer:
        most = 1 << _BITS[target.kind]
        low, high = Literal(-most, BIGINT), Literal(most - 1, BIGINT)
    else:
        largest = Decimal((0, (9,) * target.precision, -target.scale))
        low, high = Literal(largest.copy_negate(), target), Literal(largest, target)
    return [
        compare("ge", expression, low),
        compare("le", expression, high),
        compare(
            "eq", expression, cast_to(expression, target)
        ),  # cannot overflow within these bounds, whatever it rounds
    ]


def _stripped(expression: Expression) -> Expression:
    """The expression without casts between exact numbers that lose nothing."""
    while isinstance(expression, Call) and expression.op == "cast":
        source, target = expression.args[0].type, expression.type
        if not (_is_exact(source) and _is_exact(target)) or (target.is_integer and not source.is_integer):
            break
        if not _holds(target, source):
            break
        expression = expression.args[0]
    return expression
