"""Whole exports: what stands in the file, and what does not."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import TEXTS, numbers
from upath import UPath

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.errors import CellError, DatasetChangedError, OutputError
from airflow_provider_anaplat.rows.export import FileFormat, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.simulator import Simulator, Table, replies

FORMATS: list[FileFormat] = ["csv", "ndjson", "parquet"]
TYPED = Table.of_rows(
    [("int", "INT"), ("long", "LONG"), ("double", "DOUBLE"), ("text", "STRING"), ("date", "DATE"), ("odd", "MAP")],
    [
        ["-1", "9223372036854775807", "0.1", "", "2024-02-29", "{}"],
        ["007", "0", "1e300", "null", "2024-02-29 00:00:00", ""],
        [None] * 6,
    ],
)


def read_back(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    if path.suffix == ".ndjson":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return pl.read_csv(path, infer_schema=False).to_dicts()


@pytest.mark.parametrize("file_format", FORMATS)
def test_null_and_the_empty_text_and_the_word_null_stay_apart(
    client: AnaplatClient, platform: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    platform.platform.add_dataset("texts", TEXTS)
    path = tmp_path / f"texts.{file_format}"
    summary = export_rows(client, RowQuery("ds1", page_size=3), path, file_format)
    assert [row["text"] for row in read_back(path)] == [None, "", "null", 'quo"te, back\\slash\nand 😀 中']
    assert (summary.rows, summary.columns, summary.version, summary.bytes) == (4, 2, 1, path.stat().st_size)


def test_parquet_has_types(client: AnaplatClient, platform: Simulator, tmp_path: Path) -> None:
    platform.platform.add_dataset("typed", TYPED)
    export_rows(client, RowQuery("ds1"), tmp_path / "t.parquet", "parquet")
    frame = pl.read_parquet(tmp_path / "t.parquet")
    assert frame.schema == {
        "int": pl.Int64, "long": pl.Int64, "double": pl.Float64, "text": pl.String, "date": pl.Date,
        "odd": pl.String,
    }  # fmt: skip
    assert frame.rows() == [
        (-1, 9223372036854775807, 0.1, "", date(2024, 2, 29), "{}"),
        (7, 0, 1e300, "null", date(2024, 2, 29), ""),
        (None,) * 6,
    ]


def test_ndjson_has_types(client: AnaplatClient, platform: Simulator, tmp_path: Path) -> None:
    platform.platform.add_dataset("typed", TYPED)
    export_rows(client, RowQuery("ds1"), tmp_path / "t.ndjson", "ndjson")
    rows = read_back(tmp_path / "t.ndjson")
    assert rows[0]["long"] == 9223372036854775807
    assert rows[0]["date"] == "2024-02-29"
    assert rows[1]["double"] == 1e300
    assert set(rows[2].values()) == {None}


def test_csv_has_the_platforms_own_text(client: AnaplatClient, platform: Simulator, tmp_path: Path) -> None:
    platform.platform.add_dataset("typed", TYPED)
    export_rows(client, RowQuery("ds1", page_size=1), tmp_path / "t.csv", "csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["int", "long", "double", "text", "date", "odd"]
    assert rows[2] == ["007", "0", "1e300", "null", "2024-02-29 00:00:00", ""]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_dataset_without_rows_gives_a_valid_file(
    client: AnaplatClient, platform: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    platform.platform.add_dataset("numbers", numbers(0))
    path = tmp_path / f"none.{file_format}"
    assert export_rows(client, RowQuery("ds1"), path, file_format).rows == 0
    assert read_back(path) == []
    if file_format == "csv":
        assert path.read_text() == "n,half\n"
    if file_format == "parquet":
        assert pl.read_parquet_schema(path) == {"n": pl.Int64, "half": pl.Float64}


@pytest.mark.parametrize("file_format", FORMATS)
def test_two_columns_of_one_name_are_both_kept(
    client: AnaplatClient, platform: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    platform.platform.add_dataset("twins", Table.of_rows([("a", "STRING"), ("a", "STRING")], [["left", "right"]]))
    path = tmp_path / f"twins.{file_format}"
    export_rows(client, RowQuery("ds1"), path, file_format)
    assert read_back(path) == [{"a": "left", "a (2)": "right"}]


BAD_CELLS = [
    ("INT", "1.5"), ("INT", ""), ("LONG", "9223372036854775808"), ("DOUBLE", "1,5"), ("DATE", "2024-02-30"),
    ("DATE", "2024-01-01 12:00:00"), ("INT", "null"),
]  # fmt: skip


@pytest.mark.parametrize(("fd_type", "cell"), BAD_CELLS)
def test_a_cell_that_its_type_cannot_hold_is_named(
    client: AnaplatClient, platform: Simulator, tmp_path: Path, fd_type: str, cell: str
) -> None:
    platform.platform.add_dataset("bad", Table.of_rows([("c", fd_type)], [[None]] * 4 + [[cell]]))
    with pytest.raises(CellError, match=f"Column 'c', row 5 .*{cell!r} is not a {fd_type}"):
        export_rows(client, RowQuery("ds1", page_size=2), tmp_path / "x.parquet", "parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("fd_type", "cell"), BAD_CELLS)
def test_or_becomes_null_and_is_counted(
    client: AnaplatClient,
    platform: Simulator,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    fd_type: str,
    cell: str,
) -> None:
    platform.platform.add_dataset("bad", Table.of_rows([("c", fd_type)], [[cell], [None]]))
    export_rows(client, RowQuery("ds1"), tmp_path / "x.parquet", "parquet", "null")
    assert pl.read_parquet(tmp_path / "x.parquet")["c"].to_list() == [None, None]
    assert "1 cells did not fit" in caplog.text


def test_json_has_no_word_for_an_infinite_number(
    client: AnaplatClient, platform: Simulator, tmp_path: Path
) -> None:
    platform.platform.add_dataset("bad", Table.of_rows([("c", "DOUBLE")], [["NaN"]]))
    with pytest.raises(CellError, match="'NaN'"):
        export_rows(client, RowQuery("ds1"), tmp_path / "x.ndjson", "ndjson")
    export_rows(client, RowQuery("ds1"), tmp_path / "x.parquet", "parquet")
    assert pl.read_parquet(tmp_path / "x.parquet")["c"].is_nan().all()


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_failed_export_leaves_the_file_as_it_was(
    platform: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    client = AnaplatClient(platform.url, platform.token, max_retries=0)
    platform.platform.add_dataset("numbers", numbers(30))
    platform.inject("read_rows", replies.reset(), when=lambda body: body["offset"] == 20)
    path = tmp_path / f"numbers.{file_format}"
    path.write_text("as it was")
    with pytest.raises(Exception, match="broke the connection"):
        export_rows(client, RowQuery("ds1", page_size=10), path, file_format)
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_update_in_the_middle_publishes_nothing(
    client: AnaplatClient, platform: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    dataset = platform.platform.add_dataset("numbers", numbers(30))

    def updated(body: Any) -> bool:
        if body["offset"] == 20 and dataset.version == 1:
            platform.platform.refresh("ds1")
        return False

    platform.inject("read_rows", replies.reset(), times=None, when=updated)
    with pytest.raises(DatasetChangedError):
        export_rows(client, RowQuery("ds1", page_size=10, concurrency=1), tmp_path / "x", file_format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file_format", FORMATS)
def test_an_object_appears_when_it_is_complete(
    client: AnaplatClient, platform: Simulator, file_format: FileFormat
) -> None:
    platform.platform.add_dataset("numbers", numbers(30))
    path = UPath(f"memory://exports/{file_format}/numbers")
    platform.inject("read_rows", replies.refusal("no", code=1004), when=lambda body: body["offset"] == 20)
    with pytest.raises(Exception, match="refused"):
        export_rows(client, RowQuery("ds1", page_size=10), path, file_format)
    assert not path.exists()
    summary = export_rows(client, RowQuery("ds1", page_size=10), path, file_format)
    assert summary.bytes == path.stat().st_size > 0


def test_a_place_that_cannot_be_written_is_named(
    client: AnaplatClient, platform: Simulator, tmp_path: Path
) -> None:
    platform.platform.add_dataset("numbers", numbers(3))
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "below.csv", tmp_path, Path("/proc/none/x.csv"), Path("/dev/null")):
        with pytest.raises(OutputError, match=str(path)):
            export_rows(client, RowQuery("ds1"), path, "csv")
    assert Path("/dev/null").is_char_device()


DISK_FULL = """
import resource, signal, sys
from pathlib import Path
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.rows.export import export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
url, token, path, file_format = sys.argv[1:]
export_rows(AnaplatClient(url, token), RowQuery("ds1", page_size=1000), Path(path), file_format)
"""


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_full_disk_is_named_and_nothing_is_left(
    platform: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    platform.platform.add_dataset("numbers", numbers(20_000))
    path = tmp_path / "numbers"
    arguments = [platform.url, platform.token, str(path), file_format]
    result = subprocess.run(
        [sys.executable, "-c", DISK_FULL, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert f"OutputError: Cannot write {path}" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_written_through(client: AnaplatClient, platform: Simulator, tmp_path: Path) -> None:
    platform.platform.add_dataset("numbers", numbers(3))
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    export_rows(client, RowQuery("ds1"), tmp_path / "link.csv", "csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("n,half\n0,")
