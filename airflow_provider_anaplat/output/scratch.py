"""Memory that one text after another is written to."""

from __future__ import annotations

from collections.abc import Callable
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import IO, cast

__all__ = [
    "Scratch",
]


class Scratch:
    """Memory for a text, which the next one takes: to be given fresh memory for each takes as long as to write it.

    Writers are given no Python to call: a signal that ends the task could be lost in it.
    """

    def __init__(self) -> None:
        self._memory = _memory(1)

    def text(self, most: int, write: Callable[[IO[bytes]], object]) -> memoryview:
        """Return what a writer writes; it is there until the next text is written.

        :param most: bytes that it writes at most; those that it does not need take no memory
        """
        if len(self._memory) < most:
            self._memory = _memory(2 * most)  # enough for the next, somewhat longer ones, too
        self._memory.seek(0)
        write(cast("IO[bytes]", self._memory))
        return memoryview(self._memory)[: self._memory.tell()]


def _memory(size: int) -> mmap:
    return mmap(-1, size, MAP_PRIVATE | MAP_ANONYMOUS)
