"""Random SQL texts for random queries: one meaning, many ways of writing it.

What: a meaning (``sql_meanings``) is written in a random shape (``Writer``): joins by comma, ON, USING, NATURAL and CROSS JOIN in any
order and nesting, in parentheses with and without aliases, as derived tables, as CTEs that may shadow tables; conditions at any place
where their columns are in scope; names quoted or not, in any case, reserved words and odd characters among them, aliases that repeat the
names of tables; literals with doubled quotes, escapes, blanks and line breaks, in pieces; comments, parentheses and blanks anywhere.
Representation: a ``Case`` has texts and rows only.
Invariant: whatever the shape, the text means what the plain one does. Shapes are those of Spark's grammar: a list has no parentheses, and
JOIN sees what stands since the last comma.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from everview.schema.datatype import STRING, DataType
from everview.testing.sql_meanings import (
    NAMES,
    NUMBERS,
    TEXTS,
    Key,
    Meaning,
    Named,
    Part,
    Row,
    odd_tables,
    quoted,
    random_meaning,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from hypothesis.strategies import DrawFn

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_RESERVED_WORDS = (
    "order select from group table left natural using end case values date interval on join where and or not in is as with cross inner "
    "having by distinct then when else null true false between like right full"
)
_RESERVED = frozenset(_RESERVED_WORDS.split())


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
            return (
                f"{self.quote(value[:cut], mark)}{self.random.choice((' ', self.gap()))}{self.quote(value[cut:], mark)}"
            )
        return self.quote(value, mark)

    def quote(self, value: str, mark: str) -> str:
        escapes = {
            "\n": ("\n", "\\n"),
            "\t": ("\t", "\\t"),
            "\\": ("\\\\",),
            mark: (mark * 2, "\\" + mark),
            "ä": ("ä", "\\u00e4"),
        }
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
        visible: list[tuple[str, tuple[Key, ...]]] = [
            (name, ((occurrence, i),)) for i, name in enumerate(table.columns)
        ]
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
        left = (
            self.join(shuffled[:cut], taken)
            if cut > 1 and self.random.random() < 0.6
            else self.item(shuffled[:cut], taken)
        )
        comma = left.has_comma or self.random.random() < 0.2  # then a JOIN would see what stands since the last comma
        taken += left.aliases
        if comma and len(shuffled) - cut > 1 and self.random.random() < 0.7:
            right = self.join(shuffled[cut:], taken)
        else:
            right = self.item(shuffled[cut:], taken)
        both = Scope(
            "",
            left.aliases + right.aliases,
            left.visible + right.visible,
            left.qualified | right.qualified,
            left.pending + right.pending,
        )
        sides = [
            {k[0] for _, keys in side.visible for k in keys} | {k[0] for k in side.qualified} for side in (left, right)
        ]
        between = [c for c in self.meaning.conditions if len(c.keys) == 2 and self.crosses(c, *sides)]
        both.pending += between
        merged = self.mergeable(left, right, between)
        common = {n for n in left.names() if n in right.names()}
        forms = ["ON", "ON", "CROSS"] + (["USING"] * 3 if merged else [])
        forms += ["NATURAL"] * 2 if all(n in merged for n in common) else []
        form = "," if comma else self.random.choice(forms)
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
            both.text = (
                f"{left.text}{self.gap()}{self.word('JOIN')} {right.text}{self.gap()}{self.word('USING')} ({names})"
            )
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


@st.composite
def cases(draw: DrawFn) -> Case:
    """Random tables, a query over them in a random shape, and random batches."""
    tables = draw(odd_tables())
    size = draw(st.sampled_from((1, 2, 3, 3, 4, 4, 5)))
    random = draw(st.randoms(use_true_random=True))
    meaning = random_meaning(random, tables, size)
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
