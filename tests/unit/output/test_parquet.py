"""Parquet files put together: other readers find each row group, and what it says of itself, where it is."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import arro3.io
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.limits import quota
from support.thrift import read_struct, rows_of_groups

from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.errors import AnaplatCellError, AnaplatOutputError
from airflow_provider_anaplat.output.formats import ParquetSink
from airflow_provider_anaplat.output.parquet import JoinedParquet
from airflow_provider_anaplat.output.schema import Caster, arrow_schema
from airflow_provider_anaplat.output.whole import whole

COLUMNS = (
    Column(name="n", fd_type="LONG", alias="Number"),
    Column(name="text", fd_type="STRING"),
    Column(name="x", fd_type="DOUBLE"),
)
SCHEMA = {"n": pl.Int64, "text": pl.String, "x": pl.Float64}


def frame(numbers: list[int]) -> pl.DataFrame:
    rows = [[n, None if n % 3 else f"text {n}", n / 2] for n in numbers]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def written(rows: pl.DataFrame, group: int | None = None) -> bytes:
    file = BytesIO()
    rows.write_parquet(file, row_group_size=group)
    return file.getvalue()


def joined(groups: Iterable[pl.DataFrame], width: int = 2) -> bytes:
    """Return one file of a row group for each frame, each put together of files with this many columns."""
    file = BytesIO()
    with JoinedParquet(file, written(frame([])), arrow_schema(COLUMNS)) as file_of_all:
        for rows in groups:
            columns = [rows.columns[first : first + width] for first in range(0, rows.width, width)]
            assert file_of_all.add(written(rows.select(names)) for names in columns) == rows.height
        file_of_all.finish()
    return file.getvalue()


def of_10_000_rows() -> bytes:
    return joined(frame([*range(first, first + 250)]) for first in range(0, 10_000, 250))


def read_by_arrow(content: bytes) -> pl.DataFrame:
    return pl.DataFrame(arro3.io.read_parquet(BytesIO(content)))


@given(sizes=st.lists(st.integers(1, 50), max_size=8), width=st.integers(1, 4))
def test_two_readers_find_all_rows(sizes: list[int], width: int) -> None:
    groups = [frame([*range(sum(sizes[:number]), sum(sizes[: number + 1]))]) for number in range(len(sizes))]
    content, expected = joined(groups, width), pl.concat([frame([]), *groups])
    assert pl.read_parquet(content).equals(expected)
    assert read_by_arrow(content).equals(expected)
    assert pl.scan_parquet(content).select(pl.len()).collect().item() == sum(sizes)


@pytest.mark.parametrize(
    "parts",
    [
        [written(frame([1, 2]).select("n", "text"))],
        [written(frame([1, 2]).select("n", "text")), written(frame([1]).select("x"))],
        [written(frame([1, 2, 3]), 1)],
        [written(frame([]))],
        [],
    ],
    ids=["a column is missing", "a column is shorter", "several row groups", "no row", "nothing"],
)
def test_what_is_no_row_group_is_refused(parts: list[bytes]) -> None:
    with (
        JoinedParquet(BytesIO(), written(frame([])), arrow_schema(COLUMNS)) as file_of_all,
        pytest.raises(ValueError, match="of 3 columns"),
    ):
        file_of_all.add(parts)


def test_row_groups_are_skipped_by_what_they_say_of_themselves() -> None:
    rows = pl.scan_parquet(of_10_000_rows()).filter(pl.col("n").is_between(4_990, 5_009)).collect()
    assert rows["n"].to_list() == [*range(4_990, 5_010)]
    assert rows.equals(frame([*range(4_990, 5_010)]))


def test_every_place_that_the_footer_names_is_in_its_row_group() -> None:
    content = of_10_000_rows()
    footer = read_struct(content[-8 - int.from_bytes(content[-8:-4], "little") : -8])
    end_of_group = 4
    for group in footer[4][1][1]:
        chunks = group[1][1][1]
        metadata = [chunk[3][1] for chunk in chunks]
        assert group[6][1] == sum(column[7][1] for column in metadata)
        assert group[2][1] == sum(column[6][1] for column in metadata)
        begins = [column[11][1] if 11 in column else column[9][1] for column in metadata]
        ends = [begin + column[7][1] for begin, column in zip(begins, metadata, strict=True)]
        assert begins == sorted(begins)
        assert begins[0] == group[5][1] >= end_of_group
        assert all(end <= chunk[2][1] < max(ends) + 500 for end, chunk in zip(ends, chunks, strict=True))
        assert all(chunk.keys().isdisjoint({4, 5, 6, 7}) for chunk in chunks)  # page indexes
        end_of_group = max(ends)


def pages(count: int) -> Iterator[pl.DataFrame]:
    """Yield pages of numbers that compress badly."""
    for page in range(count):
        yield frame([(n * 2_654_435_761) % 2**32 for n in range(page * 10_000, (page + 1) * 10_000)])


def test_the_rows_of_many_parts_stay_in_order() -> None:
    file = BytesIO()
    texts = (page.cast(pl.String) for page in pages(30))
    ParquetSink(row_group_size=10_000).write(texts, Caster(COLUMNS), file)
    content = file.getvalue()

    assert len(content) > 2 << 20  # so there were several parts
    assert pl.read_parquet(content).equals(pl.concat(pages(30)))
    assert read_by_arrow(content).equals(pl.concat(pages(30)))
    assert pl.read_parquet_schema(content) == SCHEMA

    number = arro3.io.read_parquet(BytesIO(content)).read_all().schema.field("n")
    assert number.metadata_str["alias"] == "Number"


@pytest.mark.parametrize("page_size", [10_000, 7_000, 25_000])
def test_row_groups_are_the_same_however_long_the_pages_are(page_size: int) -> None:
    rows, file = pl.concat(pages(10)), BytesIO()
    texts = rows.cast(pl.String).iter_slices(page_size)
    ParquetSink(row_group_size=10_000).write(texts, Caster(COLUMNS), file)
    content = file.getvalue()
    assert rows_of_groups(content) == [10_000] * 10
    assert pl.read_parquet(content).equals(rows)


KINDS: dict[str, Callable[[int], str]] = {
    "LONG": str,
    "STRING": "text {}".format,
    "DOUBLE": "{}.5".format,
    "DATE": lambda n: f"2026-01-{n % 28 + 1:02d}",
}
COLUMN_LISTS = [
    tuple(Column(name=f"c{number}", fd_type=[*KINDS][number % 4]) for number in range(count))
    for count in (150, 600)
]
MANY, VERY_MANY = COLUMN_LISTS


def of_many_columns(columns: tuple[Column, ...], rows: int) -> list[list[str]]:
    return [[KINDS[column.fd_type](row + place) for place, column in enumerate(columns)] for row in range(rows)]


def write_many(cells: list[list[str]], caster: Caster) -> pl.DataFrame:
    """Return what a file of whole rows, which came in pages of 10, holds in the end."""
    file = BytesIO()
    pages = (whole(pl.Series(cells[first : first + 10])) for first in range(0, len(cells), 10))
    ParquetSink(row_group_size=15).write(pages, caster, file)
    return pl.read_parquet(file.getvalue())


@pytest.mark.parametrize("columns", COLUMN_LISTS, ids=len)
def test_of_many_columns_some_are_written_at_a_time(columns: tuple[Column, ...]) -> None:
    cells = of_many_columns(columns, 40)
    names = [column.name for column in columns]
    (expected,) = Caster(columns).typed(iter([pl.DataFrame(cells, names, orient="row")]))
    found = write_many(cells, Caster(columns))
    assert found.equals(expected)
    assert found.schema == expected.schema


@pytest.mark.parametrize(("columns", "place"), [(MANY, 2), (MANY, 66), (MANY, 148), (VERY_MANY, 598)])
def test_a_cell_that_does_not_fit_is_named_wherever_it_is(columns: tuple[Column, ...], place: int) -> None:
    cells = of_many_columns(columns, 40)
    cells[20][place] = "lots"
    with pytest.raises(AnaplatCellError, match=rf"Column 'c{place}', row 1,021 \(counted from 1\): 'lots'"):
        write_many(cells, Caster(columns, 1000))
    caster = Caster(columns, nulls_for_errors=True)
    assert write_many(cells, caster)[20, place] is None
    assert caster.lost_cells == 1


MEMORY = """
import io, json, sys
from pathlib import Path
import polars as pl
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.output.formats import ParquetSink
from airflow_provider_anaplat.output.schema import Caster

def memory():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

def pages():
    for page in range(1501):
        if page in (500, 1500):
            found.append(memory())
        yield pl.DataFrame({f"c{n}": range(page, page + 100) for n in range(20)}).cast(pl.String)

class Nowhere(io.RawIOBase):
    def write(self, data):
        return len(data)

found = []
columns = tuple(Column(name=f"c{n}", fd_type="LONG") for n in range(20))
ParquetSink(row_group_size=100).write(pages(), Caster(columns), Nowhere())
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_row_group_takes_little_memory_until_the_end() -> None:
    output = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True)
    early, late = json.loads(output.stdout)
    assert late - early < 25  # MB; 64 where Polars writes one file


WIDE = """
import io, json
from pathlib import Path
import polars as pl
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.output.parquet import JoinedParquet
from airflow_provider_anaplat.output.schema import arrow_schema

def memory(key):
    return int(Path("/proc/self/status").read_text().split(key + ":")[1].split()[0]) / 1024

class Nowhere(io.RawIOBase):
    written = 0
    def write(self, data):
        self.written += len(data)
        return len(data)

names = [f"a column with a long name {n}" for n in range(1000)]
def written(rows):
    file = io.BytesIO()
    rows.write_parquet(file)
    return file.getvalue()

rows = pl.DataFrame({name: ["a text that is of some length"] for name in names})
part, empty = written(rows), written(rows.clear())
file = Nowhere()
with JoinedParquet(file, empty, arrow_schema([Column(name=name, fd_type="STRING") for name in names])) as joined:
    for number in range(300):
        if number == 10:
            early = memory("VmRSS")
        joined.add([part])
    rows = file.written
    joined.finish()
print(json.dumps([memory("VmHWM") - early, (file.written - rows) / 1024 / 1024]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_the_footer_of_a_wide_file_takes_little_memory_also_when_it_is_written() -> None:
    output = subprocess.run([sys.executable, "-c", WIDE], check=True, capture_output=True, text=True)
    grown, footer = json.loads(output.stdout)  # MB
    assert footer > 30
    assert grown < 20  # 26 where all of it is kept in memory


class SlowFile(BytesIO):
    """Takes a while for each piece, and says when it was given one."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces = 0
        self.begun = threading.Event()

    def write(self, data: Any) -> int:
        self.pieces += 1
        if self.pieces > 1:  # after the first bytes, which each file has
            self.begun.set()
            threading.Event().wait(0.1)
        return super().write(data)


def test_what_ends_a_task_waits_for_no_row_group() -> None:
    file, columns = SlowFile(), tuple(Column(name=f"c{number}", fd_type="STRING") for number in range(6_400))

    def pages() -> Iterator[pl.DataFrame]:
        yield whole(pl.Series([["x"] * len(columns)]))
        file.begun.wait()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ParquetSink(row_group_size=1).write(pages(), Caster(columns), file)
    assert file.pieces < 100  # blocks of columns, each of which is a piece at least


def test_a_temporary_file_without_room_for_the_footer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    columns = tuple(Column(name=f"c{number}", fd_type="STRING") for number in range(1_000))
    rows = pl.DataFrame({column.name: ["a text"] for column in columns})
    said = f"Cannot write a temporary file to {tmp_path}: {os.strerror(errno.EFBIG)}"
    with (
        pytest.raises(AnaplatOutputError, match=said),
        quota(1_100_000),
        JoinedParquet(BytesIO(), written(rows.clear()), arrow_schema(columns)) as file,
    ):
        list(map(file.add, [[written(rows)]] * 100))
