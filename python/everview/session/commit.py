"""One atomic commit over some tables, and the callbacks after it."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from everview.engine import commit_and_notify, refusals
from everview.errors import CallbackError, ChangeError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everview.session.state import BaseTable, MaintainedView, SessionState

logger = logging.getLogger("everview")
OnMissing = Literal["error", "ignore"]
Request = Literal["changes", "insert", "delete", "update", "upsert"]


class Receiver:
    """Takes the deltas of views in pieces. What the user's function raises ends the handing over, not the commit."""

    def __init__(self, state: SessionState, receive: Callable[[str, pa.RecordBatch], object]) -> None:
        self.failure: BaseException | None = None
        self._names = {view.handle: view.name for view in state.views.values()}
        self._receive = receive

    def __call__(self, view: int, piece: pa.RecordBatch) -> None:
        """A piece from within the kernel, while it applies the batch: it answers nobody."""
        self._receive(self._names[view], piece)

    def rest(self, tables: Mapping[int, pa.Table]) -> None:
        """What was held until the batch was applied."""
        try:
            for view, table in tables.items():
                for piece in table.to_batches():
                    if piece.num_rows and self.failure is None:
                        self._receive(self._names[view], piece)
        except BaseException as error:  # noqa: BLE001
            self.failure = error


def commit(
    state: SessionState,
    changes: list[tuple[str, Request, Any]],
    *,
    deltas: bool,
    on_missing: OnMissing = "error",
    receive: Callable[[str, pa.RecordBatch], object] | None = None,
) -> dict[str, pa.Table]:
    """Apply changes (table, request, rows) or refuse them all; return the net delta of every view, if wanted.

    With ``receive`` the deltas go there, in pieces, as soon as nothing can refuse the batch any more; those of a session with callbacks
    when it has been applied. An interrupt comes before the batch is applied, or after it is applied, counted, and told to all callbacks.
    """
    if not isinstance(on_missing, str) or on_missing not in ("error", "ignore"):
        raise ChangeError("INVALID_ARGUMENT", f"on_missing is {shown(on_missing)}", hint="use 'error' or 'ignore'")
    with state.lock:
        state.require_changeable()
        bases = [state.table(name) for name, _, _ in changes]
        if len(bases) > 1:
            _refuse_repeated(bases)
        batches = [base.read(request, rows) for base, (_, request, rows) in zip(bases, changes, strict=True)]
        views = tuple(state.views.values())
        audience = [(view.handle, view.listeners) for view in views if view.listeners]
        receiver = None if receive is None else Receiver(state, receive)
        wanted = deltas or bool(audience) or receiver is not None
        notes: list[tuple[object, str, object]] = [(state, "version", state.version + 1)]
        notes += [(base, "updates", base.updates + b.num_rows) for base, (_, _, b) in zip(bases, batches, strict=True)]
        pieces = None if audience else receiver
        apply = partial(state.kernel.commit, batches, wanted, on_missing == "ignore", pieces)
        with refusals():
            rest = None if receiver is None else receiver.rest
            tables, failures, interrupt = commit_and_notify(
                apply, notes, audience, state, pa.Table.from_batches, _breathe, rest
            )
        result = {view.name: tables.get(view.handle, view.no_change) for view in views} if deltas else {}
    failure = _callback_error(views, failures, result) if failures else None
    if interrupt is not None:
        interrupt.add_note("the batch was committed and all callbacks were called: interrupts are raised after that")
        raise interrupt from failure
    if receiver is not None and receiver.failure is not None:
        receiver.failure.add_note("the batch was committed; the rest of its deltas was not handed over")
        raise receiver.failure from failure
    if failure is not None:
        raise failure
    return result


def _breathe() -> None:
    """Where interrupts that came during a commit are raised."""


def _callback_error(
    views: tuple[MaintainedView, ...], failures: list[tuple[int, Exception]], deltas: dict[str, pa.Table]
) -> CallbackError:
    names = {view.handle: view.name for view in views}
    for handle, error in failures:
        logger.error("a callback of view %s failed", names[handle], exc_info=error)
        error.add_note(f"raised by a callback of view `{names[handle]}`")
    named = ", ".join(f"`{name}`" for name in dict.fromkeys(names[handle] for handle, _ in failures))
    message = f"callbacks of {named} failed ({len(failures)}); the commit stands: callbacks run after it"
    return CallbackError(
        "CALLBACK_FAILED",
        message,
        exceptions=[error for _, error in failures],
        deltas=deltas,
        hint="`exceptions` has what they raised, `deltas` what the call would have returned",
    )


def _refuse_repeated(bases: list[BaseTable]) -> None:
    names = [base.table.name for base in bases]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        message = f"table `{twice}` is named twice in one batch"
        raise ChangeError("TABLE_TWICE", message, hint="put its rows together", table=twice)
