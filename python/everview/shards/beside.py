"""Work that hands out pieces while it goes on in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_Piece = TypeVar("_Piece")
_END = object()
_WAITING = 4
"""Pieces that wait for the reader at most; then the work waits."""


def beside(work: Callable[[Callable[[_Piece], None]], None]) -> Iterator[_Piece]:
    """The pieces that ``work`` hands to the function it is given. What it raises is raised here, after the pieces before.

    The work is never cut off: a reader that goes away waits for its end.
    """
    pieces: queue.Queue[Any] = queue.Queue(_WAITING)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work(pieces.put)
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)
        finally:
            pieces.put(_END)

    thread = threading.Thread(target=run, name="everview-kernel", daemon=True)
    thread.start()
    piece = None
    try:
        while (piece := pieces.get()) is not _END:
            yield piece
    finally:
        while piece is not _END:
            piece = pieces.get()
        thread.join()
    if failures:
        raise failures[0]
