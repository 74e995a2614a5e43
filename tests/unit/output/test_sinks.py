"""File formats: what goes in comes out, and what a spreadsheet would calculate is escaped where asked."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable, Sequence
from datetime import date
from io import BytesIO, StringIO
from typing import Any

import polars as pl
import psutil
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_anaplat.client._http.envelope import Answer
from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.output.formats import CsvSink, NdjsonSink, ParquetSink, Sink
from airflow_provider_anaplat.output.schema import Caster
from airflow_provider_anaplat.output.streams import Encoding, compressed
from airflow_provider_anaplat.rows.decode import RowPage, read_head

Column = tuple[str, str]
Cell = str | None
DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": gzip.decompress,
    ".zst": lambda content: zstandard.ZstdDecompressor().stream_reader(content).read(),
}
COMPRESSIONS = st.sampled_from(sorted(DECOMPRESS))
ENCODINGS: st.SearchStrategy[Encoding] = st.sampled_from(["utf-8", "utf-8-sig", "gb18030"])


def written(sink: Sink, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], compression: str = "") -> bytes:
    """Write what an answer holds, from its bytes on, and return it decompressed."""
    response = {
        "dsId": "ds1", "name": "d", "status": "FINISHED",
        "columns": [{"name": name, "fdType": fd_type} for name, fd_type in columns],
        "preview": rows, "rowCount": len(rows), "version": 1, "utime": "2026-01-01 00:00:00+0000",
    }  # fmt: skip
    body = json.dumps({"result": "ok", "response": response}, ensure_ascii=len(rows) % 2 == 0).encode()
    head = read_head(Answer("read_rows", 200, body))

    def content(page: RowPage) -> bytes:
        frame, file = page.frame, BytesIO()
        with compressed(file, compression) as stream:
            sink.write(iter([frame.head(1), frame.slice(1)]), Caster(page.columns), stream)
        return DECOMPRESS[compression](file.getvalue())

    in_columns = content(head.page())
    shape = sink.shape(len(columns)) if isinstance(sink, CsvSink) else "whole"
    assert content(head.page(shape=shape)) == in_columns
    return in_columns


TEXT = st.text(
    st.sampled_from(
        ["a", '"', "\\", ",", ";", "\n", "\r", "\t", "'", "=", "-", "1", " ", "\0", "😀", "中", "\u2028"]
    )
    | st.characters(exclude_categories=["Cs"]),
    max_size=6,
)
# type of a column · a value · the cell that holds it
VALUES: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "STRING": (TEXT, str),
    "MAP": (TEXT, str),
    "INT": (st.integers(-(2**63), 2**63 - 1), str),
    "LONG": (st.integers(-(2**63), 2**63 - 1), str),
    "DOUBLE": (st.floats(allow_nan=False, allow_infinity=False), repr),
    "DATE": (st.dates(), date.isoformat),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[list[Any]], list[list[Cell]]]:
    """Columns, and rows of values, and the same rows as the platform's cells."""
    names = draw(
        st.lists(TEXT.filter(lambda name: name and "\0" not in name), min_size=1, max_size=4, unique=True)
    )
    columns = [(name, draw(st.sampled_from(sorted(VALUES)))) for name in names]
    values = draw(
        st.lists(st.tuples(*(st.none() | VALUES[fd_type][0] for _, fd_type in columns)).map(list), max_size=5)
    )
    cells = [
        [None if v is None else VALUES[t][1](v) for v, (_, t) in zip(row, columns, strict=True)] for row in values
    ]
    return columns, values, cells


def read_csv(text: str, delimiter: str = ",") -> list[list[Cell]]:
    """Read what RFC 4180 says, and an empty field without quotation marks as null; a line is a row."""
    rows: list[list[Cell]] = []
    position, row = 0, list[Cell]()
    while position < len(text):
        cell: Cell = None
        if text[position] == '"':
            cell, position = "", position + 1
            while text[position : position + 1] != '"' or text[position : position + 2] == '""':
                cell += text[position]
                position += 2 if text[position] == '"' else 1
            position += 1
        else:
            start = position
            while text[position] not in (delimiter, "\n"):
                position += 1
            cell = text[start:position] or None
        row.append(cell)
        assert text[position] in (delimiter, "\n")
        if text[position] == "\n":
            rows.append(row)
            row = []
        position += 1
    assert not row
    return rows


@given(table=tables(), delimiter=st.sampled_from(",;\t|"), encoding=ENCODINGS, compression=COMPRESSIONS)
def test_every_cell_survives_csv(
    table: tuple[list[Column], list[list[Any]], list[list[Cell]]],
    delimiter: str,
    encoding: Encoding,
    compression: str,
) -> None:
    columns, _, cells = table
    text = written(CsvSink(delimiter, encoding=encoding), columns, cells, compression).decode(encoding)
    names = [name for name, _ in columns]
    assert read_csv(text, delimiter) == [names, *cells]
    for_anybody = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    assert list(for_anybody) == [names, *([] if row == [None] else [cell or "" for cell in row] for row in cells)]


def test_a_null_alone_is_an_empty_line_for_readers_that_keep_it() -> None:
    """Only so is it another row than that of an empty text; pandas skips it unless told otherwise."""
    content = written(CsvSink(), [("a", "STRING")], [["x"], [None], [""], [None]])
    assert content == b'a\nx\n\n""\n\n'
    assert pl.read_csv(content)["a"].to_list() == ["x", None, "", None]

    pandas = pytest.importorskip("pandas", reason="it is installed where this package is developed")
    kept = pandas.read_csv(BytesIO(content), skip_blank_lines=False)["a"]

    assert kept.fillna("").to_list() == ["x", "", "", ""]
    assert len(pandas.read_csv(BytesIO(content))) == 2


@pytest.mark.parametrize("columns", [1, 3, 700])
def test_a_page_of_csv_is_accounted_for_whatever_its_width(columns: int) -> None:
    rows = 600_000 // columns  # more cells than are counted in one step
    frame = pl.DataFrame({f"c{number}": ['a "b"', None, "中"] * (rows // 3) for number in range(columns)})
    file = BytesIO()

    CsvSink(header=False).write(iter([frame]), Caster(()), file)

    assert file.getvalue().count(b"\n") == frame.height


@given(table=tables(), compression=COMPRESSIONS)
def test_every_value_survives_ndjson(
    table: tuple[list[Column], list[list[Any]], list[list[Cell]]], compression: str
) -> None:
    columns, values, cells = table
    lines = written(NdjsonSink(), columns, cells, compression).decode().split("\n")
    assert lines.pop() == ""
    names = [name for name, _ in columns]
    as_json = [[v.isoformat() if isinstance(v, date) else v for v in row] for row in values]
    assert [json.loads(line) for line in lines] == [dict(zip(names, row, strict=True)) for row in as_json]


@given(table=tables())
def test_every_value_survives_parquet(table: tuple[list[Column], list[list[Any]], list[list[Cell]]]) -> None:
    columns, values, cells = table
    frame = pl.read_parquet(BytesIO(written(ParquetSink(), columns, cells)))
    assert frame.columns == [name for name, _ in columns]
    assert [list(row) for row in frame.rows()] == values


FORMULAS = {
    "=1+1": "'=1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "+49 30 1234": "'+49 30 1234",
    "-": "'-",
    "-1-1": "'-1-1",
    "-5": "-5",
    "+5.25": "+5.25",
    "-.5e-3": "-.5e-3",
    "-5\n": "'-5\n",
    "\t=1": "'\t'=1",
    "\r=1": "'\r'=1",
    "\n=1": "'\n'=1",
    "＝1+1": "'＝1+1",
    "a=1": "a=1",
    "'=1": "'=1",
    "": "",
}


def test_what_a_spreadsheet_would_calculate_is_escaped_in_cells_and_names() -> None:
    columns = [("=name", "STRING"), ("'=name", "INT"), ("-1", "STRING")]
    text = written(CsvSink(formulas="escape"), columns, [[cell, cell, "."] for cell in FORMULAS]).decode()
    escaped = [[cell or None, cell or None, "."] for cell in FORMULAS.values()]
    escaped[-1] = ["", "", "."]
    assert read_csv(text) == [["'=name", "'=name", "-1"], *escaped]


def test_formulas_are_kept_unless_asked() -> None:
    rows = [[cell, None, "."] for cell in FORMULAS]
    text = written(CsvSink(), [("=a", "STRING"), ("b", "STRING"), ("c", "STRING")], rows).decode()
    assert read_csv(text) == [["=a", "b", "c"], *rows]


@given(table=tables())
def test_an_escaped_file_holds_no_formula_and_loses_nothing(
    table: tuple[list[Column], list[list[Any]], list[list[Cell]]],
) -> None:
    columns, _, cells = table
    _, *rows = read_csv(written(CsvSink(formulas="escape"), columns, cells).decode())
    for shown, cell in zip((c for row in rows for c in row), (c for row in cells for c in row), strict=True):
        assert (shown or "").replace("'", "") == (cell or "").replace("'", "")
        if shown == cell and cell and cell[0] in "=+-@\t\r\n":
            float(cell)


HIDDEN = [
    "x;=1+1", "x\t=1+1", "x|@SUM(1)", "x\n=1+1", "x\r\n-1+1", 'x;"=1+1";y', "x; =1+1", "x;;＝1+1", "\ufeff=1+1",
    "x;\ufeff=1+1", "\ufeff\ufeff+1+1", "=1+1;=2+2", "a;b;-c;d",
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_reader_with_another_separator_sees_no_formula(delimiter: str, encoding: Encoding) -> None:
    columns = [(name, "STRING") for name in ("\ufeff=first", "x;=name")]
    rows = [[cell, cell] for cell in [*HIDDEN, *(cell.replace(";", ",") for cell in HIDDEN)]]
    sink = CsvSink(delimiter=delimiter, encoding=encoding, formulas="escape")
    text = written(sink, columns, rows).decode(encoding)

    assert len(list(csv.reader(StringIO(text), delimiter=delimiter))) == len(rows) + 1
    for separator in {",", ";", "\t", "|"} - {delimiter}:
        for line in re.split(r"[\r\n]", text):
            for seen in line.split(separator):  # quotation marks count for nothing behind another separator
                assert not re.match(r'[\ufeff" ]*[=+\-@＝＋－＠]', seen), (separator, line)


def test_what_holds_no_formula_stays() -> None:
    cells = ["a;b", "a - b", "well-known", "x=1", "-5", "+1.5e3", "a@b.c", "1;2", "it's; fine", "a\tb"]
    text = written(CsvSink(formulas="escape"), [("a", "STRING"), ("b", "INT")], [[cell, "."] for cell in cells])
    assert [row[0] for row in read_csv(text.decode())[1:]] == cells


def test_a_dataset_without_columns_is_an_empty_file() -> None:
    for sink in (CsvSink(), CsvSink(formulas="escape"), NdjsonSink()):
        assert written(sink, [], []) == b""


def test_another_word_for_formulas_is_refused() -> None:
    with pytest.raises(AnaplatRequestError, match="csv_formulas is 'drop'; it must be keep or escape"):
        CsvSink(formulas="drop")  # type: ignore[arg-type]


def test_zstandard_takes_two_threads_on_any_machine() -> None:
    """Each takes memory: one for every core of a large machine would take more than an export may."""
    process = psutil.Process()
    before = process.num_threads()
    with compressed(BytesIO(), ".zst") as stream:
        stream.write(b"a piece")
        assert process.num_threads() - before <= 3, "two, and the one that hands over"
