"""The errors everview raises, each with a stable code.

Every error carries a ``code`` (UPPER_SNAKE, stable across releases), the ``parameters`` it was built from, and,
where it concerns SQL text, a ``span`` into that text. The message says what is wrong, where, why, and one way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters in a SQL text."""

    start: int
    end: int


_WIDEST = 160
"""The most characters of a line of SQL that a message shows."""


def point_at(sql: str, span: Span) -> str:
    """The line of ``sql`` that holds the start of ``span``, with carets under the spanned characters.

    Of a long line the part around the span is shown.
    """
    start = max(0, min(span.start, len(sql)))
    line_start = sql.rfind("\n", 0, start) + 1
    line_end = sql.find("\n", start)
    line_end = len(sql) if line_end < 0 else line_end
    number = sql.count("\n", 0, line_start) + 1
    width = max(1, min(span.end, line_end) - start)
    before = after = ""
    if line_end - line_start > _WIDEST:
        shown_from = max(line_start, min(start - _WIDEST // 4, line_end - _WIDEST))
        before = "..." if shown_from > line_start else ""
        after = "..." if shown_from + _WIDEST < line_end else ""
        line_start, line_end = shown_from, shown_from + _WIDEST
        width = max(1, min(width, line_end - start))
    prefix = f"  line {number}: {before}"
    return f"{prefix}{sql[line_start:line_end]}{after}\n{' ' * (len(prefix) + start - line_start)}{'^' * width}"


_SHOWN = 60


def cut(text: str, most: int = _SHOWN) -> str:
    """A text as a message shows it: of a readable length."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def shown(value: object) -> str:
    """A value as a message shows it, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 of a class that is not ours
        return f"<{type(value).__name__}>"
    return cut(text)


def listed(names: Iterable[object], most: int = 20) -> str:
    """Names as a message lists them.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    texts = [cut(str(name)) for name in names]
    rest = len(texts) - most
    return ", ".join(texts) if rest <= 0 else f"{', '.join(texts[:most])} and {rest} more"


class EverviewError(Exception):
    """Base class of everything everview raises on purpose."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        sql: str | None = None,
        span: Span | None = None,
        **parameters: Any,
    ) -> None:
        self.code = code
        self.message = message
        self.hint = hint
        self.sql = sql
        self.span = span
        self.parameters = parameters
        text = f"[{code}] {message}"
        if sql is not None and span is not None:
            text += "\n" + point_at(sql, span)
        if hint is not None:
            text += f"\nHint: {hint}"
        super().__init__(text)

    def located(self, sql: str, span: Span) -> Self:
        """The same error, pointing into a SQL text."""
        return type(self)(self.code, self.message, hint=self.hint, sql=sql, span=span, **self.parameters)


class SqlParseError(EverviewError, ValueError):
    """The text is not valid SQL of the dialect."""


class UnsupportedQueryError(EverviewError, ValueError):
    """The SQL is valid but outside of what everview maintains."""


class SchemaError(EverviewError, ValueError):
    """A table, column or type is unknown, ambiguous or inconsistent."""


class ChangeError(EverviewError, ValueError):
    """A batch of changes was refused; the state is as it was before it."""


class AccessPatternError(EverviewError, ValueError):
    """A lookup by columns for which the view keeps no index."""


class SnapshotError(EverviewError, ValueError):
    """A snapshot is damaged, foreign, or of another version."""


class CheckpointError(EverviewError, RuntimeError):
    """The state of a pipeline cannot be used: it is damaged, or belongs to another view."""


class PipelineError(EverviewError, ValueError):
    """A pipeline cannot be set up like this: an input, an option or a setting is missing or wrong."""


class JobError(EverviewError, RuntimeError):
    """A job cannot go on: a source, a view or a sink failed for a reason that lies outside of everview."""


class SessionError(EverviewError, RuntimeError):
    """The session cannot do this now: it is closed, or the call comes from one of its own callbacks."""


class CallbackError(EverviewError, ExceptionGroup[Exception], RuntimeError):
    """Callbacks of a commit failed. The commit stands, all callbacks were called, and ``deltas`` is what it would have returned.

    ``exceptions`` has what they raised; ``except*`` takes it apart.
    """

    message: str = ""  # in the place of the group's own, which cannot be set
    exceptions: tuple[Exception, ...]
    deltas: dict[str, Any]

    def __new__(cls, code: str, message: str, *, exceptions: Sequence[Exception], **_: Any) -> Self:
        return ExceptionGroup.__new__(cls, f"[{code}] {message}", exceptions)

    def __init__(
        self,
        code: str,
        message: str,
        *,
        exceptions: Sequence[Exception],  # noqa: ARG002 kept by __new__
        deltas: dict[str, Any],
        hint: str | None = None,
        **parameters: Any,
    ) -> None:
        super().__init__(code, message, hint=hint, **parameters)
        self.deltas = deltas

    def __str__(self) -> str:
        return str(self.args[0])

    def derive(self, excs: Sequence[Any]) -> CallbackError:  # type: ignore[override]
        """The part of it with these exceptions, for ``except*``."""
        return CallbackError(
            self.code, self.message, exceptions=excs, deltas=self.deltas, hint=self.hint, **self.parameters
        )


class StaleIteratorError(EverviewError, RuntimeError):
    """An open iterator met a later commit."""


class SinkError(EverviewError, RuntimeError):
    """A sink refused a batch; its target is as it was before it."""


class InternalError(EverviewError, RuntimeError):
    """A bug in everview."""
