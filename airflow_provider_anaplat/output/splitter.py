"""Streams of frames, cut when a given number of rows, or of bytes, is together."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from airflow_provider_anaplat.output.whole import is_whole

__all__ = [
    "Splitter",
    "rows_within",
]

# Bytes of a cell: Polars counts those of a text alone, and none of one that is empty or null; each takes 16 more.
_LEAST_CELL = 8


def _weight_of(frame: pl.DataFrame) -> int:
    """Return how many bytes a frame weighs, also one whose cells are mostly empty."""
    width = len(frame.to_series()[0]) if is_whole(frame) and frame.height else frame.width
    return max(int(frame.estimated_size()), frame.height * width * _LEAST_CELL)


def rows_within(frame: pl.DataFrame, most_rows: int, most_bytes: int) -> int:
    """Return how many rows of a frame, at least one, are no more and take no more memory than they may."""
    bytes_per_row = _weight_of(frame) // max(frame.height, 1) + 1
    return max(1, min(most_rows, most_bytes // bytes_per_row))


class Splitter:
    """Cuts frames when a stream has its rows, and keeps none that was handed on.

    :param frames: the frames, in the order of their rows
    """

    def __init__(self, frames: Iterator[pl.DataFrame]) -> None:
        self._frames = frames
        self._rest: pl.DataFrame | None = None
        self.taken = 0

    def has_more(self) -> bool:
        """Tell whether a row is left."""
        while self._rest is None or self._rest.is_empty():
            self._rest = next(self._frames, None)
            if self._rest is None:
                return False
        return True

    def take(self, rows: int, most_bytes: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield frames of that many rows together; ``taken`` counts them.

        :param most_bytes: no further frame follows if those before take that many
        """
        self.taken = size = 0
        while self.taken < rows and (most_bytes is None or size < most_bytes) and self.has_more():
            assert self._rest is not None  # noqa: S101 - has_more() says so
            head = self._rest.head(rows - self.taken)
            # Also a slice without rows would keep the memory of all of them.
            self._rest = self._rest.slice(head.height) if head.height < self._rest.height else None
            self.taken += head.height
            size += _weight_of(head)
            yield head
            del head  # it may be large, and the next one takes its time
