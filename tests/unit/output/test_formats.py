"""What stands in the files of each format."""

from __future__ import annotations

import csv
import gzip
from datetime import date
from pathlib import Path

import arro3.io
import polars as pl
import pytest
import zstandard
from conftest import TEXTS, numbers
from support.exports import FORMATS, export_rows, read_back

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import (
    AnaplatCellError,
    AnaplatRequestError,
)
from airflow_provider_anaplat.output import reading
from airflow_provider_anaplat.output.formats import CsvSink, FileFormat, WriteOptions
from airflow_provider_anaplat.output.place import Place, place_named
from airflow_provider_anaplat.rows.export import ExportPlan
from airflow_provider_anaplat.rows.export import export_rows as export_plan
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.targets import FileTarget, parts_in
from airflow_provider_anaplat.simulator import Simulator, Table

TYPED = Table.of_rows(
    [("int", "INT"), ("long", "LONG"), ("double", "DOUBLE"), ("text", "STRING"), ("date", "DATE"), ("odd", "MAP")],
    [
        ["-1", "9223372036854775807", "0.1", "", "2024-02-29", "{}"],
        ["007", "0", "1e300", "null", "2024-02-29 00:00:00", ""],
        [None] * 6,
    ],
)


@pytest.mark.parametrize("file_format", FORMATS)
def test_null_and_the_empty_text_and_the_word_null_stay_apart(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    path = tmp_path / f"texts.{file_format}"
    summary = export_rows(client, RowQuery("ds1", page_size=3), path, file_format)
    assert [row["text"] for row in read_back(path)] == [None, "", "null", 'quo"te, back\\slash\nand 😀 中']
    assert (summary.rows, summary.columns, summary.version, summary.bytes) == (4, 2, 1, path.stat().st_size)


def test_parquet_has_types(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("typed", TYPED)
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


def test_ndjson_has_types(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("typed", TYPED)
    export_rows(client, RowQuery("ds1"), tmp_path / "t.ndjson", "ndjson")
    rows = read_back(tmp_path / "t.ndjson")

    assert rows[0]["long"] == 9223372036854775807
    assert rows[0]["date"] == "2024-02-29"
    assert rows[1]["double"] == 1e300
    assert set(rows[2].values()) == {None}


def test_csv_has_the_platforms_own_text(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("typed", TYPED)
    export_rows(client, RowQuery("ds1", page_size=1), tmp_path / "t.csv", "csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["int", "long", "double", "text", "date", "odd"]
    assert rows[2] == ["007", "0", "1e300", "null", "2024-02-29 00:00:00", ""]


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_dataset_without_rows_gives_a_valid_file(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    simulator.platform.add_dataset("numbers", numbers(0))
    path = tmp_path / f"none.{file_format}"

    assert export_rows(client, RowQuery("ds1"), path, file_format).rows == 0
    assert read_back(path) == []

    if file_format == "csv":
        assert path.read_text() == "n,half\n"
    if file_format == "parquet":
        assert pl.read_parquet_schema(path) == {"n": pl.Int64, "half": pl.Float64}


@pytest.mark.parametrize("file_format", FORMATS)
def test_two_columns_of_one_name_are_both_kept(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    simulator.platform.add_dataset("twins", Table.of_rows([("a", "STRING"), ("a", "STRING")], [["left", "right"]]))
    path = tmp_path / f"twins.{file_format}"
    export_rows(client, RowQuery("ds1"), path, file_format)
    assert read_back(path) == [{"a": "left", "a (2)": "right"}]


BAD_CELLS = [
    ("DOUBLE", "1e400"),
    ("INT", "1.5"), ("INT", ""), ("LONG", "9223372036854775808"), ("DOUBLE", "1,5"), ("DATE", "2024-02-30"),
    ("DATE", "2024-01-01 12:00:00"), ("INT", "null"), ("DATE", "24-01-05"), ("DATE", " 2024-01-01"),
]  # fmt: skip


@pytest.mark.parametrize(("fd_type", "cell"), BAD_CELLS)
def test_a_cell_that_its_type_cannot_hold_is_named(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, fd_type: str, cell: str
) -> None:
    simulator.platform.add_dataset("bad", Table.of_rows([("c", fd_type)], [[None]] * 4 + [[cell]]))
    with pytest.raises(AnaplatCellError, match=f"Column 'c', row 5 .*{cell!r} is not a {fd_type}"):
        export_rows(client, RowQuery("ds1", page_size=2), tmp_path / "x.parquet", "parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", [5, 2_000])
def test_of_several_such_cells_the_first_columns_is_named(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, rows: int
) -> None:
    columns = [("n", "INT"), ("day", "DATE"), ("m", "INT"), ("text", "STRING")]
    cells: list[list[str | None]] = [[str(n), "2026-01-31", str(-n), "x"] for n in range(rows)]
    cells[1][2], cells[3][1], cells[4][1] = "second", "first", "third"
    simulator.platform.add_dataset("bad", Table.of_rows(columns, cells))
    with pytest.raises(AnaplatCellError, match=r"Column 'day', row 4 .*'first' is not a DATE"):
        export_rows(client, RowQuery("ds1"), tmp_path / "x.parquet", "parquet")

    export_rows(client, RowQuery("ds1"), tmp_path / "x.parquet", "parquet", on_cast_error="null")
    frame = pl.read_parquet(tmp_path / "x.parquet")
    assert frame.rows()[3:] == [(n, None if n < 5 else date(2026, 1, 31), -n, "x") for n in range(3, rows)]
    assert frame["m"].to_list() == [0, None, *range(-2, -rows, -1)]


@pytest.mark.parametrize(("fd_type", "cell"), BAD_CELLS)
def test_or_becomes_null_and_is_counted(
    client: AnaplatClient,
    simulator: Simulator,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    fd_type: str,
    cell: str,
) -> None:
    simulator.platform.add_dataset("bad", Table.of_rows([("c", fd_type)], [[cell], [None]]))
    export_rows(client, RowQuery("ds1"), tmp_path / "x.parquet", "parquet", on_cast_error="null")
    assert pl.read_parquet(tmp_path / "x.parquet")["c"].to_list() == [None, None]
    assert "1 cells did not fit" in caplog.text


def test_json_has_no_word_for_an_infinite_number(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("bad", Table.of_rows([("c", "DOUBLE")], [["NaN"]]))
    with pytest.raises(AnaplatCellError, match="'NaN'"):
        export_rows(client, RowQuery("ds1"), tmp_path / "x.ndjson", "ndjson")
    export_rows(client, RowQuery("ds1"), tmp_path / "x.parquet", "parquet")
    assert pl.read_parquet(tmp_path / "x.parquet")["c"].is_nan().all()


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zst", "ndjson", "ndjson.gz", "ndjson.zst"])
def test_compression_by_suffix(client: AnaplatClient, simulator: Simulator, tmp_path: Path, suffix: str) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    path = tmp_path / f"texts.{suffix}"
    plan = ExportPlan(RowQuery("ds1", page_size=3), FileTarget(place_named(path, str(path), None, WriteOptions())))

    assert export_plan(client, plan).bytes == path.stat().st_size

    content = path.read_bytes()
    if suffix.endswith(".gz"):
        content = gzip.decompress(content)
    if suffix.endswith(".zst"):
        content = zstandard.ZstdDecompressor().stream_reader(content).read()
    plain = tmp_path / suffix.partition(".")[0]
    export_rows(client, RowQuery("ds1"), plain, plain.name)  # type: ignore[arg-type]  # one of the formats

    assert content == plain.read_bytes()


def test_the_same_rows_give_the_same_compressed_file(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    for name in ("one.csv.gz", "two.csv.gz"):
        export_plan(client, ExportPlan(RowQuery("ds1"), FileTarget(Place(tmp_path / name, CsvSink(), ".gz"))))
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        (CsvSink(delimiter=";"), "a;b\nx,y;é\n".encode()),
        (CsvSink(header=False), '"x,y",é\n'.encode()),
        (CsvSink(encoding="utf-8-sig"), '\ufeffa,b\n"x,y",é\n'.encode()),
        (CsvSink(encoding="gb18030"), 'a,b\n"x,y",é\n'.encode("gb18030")),
    ],
)
def test_csv_as_its_reader_wants_it(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, sink: CsvSink, expected: bytes
) -> None:
    simulator.platform.add_dataset("t", Table.of_rows([("a", "STRING"), ("b", "STRING")], [["x,y", "é"]]))
    export_plan(client, ExportPlan(RowQuery("ds1"), FileTarget(Place(tmp_path / "t.csv", sink))))
    assert (tmp_path / "t.csv").read_bytes() == expected


@pytest.mark.parametrize("cell", ["", ",", '"', "a\nb", "a\r", '""', "\r\n", 'a,"b"\n'])
@pytest.mark.parametrize("place", ["first", "in the middle", "last"])
def test_csv_quotes_what_wants_it_wherever_it_stands(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, cell: str, place: str
) -> None:
    rows: list[list[str | None]] = [[str(n), None if n % 3 else "中", "x"] for n in range(30)]
    rows[{"first": 0, "in the middle": 14, "last": 29}[place]][1] = cell
    simulator.platform.add_dataset("t", Table.of_rows([("a", "LONG"), ("b", "STRING"), ("c", "STRING")], rows))

    export_rows(client, RowQuery("ds1", page_size=10), tmp_path / "t.csv", "csv")

    quoted = '"' + cell.replace('"', '""') + '"'
    lines = [f"{a},{quoted if b == cell else b or ''},{c}\n" for a, b, c in rows]
    assert (tmp_path / "t.csv").read_bytes().decode() == "a,b,c\n" + "".join(lines)


def test_gb18030_with_compression(client: AnaplatClient, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.add_dataset("t", Table.of_rows([("城市", "STRING")], [["北京 😀"]] * 3))
    sink = CsvSink(encoding="gb18030")
    export_plan(
        client, ExportPlan(RowQuery("ds1", page_size=1), FileTarget(Place(tmp_path / "t.csv.gz", sink, ".gz")))
    )
    text = gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).decode("gb18030")

    assert text == "城市\n" + "北京 😀\n" * 3


def test_parquet_keeps_what_the_platform_says_of_a_column(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("numbers", numbers(3))
    export_rows(client, RowQuery("ds1"), tmp_path / "n.parquet", "parquet")
    fields = arro3.io.read_parquet(tmp_path / "n.parquet").schema
    assert fields.field("n").metadata_str == {"fdType": "LONG", "metaType": "METRIC"}
    assert fields.field("half").metadata_str == {"fdType": "DOUBLE", "metaType": "METRIC"}


@pytest.mark.parametrize("delimiter", ['"', "\n", "||", "", "é"])
def test_an_impossible_delimiter_is_refused(delimiter: str) -> None:
    with pytest.raises(AnaplatRequestError, match="delimiter"):
        CsvSink(delimiter=delimiter)


@pytest.mark.parametrize("file_format", FORMATS)
def test_odd_column_names(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, file_format: FileFormat
) -> None:
    names = ["", "a\0b", "line\nbreak", "*", "^a$", "", "列"]
    simulator.platform.add_dataset("odd", Table.of_rows([(name, "STRING") for name in names], [list("1234567")]))
    path = tmp_path / f"odd.{file_format}"
    export_rows(client, RowQuery("ds1"), path, file_format)
    assert list(read_back(path)[0]) == ["column 1", "a�b", "line\nbreak", "*", "^a$", "column 6", "列"]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    ("fd_type", "cells"),
    [
        ("STRING", "xyz"),
        ("LONG", "123"),
        ("DOUBLE", ["1.5", "inf", "x"]),
        ("DATE", ["2026-01-01", "x", "2026-01-02"]),
    ],
)
def test_a_name_that_looks_like_a_regular_expression_is_a_name(
    client: AnaplatClient, simulator: Simulator, tmp_path: Path, file_format: FileFormat, fd_type: str, cells: str
) -> None:
    simulator.platform.add_dataset(
        "odd", Table.of_rows([("^a$", fd_type), ("^.*$", fd_type)], [[c, c] for c in cells])
    )
    path = tmp_path / f"odd.{file_format}"

    export_rows(client, RowQuery("ds1"), path, file_format, on_cast_error="null")

    rows = read_back(path)
    assert [list(row) for row in rows] == [["^a$", "^.*$"]] * 3
    assert all(row["^a$"] == row["^.*$"] for row in rows)
    assert rows[0]["^a$"] is not None


def test_each_format_of_a_report_can_be_read_again() -> None:
    assert list(reading._READERS) == FORMATS


@pytest.mark.parametrize("compression", ["", ".gz", ".zst"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_part_of_each_format_is_known_again(tmp_path: Path, file_format: str, compression: str) -> None:
    (tmp_path / f"part-00001.{file_format}{compression}").touch()
    (tmp_path / f"part-00001.{file_format}x").touch()
    assert parts_in(tmp_path) == {f"part-00001.{file_format}{compression}"}
