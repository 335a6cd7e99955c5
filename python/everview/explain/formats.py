"""Explains a planned view: what it is, how it is maintained, what that costs, and why.

What: one entry point for all formats.
Representation: facts are gathered once (``explain.facts``) and printed by one module per format.
Invariants: E1, the same planned view gives the same text in every format, on every run.
Cost: linear in the plan.
"""

from __future__ import annotations

import json
from typing import Literal, get_args

from everview.errors import UnsupportedQueryError
from everview.explain.dot import explain_dot
from everview.explain.facts import facts_of
from everview.explain.html import explain_html
from everview.explain.svg import explain_svg
from everview.explain.text import explain_text
from everview.plan.lower import PlannedView

Format = Literal["text", "json", "dot", "svg", "html"]


def explain(planned: PlannedView, format: Format = "text") -> str:  # noqa: A002 the public API calls it format
    """Explain a view as ``text``, ``json``, ``dot``, ``svg`` or ``html``."""
    facts = facts_of(planned)
    if format == "text":
        return explain_text(facts)
    if format == "json":
        return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    if format == "dot":
        return explain_dot(facts)
    if format == "svg":
        return explain_svg(facts)
    if format == "html":
        return explain_html(facts)
    known = ", ".join(get_args(Format))
    raise UnsupportedQueryError("UNKNOWN_EXPLAIN_FORMAT", f"no explain format `{format}`", hint=f"use one of {known}")
