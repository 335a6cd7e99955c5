"""SQL texts without sense: damaged ones, and wild expressions. Whatever they are, errors must be ours, and none a bug."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from everview.aggregates import SPELLINGS
from everview.sql.functions import SCALARS
from everview.testing.sql_shapes import cases

if TYPE_CHECKING:
    from random import Random

    from hypothesis.strategies import DrawFn

    from everview.testing.sql_meanings import Named

_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\w+|\s+|[^\w\s]")
_STRAY = "(|)|,|*|.|'|`|SELECT|FROM|WHERE|GROUP BY|JOIN|ON|USING|NOT|-|NULL|COUNT(*)|SUM|CASE|END|::|[|\0|1e400|INTERVAL 1 DAY|DATE '2024-02-30'"

TABLES = """
CREATE TABLE t (x INT, y BIGINT, s STRING, d DATE, ts TIMESTAMP, p DECIMAL(12,2), f DOUBLE, b BOOLEAN);
CREATE TABLE u (x INT, p DECIMAL(38,10), s CHAR(4))
"""
_COLUMNS = "x|y|s|d|ts|p|f|b|t.x|u.p|t.*|*|nope"
_NUMBERS = (
    "NULL|TRUE|1|-1|0|1.5|1e400|-1e400|1e-400|1L|99999999999999999999L|70000S|1.5BD|1e5BD|2F|1e300F|2D|2147483647|-2147483648|2147483648|"
    "9223372036854775807|-9223372036854775808|9223372036854775808|99999999999999999999"
)
_TEXTS = "'a'|''|'1'|' 12 '|'1e5'|'nan'|'2024-02-30'|'2024-01-01'|'99999-01-01'|'%'|'\\\\'|'year'|r'x'|X'12'"
_TIMES = (
    "DATE '2024-01-01'|DATE '0001-01-01'|DATE '9999-12-31'|TIMESTAMP '2024-01-01 00:00:00'|TIMESTAMP '9999-12-31 23:59:59.999999'|"
    "INTERVAL 1 DAY|INTERVAL '1-2' YEAR TO MONTH|INTERVAL 999999999999 DAY|INTERVAL -5 MONTH|INTERVAL 1.5 SECOND|"
    "INTERVAL 9223372036854775807 MICROSECOND"
)
_LEAVES = [*f"{_COLUMNS}|{_COLUMNS}|{_NUMBERS}|{_TEXTS}|{_TIMES}".split("|"), "9" * 40, "9" * 5000, f"0.{'0' * 50}1"]
_TYPES = (
    "INT|BIGINT|SMALLINT|TINYINT|DECIMAL(5,2)|DECIMAL(38,38)|DECIMAL(39,1)|DECIMAL|STRING|CHAR(3)|CHAR(0)|VARCHAR(5)|VARCHAR|DATE|TIMESTAMP|"
    "TIMESTAMP_NTZ|BOOLEAN|DOUBLE|FLOAT|BINARY|INTERVAL|ARRAY<INT>|VOID|DECIMAL(0)|DECIMAL(5,6)|CHAR(99999999999999999999)"
)
_OPERATORS = "+|-|*|/|%|DIV|=|<>|<|<=>|AND|OR|\u2016|LIKE|ILIKE|IS DISTINCT FROM|&|==|RLIKE"
_FORMS = (
    "({0} @ {1})|({0} @ {1})|({0} @ {1})|CAST({0} AS #)|{0}::#|CASE WHEN {0} THEN {1} ELSE {2} END|CASE {0} WHEN {1} THEN {2} END|"
    "{0} IN ({1}, {2})|{0} NOT IN ({1}, {2})|{0} BETWEEN {1} AND {2}|-{0}|NOT {0}|+{0}|~{0}|! {0}|{0} IS NULL|{0} IS NOT TRUE|{0} IS UNKNOWN|"
    "EXTRACT(YEAR FROM {0})|EXTRACT(SECOND FROM {0})|EXTRACT(DAY FROM {0})|TRIM(BOTH {0} FROM {1})|substring({0} FROM {1} FOR {2})|"
    "s LIKE {0} ESCAPE {1}|{0}[{1}]|~()|~({0})|~({0})|~({0}, {1})|~({0}, {1})|~({0}, {1}, {2})|~({0}, {1}, {2}, {0})"
)
_QUERIES = (
    "SELECT {0} AS z, x FROM t|SELECT x FROM t WHERE {0}|SELECT {1} AS k, COUNT(*) AS n, SUM({2}) AS s FROM t GROUP BY k|"
    "SELECT COUNT(*) AS n FROM t GROUP BY {2}|SELECT t.x FROM t JOIN u ON {1} = {2} AND t.x = u.x|SELECT {1}, {2} FROM t JOIN u USING (x) HAVING {0}|"
    "SELECT DISTINCT {0} AS a FROM t|SELECT AVG({0}) AS a FROM t"
)


@st.composite
def mutilated(draw: DrawFn) -> tuple[tuple[Named, ...], str]:
    """A text of a random shape, some of its tokens gone, doubled, exchanged, or replaced by others."""
    case = draw(cases())
    random = draw(st.randoms(use_true_random=True))
    tokens, stray = _TOKEN.findall(case.text), _STRAY.split("|")
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
            tokens[at : at + 1] = [random.choice(stray)]
        else:
            tokens.insert(at, f" {random.choice(stray)} ")
    return case.tables, "".join(tokens)


@st.composite
def wild_queries(draw: DrawFn, count: int = 20) -> list[str]:
    """Queries over ``TABLES`` with expressions of any types, most of which do not fit."""
    random = draw(st.randoms(use_true_random=True))
    forms = _QUERIES.split("|")
    return [random.choice(forms).format(_wild(random, 3), _wild(random, 2), _wild(random, 2)) for _ in range(count)]


def _wild(random: Random, depth: int) -> str:
    if depth <= 0 or random.random() < 0.25:
        return random.choice(_LEAVES)
    form = random.choice(_FORMS.split("|"))
    form = form.replace("@", random.choice(_OPERATORS.split("|")).replace("\u2016", "||")).replace(
        "#", random.choice(_TYPES.split("|"))
    )
    name = random.choice([*SCALARS, *SPELLINGS, "rand", "min", "no_such", "percentile", "unix_timestamp"])
    if form.startswith("~("):
        form = name + form[1:]
    return form.format(*(_wild(random, depth - 1) for _ in range(3)))
