"""``explain`` of a view over shards: fragments, grids, replication, predicted load, and what is exchanged.

What: the lines that follow a view's own explanation when it is laid out over shards.
Representation: text, and the same facts as plain values.
Invariants: deterministic.
Cost: linear in the layout.
"""

from __future__ import annotations

from typing import Any

from everview.layout.feeds import Feed
from everview.layout.layout import Fragment, Layout
from everview.layout.placement import Placed, Spread
from everview.layout.shares import Shares
from everview.query.conjunctive import Atom, TableSource
from everview.query.logical_view import Core


def layout_facts(layout: Layout) -> dict[str, Any]:
    """The facts of a layout as plain values."""
    copies: dict[str, int] = {}
    for feed in layout.feeds:
        if isinstance(feed.origin, str):
            name = layout.sources[feed.origin].name
            copies[name] = copies.get(name, 0) + len(feed.replicas)
    return {
        "wanted": layout.wanted,
        "shards": layout.shards,
        "cores": [
            _core_facts(at, placed, placed.stage, placed.shares)
            for at, placed in enumerate(layout.placement.stages)
            if isinstance(placed.stage, Core) and placed.shares is not None and _reads_a_table(placed.stage)
        ],
        "copies_per_row": copies,
        "fragments": [_fragment_facts(layout, fragment) for fragment in layout.fragments],
        "merging": _merging(layout),
        "key": None if layout.key is None else list(layout.key),
    }


def _reads_a_table(core: Core) -> bool:
    return any(isinstance(a.source, TableSource) for a in core.query.atoms)


def _core_facts(at: int, placed: Placed, core: Core, shares: Shares) -> dict[str, Any]:
    return {
        "stage": at,
        "fragment": placed.fragment,
        "shares": {str(d): d.share for d in shares.dimensions},
        "atoms": [_atom_facts(atom, shares) for atom in core.query.atoms],
        "load": shares.load,
        "ideal_load": sum(shares.sizes.values()) / shares.shards,
        "heaviest": [
            {"atom": atom, "variable": variable, "fraction": fraction}
            for (atom, variable), fraction in sorted(shares.heaviest.items())
            if variable in shares.variables and fraction > 0
        ],
    }


def _atom_facts(atom: Atom, shares: Shares) -> dict[str, Any]:
    return {
        "atom": atom.name,
        "table": atom.table,
        "spread_by": [str(d) for d in shares.dimensions if d.spreads(atom)],
        "replication": shares.replication[atom.name],
    }


def _fragment_facts(layout: Layout, fragment: Fragment) -> dict[str, Any]:
    received = [feed for feed in fragment.feeds if not isinstance(feed.origin, str)]
    return {"engines": fragment.engines, "receives": [_exchange(layout, feed) for feed in received]}


def _exchange(layout: Layout, feed: Feed) -> dict[str, Any]:
    assert isinstance(feed.origin, int)
    columns = layout.placement.stages[feed.origin].stage.columns
    hashed = [columns[e["index"]].name for r in feed.routes for e in r.hashed if e["op"] == "column"]
    return {"stage": feed.origin, "by": hashed, "replication": len(feed.replicas)}


def _merging(layout: Layout) -> str:
    spread = layout.spread
    if spread is None:
        return "equal rows may come from several shards: changes are added up, nothing is kept"
    if len(layout.fragments) == 1:
        return "no result is found on two shards: changes leave as they are"
    return f"results span shards: partial results are merged by {_by(spread)}, which keeps them"


def _by(spread: Spread) -> str:
    return ", ".join(c for columns, _ in spread.dimensions for c in columns) or "one engine"


def explain_layout(layout: Layout) -> str:
    """The text of a layout."""
    facts = layout_facts(layout)
    lines = ["shards"]
    for core in facts["cores"]:
        lines += _core_lines(facts, core)
    for table, copies in facts["copies_per_row"].items():
        lines.append(f"  replication {table}: a row travels {copies} time{'s' if copies > 1 else ''}")
    for number, fragment in enumerate(facts["fragments"]):
        for received in fragment["receives"]:
            by = f"by {', '.join(received['by'])}" if received["by"] else f"to {_shards(received['replication'])}"
            lines.append(f"  exchange    fragment {number + 1} gets stage {received['stage'] + 1} {by}")
    lines.append(f"  merging     {facts['merging']}")
    if facts["key"] is None:
        lines.append("  updates     the result has no key: changes are inserts and deletes")
    else:
        by = f"by {', '.join(facts['key'])}" if facts["key"] else "of the one row"
        lines.append(f"  updates     paired {by} as preimage and postimage")
    return "\n".join(lines) + "\n"


def _core_lines(facts: dict[str, Any], core: dict[str, Any]) -> list[str]:
    shares = " x ".join(f"{share} by {name}" for name, share in core["shares"].items()) or "1"
    used = "" if facts["shards"] == facts["wanted"] else f" ({facts['wanted']} wanted)"
    several = f", stage {core['stage'] + 1} in fragment {core['fragment'] + 1}" if len(facts["cores"]) > 1 else ""
    lines = [f"  grid        {facts['shards']}{used} = {shares} [CROWN section 8]{several}"]
    for atom in core["atoms"]:
        by = f"spread by {', '.join(atom['spread_by'])}" if atom["spread_by"] else "not spread"
        lines.append(f"    {atom['atom']} = {atom['table']}: {by}, each row on {_shards(atom['replication'])}")
    lines.append(
        f"  load        {core['load']:,.0f} rows expected on the fullest shard; evenly spread without copies {core['ideal_load']:,.0f}"
    )
    lines += [
        f"  skew        {heavy['fraction']:.0%} of {heavy['atom']} have one value of {heavy['variable']}, which stays together"
        for heavy in core["heaviest"]
    ]
    return lines


def _shards(count: int) -> str:
    return "1 shard" if count == 1 else f"{count} shards"
