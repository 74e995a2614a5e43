"""Rows that stay whole, and what becomes of them."""

from __future__ import annotations

import polars as pl
import pytest

from airflow_provider_anaplat.output.whole import cells_of, in_columns, is_whole, lines_of, needs_quotes, whole

ROWS = pl.Series([["a", None, "c"], [None, None, None], ["1", "", "3"]], dtype=pl.List(pl.String))


def test_lines_hold_the_cells_in_their_places() -> None:
    assert lines_of(whole(ROWS), ";").to_series().to_list() == ["a;;c", ";;", "1;;3"]


def test_columns_hold_them_too() -> None:
    columns = in_columns(ROWS, ["^x$", "y", "z"])

    assert columns.rows() == [("a", None, "c"), (None, None, None), ("1", "", "3")]
    assert (is_whole(whole(ROWS)), is_whole(columns), is_whole(columns.select("y"))) == (True, False, False)
    assert sorted(cells_of(columns), key=str) == sorted(cells_of(whole(ROWS)), key=str)


@pytest.mark.parametrize("whole_rows", [True, False])
@pytest.mark.parametrize(
    ("cell", "quoted"),
    [
        ("", True),
        ("a;b", True),
        ('"', True),
        ("a\nb", True),
        ("\r", True),
        ("a,b", False),
        (None, False),
        ("a'", False),
    ],
)
def test_a_cell_that_has_to_be_quoted_is_seen(cell: str | None, quoted: bool, whole_rows: bool) -> None:
    rows = pl.Series([["a", "b"], ["c", cell]], dtype=pl.List(pl.String))
    frame = whole(rows) if whole_rows else in_columns(rows, ["x", "y"])

    assert needs_quotes(frame, ";") is quoted
