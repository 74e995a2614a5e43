"""With less memory, what a format makes at a time is smaller, and the file says the same."""

from __future__ import annotations

from io import BytesIO
from itertools import repeat

import polars as pl
import pytest
from support.thrift import rows_of_groups

from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.output.formats import FORMATS, FileFormat, WriteOptions
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.output.whole import in_columns, whole

PAGES, ROWS = 25, 400


class Pieces(BytesIO):
    """A file that notes how large the pieces are that it is written in."""

    largest = 0

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # a sink writes nothing else
        self.largest = max(self.largest, len(data))
        return super().write(data)


def written(file_format: FileFormat, columns: int, memory_mb: int, *, as_one: bool = False) -> Pieces:
    """Return a file of short texts: pages of whole rows, or one page in columns."""
    file, names = Pieces(), [f"c{number}" for number in range(columns)]
    rows = pl.Series([["12345678"] * columns] * ROWS)
    frames = [in_columns(rows.new_from_index(0, PAGES * ROWS), names)] if as_one else repeat(whole(rows), PAGES)
    sink = FORMATS[file_format].sink(WriteOptions(memory_mb=memory_mb))
    sink.write(iter(frames), Caster(tuple(Column(name=name, fd_type="STRING") for name in names)), file)
    return file


def test_row_groups_have_fewer_rows() -> None:
    usual, small, large = (written("parquet", 100, memory_mb).getvalue() for memory_mb in (256, 64, 2_048))
    assert rows_of_groups(usual) == rows_of_groups(large)
    assert rows_of_groups(usual)[0] > 2 * rows_of_groups(small)[0]
    assert pl.read_parquet(small).equals(pl.read_parquet(usual))


@pytest.mark.parametrize(("columns", "as_one"), [(100, True), (600, False)])
def test_lines_are_written_in_smaller_pieces(columns: int, as_one: bool) -> None:
    usual, small, large = (written("ndjson", columns, of, as_one=as_one) for of in (256, 64, 2_048))
    assert usual.getvalue() == small.getvalue() == large.getvalue()
    assert usual.largest == large.largest > 2 * small.largest
