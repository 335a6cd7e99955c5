"""A generator of which one reads what it yields and, at its end, what it returns."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

_Yielded = TypeVar("_Yielded")
_Returned = TypeVar("_Returned")


class Returning(Generic[_Yielded, _Returned]):
    """Iterates over a generator, once; then ``returned`` is there."""

    def __init__(self, generator: Generator[_Yielded, None, _Returned]) -> None:
        self._generator = generator

    def __iter__(self) -> Iterator[_Yielded]:
        self.returned: _Returned = yield from self._generator
