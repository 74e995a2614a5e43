"""Page bytes to a frame: exact, or an error that says where."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lines import csv_lines

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client._http.envelope import Answer
from airflow_provider_anaplat.output.lines import Lines, Shape, line_texts
from airflow_provider_anaplat.output.schema import unique_names
from airflow_provider_anaplat.rows import decode
from airflow_provider_anaplat.rows.cells import slices
from airflow_provider_anaplat.rows.decode import read_head

cells = st.one_of(
    st.none(), st.text(st.characters(codec="utf-8")), st.sampled_from(['"', '\\"', "\\", "]", "null", "", "a,1"])
)


def body(rows: list[Any], names: tuple[str, ...] = ("a", "b"), *, ascii_: bool = False, **fields: Any) -> bytes:
    columns = [{"name": name, "fdType": "STRING"} for name in names]
    head = {"dsId": "d", "rowCount": len(rows), "version": 3, "utime": "2026-01-01 00:00:00+0000"}
    response = {**head, "columns": columns, "preview": rows, **fields}
    return json.dumps({"result": "ok", "response": response}, ensure_ascii=ascii_).encode()


def page(content: bytes, shape: Shape = "columns") -> decode.RowPage:
    return read_head(Answer("read_rows", 200, content)).page(shape=shape)


def arrow_frame(
    content: bytes, start: int, end: int, names: tuple[str, ...], **options: Any
) -> pl.DataFrame | None:
    return decode._arrow_frame(content, start, end, decode._Framing(names, "columns"), **options)


def is_fast(content: bytes) -> bool:
    """Whether Arrow reads the rows."""
    head = read_head(Answer("read_rows", 200, content))
    names = tuple(column.name for column in head.said.described.columns)
    return head.rows is not None and arrow_frame(content, *head.rows, names) is not None


@given(rows=st.lists(st.lists(cells, min_size=2, max_size=2), max_size=5), ascii_=st.booleans())
def test_every_text_and_null_is_kept(rows: list[list[str | None]], ascii_: bool) -> None:
    content = body(rows, ascii_=ascii_)
    assert page(content).frame.rows() == [tuple(row) for row in rows]
    assert page(content, "whole").frame.rows() == [(row,) for row in rows]
    assert b"".join(line_texts(page(content, Lines(",")).frame)) == b"".join(csv_lines(rows))


@given(
    rows=st.lists(
        st.lists(cells.filter(lambda cell: "\0" not in (cell or "")), min_size=2, max_size=2), min_size=1
    )
)
def test_the_fast_way_reads_what_the_exact_way_reads(rows: list[list[str | None]]) -> None:
    content = body(rows)
    place = read_head(Answer("read_rows", 200, content)).rows
    assert place is not None
    fast = arrow_frame(content, *place, ("a", "b"))
    assert fast is not None
    assert fast.rows() == [tuple(row) for row in rows]


@given(rows=st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1), size=st.integers(0, 40))
def test_rows_read_in_slices_are_the_rows(rows: list[list[str | None]], size: int) -> None:
    content = body(rows)
    place = read_head(Answer("read_rows", 200, content)).rows
    assert place is not None
    assert b", ".join(slices(memoryview(content)[slice(*place)], size)) == content[slice(*place)]
    frame = arrow_frame(content, *place, ("a", "b"), size=size)
    assert frame is None or frame.rows() == [tuple(row) for row in rows]


def test_rows_of_many_columns_are_read_several_slices_at_a_time() -> None:
    names = tuple(f"c{number}" for number in range(150))
    rows = [[f"{row}-{column}" if row % 7 else None for column in range(150)] for row in range(6_000)]
    text = json.dumps(rows).encode()[1:-1]
    groups: list[Any] = []

    def each(read: Callable[[decode.S], decode.T], slices: Iterable[decode.S]) -> Iterator[decode.T]:
        groups.extend(slices)
        return map(read, groups)

    frame = arrow_frame(text, 0, len(text), names, each=each)
    assert frame is not None
    assert frame.rows() == [tuple(row) for row in rows]
    assert (len(groups) > 2, max(map(len, groups)) > 1) == (True, True)

    shorter = text.replace(b'"5998-75", ', b"")
    assert arrow_frame(shorter, 0, len(shorter), names) is None


MARKS = st.sampled_from(
    [b"", b'"', b",", b"[", b"]", b"],[", b"]]", b"}", b"null", b"\\", b" ", b"\n", b"\x0b", b"7", b":"]
)
damages = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 2), MARKS), min_size=1, max_size=4)
PIECE = re.compile(rb'"(?:[^"\\]|\\.)*"|null|.', re.DOTALL)
TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*"|null|[\[\]])|[, \t\n\r]', re.DOTALL)


def with_commas_in_their_places(text: bytes) -> bytes | None:
    """Return JSON with its commas between cells and between rows, wherever the text has some; else None."""
    if TOKEN.sub(b"", text):
        return None
    json_text = last = b"["
    for token in filter(None, TOKEN.findall(text)):
        json_text += token if last == b"[" or token == b"]" else b"," + token
        last = token
    return json_text + b"]"


@given(
    rows=st.lists(st.lists(cells, min_size=2, max_size=2), max_size=3), damages=damages, size=st.integers(0, 40)
)
def test_of_damaged_rows_no_cell_is_lost_and_no_more_than_commas_are_forgiven(
    rows: list[Any], damages: list[Any], size: int
) -> None:
    content = body(rows)
    start, end = content.index(b'"preview": [') + len(b'"preview": ['), content.rindex(b"]")
    pieces = PIECE.findall(content[start:end])
    for place, cut, put in damages:
        pieces[place : place + cut] = [put]
    text = b"".join(pieces)
    frame = arrow_frame(text, 0, len(text), ("a", "b"), size=size)
    if frame is not None:
        repaired = with_commas_in_their_places(text)
        assert repaired is not None
        assert frame.rows() == [tuple(row) for row in json.loads(repaired, strict=False)]


@pytest.mark.parametrize("text", [b'["a"\x0b,"b"]', b'["a","b"]\x0b,["c","d"]', b'["a","b"]\x0c,\x0b["c","d"]'])
@pytest.mark.parametrize("size", [0, 100])
def test_what_is_no_space_in_json_is_none_between_rows(text: bytes, size: int) -> None:
    assert arrow_frame(text, 0, len(text), ("a", "b"), size=size) is None


@pytest.mark.parametrize("other", ["b", "\0", "😀"])
def test_a_control_character_is_read_as_it_is_in_either_way(other: str) -> None:
    content = body([["first\nsecond\t\x01", other]], ascii_=True, name="line\nbreak")
    content = content.replace(rb"\n", b"\n").replace(rb"\t", b"\t").replace(rb"\u0001", b"\x01")
    assert page(content).frame.rows() == [("first\nsecond\t\x01", other)]


@pytest.mark.parametrize(
    "text",
    [
        b'["a","b"]],"tags":[["c","d"]',
        b'["a","b"]],"rows":[["c","d"]',
        b'["a","b"]],"rows":[null,["c","d"]',
        b'["a","b"],null]}\n{"rows":[null,["c","d"]',
        b'["a","b"]]} {"rows":[["c","d"]',
        b'null,["a","b"]',
        b'null,["[]","b"]',
        b'["a","b"]]],"lists":[[["c","d"]',
        b'["a","b"]],["c","d"]',
        b'["a","b"]],[["c","d"]',
        b'["a","b"],null],[null,["c","d"]',
        b'["a","b"],null]]}\n{"lists":[[null,["c","d"]',
        b'["a","b"],null]],"lists":[[null,["c","d"]',
    ],
)
def test_what_is_not_one_list_of_rows_is_left_to_the_exact_way(text: bytes) -> None:
    assert arrow_frame(text, 0, len(text), ("a", "b")) is None


@pytest.mark.parametrize("lost", ["version", "utime", "rowCount", "columns"])
def test_what_stands_between_the_rows_and_another_list_is_read(lost: str) -> None:
    response = {**json.loads(body([["a", "b"]], utime="2026-01-01 00:00:00+0000"))["response"]}
    response["preview"] = response.pop("preview")
    response[lost] = response.pop(lost)
    response["tags"] = ["x"]
    moved = read_head(Answer("read_rows", 200, json.dumps({"result": "ok", "response": response}).encode()))

    assert moved.said.snapshot.version == 3
    assert moved.said.snapshot.utime is not None
    assert moved.page().frame.rows() == [("a", "b")]


def test_what_is_known_is_not_checked_again() -> None:
    known = read_head(Answer("read_rows", 200, body([["a", "b"]]))).said

    same = read_head(Answer("read_rows", 200, body([["c", "d"]])), known=known)
    newer = read_head(Answer("read_rows", 200, body([["c", "d"]], version=4)), known=known)

    assert same.said is known
    assert newer.said.described is known.described
    assert newer.said.snapshot.version == 4
    assert same.page().frame.rows() == newer.page().frame.rows() == [("c", "d")]


def test_an_answer_of_another_status_is_checked_whatever_is_known() -> None:
    known = read_head(Answer("read_rows", 200, body([["a", "b"]]))).said
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="HTTP 500"):
        read_head(Answer("read_rows", 500, body([["a", "b"]])), known=known)


def test_rows_that_come_twice_in_an_answer_are_none() -> None:
    """Of a key that an object has twice, nobody knows which one counts."""
    content = body([["a", "b"]])
    with pytest.raises(errors.AnaplatTruncatedAnswerError, match="not valid JSON"):
        page(content.replace(b'"dsId"', b'"preview": [["c", "d"]], "dsId"'))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_secret_in_what_is_said_beside_the_rows_is_masked(encoding: str) -> None:
    content = body([["secret/of+mine", ""]], ("a", "is a secret\\/of+mine"), parentDirId="a secret/of+mine")
    answer = Answer("read_rows", 200, content.decode().encode(encoding), secrets=("secret/of+mine",))
    head = read_head(answer)

    assert [name for name, _ in head.said.snapshot.columns] == ["a", "is a ***"]
    assert head.said.parent_dir_id == "a ***"
    assert head.page().frame.rows() == [("secret/of+mine", "")]


def test_columns_that_are_others_than_those_known_are_checked() -> None:
    known = read_head(Answer("read_rows", 200, body([["a", "b"]]))).said
    response = json.loads(body([["a", "b"]]))
    response["response"]["columns"][1]["name"] = "other"
    renamed = Answer("read_rows", 200, json.dumps(response).encode())
    response["response"]["columns"][1]["name"] = 7
    invalid = Answer("read_rows", 200, json.dumps(response).encode())

    assert [name for name, _ in read_head(renamed, known=known).said.snapshot.columns] == ["a", "other"]
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"columns\.1\.name"):
        read_head(invalid, known=known)


@given(
    rows=st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=4),
    odd=st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.lists(cells), st.just({"a": "b"})),
    data=st.data(),
)
def test_a_cell_that_is_no_text_is_found(rows: list[list[Any]], odd: Any, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(rows) - 1))
    rows[row][1] = odd
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=f"row {row + 1} of the page, column 'b'"):
        page(body(rows))


@pytest.mark.parametrize("row", [["a"], ["a", "b", "c"], []])
def test_a_row_of_another_length_is_found(row: list[str]) -> None:
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=f"row 2 of the page has {len(row)} cells"):
        page(body([["a", "b"], row]))


@pytest.mark.parametrize("row", [None, 7, {"a": "b"}])
def test_a_row_that_is_no_list_is_found(row: Any) -> None:
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="row 2 of the page is not a list"):
        page(body([["a", "b"], row]))


def test_a_row_that_is_a_text_is_found() -> None:
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="row 2 of the page"):
        page(body([["a", "b"], "ab"]))


def test_a_cell_that_is_cut_shows_no_half_of_a_secret() -> None:
    answer = Answer(
        "read_rows", 200, body([[{"echo": "x" * 60 + "the-secret-token"}, None]]), ("the-secret-token",)
    )
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="promises a text") as raised:
        read_head(answer).page()
    assert "the-secret" not in str(raised.value)


def test_half_a_surrogate_pair_is_found() -> None:
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="an unpaired surrogate"):
        page(body([["x", "\ud800"]], ascii_=True))


def test_half_a_character_in_a_column_name_is_found() -> None:
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="an unpaired surrogate"):
        page(body([["x", "y"]], names=("a", "\ud800"), ascii_=True))


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (b'["a\\u0000"]', errors.AnaplatInvalidAnswerError),
        (b'[["a", {"k\\u0000": 1}]]', errors.AnaplatInvalidAnswerError),
        (b'[["a", "b"], \0]', errors.AnaplatTruncatedAnswerError),
        (b'[["a", "b\\\0"]]', errors.AnaplatTruncatedAnswerError),
    ],
)
def test_a_nul_in_what_is_no_row_does_not_end_the_process(rows: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        page(body([]).replace(b'"preview": []', b'"preview": ' + rows))


def test_fields_after_the_rows_do_no_harm() -> None:
    content = body([["a", "b"]], cardCount=3)
    response = json.loads(content)["response"]
    response["columns"] = response.pop("columns")
    reordered = json.dumps({"response": response, "result": "ok"}).encode()
    assert page(reordered).frame.rows() == [("a", "b")]
    assert page(content).frame.rows() == [("a", "b")]


@pytest.mark.parametrize(
    "envelope",
    [
        '{"response": %s, "result": "ok", "trace": {"spans": []}}',
        '{"result": "ok", "trace": {"preview": [["x"]]}, "response": %s}',
        '{"preview": [["x"]], "result": "ok", "response": %s}',
    ],
)
def test_lists_outside_of_the_response_do_no_harm(envelope: str) -> None:
    response = json.dumps(json.loads(body([["a", "b"]]))["response"])
    assert page((envelope % response).encode()).frame.rows() == [("a", "b")]


@pytest.mark.parametrize("rest", [',"tags":[]', ', "tags" : [["x"]]', ',"tags":[["x"],["y"]]'])
def test_arrays_after_the_rows_hide_no_odd_cell(rest: str) -> None:
    head, tail = body([["a", "b"]]).decode().split('[["a", "b"]]')
    assert page((head + '[["a", "b"]]' + rest + tail).encode()).frame.rows() == [("a", "b")]
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"7\.5"):
        page((head + '[[7.5, "t"]]' + rest + tail).encode())
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="row 2 of the page is not a list"):
        page((head + '[["a", "b"], 1]' + rest + tail).encode())
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"column 'b'.*1\.5"):
        page((head + '[["\\u005b", 1.5]]' + rest + tail).encode())
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="column 'a'"):
        page((head + "[[7, 8]]" + rest + tail).encode())


def test_a_bare_text_is_no_row_of_one_cell() -> None:
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="not a list"):
        page(body(["a", "b"], names=("one",)))
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="not a list"):
        page(body(["[]", ["b"]], names=("one",)))
    assert page(body([["a"], [None], ["[b"]], names=("one",))).frame.rows() == [("a",), (None,), ("[b",)]


def test_names_that_look_like_the_rows_do_no_harm() -> None:
    rows = [['"preview": [["x"]]', "]]}}"]]
    assert page(body(rows, names=("preview", '"preview":['), name='"preview":[')).frame.rows() == [tuple(rows[0])]


@pytest.mark.parametrize(
    "envelope",
    [
        '{"response": %s, "result": "ok", "trace": {"spans": []}}',
        '{"response": %s, "result": "ok", "trace": {"spans": ["x"]}}',
        '{"trace": [], "response": %s, "result": "ok", "tags": []}',
    ],
)
def test_a_result_that_follows_the_rows_is_found(envelope: str) -> None:
    response = json.dumps(json.loads(body([["a", "b"]]))["response"])
    assert page((envelope % response).encode()).frame.rows() == [("a", "b")]
    with pytest.raises(errors.AnaplatRefusedError):
        page((envelope % response).replace('"ok"', '"fail"').encode())


def test_which_way_reads_what() -> None:
    assert is_fast(body([["a", "b"]]))
    assert is_fast(body([["a", None], ["[]{}", '中\n"\\']], ascii_=True))
    assert is_fast(body([["a", "\0"]]))
    assert is_fast(body([["a", "😀"]], ascii_=True))
    assert not is_fast(body([["a", "\ud83d"]], ascii_=True))
    assert is_fast(body([["a", "😀"]]))

    response = json.dumps(json.loads(body([["a", "b"]]))["response"])
    assert is_fast(f'{{"response": {response}, "result": "ok"}}'.encode())
    assert not is_fast(f'{{"response": {response}, "result": "ok", "tags": []}}'.encode())
    assert is_fast(f'{{"result": "ok", "response": {response}}}'.encode())


def test_the_snapshot_is_what_the_page_says() -> None:
    snapshot = page(body([["a", "b"]], utime="2024-01-01 00:00:00+0800")).snapshot
    assert snapshot == decode.Snapshot(3, "2024-01-01 00:00:00+0800", 1, (("a", "STRING"), ("b", "STRING")))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", errors.AnaplatTruncatedAnswerError),
        (body([["a", "b"]] * 3)[:-9], errors.AnaplatTruncatedAnswerError),
        (body([["a", "b"]] * 3)[:-1], errors.AnaplatTruncatedAnswerError),
        (b"<html>", errors.AnaplatInvalidAnswerError),
        (b'{"result": "fail", "error": {"status": 1002, "message": "?"}}', errors.AnaplatNotFoundError),
        (b'{"result": "ok", "response": null}', errors.AnaplatInvalidAnswerError),
        (b'{"result": "ok", "response": {"preview": "x"}}', errors.AnaplatInvalidAnswerError),
        (body([], rowCount=None), errors.AnaplatInvalidAnswerError),
        (
            body([["a", "b"]], preview=[["\xff"]]).replace("\xff".encode(), b"\xff"),
            errors.AnaplatInvalidAnswerError,
        ),
    ],
)
def test_what_is_no_page_is_an_error(content: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        page(content)


def test_no_rows_keep_the_columns() -> None:
    assert page(body([])).frame.schema == {"a": pl.String, "b": pl.String}


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a (2)", "a (3)"]),
        (["a", "a", "a (2)"], ["a", "a (3)", "a (2)"]),
        (["a (2)", "a", "a"], ["a (2)", "a", "a (3)"]),
        (["line\nbreak", "", "a\0b"], ["line\nbreak", "column 2", "a�b"]),
        (["column 2", ""], ["column 2", "column 2 (2)"]),
    ],
)
def test_repeated_names_are_told_apart(names: list[str], unique: list[str]) -> None:
    assert unique_names(names) == unique
