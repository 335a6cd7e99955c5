"""One atomic commit over some tables, and the callbacks after it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from everview.engine import refusals
from everview.errors import ChangeError, InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everview.session.state import BaseTable, SessionState

logger = logging.getLogger("everview")
OnMissing = Literal["error", "ignore"]
Request = Literal["changes", "insert", "delete", "update", "upsert"]


def commit(
    state: SessionState, changes: list[tuple[str, Request, Any]], *, deltas: bool, on_missing: OnMissing = "error"
) -> dict[str, pa.Table]:
    """Apply changes (table, request, rows) or refuse them all; return the net delta of every view, if wanted."""
    if on_missing not in ("error", "ignore"):
        raise ChangeError("INVALID_ARGUMENT", f"on_missing is {on_missing!r}", hint="use 'error' or 'ignore'")
    with state.changing:
        bases = [state.table(name) for name, _, _ in changes]
        if len(bases) > 1:
            _refuse_repeated(bases)
        batches = [base.read(request, rows) for base, (_, request, rows) in zip(bases, changes, strict=True)]
        heard = any(view.listeners for view in state.views.values())
        try:
            with refusals():
                changed = dict(state.kernel.commit(batches, deltas or heard, on_missing == "ignore"))
        except InternalError:
            state.failed = True  # the batch may be half applied: nothing is answered from it
            raise
        state.version += 1
        for base, (_, _, batch) in zip(bases, batches, strict=True):
            base.updates += batch.num_rows
        if not (deltas or heard):
            return {}
        result = {}
        for view in state.views.values():
            delta = changed.get(view.handle)
            result[view.name] = view.no_change if delta is None else pa.Table.from_batches(delta)
        if heard:
            _notify(state, result)
        return result if deltas else {}


def _notify(state: SessionState, deltas: Mapping[str, pa.Table]) -> None:
    failure: Exception | None = None
    state.notifying.active = True
    try:
        for view in tuple(state.views.values()):
            delta = deltas[view.name]
            for listener in view.listeners if delta.num_rows else ():
                if listener.cancelled:  # by a callback before it
                    continue
                try:
                    listener.callback(delta)
                except Exception as error:
                    logger.exception("a callback of view %s failed", view.name)
                    error.add_note(
                        f"raised by a callback of view `{view.name}`; the commit stands: callbacks run after it"
                    )
                    failure = failure or error
    finally:
        state.notifying.active = False
    if failure is not None:
        raise failure


def _refuse_repeated(bases: list[BaseTable]) -> None:
    names = [base.table.name for base in bases]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        message = f"table `{twice}` is named twice in one batch"
        raise ChangeError("TABLE_TWICE", message, hint="put its rows together", table=twice)
