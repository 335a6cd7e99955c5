"""How deeply a SQL text may nest, whatever the stack of the caller looks like.

The parser and the lowering recurse along parentheses, calls, CASE and signs. The levels are counted on the tokens, so
that the limit is the same for every text, and the interpreter is given room for as many (a level takes some 36 frames
and 4 KB of stack). Chains of operators are no nesting: ``a + b + c`` has one level however long it is.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from everview.errors import Span, UnsupportedQueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlglot.tokenizer_core import Token

MOST_NESTED = 100
MOST_LEVELS = 200
"""The most levels of CASE, AND, COALESCE and the like that an expression may have once aliases are put in."""

_FRAMES = 60 * MOST_NESTED
_OPEN = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
}
_CLOSE = frozenset(_OPEN.values())
_SIGNS = frozenset((TokenType.DASH, TokenType.PLUS, TokenType.TILDE))
_lock = threading.RLock()


def too_deep(sql: str, span: Span | None = None) -> UnsupportedQueryError:
    """The error for a text that nests too deeply."""
    message = f"the text nests in more than {MOST_NESTED} levels of parentheses, calls, CASE and signs"
    return _error(message, "name a part by an alias or in a derived table", sql, span)


def expression_too_deep(sql: str, span: Span | None = None) -> UnsupportedQueryError:
    """The error for an expression that nests too deeply once aliases are put in."""
    message = (
        f"an expression has more than {MOST_LEVELS} levels of CASE, AND, COALESCE and the like, its aliases put in"
    )
    return _error(message, "write it flat, such as one CASE with several WHENs", sql, span)


def _error(message: str, hint: str, sql: str, span: Span | None) -> UnsupportedQueryError:
    place = Span(0, len(sql)) if span is None else span
    return UnsupportedQueryError("EXPRESSION_TOO_DEEP", message, hint=hint, sql=sql, span=place)


def check_nesting(tokens: Iterable[Token], sql: str) -> None:
    """Refuses a text that nests too deeply."""
    open_tokens: list[tuple[TokenType, int]] = []  # what closes each level, and how many levels it stands for
    depth = prefixes = named = 0  # levels that are open; NOTs and signs in a row; those before the name of a call
    last = None
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.NOT or kind in _SIGNS:  # the first sign may be an operator between two operands
            prefixes += kind is TokenType.NOT or last is TokenType.NOT or last in _SIGNS
        elif kind in _OPEN or kind is TokenType.CASE:
            levels = 1 + prefixes + named
            open_tokens.append((_OPEN.get(kind, TokenType.END), levels))
            depth += levels
            prefixes = named = 0
        else:
            prefixes, named = 0, prefixes
            if kind in _CLOSE or (kind is TokenType.END and open_tokens and open_tokens[-1][0] is TokenType.END):
                closed = None
                while open_tokens and closed is not kind:
                    closed, levels = open_tokens.pop()
                    depth -= levels
        last = kind
        if depth + prefixes > MOST_NESTED:
            raise too_deep(sql, Span(token.start, token.end + 1))


@contextmanager
def room_to_recurse() -> Iterator[None]:
    """Lets the interpreter recurse as deeply as the limits need, from wherever this is called.

    The limit of the interpreter is one for all threads: they take turns here, so that none puts it back while another
    needs it.
    """
    frame, used = sys._getframe(), 0  # noqa: SLF001
    while frame is not None:
        frame, used = frame.f_back, used + 1  # type: ignore[assignment]
    with _lock:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, used + _FRAMES))
        try:
            yield
        finally:
            sys.setrecursionlimit(before)
