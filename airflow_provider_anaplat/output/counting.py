"""How often a character is in what was written."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from arro3.core import Array

from airflow_provider_anaplat.output.streams import Output

__all__ = [
    "Counting",
    "occurrences",
]


def occurrences(data: bytes, character: bytes) -> int:
    """Return how often a character is in the data.

    Python's own count takes ten times as long, and keeps its lock meanwhile.

    :param character: one byte
    """
    if not data:  # of which older releases of arro3 make no array
        return 0
    return int((pl.Series(Array.from_buffer(data)) == ord(character)).sum())


class Counting(Output):
    """An output that counts a character among what it took.

    :param character: one byte
    :ivar counted: how often it was there
    """

    def __init__(
        self, character: bytes, write: Callable[[bytes], int | None], flush: Callable[[], object]
    ) -> None:
        super().__init__(write, flush)
        self.counted = 0
        self._character = character

    def write(self, data: bytes) -> int:
        """Take a piece."""
        self.counted += occurrences(data, self._character)
        return super().write(data)
