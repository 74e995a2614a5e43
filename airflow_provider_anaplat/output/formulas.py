"""What a spreadsheet would calculate, escaped with an apostrophe before it."""

from __future__ import annotations

from typing import Literal

import polars as pl

__all__ = [
    "Formulas",
    "escaped",
]

Formulas = Literal["keep", "escape"]

# How a cell begins that a spreadsheet may calculate, also in full width; a plain number does no harm. At the
# beginning of a file, a mark of byte order is not seen.
_FORMULA = r"^\x{FEFF}*[=+\-@\t\r\n＝＋－＠]"
# The same within a cell, behind what ends a cell for a reader that takes another separator than the file's: such a
# reader also sees no quotation marks around a cell but the first.
_SEPARATORS = ",;|\t\r\n"
_WITHIN = r"([%s][\x{FEFF}\" ]*)([=+\-@＝＋－＠])"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SUSPICIOUS = f"{_FORMULA}|{_WITHIN % _SEPARATORS}"


def escaped(cells: pl.Series, delimiter: str) -> pl.Series:
    """Return texts with what a spreadsheet would calculate escaped.

    :param delimiter: of the file that they go to
    """
    suspicious = cells.str.contains(_SUSPICIOUS).fill_null(False)
    if not suspicious.any():
        return cells
    found = cells.filter(suspicious)
    is_formula = found.str.contains(_FORMULA) & ~found.str.contains(_NUMBER)
    apart = found.str.replace_all(_WITHIN % _SEPARATORS.replace(delimiter, ""), "${1}'${2}")
    return cells.clone().scatter(suspicious.arg_true(), ("'" + apart).zip_with(is_formula, apart))
