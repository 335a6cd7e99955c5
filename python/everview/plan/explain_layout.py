"""``explain`` of a view over shards: shares, replication, predicted load, and what is merged.

What: the lines that follow a view's own explanation when it is laid out over shards.
Representation: text, and the same facts as plain values.
Invariants: deterministic.
Cost: linear in the layout.
"""

from __future__ import annotations

from typing import Any

from everview.plan.distribute import Layout


def layout_facts(layout: Layout) -> dict[str, Any]:
    """The facts of a layout as plain values."""
    shares = layout.shares
    core = layout.shard.cores[0].query
    atoms = [
        {
            "atom": atom.name,
            "table": layout.sources[next(c.source for c in layout.copies if c.name == atom.table)].name,
            "spread_by": [str(d) for d in shares.dimensions if d.spreads(atom)],
            "replication": shares.replication[atom.name],
        }
        for atom in core.atoms
    ]
    per_table: dict[str, int] = {}
    for copy in layout.copies:
        hashed = {at for at, _ in copy.routes}
        copies = 1
        for at, dimension in enumerate(shares.dimensions):
            copies *= 1 if at in hashed else dimension.share
        name = layout.sources[copy.source].name
        per_table[name] = per_table.get(name, 0) + copies
    return {
        "wanted": layout.wanted,
        "shards": shares.shards,
        "shares": {str(d): d.share for d in shares.dimensions},
        "atoms": atoms,
        "copies_per_row": per_table,
        "load": shares.load,
        "heaviest": [
            {"atom": atom, "variable": variable, "fraction": fraction}
            for (atom, variable), fraction in sorted(shares.heaviest.items())
            if variable in shares.variables and fraction > 0
        ],
        "ideal_load": sum(shares.sizes.values()) / shares.shards,
        "merging": _merging(layout),
        "key": None if layout.key is None else list(layout.key),
    }


def _merging(layout: Layout) -> str:
    if layout.merge is not None:
        by = ", ".join(layout.merge_key) or "one engine"
        return f"results span shards: partial results are merged by {by}, which keeps them"
    if layout.disjoint:
        return "no result is found on two shards: changes leave as they are"
    return "equal rows may come from several shards: changes are added up, nothing is kept"


def explain_layout(layout: Layout) -> str:
    """The text of a layout."""
    facts = layout_facts(layout)
    shares = " x ".join(f"{share} by {name}" for name, share in facts["shares"].items()) or "1"
    used = "" if facts["shards"] == facts["wanted"] else f" ({facts['wanted']} wanted)"
    lines = ["shards", f"  grid        {facts['shards']}{used} = {shares} [CROWN section 8]"]
    for atom in facts["atoms"]:
        by = f"spread by {', '.join(atom['spread_by'])}" if atom["spread_by"] else "not spread"
        lines.append(f"    {atom['atom']} = {atom['table']}: {by}, each row on {_shards(atom['replication'])}")
    for table, copies in facts["copies_per_row"].items():
        lines.append(f"  replication {table}: a row travels {copies} time{'s' if copies > 1 else ''}")
    lines.append(
        f"  load        {facts['load']:,.0f} rows expected on the fullest shard; evenly spread without copies {facts['ideal_load']:,.0f}"
    )
    lines += [
        f"  skew        {heavy['fraction']:.0%} of {heavy['atom']} have one value of {heavy['variable']}, which stays together"
        for heavy in facts["heaviest"]
    ]
    lines.append(f"  merging     {facts['merging']}")
    if facts["key"] is None:
        lines.append("  updates     the result has no key: changes are inserts and deletes")
    else:
        by = f"by {', '.join(facts['key'])}" if facts["key"] else "of the one row"
        lines.append(f"  updates     paired {by} as preimage and postimage")
    return "\n".join(lines) + "\n"


def _shards(count: int) -> str:
    return "1 shard" if count == 1 else f"{count} shards"
