"""What frames weigh."""

from __future__ import annotations

import polars as pl
import pytest

from airflow_provider_anaplat.output.splitter import rows_within, weight_of
from airflow_provider_anaplat.output.whole import whole


@pytest.mark.parametrize(
    ("frame", "weight"),
    [
        (pl.DataFrame({"a": ["é" * 50, "x" * 100], "b": ["y" * 100, None]}), 300),
        (pl.DataFrame({"a": ["", None], "b": [None, ""]}, schema={"a": pl.String, "b": pl.String}), 4 * 8),
        (pl.DataFrame({"a": [1, None], "b": [0.5, 1.5]}), 4 * 8),
        (pl.DataFrame({"a": ["x" * 100, "y" * 100], "b": [1, 2]}), 200 + 2 * 8),
        (whole(pl.Series([["x" * 100, None], ["", "y" * 100]])), 200),
        (whole(pl.Series([["", None]])), 2 * 8),
        (pl.DataFrame(schema={"a": pl.String}), 0),
        (pl.DataFrame(), 0),
    ],
)
def test_a_frame_weighs_its_texts_and_something_for_each_other_cell(frame: pl.DataFrame, weight: int) -> None:
    assert weight_of(frame) == weight


def test_of_a_part_of_a_frame_only_its_rows_weigh() -> None:
    frame = pl.DataFrame({"a": ["x" * 1000] * 10})
    assert weight_of(frame.slice(3, 2)) == 2000


def test_rows_are_no_more_than_may_be() -> None:
    frame = pl.DataFrame({"a": ["x" * 1000] * 10})
    assert rows_within(frame, 100, 3500) == 3
    assert rows_within(frame, 2, 3500) == 2
    assert rows_within(frame, 100, 10) == 1
    assert rows_within(pl.DataFrame(schema={"a": pl.String}), 100, 10) == 1
