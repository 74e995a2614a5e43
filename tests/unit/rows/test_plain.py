"""Plain text of rows as lines of CSV: what is not plain is left to others, and nothing else comes out wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.lines import csv_lines

from airflow_provider_anaplat.output.lines import Lines, line_texts
from airflow_provider_anaplat.rows.plain import plain_lines

# What may be taken for something that stands between two cells, or for a mark of this package's own.
CELLS = st.sampled_from([
    "a", "", None, ",", ", ", '","', "],[", "]", "[", "null", "x,y", ";", "x;y", " ", "中", "😀", "\x7f",
    '"', '""', "\\", "\\\\", "\\n", '\\"', "\n", "\r", "\t", "\b\f", "/", "a\nb", 'say "x"', "\u2028",
    ",null,", "nu", "l",
])  # fmt: skip
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": ")])
WIDTHS = st.integers(1, 4)


def tables(cells: st.SearchStrategy[str | None] = CELLS) -> st.SearchStrategy[list[list[str | None]]]:
    return WIDTHS.flatmap(
        lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=5)
    )


def text_of(rows: Any, separators: tuple[str, str] = (",", ":")) -> bytes:
    return json.dumps(rows, separators=separators, ensure_ascii=False)[1:-1].encode()


def lines_of(text: bytes, width: int, delimiter: str = ",") -> list[bytes] | None:
    before = bytes(bytearray(text))
    frame = plain_lines(memoryview(text), width, Lines(delimiter))
    assert text == before  # though it cannot be written to, a library may
    return None if frame is None else [bytes(line) for line in frame.to_series()]


@given(rows=tables(), separators=SEPARATORS, delimiter=st.sampled_from(",;| ]\t\x06"))
def test_plain_rows_are_lines(rows: list[list[str | None]], separators: tuple[str, str], delimiter: str) -> None:
    text = text_of(rows, separators).replace(b"/", b"\\/")  # as some write it
    expected = None if within_commas(rows) else csv_lines(rows, delimiter)
    assert lines_of(text, len(rows[0]), delimiter) == expected


def within_commas(rows: list[list[str | None]]) -> bool:
    """Whether there is what looks like a null in a text, which is left to others."""
    return any(cell == ",null," for row in rows for cell in row)


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
    text = text_of(rows, separators)
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
        pytest.param(b"nothing", id="no rows"),
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
        pytest.param(b'["a","b"],{"c","d"]', id="another bracket between rows"),
        pytest.param(b'{"a","b"]', id="another bracket at the beginning"),
        pytest.param(b'["a","b"}', id="another bracket at the end"),
        pytest.param(b'["a","\xff"]', id="no UTF-8"),
        pytest.param(b'["a","b\tc"]', id="a control character"),
        pytest.param(b'["a","\\u00e9"]', id="a character by its number"),
        pytest.param(b'["a","\\x"]', id="no escape"),
        pytest.param(b'["a","b\\', id="half an escape"),
        pytest.param(b'["a" , "b"]', id="more spaces"),
        pytest.param(b'["a",nullnull]', id="two nulls in one place"),
        pytest.param(b'["a",nul]', id="half a null"),
        pytest.param(b"[" * 5000 + b'"a","b"' + b"]" * 5000, id="deep"),
    ],
)
def test_what_is_not_plain_is_left_to_others(text: bytes) -> None:
    assert lines_of(text, 2) is None


@pytest.mark.parametrize("delimiter", ["\x00", "\x01", "\x02", "\x03"])
def test_a_delimiter_that_is_a_mark_is_left_to_others(delimiter: str) -> None:
    assert lines_of(b'["a","b"]', 2, delimiter) is None


def test_rows_of_nulls_alone_are_plain() -> None:
    assert lines_of(b"[null,null],[null,null]", 2) == [b",\n", b",\n"]


def test_a_text_that_holds_json_with_nulls_is_plain() -> None:
    rows: list[list[str | None]] = [['{"a":null,"b":[1,2]}', None], ["not null", "null"]]
    assert lines_of(text_of(rows), 2) == csv_lines(rows)


@pytest.mark.parametrize("size", [1 << 20, 6 << 20])
def test_a_long_text_is_plain(size: int) -> None:
    rows: list[list[str | None]] = [["x" * size, 'a, "b"'], ["", None]]
    frame = plain_lines(memoryview(text_of(rows)), 2, Lines(","))
    assert frame is not None
    assert b"".join(line_texts(frame)) == b"".join(csv_lines(rows))


def test_a_text_that_would_take_too_much_memory_is_left_to_others() -> None:
    assert plain_lines(memoryview(text_of([["x" * (16 << 20), "b"]])), 2, Lines(",")) is None
