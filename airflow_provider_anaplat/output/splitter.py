"""Streams of frames, cut when a given number of rows, or of bytes, is together."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from airflow_provider_anaplat.output.lines import is_lines, size_of_lines
from airflow_provider_anaplat.output.whole import cells_of, is_whole

__all__ = [
    "Splitter",
    "rows_within",
    "weight_of",
]

_CELL = 8  # bytes that a number, or a cell that is empty or null, weighs; a text weighs no less


def weight_of(frame: pl.DataFrame) -> int:
    """Return how many bytes a frame weighs, also one whose cells are mostly empty.

    Polars' own estimate keeps Python's lock while it looks at each text.
    """
    if is_lines(frame):
        return size_of_lines(frame)
    texts = cells_of(frame if is_whole(frame) else frame.select(pl.col(pl.String)))
    numbers = 0 if is_whole(frame) else frame.height * frame.width - len(texts)
    return max(int(texts.str.len_bytes().sum()), len(texts) * _CELL) + numbers * _CELL


def rows_within(frame: pl.DataFrame, most_rows: int, most_bytes: int) -> int:
    """Return how many rows of a frame, at least one, are no more and take no more memory than they may."""
    return max(1, min(most_rows, most_bytes * frame.height // (weight_of(frame) + 1)))


class Splitter:
    """Cuts frames when a stream has its rows, and keeps none that was handed on.

    :param frames: the frames, in the order of their rows
    :ivar taken: rows that were taken last
    :ivar weight: bytes that they weigh
    """

    def __init__(self, frames: Iterator[pl.DataFrame]) -> None:
        self._frames = frames
        self._rest: pl.DataFrame | None = None
        self.taken = self.weight = 0

    def has_more(self) -> bool:
        """Tell whether a row is left."""
        while self._rest is None or self._rest.is_empty():
            self._rest = next(self._frames, None)
            if self._rest is None:
                return False
        return True

    def take(self, rows: int, most_bytes: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield frames of that many rows together.

        :param most_bytes: no further frame follows if those before take that many
        """
        self.taken = self.weight = 0
        while self.taken < rows and (most_bytes is None or self.weight < most_bytes) and self.has_more():
            assert self._rest is not None  # noqa: S101 - has_more() says so
            head = self._rest.head(rows - self.taken)
            # Also a slice without rows would keep the memory of all of them.
            self._rest = self._rest.slice(head.height) if head.height < self._rest.height else None
            self.taken += head.height
            self.weight += weight_of(head)
            yield head
            del head  # it may be large, and the next one takes its time
