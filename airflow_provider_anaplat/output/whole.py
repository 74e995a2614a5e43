"""Rows that stay whole: a frame whose only column holds the cells of each row, as a list.

A text is written row by row and needs no columns; to make thousands of them takes longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

__all__ = [
    "MANY_COLUMNS",
    "UNNAMED",
    "cells_of",
    "in_columns",
    "is_whole",
    "whole",
]

MANY_COLUMNS = 50  # fewer take no longer than rows that stay whole
# Polars reads a name like `^sum$` as a regular expression, by which it finds no column of that name.
UNNAMED = "cells"


def whole(rows: pl.Series) -> pl.DataFrame:
    """Return lists of cells as a frame that leaves them whole."""
    return rows.alias(UNNAMED).to_frame()


def is_whole(frame: pl.DataFrame) -> bool:
    """Tell whether the rows of a frame are whole."""
    return frame.dtypes == [pl.List(pl.String)]


def in_columns(rows: pl.Series, names: Sequence[str]) -> pl.DataFrame:
    """Return lists of cells, each with a cell for each name, as a frame with these columns."""
    return rows.list.to_struct(fields=list(names)).struct.unnest() if names else pl.DataFrame()


def cells_of(frame: pl.DataFrame) -> pl.Series:
    """Return the cells of a frame of text; columns are looked at together, since many would be as many steps."""
    if frame.is_empty():
        cells = pl.Series(dtype=pl.String)
    elif is_whole(frame):
        rows = frame.to_series()
        cells = rows.list.to_array(len(rows[0])).reshape((-1,))
    else:
        cells = pl.concat(frame.get_columns(), rechunk=False)
    return cells.alias(UNNAMED)
