"""Which names tables, views and columns may have: every text that can be told from nothing and from its parts.

Control characters are refused because they cannot be seen, and because lowering uses them to tell its own names apart.
"""

from __future__ import annotations

_BREAKS = "\t\n\r"


def why_no_name(name: object) -> str | None:
    """What is wrong with a name; None if nothing is.

    >>> why_no_name("order"), why_no_name(""), why_no_name(None)
    (None, 'a name is a text that is not empty', 'a name is a text, not NoneType')
    """
    if not isinstance(name, str):
        return f"a name is a text, not {type(name).__name__}"
    if not name.strip():
        return "a name is a text that is not empty"
    if any(character < " " and character not in _BREAKS for character in name):
        return "a name has no control characters"
    return None
