"""Rows that stay whole, and what becomes of them."""

from __future__ import annotations

import polars as pl

from airflow_provider_anaplat.output.whole import cells_of, in_columns, is_whole, whole

ROWS = pl.Series([["a", None, "c"], [None, None, None], ["1", "", "3"]], dtype=pl.List(pl.String))


def test_columns_hold_them_too() -> None:
    columns = in_columns(ROWS, ["^x$", "y", "z"])

    assert columns.rows() == [("a", None, "c"), (None, None, None), ("1", "", "3")]
    assert (is_whole(whole(ROWS)), is_whole(columns), is_whole(columns.select("y"))) == (True, False, False)
    assert sorted(cells_of(columns), key=str) == sorted(cells_of(whole(ROWS)), key=str)
