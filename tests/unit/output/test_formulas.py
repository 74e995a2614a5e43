"""Cells with formulas: escaped in whatever pieces they come, and never in the memory that they came in."""

from __future__ import annotations

import polars as pl

from airflow_provider_anaplat.output.formulas import escaped

CELLS = ["=1", None, "-5", "x;=1", "", "-x", "plain"]
ESCAPED = ["'=1", None, "-5", "x;'=1", "", "'-x", "plain"]


def test_cells_of_many_slices_are_escaped_and_stay_as_they_were() -> None:
    slices = pl.concat([pl.Series([cell], dtype=pl.String) for cell in CELLS * 3], rechunk=False)
    assert slices.n_chunks() == len(CELLS) * 3
    assert escaped(slices, ",").to_list() == ESCAPED * 3
    assert slices.to_list() == CELLS * 3
