"""Names in a query block: what a FROM clause brings into scope and how a column name is found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from everview.errors import SchemaError, UnsupportedQueryError
from everview.query.expression import Call, PlanColumn
from everview.sql.reject import close_matches
from everview.sql.spans import span_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlglot import exp

    from everview.query.expression import Expression

NamedExpression = tuple[str, "Expression"]


def _by_name(columns: Iterable[NamedExpression]) -> dict[str, list[Expression]]:
    """Columns by lower-cased name: tables and queries have thousands of them."""
    found: dict[str, list[Expression]] = {}
    for name, expression in columns:
        found.setdefault(name.lower(), []).append(expression)
    return found


def _as_nullable(expression: Expression) -> Expression:
    if isinstance(expression, PlanColumn):
        return replace(expression, nullable=True)
    if isinstance(expression, Call):
        args = tuple(map(_as_nullable, expression.args))
        return Call(expression.op, args, expression.type, nullable=True)
    return expression


@dataclass(frozen=True, slots=True)
class Relation:
    """An item of FROM: a table or a derived table, under its alias (empty: none was given)."""

    alias: str
    columns: tuple[NamedExpression, ...]
    unreadable: tuple[tuple[str, str], ...] = ()
    """Columns that it has and queries cannot read, with their types."""
    _by_name: Mapping[str, list[Expression]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", _by_name(self.columns))

    def find(self, name: str) -> list[Expression]:
        """The columns of this name."""
        return self._by_name.get(name.lower(), [])


@dataclass(slots=True)
class Scope:
    """The relations of one FROM clause. ``visible`` is what ``*`` and bare names see: USING merges columns there.

    ``outer``: the scope around a subquery, where names are looked for that this one does not have.
    """

    sql: str
    relations: list[Relation] = field(default_factory=list)
    visible: list[NamedExpression] = field(default_factory=list)
    outer: Scope | None = None
    _bare: dict[str, list[Expression]] = field(init=False)

    def __post_init__(self) -> None:
        self._bare = _by_name(self.visible)

    @classmethod
    def of(cls, sql: str, relation: Relation) -> Scope:
        """The scope of one relation."""
        return cls(sql, [relation], list(relation.columns))

    def add(self, other: Scope, node: exp.Expr, using: tuple[str, ...] = ()) -> None:
        """Join what ``other`` has; the columns ``using`` are seen once, first, as those of the left side."""
        taken = {r.alias.lower() for r in self.relations if r.alias}
        for relation in other.relations:
            if relation.alias.lower() in taken:
                message = f"alias `{relation.alias}` occurs twice in FROM"
                hint = "give each occurrence of a table its own alias"
                raise self._error("DUPLICATE_ALIAS", message, node, hint)
        merged = {name.lower() for name in using}
        self.show_first(using)
        self.visible += [v for v in other.visible if v[0].lower() not in merged]
        self._bare = _by_name(self.visible)
        self.relations += other.relations

    def show_first(self, using: tuple[str, ...]) -> None:
        """Put the columns ``using`` before the others."""
        merged = {name.lower() for name in using}
        first = [v for u in using for v in self.visible if v[0].lower() == u.lower()]
        self.visible = [*first, *(v for v in self.visible if v[0].lower() not in merged)]

    def show(self, columns: Mapping[str, Expression]) -> None:
        """Let names, which USING has merged, stand for these expressions."""
        by_name = {name.lower(): expression for name, expression in columns.items()}
        self.visible = [(n, by_name.get(n.lower(), e)) for n, e in self.visible]
        self._bare = _by_name(self.visible)

    def owners(self) -> dict[Expression, str]:
        """The alias of the relation that has a column, by column."""
        return {e: r.alias for r in self.relations for _, e in r.columns if isinstance(e, PlanColumn)}

    def make_nullable(self) -> None:
        """Columns may be NULL from here on: the relations are the right side of an outer join."""

        def changed(columns: Iterable[NamedExpression]) -> list[NamedExpression]:
            return [(n, _as_nullable(e)) for n, e in columns]

        self.relations = [replace(r, columns=tuple(changed(r.columns))) for r in self.relations]
        self.visible = changed(self.visible)
        self._bare = _by_name(self.visible)

    def relation(self, node: exp.Expr, alias: str) -> Relation:
        """The relation of this alias."""
        for relation in self.relations:
            if relation.alias.lower() == alias.lower():
                return relation
        hint = close_matches(alias, [r.alias for r in self.relations])
        raise self._error("UNKNOWN_TABLE", f"table or alias `{alias}` is not in FROM", node, hint)

    def _has(self, alias: str) -> bool:
        return any(relation.alias.lower() == alias.lower() for relation in self.relations)

    def try_bare(self, name: str) -> list[Expression]:
        """What a bare name may stand for."""
        return self._bare.get(name.lower(), [])

    def resolve(self, node: exp.Column, aliases: Mapping[str, Expression] | None = None) -> Expression:
        """The expression of a column name; ``aliases`` are looked at where the tables have no such column."""
        name = node.name
        known: Sequence[NamedExpression]
        if node.args.get("db") is not None:
            raise self._error("UNKNOWN_COLUMN", f"column `{text_of(node, self.sql)}` is unknown", node, None)
        if node.table:
            if self.outer is not None and not self._has(node.table):
                return self.outer.resolve(node)
            relation = self.relation(node, node.table)
            found, known, here = relation.find(name), relation.columns, [relation]
        else:
            found, known, here = self.try_bare(name), self.visible, self.relations
            if not found and aliases is not None and name.lower() in aliases:
                return aliases[name.lower()]
            if not found and self.outer is not None:
                return self.outer.resolve(node)
        if len(found) > 1:
            owners = [f"`{r.alias}.{name}`" for r in self.relations if r.alias and r.find(name)]
            hint = "write " + " or ".join(owners) if owners and not node.table else None
            raise self._error("AMBIGUOUS_COLUMN", f"column `{name}` is ambiguous", node, hint)
        if not found:
            self._refuse_unreadable(here, name, node)
            where = f" in `{node.table}`" if node.table else ""
            hint = close_matches(name, [n for n, _ in known])
            raise self._error("UNKNOWN_COLUMN", f"column `{name}` is unknown{where}", node, hint)
        return found[0]

    def refuse_star(self, relations: Sequence[Relation], excepted: set[str], node: exp.Expr) -> None:
        """Refuse ``*`` over columns that cannot be read."""
        for relation in relations:
            for column, kind in relation.unreadable:
                if column.lower() not in excepted:
                    message = f"`*` would read column `{column}` of table `{relation.alias}`, of type {kind}"
                    hint = "name the columns you need"
                    raise UnsupportedQueryError(
                        "UNSUPPORTED_TYPE", message, hint=hint, sql=self.sql, span=span_of(node)
                    )

    def _refuse_unreadable(self, relations: Sequence[Relation], name: str, node: exp.Expr) -> None:
        for relation in relations:
            for column, kind in relation.unreadable:
                if column.lower() == name.lower():
                    message = f"column `{column}` of table `{relation.alias}` is {kind}, a type that views cannot read"
                    hint = "cast it in the DataFrame"
                    raise UnsupportedQueryError(
                        "UNSUPPORTED_TYPE", message, hint=hint, sql=self.sql, span=span_of(node)
                    )

    def _error(self, code: str, message: str, node: exp.Expr, hint: str | None) -> SchemaError:
        return SchemaError(code, message, sql=self.sql, span=span_of(node), hint=hint)
