"""Row groups of a Parquet file, handed back some columns at a time: each that is written takes memory.

To write a column of a row group takes as long as thousands of its cells, however few there are, so a row group had
better be large. Whole rows of very many columns wait in a temporary file, cut into blocks of columns, and memory
holds one block of all of them at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise

import polars as pl

from airflow_provider_anaplat.output.spill import Spill
from airflow_provider_anaplat.output.splitter import Splitter
from airflow_provider_anaplat.output.whole import is_whole, whole

__all__ = [
    "RowGroup",
]

_BLOCK = 64  # columns
_WAITING_COLUMNS = 500  # and more: their rows wait in a temporary file
# What is in memory when it is written is a block, or all rows if they do not wait. A row group is full when that
# weighs so much, with few rows the second; and earlier if as much as came last would bring it above the third.
_BLOCK_BYTES, _BLOCK_OF_FEW_ROWS, _MOST_BYTES = 6 << 20, 10 << 20, 11 << 20
_FEW_ROWS = 5_000
_CUT_BYTES = 2 << 20  # of rows, or a page if that is more: what is cut into blocks at a time
_WAITING_BYTES = 256 << 20  # of all blocks


class RowGroup:
    """Rows that are taken from a stream until they are enough; a context manager.

    :param share: of the memory that there is by default
    :ivar rows: how many there are
    """

    def __init__(self, share: float = 1.0) -> None:
        self.rows = 0
        self._share = share
        self._frames: list[pl.DataFrame] = []
        self._spill = Spill()
        self._places: list[list[int]] = []  # for each cut, where its blocks begin, and where the last of them ends
        self._weights: Counter[int] = Counter()  # of each block
        self._added = 0  # to the heaviest block, by the rows that were taken last

    def __enter__(self) -> RowGroup:
        return self

    def __exit__(self, *_: object) -> None:
        self._spill.close()

    def take(self, splitter: Splitter, most_rows: int) -> None:
        """Take rows from a stream, in which all are whole, or all in typed columns.

        :param most_rows: how many at most
        :raises AnaplatOutputError: the temporary file cannot be written
        """
        while self.rows < most_rows and not self._is_full() and splitter.has_more():
            frame = pl.concat(splitter.take(most_rows - self.rows, int(_CUT_BYTES * self._share)))
            self.rows += frame.height
            before = self._heaviest()
            if is_whole(frame) and len(frame.item(0, 0)) >= _WAITING_COLUMNS:
                self._cut(frame)
            else:
                self._frames.append(frame)
                self._weights[0] += splitter.weight
            self._added = self._heaviest() - before

    def blocks(self) -> Iterator[pl.DataFrame]:
        """Yield all rows of some columns, then of the next: typed columns, or whole rows of that many cells."""
        if self._frames:
            yield from _blocks(pl.concat(self._frames))
        for block in zip(*map(pairwise, self._places), strict=True):
            yield pl.concat([self._read(begin, end) for begin, end in block])

    def _is_full(self) -> bool:
        enough = _BLOCK_OF_FEW_ROWS if self.rows < _FEW_ROWS else _BLOCK_BYTES
        heaviest = self._heaviest()
        with_as_much_again = heaviest + self._added
        return (
            heaviest >= enough * self._share
            or with_as_much_again > _MOST_BYTES * self._share
            or self._weights.total() >= _WAITING_BYTES
        )

    def _heaviest(self) -> int:
        return max(self._weights.values(), default=0)

    def _cut(self, rows: pl.DataFrame) -> None:
        places = [self._spill.size]
        for number, block in enumerate(_blocks(rows)):
            self._spill.write(_stored(block))
            places.append(self._spill.size)
            self._weights[number] += places[-1] - places[-2]
        self._places.append(places)

    def _read(self, begin: int, end: int) -> pl.DataFrame:
        return pl.read_ipc_stream(BytesIO(self._spill.read(begin, end)))


def _blocks(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    if is_whole(frame):
        rows = frame.to_series()
        for first in range(0, len(rows[0]), _BLOCK):
            yield whole(rows.list.slice(first, _BLOCK))
    else:
        for first in range(0, frame.width, _BLOCK):
            yield pl.DataFrame(frame.get_columns()[first : first + _BLOCK]).rechunk()


def _stored(rows: pl.DataFrame) -> bytes:
    """Return rows with their own texts alone: their views, which are not stored, share those of all columns."""
    stored = BytesIO()
    rows.write_ipc_stream(stored, compat_level=pl.CompatLevel.oldest())
    return stored.getvalue()
