"""Parquet files put together: other readers find each row group, and what it says of itself, where it is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from io import BytesIO

import arro3.io
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.thrift import read_struct

from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.output.formats import ParquetSink
from airflow_provider_anaplat.output.parquet import JoinedParquet
from airflow_provider_anaplat.output.schema import arrow_schema

COLUMNS = (
    Column(name="n", fd_type="LONG", alias="Number"),
    Column(name="text", fd_type="STRING"),
    Column(name="x", fd_type="DOUBLE"),
)
SCHEMA = {"n": pl.Int64, "text": pl.String, "x": pl.Float64}


def frame(numbers: list[int]) -> pl.DataFrame:
    rows = [[n, None if n % 3 else f"text {n}", n / 2] for n in numbers]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def joined(parts: Iterable[pl.DataFrame], group: int) -> bytes:
    """Return one file of a file for each part, all with row groups of this size."""
    file = BytesIO()
    with JoinedParquet(file, arrow_schema(COLUMNS)) as whole:
        for rows in parts:
            part = BytesIO()
            rows.write_parquet(part, row_group_size=group)
            whole.add(part.getvalue())
        whole.finish()
    return file.getvalue()


def of_10_000_rows() -> bytes:
    return joined((frame([*range(first, first + 1000)]) for first in range(0, 10_000, 1000)), 250)


def read_by_arrow(content: bytes) -> pl.DataFrame:
    return pl.DataFrame(arro3.io.read_parquet(BytesIO(content)))


@given(sizes=st.lists(st.integers(0, 50), min_size=1, max_size=8), group=st.integers(1, 60))
def test_two_readers_find_all_rows(sizes: list[int], group: int) -> None:
    parts = [frame([*range(sum(sizes[:number]), sum(sizes[: number + 1]))]) for number in range(len(sizes))]
    content, expected = joined(parts, group), pl.concat(parts)
    assert pl.read_parquet(content).equals(expected)
    assert read_by_arrow(content).equals(expected)
    assert pl.scan_parquet(content).select(pl.len()).collect().item() == sum(sizes)


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
    ParquetSink(row_group_size=10_000).write(pages(30), COLUMNS, file)
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
    ParquetSink(row_group_size=10_000).write(rows.iter_slices(page_size), COLUMNS, file)
    content = file.getvalue()
    groups = read_struct(content[-8 - int.from_bytes(content[-8:-4], "little") : -8])[4][1][1]
    assert [group[3][1] for group in groups] == [10_000] * 10
    assert pl.read_parquet(content).equals(rows)


MEMORY = """
import io, json, sys
from pathlib import Path
import polars as pl
from airflow_provider_anaplat.client.models import Column
from airflow_provider_anaplat.output.formats import ParquetSink

def memory():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

def pages():
    for page in range(1501):
        if page in (500, 1500):
            found.append(memory())
        yield pl.DataFrame({f"c{n}": range(page, page + 100) for n in range(20)})

class Nowhere(io.RawIOBase):
    def write(self, data):
        return len(data)

found = []
columns = tuple(Column(name=f"c{n}", fd_type="LONG") for n in range(20))
ParquetSink(row_group_size=100).write(pages(), columns, Nowhere())
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
part = io.BytesIO()
pl.DataFrame({name: ["a text that is of some length"] for name in names}).write_parquet(part)
part = part.getvalue()
file = Nowhere()
with JoinedParquet(file, arrow_schema([Column(name=name, fd_type="STRING") for name in names])) as joined:
    for number in range(300):
        if number == 10:
            early = memory("VmRSS")
        joined.add(part)
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
