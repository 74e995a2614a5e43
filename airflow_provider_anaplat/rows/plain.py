"""From the text of a page's rows straight to lines of CSV, if it is plain: without a look at each cell.

In a text without escapes and nulls, every quotation mark begins or ends a cell. All bytes are looked at together:
the quotation marks go, and what stands between two cells becomes a delimiter or the end of a line. Whether every
row has its cells is seen by the delimiters and ends of lines that there are in the end. Before, nulls become texts
of bytes that go, and escapes are replaced by as many bytes.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_

import polars as pl
from arro3.core import Array

from airflow_provider_anaplat.output.lines import Lines, edited, lines_frame

__all__ = [
    "plain_lines",
]

_QUOTE, _BACKSLASH, _OPENING, _CLOSING = b'"\\[]'
_FIRST_TEXT = ord(" ")  # the control characters come before it
# Control characters that stand for a byte that goes, a delimiter, the end of a line, and what is in a cell or
# around it: a quotation mark or a line break.
_GONE, _DELIMITER, _LINE_END, _KEPT_QUOTE, _LINE_FEED, _CARRIAGE_RETURN = _MARKS = range(6)
_STANDS_FOR = {_LINE_END: "\n", _KEPT_QUOTE: '"', _LINE_FEED: "\n", _CARRIAGE_RETURN: "\r"}
_ESCAPES = {
    '"': (_KEPT_QUOTE, _KEPT_QUOTE),
    "\\": (_BACKSLASH, _GONE),
    "/": (ord("/"), _GONE),
    "n": (_LINE_FEED, _GONE),
    "r": (_CARRIAGE_RETURN, _GONE),
    "t": (ord("\t"), _GONE),
    "b": (ord("\b"), _GONE),
    "f": (ord("\f"), _GONE),
}
_LARGEST = 1 << 24  # bytes of a text, which takes ten times the memory, and odd ones more than twenty
_USUAL = 5 << 19  # bytes that most texts have at most
_COMPACT, _SPACED = (b",", b"],["), (b", ", b"], [")  # what stands between two cells, and between two rows


class _NotPlainError(Exception):
    """Another way has to read the rows."""


def plain_lines(text: memoryview, width: int, form: Lines) -> pl.DataFrame | None:
    """Return rows as lines, or None if they are not that plain, and another way has to read them.

    :param text: a JSON list of rows, but for its brackets
    :param width: cells of each row
    :param form: of the lines
    """
    if ord(form.delimiter) in _MARKS:
        return None
    try:
        body = _series(text)
        if not 0 < len(body) <= _LARGEST or (body < _FIRST_TEXT).any():
            return None
        places = _places(len(body))
        unescaped = _without_escapes(body, places)
        quotes = _Quotes(_with_nulls_as_texts(unescaped, places), places)
        marked = quotes.with_kept(quotes.with_separators(), ord(form.delimiter), has_marks=unescaped is not body)
        marked = marked.filter((marked != _QUOTE) & (marked != _GONE))
        marks = marked.filter(marked <= _CARRIAGE_RETURN)
        _check_widths(marks.filter(marks <= _LINE_END), width)
        ends = places.head(len(marked)).filter(marked == _LINE_END) + 1
        for byte, by in (_STANDS_FOR | {_DELIMITER: form.delimiter}).items():
            if (marks == byte).any():
                marked = marked.zip_with(marked != byte, _series(by.encode()))
        marked.implode().cast(pl.Binary).cast(pl.String)  # which sees whether it is UTF-8
        return lines_frame(marked, ends)
    except (_NotPlainError, pl.exceptions.PolarsError):
        return None


def _without_escapes(body: pl.Series, places: pl.Series) -> pl.Series:
    """Return a text with each escape replaced by as many bytes.

    :raises _NotPlainError: one names a character by its number, or is none
    """
    is_backslash = body == _BACKSLASH
    if not is_backslash.any():
        return body
    backslashes = places.filter(is_backslash)
    # Of those in a row, each second one is escaped by the one before.
    is_first = pl.concat([_series(b"\1") == 1, backslashes.slice(1) - backslashes.head(-1) != 1], rechunk=True)
    firsts = backslashes.zip_with(is_first, pl.Series([None], dtype=pl.UInt32)).fill_null(strategy="forward")
    escapes = backslashes.filter((backslashes - firsts) % 2 == 0)
    escaped = body[escapes + 1]
    found = [(escapes.filter(escaped == ord(by)), bytes(stands)) for by, stands in _ESCAPES.items()]
    if sum(len(of) for of, _ in found) != len(escapes):
        raise _NotPlainError
    return edited(body, [(of + place, byte) for of, stands in found for place, byte in enumerate(stands)])


def _with_nulls_as_texts(body: pl.Series, places: pl.Series) -> pl.Series:
    """Return a text with each null replaced by a text of bytes that go.

    What looks like a null within a text becomes what cannot stand between two cells: such a text is not plain.
    """
    inner = max(0, len(body) - 5)  # there are brackets around all
    nulls = places.slice(1, inner).filter((body == ord("n")).slice(1, inner) & (body == ord("u")).slice(2, inner))
    for place, allowed in (3, b"l"), (4, b"l"), (5, b",]"), (0, b",[ "):
        beside = body[nulls + place - 1]
        nulls = nulls.filter(reduce(or_, (beside == byte for byte in allowed)))
    return edited(body, [(nulls, _QUOTE), (nulls + 1, _GONE), (nulls + 2, _GONE), (nulls + 3, _QUOTE)])


class _Quotes:
    """The quotation marks of a text: between two of them there is a cell, then a separator, and so on.

    ``_left`` and ``_right`` are where each two neighbours stand, ``_apart`` is by how many bytes, and ``_is_cell``
    tells whether a cell is between them.

    :param body: the bytes of a JSON list of rows of texts, but for its brackets
    :param places: of the bytes
    :raises _NotPlainError: a quotation mark is missing, or other bytes stand around all cells than brackets
    """

    def __init__(self, body: pl.Series, places: pl.Series) -> None:
        self._body, self._places = body, places
        self._is_quote = body == _QUOTE
        quotes = places.filter(self._is_quote)
        if len(quotes) < 2 or len(quotes) % 2 or (quotes[0], quotes[-1]) != (1, len(body) - 2):
            raise _NotPlainError
        if (body[0], body[-1]) != (_OPENING, _CLOSING):
            raise _NotPlainError
        self._left, self._right = quotes.head(-1), quotes.slice(1)
        self._apart = self._right - self._left
        self._is_cell = _series(b"\1\0" * (len(quotes) // 2)).head(-1) == 1

    def with_separators(self) -> pl.Series:
        """Return the text with what stands around the cells replaced by delimiters and ends of lines.

        :raises _NotPlainError: it is not what has to stand there
        """
        # Quotation marks around a separator are two or four bytes apart, or three or five if a space is in it.
        between_cells, between_rows = _SPACED if self._apart[1:2].sum() % 2 else _COMPACT
        ends = self._between_rows(between_rows)
        marked = self._with_delimiters(between_cells, len(self._left) // 2 - len(ends))
        edits = [(ends, _LINE_END), *((ends + place, _GONE) for place in range(1, len(between_rows)))]
        return edited(marked, [*edits, (_place(0), _GONE), (_place(len(marked) - 1), _LINE_END)])

    def _between_rows(self, separator: bytes) -> pl.Series:
        """Return where the separators between rows begin."""
        found = self._left.filter(~self._is_cell & (self._apart == len(separator) + 1)) + 1
        return self._where(found, separator)

    def _with_delimiters(self, separator: bytes, expected: int) -> pl.Series:
        """Return the text with the separators between cells replaced.

        :raises _NotPlainError: there are not as many as expected
        """
        size = len(separator)
        most = max(0, len(self._body) - size - 1)
        is_there = self._is_quote.head(most) & self._is_quote.slice(size + 1)
        for place, byte in enumerate(separator, 1):
            is_there = is_there & (self._body == byte).slice(place, most)
        # Cells that look like a separator.
        alike = self._where(self._left.filter(self._is_cell & (self._apart == size + 1)) + 1, separator)
        if is_there.sum() - len(alike) != expected:
            raise _NotPlainError
        marked = self._body
        for place, byte in enumerate(bytes([_DELIMITER]).ljust(size, bytes([_GONE])), 1):
            moved = pl.concat([_no(place), is_there, _no(size + 1 - place)], rechunk=True)
            marked = marked.zip_with(~moved, _series(bytes([byte])))
        return edited(marked, [(alike + place, byte) for place, byte in enumerate(separator)])

    def _where(self, places: pl.Series, text: bytes) -> pl.Series:
        """Return at which of these places a text stands."""
        for place, byte in enumerate(text):
            places = places.filter(self._body[places + place] == byte)
        return places

    def with_kept(self, marked: pl.Series, delimiter: int, *, has_marks: bool) -> pl.Series:
        """Return a text with the quotation marks that CSV needs replaced: around empty cells, and odd ones.

        :param marked: the text with its separators replaced
        :param has_marks: whether marks may stand for what is in a cell
        """
        is_empty = self._is_cell & (self._apart == 1)
        kept = [self._left.filter(is_empty), self._right.filter(is_empty)]
        is_odd = marked == delimiter
        if has_marks:
            is_odd = is_odd | ((marked >= _KEPT_QUOTE) & (marked <= _CARRIAGE_RETURN))
        if is_odd.any():
            is_either = is_odd | self._is_quote
            places, is_odd = self._places.filter(is_either), is_odd.filter(is_either)
            before, behind = is_odd.head(-1), is_odd.slice(1)
            kept += [places.head(-1).filter(~before & behind), places.slice(1).filter(before & ~behind)]
        return edited(marked, [(places, _KEPT_QUOTE) for places in kept])


def _check_widths(separators: pl.Series, width: int) -> None:
    """See that each line has as many fields as it should.

    :param separators: delimiters and ends of lines, in their order
    """
    line = bytes([_DELIMITER]) * (width - 1) + bytes([_LINE_END])
    count, odd = divmod(len(separators), width)
    if odd or (separators != _series(line * count)).any():
        raise _NotPlainError


def _places(count: int) -> pl.Series:
    """Return the numbers from 0 on."""
    return _usual_places().head(count) if count <= _USUAL else _numbers(count)


@cache
def _usual_places() -> pl.Series:
    return _numbers(_USUAL)


def _numbers(count: int) -> pl.Series:
    return pl.int_range(count, dtype=pl.UInt32, eager=True)


def _series(text: bytes | memoryview) -> pl.Series:
    return pl.Series(Array.from_buffer(text)) if len(text) else pl.Series(dtype=pl.UInt8)


def _place(place: int) -> pl.Series:
    return pl.Series([place], dtype=pl.UInt32)


def _no(count: int) -> pl.Series:
    return pl.Series([False] * count, dtype=pl.Boolean)
