"""A stream of frames cut into streams of so many rows."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl


class Splitter:
    """Cuts frames where a stream has its rows, and keeps none that was handed on.

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

    def take(self, rows: int) -> Iterator[pl.DataFrame]:
        """Yield frames of so many rows together; ``taken`` counts them."""
        self.taken = 0
        while self.taken < rows and self.has_more():
            assert self._rest is not None  # noqa: S101 - has_more() says so
            head = self._rest.head(rows - self.taken)
            # Also a slice without rows would keep the memory of all of them.
            self._rest = self._rest.slice(head.height) if head.height < self._rest.height else None
            self.taken += head.height
            yield head
            del head  # it may be large, and the next one takes its time
