"""docs/reference/functions.md, made from the register: ``EVERVIEW_GOLDEN=rewrite pytest tests/meta/test_functions_page.py`` writes it."""

from __future__ import annotations

from everview.sql.functions import GROUPS, NONDETERMINISTIC

_HEAD = """# Functions

Made from the register (`python/everview/sql/functions/`) by `make golden`; do not edit.

Arguments are cast and results are typed as in Spark 4.3 in ANSI mode; a NULL argument gives NULL unless the line says otherwise. What cannot be computed
(an overflow, a part number 0, a day that does not exist) refuses the batch. `tests/spark/test_expressions.py` compares every function with Spark on values
at the edges. Operators, `CASE`, `CAST`, `EXTRACT`, `LIKE` and intervals are in [SQL](sql.md), aggregates there too.

Regular expressions have Java's syntax and are literals. They are matched in linear time, so back references, look-around and possessive
quantifiers are refused, and so are the flags other than `i` and `s`, classes inside of classes, and `{n}` beyond 1000. Formats of dates are literals too.
"""


def page() -> str:
    """The text of the page."""
    parts = [_HEAD]
    for title, functions in GROUPS.items():
        parts.append(f"\n## {title}\n\n| call | meaning | other names |\n|---|---|---|\n")
        for function in functions:
            others = ", ".join(f"`{name}`" for name in function.aliases)
            parts.append(f"| `{function.name}({function.arguments})` | {function.meaning} | {others} |\n")
    names = ", ".join(f"`{name}`" for name in sorted(NONDETERMINISTIC))
    parts.append(
        "\n## Refused because their value changes by itself\n\n"
        f"{names} (`NONDETERMINISTIC_FUNCTION`; `unix_timestamp` without arguments only). Put the value into a column, or into the query as a literal.\n"
    )
    return "".join(parts)
