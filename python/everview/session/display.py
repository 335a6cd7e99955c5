"""Views in notebooks."""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everview.session.view import View

_SHOWN = 10


def to_html(view: View) -> str:
    """The first rows as a table; cheap, because rows are enumerated with constant delay."""
    rows = list(islice(iter(view), _SHOWN + 1))
    head = "".join(f"<th>{escape(f.name)}<br><small>{escape(str(f.type))}</small></th>" for f in view.schema)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(v))}</td>" for v in row) + "</tr>" for row in rows[:_SHOWN])
    more = f"<p>the first {_SHOWN} of {view.count():,} rows</p>" if len(rows) > _SHOWN else ""
    return f"<table><caption>{escape(view.name)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
