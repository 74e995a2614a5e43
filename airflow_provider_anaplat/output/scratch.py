"""Memory that one text after another is written to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from mmap import ACCESS_READ, mmap
from typing import IO

__all__ = [
    "Scratch",
]


class Scratch:
    """Memory for a text, which the next one takes: to be given fresh memory for each takes as long as to write it.

    It is a file without a name, which a writer writes to without Python: else each text is copied once more, and a
    signal that ends the task could be lost meanwhile.

    Use it as a context manager.
    """

    def __init__(self) -> None:
        self._file = _nameless_file()
        self._memory: mmap | None = None

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def text(self, most: int, write: Callable[[IO[bytes]], object]) -> memoryview:
        """Return what a writer writes; it is there until the next text is written.

        :param most: bytes that it writes at most; those that it does not need take no memory
        :raises ValueError: it wrote more
        """
        if self._memory is None or len(self._memory) < most:
            size = 2 * most  # enough for the next, somewhat longer ones, too
            self._file.truncate(size)
            self._memory = mmap(self._file.fileno(), size, access=ACCESS_READ)
        self._file.seek(0)
        write(self._file)
        written = self._file.tell()
        if written > most:
            raise ValueError(f"{written:,} bytes were written, and no more than {most:,} were expected")
        return memoryview(self._memory)[:written]


def _nameless_file() -> IO[bytes]:
    """Return a file in memory, or, where the system has none, one that its cache keeps there."""
    try:
        return os.fdopen(os.memfd_create("anaplat"), "w+b", buffering=0)
    except (AttributeError, OSError):
        return tempfile.TemporaryFile(buffering=0)
