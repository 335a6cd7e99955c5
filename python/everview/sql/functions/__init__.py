"""The scalar functions, a file per group: names, arguments, and how a call becomes typed operations.

``GROUPS`` is the register, in the order of docs/reference/functions.md, which is made from it (``page.py``). A new function is an
entry in the table of its group here and, unless it can be said by others, one in that of the kernel (``crates/expr/src/functions``).
"""

from __future__ import annotations

from everview.sql.functions import bits, casts, conditional, dates, math, regex, text
from everview.sql.functions.bits import bitwise, shift
from everview.sql.functions.casts import explicit_cast
from everview.sql.functions.conditional import if_, is_null
from everview.sql.functions.dates import EXTRACT_FIELDS, UNIT_FIRST, date_difference, extract
from everview.sql.functions.function import ScalarFunction
from everview.sql.functions.refused import NONDETERMINISTIC, OTHER_AGGREGATES, WINDOW_ONLY
from everview.sql.functions.regex import regexp_like
from everview.sql.functions.text import concat, locate, substring, trim

__all__ = [
    "EXTRACT_FIELDS",
    "GROUPS",
    "NONDETERMINISTIC",
    "OTHER_AGGREGATES",
    "SCALARS",
    "UNIT_FIRST",
    "WINDOW_ONLY",
    "ScalarFunction",
    "bitwise",
    "concat",
    "date_difference",
    "explicit_cast",
    "extract",
    "if_",
    "is_null",
    "locate",
    "regexp_like",
    "shift",
    "substring",
    "trim",
]

GROUPS: dict[str, tuple[ScalarFunction, ...]] = {
    group.TITLE: group.FUNCTIONS for group in (text, regex, math, bits, dates, conditional, casts)
}
SCALARS: dict[str, ScalarFunction] = {
    name: function for group in GROUPS.values() for function in group for name in (function.name, *function.aliases)
}
