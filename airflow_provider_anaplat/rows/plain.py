"""From the text of a page's rows straight to lines of CSV, if it is plain: without a look at each cell.

In a text without escapes, every quotation mark begins or ends a cell. All bytes are looked at together: the
quotation marks go, and what stands between two cells becomes a delimiter or the end of a line. Mostly that is a
comma; of the rest there are few kinds, each of which is read as JSON once. Whether every row has its cells is seen
by the delimiters and ends of lines that there are in the end. A few escapes are replaced before, by as many bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import polars as pl
from arro3.core import Array

from airflow_provider_anaplat.output.lines import Lines, lines_frame, pieces

__all__ = [
    "plain_lines",
]

_QUOTE, _BACKSLASH = b'"\\'
_FIRST_TEXT = ord(" ")  # the control characters come before it
# Control characters that stand for a byte that goes, a delimiter, the end of a line, and what is in a cell or
# around it: a quotation mark or a line break.
_GONE, _DELIMITER, _LINE_END, _KEPT_QUOTE, _LINE_FEED, _CARRIAGE_RETURN = range(6)
_STANDS_FOR = {_LINE_END: "\n", _KEPT_QUOTE: '"', _LINE_FEED: "\n", _CARRIAGE_RETURN: "\r"}
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u....|u....|.)", re.DOTALL)
_ESCAPED = {'"': bytes([_KEPT_QUOTE] * 2), "\n": bytes([_LINE_FEED]), "\r": bytes([_CARRIAGE_RETURN])}
_RARE = 200  # bytes for each escape, or to read them one by one takes longer than another way
_MOST_STEPS = 1000  # one for each byte of each kind of what stands around cells
_LARGEST = 1 << 30  # bytes of a text, whose places are counted in 32 bits


class _NotPlainError(Exception):
    """Another way has to read the rows."""


def plain_lines(text: memoryview, width: int, form: Lines) -> pl.DataFrame | None:
    """Return rows as lines, or None if they are not that plain, and another way has to read them.

    :param text: a JSON list of rows, but for its brackets
    :param width: cells of each row
    :param form: of the lines
    """
    if form.delimiter <= chr(_CARRIAGE_RETURN):
        return None
    try:
        quotes = _Quotes(_without_escapes(text))
        marked = quotes.with_kept(quotes.with_separators(), ord(form.delimiter))
        marked = marked.filter((marked != _QUOTE) & (marked != _GONE))
        _check_widths(marked, width)
        ends = quotes.places.head(len(marked)).filter(marked == _LINE_END) + 1
        for byte, by in (_STANDS_FOR | {_DELIMITER: form.delimiter}).items():
            is_byte = marked == byte
            if is_byte.any():
                marked = marked.zip_with(~is_byte, _series(by.encode()))
        marked.implode().cast(pl.Binary).cast(pl.String)  # which sees whether it is UTF-8
        return lines_frame(marked, ends)
    except (_NotPlainError, pl.exceptions.PolarsError):
        return None


def _without_escapes(text: memoryview) -> memoryview:
    """Return a text of the same length without escapes.

    :raises _NotPlainError: it has too many of them, or another control character
    """
    body = _series(text)
    if not 0 < len(body) < _LARGEST or (body < _FIRST_TEXT).any():
        raise _NotPlainError
    escapes = (body == _BACKSLASH).sum()
    if escapes > len(body) // _RARE:
        raise _NotPlainError
    return memoryview(_ESCAPE.sub(_unescaped, text)) if escapes else text


def _unescaped(escape: re.Match[bytes]) -> bytes:
    try:
        character: str = json.loads(b'"%b"' % escape[0])
        if character <= chr(_CARRIAGE_RETURN):  # which would stand for something else
            raise _NotPlainError
        return _ESCAPED.get(character, character.encode()).ljust(len(escape[0]), bytes([_GONE]))
    except ValueError:  # no escape of JSON, or half of a character
        raise _NotPlainError from None


class _Quotes:
    """The quotation marks of a text: between two of them there is a cell, then what parts two cells, and so on.

    :param text: a JSON list of rows, but for its brackets
    :raises _NotPlainError: quotation marks do more than begin and end cells, or there are none
    """

    def __init__(self, text: memoryview) -> None:
        self._text = text
        self._body = body = _series(text)
        self.places = pl.int_range(len(body), dtype=pl.UInt32, eager=True)
        self._is_quote = body == _QUOTE
        self._all = self.places.filter(self._is_quote)
        if self._all.is_empty() or len(self._all) % 2:
            raise _NotPlainError
        self._left, self._right = self._all.head(-1), self._all.slice(1)
        self._apart = self._right - self._left
        self._is_cell = _series(b"\1\0" * (len(self._all) // 2)).head(-1) == 1

    def with_separators(self) -> pl.Series:
        """Return the text with what stands around the cells replaced by delimiters and ends of lines.

        :raises _NotPlainError: it is not what has to stand there
        """
        usual = b", " if bytes(self._text[self._right[0] + 1 :][:2]) == b", " else b","
        is_usual = self._apart == len(usual) + 1
        marked = self._with_usual(usual, is_usual)
        edits: list[tuple[pl.Series, int]] = []
        steps = 0
        for places, kind, rows in self._others(~self._is_cell & ~is_usual):
            steps += len(kind)
            if steps > _MOST_STEPS:
                raise _NotPlainError
            separators = _separators(rows).ljust(len(kind), b'"')
            edits += [(places + place, byte) for place, byte in enumerate(separators)]
        return _edited(marked, edits)

    def _with_usual(self, usual: bytes, is_usual: pl.Series) -> pl.Series:
        """Return the text with the usual separator replaced wherever it parts two cells.

        :param is_usual: whether there are as many bytes between two quotation marks
        """
        size = len(usual)
        most = max(0, len(self._body) - size - 1)
        is_there = self._is_quote.head(most) & self._is_quote.slice(size + 1)
        for place, byte in enumerate(usual, 1):
            is_there = is_there & (self._body == byte).slice(place, most)
        alike = self._left.filter(is_usual & self._is_cell) + 1  # where a cell begins that may look the same
        for place, byte in enumerate(usual):
            alike = alike.filter(self._body[alike + place] == byte)
        if is_there.sum() - len(alike) != (is_usual & ~self._is_cell).sum():
            raise _NotPlainError
        marked = self._body
        for place, byte in enumerate(bytes([_DELIMITER]).ljust(size, b'"'), 1):
            moved = pl.concat([_no(place), is_there, _no(size + 1 - place)], rechunk=True)
            marked = marked.zip_with(~moved, _series(bytes([byte])))
        return _edited(marked, [(alike + place, byte) for place, byte in enumerate(usual)])

    def _others(self, is_other: pl.Series) -> Iterator[tuple[pl.Series, bytes, bytes]]:
        """Yield each other kind of what stands around cells: where it does, what it is, and a JSON list of rows.

        :param is_other: whether one is between two quotation marks
        """
        end = self._all[-1] + 1
        head, tail = bytes(self._text[: self._all[0]]), bytes(self._text[end:])
        yield pl.Series([0], dtype=pl.UInt32), head, b'[%b""]]' % head
        yield pl.Series([end], dtype=pl.UInt32), tail, b'[[""%b,[""]]' % tail  # behind which a line ends, too
        if is_other.any():
            # From each quotation mark before one to that behind it, and on to that before the next one.
            around = pl.concat([is_other, _no(1)]) | pl.concat([_no(1), is_other])
            others = pieces(self._body, self._all.filter(around)).cast(pl.Binary).gather_every(2)
            places = self._left.filter(is_other) + 1
            for kind in others.unique().to_list():
                yield places.filter(others == pl.Series([kind])), kind[1:], b'[["%b""]]' % kind

    def with_kept(self, marked: pl.Series, delimiter: int) -> pl.Series:
        """Return a text with the quotation marks that CSV needs replaced: around empty cells, and odd ones.

        :param marked: the text with its separators replaced
        """
        is_empty = self._is_cell & (self._apart == 1)
        kept = [self._left.filter(is_empty), self._right.filter(is_empty)]
        is_delimiter = (marked == delimiter) | ((marked >= _KEPT_QUOTE) & (marked <= _CARRIAGE_RETURN))
        if is_delimiter.any():
            is_either = is_delimiter | self._is_quote
            places, is_delimiter = self.places.filter(is_either), is_delimiter.filter(is_either)
            before, behind = is_delimiter.head(-1), is_delimiter.slice(1)
            kept += [places.head(-1).filter(~before & behind), places.slice(1).filter(before & ~behind)]
        return _edited(marked, [(places, _KEPT_QUOTE) for places in kept])


def _separators(rows: bytes) -> bytes:
    """Return what parts cells that are empty or null in lines of CSV.

    :param rows: a JSON list of them
    :raises _NotPlainError: it is none, or they are something else
    """
    try:
        cells = json.loads(rows)
    except (ValueError, RecursionError):
        raise _NotPlainError from None
    if not all(isinstance(row, list) and row and all(cell in ("", None) for cell in row) for row in cells):
        raise _NotPlainError
    return bytes([_LINE_END]).join(bytes([_DELIMITER]) * (len(row) - 1) for row in cells)


def _check_widths(marked: pl.Series, width: int) -> None:
    """See that each line has as many fields as it should."""
    separators = marked.filter(marked <= _LINE_END)
    line = bytes([_DELIMITER]) * (width - 1) + bytes([_LINE_END])
    count, odd = divmod(len(separators), width)
    if odd or (separators != _series(line * count)).any():
        raise _NotPlainError


def _series(text: bytes | memoryview) -> pl.Series:
    return pl.Series(Array.from_buffer(text)) if len(text) else pl.Series(dtype=pl.UInt8)


def _no(count: int) -> pl.Series:
    return pl.Series([False] * count, dtype=pl.Boolean)


def _edited(body: pl.Series, edits: Sequence[tuple[pl.Series, int]]) -> pl.Series:
    """Return a text with some bytes replaced.

    :param edits: places, each with the byte that goes there
    """
    edits = [(places, byte) for places, byte in edits if len(places)]
    if not edits:
        return body
    # At once, since the text is copied each time.
    return body.scatter(
        pl.concat([places for places, _ in edits], rechunk=True),
        _series(b"".join(bytes([byte]) * len(places) for places, byte in edits)),
    )
