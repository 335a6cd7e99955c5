"""Every column of a result has a name of its own; where two have the same, what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.errors import SchemaError

if TYPE_CHECKING:
    from everview.relational.plan import Query


def check_names(sql: str, query: Query) -> None:
    """Refuses a result with two columns of one name."""
    places: dict[str, list[int]] = {}
    for at, name in enumerate(query.names):
        places.setdefault(name.lower(), []).append(at)
    repeated = [found for found in places.values() if len(found) > 1]
    if not repeated:
        return
    count = {2: "two"}.get(len(repeated[0]), "several") if len(repeated) == 1 else "several"
    message = f"{count} columns of the result are named " + " and ".join(_named(query, found) for found in repeated)
    span = query.spans[min(found[1] for found in repeated)]
    raise SchemaError("DUPLICATE_COLUMN", message, sql=sql, span=span, hint=_hint(sql, query, repeated))


def _owners(query: Query, places: list[int]) -> list[str]:
    """The aliases that columns belong to, if each belongs to another."""
    owners = [query.owners[at] for at in places] if query.owners else []
    return owners if all(owners) and len(set(owners)) == len(owners) else []


def _named(query: Query, places: list[int]) -> str:
    owners = " and ".join(f"`{owner}`" for owner in _owners(query, places))
    return f"`{query.names[places[0]]}`" + (f" (of {owners})" if owners else "")


def _hint(sql: str, query: Query, repeated: list[list[int]]) -> str:
    stars = any(sql[query.spans[at].start : query.spans[at].end].rstrip().endswith("*") for p in repeated for at in p)
    if not all(_owners(query, places) for places in repeated):
        return "give one of them another name with AS"
    renamed = ", ".join(
        f"`{owner}.{query.names[at]} AS {owner}_{query.names[at]}`"
        for places in repeated
        for owner, at in zip(_owners(query, places), places, strict=True)
    )
    if not stars:
        return f"give them names of their own: {renamed}"
    names = ", ".join(query.names[places[0]] for places in repeated)
    shown = "it" if len(repeated) == 1 else "each"
    return (
        f"list the columns in place of `*` and name them: {renamed}; or, where they are joined by equality, write "
        f"`JOIN ... USING ({names})`, which shows {shown} once"
    )
