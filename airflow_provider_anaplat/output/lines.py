"""Rows as lines of CSV: a frame whose only column holds the bytes of each line, with its line break.

So many rows are but a text and a number for each line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

import polars as pl
from arro3.core import Array, list_array, list_flatten

from airflow_provider_anaplat.output.counting import occurrences
from airflow_provider_anaplat.output.formulas import Formulas, escaped
from airflow_provider_anaplat.output.whole import cells_of, whole

__all__ = [
    "Lines",
    "Shape",
    "check_csv",
    "edited",
    "is_lines",
    "line_texts",
    "lines_frame",
    "size_of_lines",
]


_LINE_BREAK = ord("\n")
_PIECE = 1 << 19  # bytes of a copy; larger ones are fresh from the system each time, which takes longer


@dataclass(frozen=True)
class Lines:
    """Lines of CSV: null is an empty field, the empty text is ``""``, and no cell is quoted that need not be.

    :param delimiter: one ASCII character between two fields
    :param formulas: whether every cell is kept as it is, or what a spreadsheet would calculate escaped
    """

    delimiter: str
    formulas: Formulas = "keep"

    def of_cells(self, rows: pl.Series) -> pl.DataFrame:
        """Return rows, as lists of cells, as lines.

        :raises OSError: not all of it was written
        """
        if rows.is_empty():
            return pl.DataFrame(schema={"lines": pl.List(pl.UInt8)})
        cells, width = cells_of(whole(rows)), len(rows[0])
        if self.formulas == "escape":
            cells = escaped(cells, self.delimiter)
        written = self._fields(cells)
        check_csv(cells, memoryview(written))
        text = pl.Series(Array.from_buffer(written))
        ends = ((text == _LINE_BREAK).arg_true() + 1).cast(pl.Int64)
        if len(ends) != len(cells):  # a cell holds what ends one
            ends = cells.to_frame().select(self._size()).to_series().cum_sum()
        ends_of_lines = ends.gather_every(width, width - 1)
        edits = (ends - 1, ord(self.delimiter)), (ends_of_lines - 1, _LINE_BREAK)
        return lines_frame(edited(text, edits), ends_of_lines)

    def _fields(self, cells: pl.Series) -> bytes:
        """Return the bytes of the cells, each with a line break behind it."""
        text = BytesIO()
        cells.to_frame().write_csv(text, include_header=False, separator=self.delimiter, quote_style="necessary")
        return text.getvalue()

    def _size(self) -> pl.Expr:
        """Return how many bytes of them a cell takes."""
        cell = pl.first()
        size, quotes = cell.str.len_bytes(), cell.str.count_matches('"', literal=True)
        is_quoted = cell.str.contains_any([self.delimiter, *'"\r\n']) | (size == 0)
        # Older releases of Polars take one type of number for another, unless they are told.
        return sum((part.cast(pl.Int64).fill_null(0) for part in (size, quotes, is_quoted, is_quoted)), pl.lit(1))


Shape = Literal["columns", "whole"] | Lines  # in which what writes rows takes them


def lines_frame(text: pl.Series, ends: pl.Series) -> pl.DataFrame:
    """Return a text as a frame of its lines.

    :param text: bytes
    :param ends: where the lines end
    """
    cuts = pl.concat([pl.Series([0], dtype=pl.Int64), ends.cast(pl.Int64)], rechunk=True)
    return pl.Series("lines", list_array(Array.from_arrow(cuts), Array.from_arrow(text.rechunk()))).to_frame()


def edited(text: pl.Series, edits: Sequence[tuple[pl.Series, int]]) -> pl.Series:
    """Return a text with some bytes replaced.

    :param text: bytes
    :param edits: places, each with the byte that goes there; the later ones count
    """
    edits = [(places, byte) for places, byte in edits if len(places)]
    if not edits:
        return text
    # A copy: some releases of Polars write to the memory that they were given, which is an answer's or a file's.
    return text.clone().scatter(
        pl.concat([places for places, _ in edits], rechunk=True),
        pl.Series(Array.from_buffer(b"".join(bytes([byte]) * len(places) for places, byte in edits))),
    )


def is_lines(frame: pl.DataFrame) -> bool:
    """Tell whether a frame holds lines."""
    return frame.dtypes == [pl.List(pl.UInt8)]


def size_of_lines(frame: pl.DataFrame) -> int:
    """Return how many bytes the lines of a frame have."""
    return int(frame.to_series().list.len().sum())


def line_texts(frame: pl.DataFrame) -> Iterator[bytes]:
    """Yield the lines of a frame, many at a time."""
    for chunk in frame.to_series().get_chunks():
        # Polars has a way as well, of which some releases warn.
        text = pl.Series(list_flatten(Array.from_arrow(chunk)))
        for start in range(0, len(text), _PIECE):
            yield text.slice(start, _PIECE).implode().cast(pl.Binary).item()


def check_csv(cells: pl.Series, text: memoryview) -> None:
    """See that each cell is in the CSV that was made of them.

    :raises OSError: it is not
    """
    written = len(text)
    quotes = occurrences(text, b'"')  # those around cells, and those of cells, which are doubled
    due = int(cells.str.len_bytes().sum()) + len(cells)
    if written != due + quotes:
        due -= int(cells.str.count_matches('"', literal=True).sum())
    if written != due + quotes:
        raise OSError(f"{written:,} of {due + quotes:,} bytes of {len(cells):,} cells were written")
