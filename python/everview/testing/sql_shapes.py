"""Random SQL texts for random queries: one meaning, many ways of writing it.

What: a query (``Meaning``: occurrences of tables, equalities, filters, a SELECT list, DISTINCT or groups) is drawn first. It is written
plainly for DuckDB, and for everview in a random shape (``Writer``): joins by comma, ON, USING, NATURAL and CROSS JOIN in any order and
nesting, in parentheses with and without aliases, as derived tables, as CTEs that may shadow tables and may be used twice; conditions at any
place where their columns are in scope; names quoted or not, in any case, reserved words and odd characters among them, aliases that repeat
the names of tables; literals with doubled quotes, escapes, blanks and line breaks, in pieces; comments, parentheses and blanks anywhere.
Representation: a ``Case`` has texts and rows only, and the tables that DuckDB reads have plain names.
Invariants: S1, the joins are acyclic: equalities form a tree over the occurrences; S2, whatever the shape, both texts mean the same.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from everview.schema.datatype import INT, STRING, DataType
from everview.schema.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from random import Random

    from hypothesis.strategies import DrawFn

NAMES = (
    *("t", "u", "g", "orders", "T_1", "x", "y", "id", "src", "derived", "derived_1", "d_g", "c0", "a_b"),
    *("order", "select", "from", "Group", "table", "left", "natural", "using", "end", "case", "values", "date", "interval"),
    *("a b", "a.b", "it's", 'say "hi"', "back`tick", "ä", "日本", "1st", "-- no", "/* no */", "semi;colon", "a\nb", "(", "*"),
)
TEXTS = ("a", "b", "", "O'Brien  Jr", "it''s", "  ", "a\nb", "tab\there", "back\\slash", 'say "hi"', "ä日", "-- no", "/*", "%_", "a;b", "`")
NUMBERS = (0, 1, 2, 3, -1)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_RESERVED = frozenset(
    "order select from group table left natural using end case values date interval on join where and or not in is as with cross inner "
    "having by distinct then when else null true false between like right full".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Named:
    """A table as everview knows it, under its odd names."""

    name: str
    columns: tuple[str, ...]
    types: tuple[DataType, ...]

    @property
    def ddl(self) -> str:
        columns = ", ".join(f"{quoted(n)} {str(t).upper()}" for n, t in zip(self.columns, self.types, strict=True))
        return f"CREATE TABLE {quoted(self.name)} ({columns})"

    def plain(self, index: int) -> Table:
        """The same table as DuckDB knows it."""
        return Table(f"s{index}", tuple(Column(f"c{i}", t) for i, t in enumerate(self.types)))


Key = tuple[int, int]
"""An occurrence and a column of its table, by position."""
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """Tables, a query in both dialects, and batches of changes: per table rows to insert and rows to delete."""

    tables: tuple[Named, ...]
    text: str
    duckdb: str
    batches: tuple[tuple[tuple[int, tuple[Row, ...], tuple[Row, ...]], ...], ...]
    in_script: bool

    def __repr__(self) -> str:
        tables = ";\n".join(t.ddl for t in self.tables)
        return f"{tables};\n{self.text}\n-- plainly:\n{self.duckdb}\n-- batches: {self.batches}\n-- in a script: {self.in_script}"


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def duckdb_literal(value: int | str | None) -> str:
    """A constant in DuckDB's dialect."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


# ---- meanings --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a query over columns of occurrences; ``write`` gives its text from those of its columns and constants."""

    keys: tuple[Key, ...]
    constants: tuple[int | str | None, ...]
    template: str
    type: DataType = INT

    def write(self, column: Callable[[Key], str], literal: Callable[[Any], str]) -> str:
        return self.template.format(*map(column, self.keys), *map(literal, self.constants))


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a query means."""

    occurrences: tuple[int, ...]
    tables: tuple[Named, ...]
    conditions: tuple[Part, ...]
    items: tuple[Part, ...]
    keys: tuple[Part, ...]
    kind: str

    def type_of(self, key: Key) -> DataType:
        return self.tables[self.occurrences[key[0]]].types[key[1]]

    def plainly(self) -> str:
        """The text for DuckDB."""

        def column(key: Key) -> str:
            return f"o{key[0]}.c{key[1]}"

        items = [f"{i.write(column, duckdb_literal)} AS r{n}" for n, i in enumerate((*self.keys, *self.items))]
        source = ", ".join(f"s{t} AS o{n}" for n, t in enumerate(self.occurrences))
        text = f"SELECT {'DISTINCT ' if self.kind == 'distinct' else ''}{', '.join(items)} FROM {source}"
        if self.conditions:
            text += " WHERE " + " AND ".join(f"({c.write(column, duckdb_literal)})" for c in self.conditions)
        if self.kind == "groups" and self.keys:
            text += " GROUP BY " + ", ".join(str(n + 1) for n in range(len(self.keys)))
        return text


@st.composite
def _tables(draw: DrawFn) -> tuple[Named, ...]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique_by=str.lower))
    found = []
    for name in names:
        columns = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique_by=str.lower))
        types = tuple(draw(st.sampled_from((INT, INT, STRING))) for _ in columns)
        found.append(Named(name, tuple(columns), types))
    return tuple(found)


def _filter(random: Random, key: Key, data_type: DataType) -> Part:
    values: Sequence[Any] = TEXTS if data_type == STRING else NUMBERS
    forms = (
        *("{0} = {1}", "{0} <> {1}", "{0} < {1}", "{0} IN ({1}, {2})", "{0} NOT IN ({1}, {2})", "{0} IS NULL", "{0} IS NOT NULL"),
        *("{0} BETWEEN {1} AND {2}", "CASE WHEN {0} = {1} THEN TRUE ELSE {0} = {2} END", "{0} = {1} OR {0} IS NULL", "NOT {0} = {1}"),
    )
    return Part((key,), (random.choice(values), random.choice(values)), random.choice(forms))


def _item(random: Random, meaning: Meaning, keys: Sequence[Key], *, whole: bool = False) -> Part:
    key = random.choice(keys)
    if whole or random.random() < 0.5:
        return Part((key,), (), "{0}", meaning.type_of(key))
    if meaning.type_of(key) == STRING:
        forms = ("{0} || {1}", "CASE WHEN {0} = {1} THEN {0} ELSE {1} END", "coalesce({0}, {1})", "{1}")
        return Part((key,), (random.choice(TEXTS),), random.choice(forms), STRING)
    forms = ("{0} + {1}", "({0} - {1}) * {0}", "CASE WHEN {0} = {1} THEN {0} ELSE {1} END", "coalesce({0}, {1})", "{1}", "-{0}")
    return Part((key,), (random.choice(NUMBERS),), random.choice(forms))


def _meaning(random: Random, tables: tuple[Named, ...]) -> Meaning:
    occurrences = tuple(random.randrange(len(tables)) for _ in range(random.randint(1, 4)))
    bare = Meaning(occurrences, tables, (), (), (), "bag")
    keys = [(n, c) for n, t in enumerate(occurrences) for c in range(len(tables[t].columns))]
    conditions = []
    for n in range(1, len(occurrences)):
        partner = random.randrange(n)
        pairs = [(a, b) for a in keys for b in keys if (a[0], b[0]) == (partner, n) and bare.type_of(a) == bare.type_of(b)]
        chosen = random.sample(pairs, min(len(pairs), random.choice((0, 1, 1, 1, 2))))
        conditions += [Part(pair, (), "{0} = {1}") for pair in chosen]
    conditions += [_filter(random, k, bare.type_of(k)) for k in keys if random.random() < 0.15]
    kind = random.choice(("bag", "bag", "distinct", "groups"))
    group: list[Part] = []
    if kind == "groups":
        group = [_item(random, bare, keys, whole=random.random() < 0.7) for _ in range(random.randint(0, 3))]
        sums = [k for k in keys if bare.type_of(k) == INT]
        items = [Part((), (), "COUNT(*)")] + [Part((random.choice(keys),), (), "COUNT({0})")] * random.randint(0, 1)
        items += [Part((random.choice(sums),), (), "SUM({0})") for _ in range(random.randint(0, 2)) if sums]
    else:
        items = [_item(random, bare, keys) for _ in range(random.choice((1, 2, 3, 5, 30)))]
    return Meaning(occurrences, tables, tuple(conditions), tuple(items), tuple(group), kind)


# ---- shapes ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Scope:
    """A part of FROM: its text, the aliases it shows, and its columns in order, each with all the keys that it holds.

    ``pending``: conditions on its occurrences that are still to be written.
    """

    text: str
    aliases: list[str]
    visible: list[tuple[str, tuple[Key, ...]]]
    qualified: dict[Key, list[tuple[str, str]]]
    pending: list[Part] = field(default_factory=list)
    has_comma: bool = False

    def names(self) -> Counter[str]:
        return Counter(name.lower() for name, _ in self.visible)


class Writer:
    """Writes a meaning in a random shape."""

    def __init__(self, random: Random, meaning: Meaning) -> None:
        self.random = random
        self.meaning = meaning
        self.ctes: list[str] = []
        self.cte_names: set[str] = set()
        self.read_by_name: Counter[str] = Counter(meaning.tables[t].name.lower() for t in meaning.occurrences)
        self.edges = {frozenset(c.keys): n for n, c in enumerate(meaning.conditions) if len(c.keys) == 2}

    # Words.

    def word(self, text: str) -> str:
        return self.random.choice((text, text.lower(), text.upper(), text.capitalize()))

    def words(self, text: str) -> str:
        return " ".join(map(self.word, text.split()))

    def gap(self) -> str:
        return self.random.choice((" ", " ", " ", "\n", "  ", "\t", "/* it's ( */", " -- it's\n", "\r\n"))

    def name(self, name: str) -> str:
        text = name if self.random.random() < 0.5 else name.swapcase() if name.isascii() else name
        if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED and self.random.random() < 0.6:
            return text
        return quoted(text)

    def fresh(self, taken: Iterable[str]) -> str:
        """A name, often that of a table or column, which is not among those taken."""
        used = {t.lower() for t in taken}
        pool = [*(t.name for t in self.meaning.tables), *(c for t in self.meaning.tables for c in t.columns), *NAMES]
        free = [n for n in pool if n.lower() not in used]
        return self.random.choice(free) if free else f"n{len(used)}"

    def literal(self, value: int | str | None) -> str:
        if value is None:
            return self.word("NULL")
        if isinstance(value, int):
            return self.random.choice((str(value), f"({value})", f"{'-' if value < 0 else ''} {abs(value)}"))
        mark = self.random.choice(("'", "'", '"'))
        if value and self.random.random() < 0.2:
            cut = self.random.randrange(len(value))
            return f"{self.quote(value[:cut], mark)}{self.random.choice((' ', self.gap()))}{self.quote(value[cut:], mark)}"
        return self.quote(value, mark)

    def quote(self, value: str, mark: str) -> str:
        escapes = {"\n": ("\n", "\\n"), "\t": ("\t", "\\t"), "\\": ("\\\\",), mark: (mark * 2, "\\" + mark), "ä": ("ä", "\\u00e4")}
        return mark + "".join(self.random.choice(escapes.get(c, (c,))) for c in value) + mark

    def around(self, text: str) -> str:
        """A condition or an operand, in parentheses or not."""
        depth = self.random.choice((0, 0, 0, 1, 1, 3))
        return "(" * depth + text + ")" * depth

    # Columns and conditions.

    def column(self, scope: Scope, key: Key) -> str:
        forms = [f"{self.name(alias)}.{self.name(name)}" for alias, name in scope.qualified.get(key, ())]
        names = scope.names()
        forms += [self.name(name) for name, keys in scope.visible if key in keys and names[name.lower()] == 1]
        return self.random.choice(forms)

    def write(self, scope: Scope, part: Part) -> str:
        return part.write(lambda key: self.column(scope, key), self.literal)

    def condition(self, scope: Scope, part: Part) -> str:
        text = self.around(f"({self.write(scope, part)})" if " OR " in part.template else self.write(scope, part))
        alone = len({k[0] for k in part.keys}) == 1  # across tables an equality is one only if it is written as such
        return f"NOT (NOT ({text}))" if alone and self.random.random() < 0.05 else text

    def conjunction(self, scope: Scope, parts: list[Part]) -> str:
        texts = [self.condition(scope, p) for p in parts]
        if not texts or self.random.random() < 0.1:
            texts.insert(self.random.randint(0, len(texts)), self.random.choice(("TRUE", "1 = 1", "NOT FALSE")))
        return self.around(f"{self.gap()}{self.word('AND')}{self.gap()}".join(texts))

    def take(self, scope: Scope, *, every: bool = False) -> list[Part]:
        """Pending conditions whose columns are in scope; all of these, or some."""
        held = {key for _, keys in scope.visible for key in keys} | set(scope.qualified)
        ready = [p for p in scope.pending if set(p.keys) <= held]
        taken = ready if every else [p for p in ready if self.random.random() < 0.6]
        scope.pending = [p for p in scope.pending if p not in taken]
        return taken

    # FROM.

    def leaf(self, occurrence: int, taken: Iterable[str]) -> Scope:
        table = self.meaning.tables[self.meaning.occurrences[occurrence]]
        taken = [t.lower() for t in taken]
        if table.name.lower() not in taken and self.random.random() < 0.3:
            alias, text = table.name, self.name(table.name)
        else:
            alias = self.fresh(taken)
            text = f"{self.name(table.name)}{self.gap()}{self.random.choice(('', self.word('AS') + ' '))}{self.name(alias)}"
        visible = [(name, ((occurrence, i),)) for i, name in enumerate(table.columns)]
        pending = [c for c in self.meaning.conditions if all(k[0] == occurrence for k in c.keys)]
        return Scope(text, [alias], visible, {keys[0]: [(alias, name)] for name, keys in visible}, pending)

    def item(self, occurrences: list[int], taken: Iterable[str]) -> Scope:
        """An item of FROM that holds these occurrences; its aliases are not among those taken."""
        taken = list(taken)
        wrap = self.random.choice(("", "", "", "", "derived", "derived", "parentheses", "aliased", "cte"))
        hidden = wrap in ("derived", "cte", "aliased")
        if len(occurrences) == 1:
            scope = self.leaf(occurrences[0], [] if hidden else taken)
        else:
            scope = self.join(occurrences, [] if hidden else taken)
            if wrap == "":
                wrap = "parentheses"  # the caller joins this to something
            if scope.has_comma:
                wrap = "derived"  # no list stands in parentheses
        if wrap == "parentheses":
            scope.text = f"({scope.text})" if self.random.random() < 0.8 else f"(({scope.text}))"
        elif wrap == "aliased":
            scope = self.aliased(scope, taken)
        elif wrap in ("derived", "cte"):
            scope = self.derived(scope, occurrences, taken, as_cte=wrap == "cte")
        return scope

    def aliased(self, scope: Scope, taken: Iterable[str]) -> Scope:
        """Joins in parentheses under an alias, which hides those inside."""
        alias = self.fresh(taken)
        names = [name for name, _ in scope.visible]
        text = f"({scope.text}) {self.random.choice(('', self.word('AS') + ' '))}{self.name(alias)}"
        if max(scope.names().values()) > 1 or self.random.random() < 0.3:
            names = self.new_names(scope)
            text += f"({', '.join(map(self.name, names))})"
        return self.under(alias, text, names, scope)

    def under(self, alias: str, text: str, names: list[str], scope: Scope) -> Scope:
        visible = [(name, keys) for name, (_, keys) in zip(names, scope.visible, strict=True)]
        return Scope(text, [alias], visible, {k: [(alias, n)] for n, keys in visible for k in keys}, scope.pending)

    def new_names(self, scope: Scope) -> list[str]:
        """Names for the columns of a scope: those they have, others, or the number of an equality, by which USING may find them."""
        found: list[str] = []
        for name, keys in scope.visible:
            numbers = [f"k{n}" for pair, n in self.edges.items() if pair & set(keys)]
            options = [n for n in (name, *numbers, *numbers) if n.lower() not in {f.lower() for f in found}]
            found.append(self.random.choice([*options, self.fresh(found)]))
        return found

    def derived(self, scope: Scope, occurrences: list[int], taken: Iterable[str], *, as_cte: bool) -> Scope:
        """A derived table or CTE over a scope; some conditions stay inside."""
        conditions = self.take(scope)
        names = [name for name, _ in scope.visible]
        outer_names = self.random.random() < 0.2
        if max(scope.names().values()) == 1 and self.random.random() < 0.3:
            items = "*"
        else:
            columns = []
            names = self.new_names(scope)
            for new, (_, keys) in zip(names, scope.visible, strict=True):
                columns.append(f"{self.column(scope, keys[0])}{self.gap()}{self.word('AS')} {self.name(new)}")
            items = f",{self.gap()}".join(columns)
        text = f"{self.word('SELECT')}{self.gap()}{items}{self.gap()}{self.word('FROM')} {scope.text}"
        if conditions:
            text += f"{self.gap()}{self.word('WHERE')} {self.conjunction(scope, conditions)}"
        listed = ""
        if outer_names:
            names = self.new_names(Scope("", [], [(n, k) for n, (_, k) in zip(names, scope.visible, strict=True)], {}))
            listed = f"({', '.join(map(self.name, names))})"
        alias = self.fresh(taken)
        if not as_cte:
            as_ = self.random.choice(("", self.word("AS") + " "))
            return self.under(alias, f"({text}) {as_}{self.name(alias)}{listed}", names, scope)
        cte = self.cte_name(occurrences)
        self.ctes.append(f"{self.name(cte)}{listed}{self.gap()}{self.word('AS')} ({text})")
        return self.under(alias, f"{self.name(cte)}{self.gap()}{self.word('AS')} {self.name(alias)}", names, scope)

    def cte_name(self, occurrences: list[int]) -> str:
        """A new name; that of a table if all its occurrences are inside, so that nothing outside means the table."""
        inside = Counter(self.meaning.tables[self.meaning.occurrences[o]].name.lower() for o in occurrences)
        shadowed = [n for n, count in inside.items() if count == self.read_by_name[n] and n not in self.cte_names]
        taken = [*self.read_by_name, *self.cte_names]
        name = self.random.choice(shadowed) if shadowed and self.random.random() < 0.5 else self.fresh(taken)
        self.cte_names.add(name.lower())
        return name

    def join(self, occurrences: list[int], taken: Iterable[str]) -> Scope:
        """Some occurrences, joined one way or another. The text may end in a join and begin with one."""
        cut = self.random.randint(1, len(occurrences) - 1)
        shuffled = self.random.sample(occurrences, len(occurrences))
        taken = list(taken)
        left = self.join(shuffled[:cut], taken) if cut > 1 and self.random.random() < 0.6 else self.item(shuffled[:cut], taken)
        right = self.item(shuffled[cut:], [*taken, *left.aliases])
        both = Scope(
            "",
            left.aliases + right.aliases,
            left.visible + right.visible,
            left.qualified | right.qualified,
            left.pending + right.pending,
        )
        sides = [{k[0] for _, keys in side.visible for k in keys} | {k[0] for k in side.qualified} for side in (left, right)]
        between = [c for c in self.meaning.conditions if len(c.keys) == 2 and self.crosses(c, *sides)]
        both.pending += between
        merged = self.mergeable(left, right, between)
        common = {n for n in left.names() if n in right.names()}
        forms = ["ON", "ON", "CROSS", ","] + (["USING"] * 3 if merged else [])
        forms += ["NATURAL"] * 2 if all(n in merged for n in common) else []
        form = "," if left.has_comma else self.random.choice(forms)  # a JOIN would see what stands since the last comma
        if form in ("USING", "NATURAL"):
            names = [n for n in merged if form == "NATURAL" or self.random.random() < 0.8] or list(merged)[:1]
            return self.merge(left, right, both, form, {n: merged[n] for n in names})
        words = {"ON": self.random.choice(("JOIN", "INNER JOIN")), "CROSS": "CROSS JOIN", ",": ","}[form]
        both.text = f"{left.text}{self.gap()}{self.words(words)}{self.gap()}{right.text}"
        if form == ",":
            both.text, both.has_comma = f"{left.text}{self.gap()},{self.gap()}{right.text}", True
        elif form == "ON" and self.random.random() < 0.9:
            both.text += f"{self.gap()}{self.word('ON')} {self.conjunction(both, self.take(both))}"
        return both

    def crosses(self, condition: Part, left: set[int], right: set[int]) -> bool:
        one, two = (k[0] for k in condition.keys)
        return (one in left and two in right) or (one in right and two in left)

    def mergeable(self, left: Scope, right: Scope, between: list[Part]) -> dict[str, Part]:
        """The names that both sides show once and that hold the columns of an equality between them."""
        found: dict[str, Part] = {}
        ours, theirs = left.names(), right.names()
        for name, keys in left.visible:
            lower = name.lower()
            if ours[lower] == theirs[lower] == 1:
                other = next(k for n, k in right.visible if n.lower() == lower)
                for condition in between:
                    one, two = condition.keys
                    if (one in keys and two in other) or (two in keys and one in other):
                        found[lower] = condition
        return found

    def merge(self, left: Scope, right: Scope, both: Scope, form: str, merged: dict[str, Part]) -> Scope:
        both.pending = [c for c in both.pending if c not in merged.values()]
        partner = {n.lower(): keys for n, keys in right.visible}
        first = [(n, keys + partner[n.lower()]) for n, keys in left.visible if n.lower() in merged]
        rest = [v for v in left.visible + right.visible if v[0].lower() not in merged]
        both.visible = sorted(first, key=lambda v: list(merged).index(v[0].lower())) + rest
        if form == "NATURAL":
            order = [n.lower() for n, _ in right.visible if n.lower() in merged]
            both.visible = sorted(first, key=lambda v: order.index(v[0].lower())) + rest
            both.text = f"{left.text}{self.gap()}{self.words('NATURAL JOIN')} {right.text}"
        else:
            names = ", ".join(map(self.name, merged))
            both.text = f"{left.text}{self.gap()}{self.word('JOIN')} {right.text}{self.gap()}{self.word('USING')} ({names})"
        return both

    # The whole.

    def query(self) -> str:
        meaning = self.meaning
        every = list(range(len(meaning.occurrences)))
        scope = self.join(every, []) if len(every) > 1 else self.item(every, [])
        conditions = self.take(scope, every=True)
        assert not scope.pending, scope.pending
        text = self.word("SELECT") + self.gap()
        if meaning.kind == "distinct":
            text += self.word("DISTINCT") + " "
        items, groups = self.items(scope)
        text += f",{self.gap()}".join(items) + f"{self.gap()}{self.word('FROM')}{self.gap()}{scope.text}"
        if conditions or self.random.random() < 0.1:
            text += f"{self.gap()}{self.word('WHERE')} {self.conjunction(scope, conditions)}"
        if groups:
            text += f"{self.gap()}{self.words('GROUP BY')} {', '.join(groups)}"
        if self.ctes:
            text = f"{self.word('WITH')} {f',{self.gap()}'.join(self.ctes)}{self.gap()}{text}"
        return self.random.choice(("", "\n", "-- it's\n")) + text + self.random.choice(("", " ", "\n"))

    def items(self, scope: Scope) -> tuple[list[str], list[str]]:
        items, groups, names = [], [], [name for name, _ in scope.visible]
        for n, part in enumerate((*self.meaning.keys, *self.meaning.items)):
            alias = self.fresh(names)  # no column in scope has it: a column goes before an alias of the SELECT list
            names.append(alias)
            written = self.around(self.write(scope, part))
            items.append(f"{written}{self.gap()}{self.random.choice((self.word('AS') + ' ', ''))}{self.name(alias)}")
            if n < len(self.meaning.keys):
                forms = [str(n + 1), self.name(alias)]
                if part.template != "{1}":  # a number would be a position
                    forms.append(self.write(scope, part))
                groups.append(self.random.choice(forms))
        return items, groups


# ---- cases -----------------------------------------------------------------------------------------------------------


@st.composite
def cases(draw: DrawFn) -> Case:
    """Random tables, a query over them in a random shape, and random batches."""
    tables = draw(_tables())
    random = draw(st.randoms(use_true_random=False))
    meaning = _meaning(random, tables)
    text = Writer(random, meaning).query()
    held: list[list[Row]] = [[] for _ in tables]
    batches = []
    for _ in range(3):
        batch = []
        for n, table in enumerate(tables):
            stays = [random.random() < 0.6 for _ in held[n]]
            leaving = [row for row, stay in zip(held[n], stays, strict=True) if not stay]
            coming = [tuple(_value(random, t) for t in table.types) for _ in range(random.randint(0, 5))]
            held[n] = [row for row, stay in zip(held[n], stays, strict=True) if stay] + coming
            batch.append((n, tuple(coming), tuple(leaving)))
        batches.append(tuple(batch))
    return Case(tables, text, meaning.plainly(), tuple(batches), random.random() < 0.3)


def _value(random: Random, data_type: DataType) -> Any:
    if random.random() < 0.1:
        return None
    return random.choice(TEXTS[:6] if data_type == STRING else NUMBERS)


@st.composite
def mutilated(draw: DrawFn) -> tuple[tuple[Named, ...], str]:
    """A text of a random shape, some of its tokens gone, doubled, exchanged, or replaced by others."""
    case = draw(cases())
    tokens = re.findall(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|\s+|[^\w\s]", case.text)
    random = draw(st.randoms(use_true_random=False))
    others = ["(", ")", ",", "*", ".", "'", "`", "SELECT", "FROM", "WHERE", "GROUP BY", "JOIN", "ON", "USING", "NOT", "-", "NULL", "1e400"]
    others += ["99999999999999999999999999999999999999999", "INTERVAL 1 DAY", "DATE '2024-02-30'", "COUNT(*)", "SUM", "CASE", "END", "::", "[", "\0"]
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(tokens)) if tokens else 0
        change = random.choice(("drop", "double", "swap", "replace", "insert"))
        if change == "drop":
            del tokens[at : at + random.randint(1, 3)]
        elif change == "double":
            tokens[at:at] = tokens[at : at + random.randint(1, 4)]
        elif change == "swap" and tokens:
            other = random.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif change == "replace":
            tokens[at : at + 1] = [random.choice(others)]
        else:
            tokens.insert(at, f" {random.choice(others)} ")
    return case.tables, "".join(tokens)
