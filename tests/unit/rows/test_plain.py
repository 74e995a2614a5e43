"""Plain text of rows as lines of CSV: what is not plain is left to others, and nothing else comes out wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.lines import csv_lines

from airflow_provider_anaplat.output.lines import Lines
from airflow_provider_anaplat.rows.plain import plain_lines

# What may be taken for something that stands between two cells, or for a mark of this package's own.
CELLS = st.sampled_from([
    "a", "", None, ",", ", ", '","', "],[", "]", "[", "null", "x,y", ";", "x;y", " ", "中", "😀", "\x7f",
    '"', "\\", "\n", "\r", "\t", "/", "a\nb", 'say "x"', "\x06", "\x1f", "\u2028",
])  # fmt: skip
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,", ":"), (",  ", ":")])
WIDTHS = st.integers(1, 4)
# A text may have an escape for every so many bytes.
PADDING = "x" * 5_000


def tables(cells: st.SearchStrategy[str | None] = CELLS) -> st.SearchStrategy[list[list[str | None]]]:
    return WIDTHS.flatmap(
        lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=5)
    )


def text_of(rows: Any, separators: tuple[str, str] = (",", ":"), *, ascii_: bool = False) -> bytes:
    return json.dumps(rows, separators=separators, ensure_ascii=ascii_)[1:-1].encode()


def lines_of(text: bytes, width: int, delimiter: str = ",") -> list[bytes] | None:
    frame = plain_lines(memoryview(text), width, Lines(delimiter))
    return None if frame is None else [bytes(line) for line in frame.to_series()]


@given(rows=tables(), separators=SEPARATORS, ascii_=st.booleans(), delimiter=st.sampled_from(",;| ]\t"))
def test_plain_rows_are_lines(
    rows: list[list[str | None]], separators: tuple[str, str], ascii_: bool, delimiter: str
) -> None:
    rows = [*rows, [PADDING] * len(rows[0])]
    lines = lines_of(text_of(rows, separators, ascii_=ascii_), len(rows[0]), delimiter)
    assert lines == csv_lines(rows, delimiter)


DAMAGES = st.sampled_from([
    b"", b",", b'"', b"[", b"]", b"n", b" ", b"7", b'"",', b"],[", b"null", b",null", b"\xff", b":", b"{}", b"\t",
    b"\\", b"\\u0020", b"\\u002c", b"\\u0001", b"\\ud83d", b"\\/", b'\\"', b"\\n", b"\0", b"\x01", b"\x02",
])  # fmt: skip


@given(
    rows=tables(),
    separators=SEPARATORS,
    damages=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2), DAMAGES), min_size=1, max_size=3),
)
@example(rows=[["a", ","], ["b", "c"]], separators=(",", ":"), damages=[(4, 1, b":")])
@example(rows=[["a", "b"]], separators=(",", ":"), damages=[(4, 0, b"\\u0020")])
def test_damaged_rows_are_lines_only_if_they_are_rows(
    rows: list[list[str | None]], separators: tuple[str, str], damages: list[tuple[int, int, bytes]]
) -> None:
    width = len(rows[0])
    text = text_of([*rows, [PADDING] * width], separators)
    for place, size, damage in damages:
        text = text[:place] + damage + text[place + size :]
    lines = lines_of(text, width)
    if lines is not None:
        read = json.loads(b"[%b]" % text)
        assert all(type(row) is list and len(row) == width for row in read)
        assert all(cell is None or type(cell) is str for row in read for cell in row)
        assert lines == csv_lines(read)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[null,null]", id="no text"),
        pytest.param(b'["a","b"],["c"]', id="a cell too few"),
        pytest.param(b'["a","b"],["c","d","e"]', id="a cell too many"),
        pytest.param(b'["a","b","c"],["d"]', id="a cell in another row"),
        pytest.param(b'["a"],["b"]', id="half rows"),
        pytest.param(b'["a",[],"b"]', id="a list in a row"),
        pytest.param(b'["a","b"],[],["c","d"]', id="a row without cells"),
        pytest.param(b'["a",1,"b"]', id="a number"),
        pytest.param(b'["a",{"b":null}]', id="an object"),
        pytest.param(b'["a""b"]', id="no comma"),
        pytest.param(b'["a",,"b"]', id="two commas"),
        pytest.param(b'["a","b",]', id="a comma before the end"),
        pytest.param(b'["a","b"]["c","d"]', id="no comma between rows"),
        pytest.param(b'["a","b"]],[["c","d"]', id="two lists"),
        pytest.param(b'["a","\xff"]', id="no UTF-8"),
        pytest.param(b'["a","b\tc"]', id="a control character"),
        pytest.param(b'["a","' + PADDING.encode() + b'\\u0002"]', id="an escape of a mark"),
        pytest.param(b'["a","' + PADDING.encode() + b'\\ud83d"]', id="half a character"),
        pytest.param(b'["a","' + PADDING.encode() + b'\\x"]', id="no escape"),
        pytest.param(b'["a","\\u00e9"]', id="many escapes"),
        pytest.param(b'["a",' + b"null," * 2000 + b'"b"]', id="much between two cells"),
        pytest.param(b"[" * 5000 + b'"a","b"' + b"]" * 5000, id="deep"),
    ],
)
def test_what_is_not_plain_is_left_to_others(text: bytes) -> None:
    assert lines_of(text, 2) is None
