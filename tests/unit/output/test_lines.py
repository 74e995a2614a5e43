"""Rows as lines of CSV."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lines import csv_lines

from airflow_provider_anaplat.output.lines import Lines, is_lines, line_texts, size_of_lines
from airflow_provider_anaplat.output.splitter import rows_within, weight_of
from airflow_provider_anaplat.output.whole import whole

CELLS = st.none() | st.text(st.sampled_from('a中",; |\t\r\n\0\x01\x02') | st.characters(codec="utf-8"), max_size=4)


def in_lists(rows: list[list[str | None]]) -> pl.Series:
    return pl.Series(rows, dtype=pl.List(pl.String))


@given(
    rows=st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=5)
    ),
    delimiter=st.sampled_from(",;|\t \x02"),
)
def test_rows_are_the_lines_that_they_should_be(rows: list[list[str | None]], delimiter: str) -> None:
    frame = Lines(delimiter).of_cells(in_lists(rows))

    expected = csv_lines(rows, delimiter)
    assert is_lines(frame)
    assert [bytes(line) for line in frame.to_series()] == expected
    assert b"".join(line_texts(frame)) == b"".join(expected)
    assert size_of_lines(frame) == weight_of(frame) == sum(map(len, expected))


@pytest.mark.parametrize(("start", "count"), [(0, 2), (1, 2), (3, 3), (2, 0), (0, 6)])
def test_some_lines_of_many_are_these(start: int, count: int) -> None:
    rows: list[list[str | None]] = [[f"{number}" * number, "x\ny"] for number in range(6)]
    frames = [Lines(",").of_cells(in_lists(part)) for part in (rows[:4], rows[4:])]

    some = pl.concat(frames, rechunk=False).slice(start, count)

    expected = csv_lines(rows)[start : start + count]
    assert b"".join(line_texts(some)) == b"".join(expected)
    assert size_of_lines(some) == sum(map(len, expected))


def test_lines_are_handed_on_a_piece_at_a_time_and_none_is_lost() -> None:
    rows: list[list[str | None]] = [[f"{number}" * 40, "x" * (number % 500)] for number in range(5_000)]
    frame = pl.concat(
        [Lines(",").of_cells(in_lists(rows[:3])), Lines(",").of_cells(in_lists(rows[3:]))], rechunk=False
    )
    pieces = list(line_texts(frame))
    assert b"".join(pieces) == b"".join(csv_lines(rows))
    assert len(pieces) > 2  # as there would be without cuts


def test_lines_are_counted_by_their_bytes() -> None:
    frame = Lines(",").of_cells(in_lists([["x" * 99], ["y" * 99]]))

    assert rows_within(frame, most_rows=9, most_bytes=150) == 1


def test_other_frames_hold_no_lines() -> None:
    rows = in_lists([["a"]])

    assert not is_lines(whole(rows))
    assert not is_lines(pl.DataFrame({"lines": ["a\n"]}))
