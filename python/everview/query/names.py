"""Names that no other has."""

from __future__ import annotations


def unique_name(name: str, taken: set[str]) -> str:
    """``name``, numbered if it is taken; it is taken from then on."""
    found, number = name, 2
    while found.lower() in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found.lower())
    return found
