"""Rows as lines of CSV: a frame whose only column holds the bytes of each line, with its line break.

A text of many rows is a line after the other, and takes no more memory than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

import polars as pl
from arro3.core import Array, list_array, list_flatten

from airflow_provider_anaplat.output.whole import cells_of, whole

__all__ = [
    "Lines",
    "Shape",
    "is_lines",
    "line_texts",
    "lines_frame",
    "pieces",
    "size_of_lines",
]


_LINE_END = ord("\n")


@dataclass(frozen=True)
class Lines:
    """Lines of CSV: null is an empty field, the empty text is ``""``, and no cell is quoted that need not be.

    :param delimiter: one ASCII character between two fields
    """

    delimiter: str

    def of_cells(self, rows: pl.Series) -> pl.DataFrame:
        """Return rows, as lists of cells, as lines."""
        if rows.is_empty():
            return pl.DataFrame(schema={"lines": pl.List(pl.UInt8)})
        cells = cells_of(whole(rows))
        text = self._fields(cells)
        ends = pl.int_range(1, len(text) + 1, dtype=pl.Int64, eager=True).filter(text == _LINE_END)
        if len(ends) != len(cells):  # a cell holds what ends one
            ends = cells.to_frame().select(self._size()).to_series().cum_sum()
        if len(ends) != len(cells) or ends[-1] != len(text):
            raise OSError(f"{len(text):,} of {ends[-1]:,} bytes of {len(rows):,} rows were written")
        ends_of_lines = ends.gather_every(width := len(rows[0]), width - 1)
        text = text.scatter(ends - 1, ord(self.delimiter)).scatter(ends_of_lines - 1, _LINE_END)
        return lines_frame(text, ends_of_lines)

    def _fields(self, cells: pl.Series) -> pl.Series:
        """Return the bytes of the cells, each with a line break behind it."""
        text = BytesIO()
        cells.to_frame().write_csv(text, include_header=False, separator=self.delimiter, quote_style="necessary")
        return pl.Series(Array.from_buffer(text.getvalue()))

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
    return pieces(text, pl.concat([pl.Series([0], dtype=pl.Int32), ends.cast(pl.Int32)])).alias("lines").to_frame()


def pieces(text: pl.Series, cuts: pl.Series) -> pl.Series:
    """Cut a text into lists of bytes.

    :param text: bytes
    :param cuts: where each list begins, and where the last one ends
    """
    return pl.Series(list_array(Array.from_arrow(cuts.cast(pl.Int32).rechunk()), Array.from_arrow(text.rechunk())))


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
        yield pl.Series(list_flatten(Array.from_arrow(chunk))).implode().cast(pl.Binary).item()
