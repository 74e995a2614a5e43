"""From the text of a page's rows, a slice at a time, to lists of cells.

Arrow reads the rows, in a fifth of the time that Python's objects would take and less of the memory, and refuses
a cell that is no text. It forgives missing and extra commas between two cells or rows, but never a missing cell;
to count the commas would take half the time again. What it would read wrong is read by Python. Both take a line
break or another control character in a text as it stands, though JSON wants it escaped.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from functools import partial

import arro3.io
import polars as pl
from arro3.core import DataType, Field, Schema

from airflow_provider_anaplat.output.counting import occurrences

__all__ = [
    "SPACE",
    "Read",
    "has_numbers",
    "load",
    "reader_of",
    "slices",
    "written_out",
]

SPACE = rb"[ \t\n\r]*"  # of JSON, which knows less of it than \s
# It begins with a bracket, and looks back from there: so the next one is found twenty times as fast.
_ROW_BOUNDARY = re.compile(rb'\](?:(?<=[" \t\n\r]\])|(?<=null\]))(%b,%b)\[%b(?:"|null)' % (SPACE, SPACE, SPACE))
# Arrow puts surrogates together wrongly, and ends the whole process if an error of its own quotes a NUL.
_NUL, _NUMBER = b"\0", re.compile(rb"\\u")
_NOT_FOR_ARROW = re.compile(rb"\\u(?:[dD][89a-fA-F]|0000)")  # with NUL in it, it would take three times as long
# What is not written out: some of these characters have to be escaped, and the longer escape is none of JSON.
_STAY = re.compile(rb"\\u00[0-7]"), re.compile(rb"\\U[0-9a-fA-F]{8}")
# No views, which Polars has: what Arrow made is kept whole as long as a text of it is, and texts take less.
_ROW = DataType.list(Field("cell", DataType.string()))
_ROWS = DataType.list(Field("row", _ROW))
_SCHEMA = Schema([Field("lists", DataType.list(Field("rows", _ROWS)))])
# The rows before and behind those of a slice; no text can hold them.
_MARK = secrets.token_hex()
_BEFORE, _BEHIND = b'{"lists":[[["%b"],' % _MARK.encode(), b',["%b"]]]}' % _MARK.encode()
# What Polars makes of what Arrow refuses; before 1.37, a panic.
_REFUSALS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
# Arrow quotes in an error what is no text, however deep it is nested, and so runs out of stack: from some 16,000
# levels on with a stack of 1 MB. Python's reader gives up at a thousand. Few slices have more rows than this.
_DEEPEST = 8000
_LEVELS = 4  # of nesting, which rows have even if they are nothing but odd
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
Read = Callable[[memoryview], pl.Series | None]
load = partial(json.loads, strict=False)


def slices(text: memoryview, size: int) -> Iterator[memoryview]:
    """Cut a list of rows into equal ones; a cut that does not fall between two rows leaves no valid JSON.

    :param text: of the list, but for its brackets
    :param size: of each in bytes, about
    """
    count = max(1, -(-len(text) // max(1, size)))
    size, start = len(text) // count, 0
    while boundary := _ROW_BOUNDARY.search(text, start + size):
        yield text[start : boundary.start(1)]
        start = boundary.end(1)
    yield text[start:]


def has_numbers(body: bytes) -> bool:
    """Tell whether characters may be escaped by their numbers."""
    return b"\\" in body and _NUMBER.search(body) is not None  # one byte is found ten times as fast as two


def written_out(text: memoryview) -> memoryview:
    """Return a text with characters for the escapes by their numbers, for which Arrow takes longer, or as it is.

    With a surrogate in it, it stays: to put pairs together takes longer than to read it with Python.
    """
    content = bytes(text)
    if not content.isascii() or any(stays.search(content) for stays in _STAY):
        return text
    try:
        return memoryview(content.decode("raw_unicode_escape").encode())  # which leaves all other escapes
    except UnicodeError:  # an escape is none, or a surrogate
        return text


def reader_of(body: bytes, *, numbered: bool) -> Read:
    """Return what reads slices of a body: rows, as lists of cells, or None if they are none of texts and nulls.

    :param numbered: whether characters may be escaped by their numbers
    """
    return _odd_rows if numbered or _NUL in body else _arrow_rows


def _odd_rows(text: memoryview) -> pl.Series | None:
    """Return the rows of a text that may hold what Arrow would read wrong."""
    is_odd = _NUL in bytes(text) or _NOT_FOR_ARROW.search(text) is not None
    return (_python_rows if is_odd else _arrow_rows)(text)


def _python_rows(text: memoryview) -> pl.Series | None:
    """Return the rows of a text that is, but for its brackets, one list of them; None for any other."""
    try:
        rows = load(b"".join((b"[", text, b"]")).decode())  # as bytes, Python would guess the encoding
        if all(type(row) is list and all(cell is None or type(cell) is str for cell in row) for row in rows):
            return pl.Series(rows, dtype=pl.List(pl.String))
    except (ValueError, RecursionError, *_REFUSALS):  # also of an unpaired surrogate
        pass
    return None


def _arrow_rows(text: memoryview) -> pl.Series | None:
    """Return the rows of a text that is, but for its brackets, one list of them; None for any other.

    A text that closes its list and opens another is no JSON between two brackets, or tears the two marks apart.
    """
    content = b"".join((_BEFORE, text, _BEHIND))
    if _may_be_deep(content):
        return None
    try:
        # Polars pulls what Arrow reads, without Python's lock; read_all() would keep it.
        objects = pl.DataFrame(arro3.io.read_json(content, _SCHEMA))["lists"]
    except _REFUSALS:
        return None
    lists = objects[0] if len(objects) == 1 else None
    rows: pl.Series | None = lists[0] if lists is not None and len(lists) == 1 else None
    if rows is None or len(rows) < 2 or not (_is_mark(rows[0]) and _is_mark(rows[-1])):
        return None
    return rows[1:-1]


def _is_mark(row: pl.Series | None) -> bool:
    return row is not None and row.to_list() == [_MARK]


def _may_be_deep(text: bytes) -> bool:
    """Tell whether lists and objects may be nested deeper than Arrow can stand."""
    openers = occurrences(text, b"[") + occurrences(text, b"{")
    if openers <= _DEEPEST:
        return False
    boundary = _ROW_BOUNDARY.search(text)
    # A list that begins where another has just ended is no deeper than that one; both stand in a text, or neither.
    if boundary is not None and openers - text.count(b"]%b[" % boundary[1]) <= _DEEPEST:
        return False
    brackets = _TEXT.sub(b"", text).translate(None, _NO_BRACKETS)
    for _ in range(_LEVELS):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    return brackets.count(b"[") + brackets.count(b"{") > _DEEPEST
