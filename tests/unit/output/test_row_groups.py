"""Row groups, in memory or, of very many columns, in a temporary file: all rows come back, in their order."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polars as pl
import pytest
from support.limits import quota

from airflow_provider_anaplat.errors import AnaplatOutputError
from airflow_provider_anaplat.output.row_groups import RowGroup
from airflow_provider_anaplat.output.splitter import Splitter
from airflow_provider_anaplat.output.whole import is_whole, whole

Row = list[str | None]


def cell(number: int) -> str | None:
    """Return a number that compresses badly, or null."""
    return str(number * 2_654_435_761 % 2**26) if number % 7 else None


def rows_of(columns: int, rows: int, heavy: int = 0) -> list[Row]:
    """Return rows, whose last cells have this many bytes."""
    light = columns - 1
    return [[*map(cell, range(row * light, (row + 1) * light)), f"{row:0{heavy}d}"] for row in range(rows)]


def groups_of(rows: list[Row], most_rows: int = 20_000) -> Iterator[list[Row]]:
    """Yield what comes back of each row group of whole rows, which come in pages of 70."""
    splitter = Splitter(whole(pl.Series(rows[first : first + 70])) for first in range(0, len(rows), 70))
    while splitter.has_more():
        with RowGroup() as group:
            group.take(splitter, most_rows)
            blocks = list(group.blocks())
        assert {block.height for block in blocks} == {group.rows}
        assert all(map(is_whole, blocks))
        assert max(len(block.item(0, 0)) for block in blocks) == 64
        cells = [block.to_series().to_list() for block in blocks]
        yield [list(chain(*parts)) for parts in zip(*cells, strict=True)]


@pytest.mark.parametrize(("columns", "most_rows"), [(64, 100), (499, 1_000), (500, 100), (1_000, 333)])
def test_all_rows_come_back_in_their_order(columns: int, most_rows: int) -> None:
    rows = rows_of(columns, 1_000)
    groups = list(groups_of(rows, most_rows))
    assert list(chain(*groups)) == rows
    assert {len(group) for group in groups[:-1]} <= {most_rows}


def test_rows_of_very_many_columns_are_more_than_memory_has_room_for() -> None:
    rows = [[text and text.zfill(30) for text in row] for row in rows_of(1_000, 1_000)]  # 30 MB
    (group,) = groups_of(rows)
    assert group == rows


def test_a_heavy_column_makes_a_row_group_smaller() -> None:
    rows = rows_of(500, 700, heavy=50_000)  # 35 MB in one block of columns
    groups = list(groups_of(rows))
    assert list(chain(*groups)) == rows
    assert len(groups) == 4


@pytest.mark.parametrize(("columns", "rows"), [(100, 7_900), (160, 5_000), (400, 3_300)])
def test_a_row_group_of_few_rows_may_be_larger(columns: int, rows: int) -> None:
    page = whole(pl.Series([["12345678"] * columns] * 100))
    with RowGroup() as group:
        group.take(Splitter(page for _ in range(200)), 20_000)
        assert group.rows == pytest.approx(rows, abs=300)


@pytest.mark.parametrize(("megabytes", "rows"), [(3, 3), (5, 2), (6, 1), (8, 1), (10, 1), (20, 1)])
def test_rows_of_megabytes_do_not_make_it_larger_still(megabytes: int, rows: int) -> None:
    row = pl.DataFrame({"text": ["x" * megabytes * 1_000_000], "number": [1]})
    with RowGroup() as group:
        group.take(Splitter(row for _ in range(9)), 9)
        assert group.rows == rows


def test_a_temporary_file_does_not_grow_without_end() -> None:
    """Rows may be so heavy that no block of columns is large before all of them together are."""
    row = pl.Series([["x" * 900] * 5_000])  # 4.5 MB
    with RowGroup() as group:
        group.take(Splitter(whole(row) for _ in range(100)), 100)
        assert 50 < group.rows < 70


def test_typed_columns_come_back_some_at_a_time() -> None:
    frame = pl.DataFrame({f"c{number}": range(number, number + 100) for number in range(150)})
    with RowGroup() as group:
        group.take(Splitter(frame.iter_slices(30)), 1_000)
        blocks = list(group.blocks())
    assert group.rows == 100
    assert [block.width for block in blocks] == [64, 64, 22]
    assert pl.concat(blocks, how="horizontal").equals(frame)


def test_a_temporary_file_without_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = f"Cannot write a temporary file to {tmp_path}: {os.strerror(errno.EFBIG)}"
    with pytest.raises(AnaplatOutputError, match=said), quota(2_000_000):
        list(groups_of(rows_of(1_000, 1_000)))
