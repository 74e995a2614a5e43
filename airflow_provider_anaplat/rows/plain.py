"""From the text of a page's rows straight to lines of CSV, if it is plain: without a look at each cell.

In a text without escapes and nulls, every quotation mark begins or ends a cell. All bytes are looked at together:
the quotation marks go, and what stands between two cells becomes a delimiter, or, where a row has all its cells,
the end of a line. Before, nulls become texts of bytes that go, and escapes are replaced by as many bytes.

For each step, Python's lock is given away and taken back. Where two threads make lines, that takes longer than
many a step itself, so there are as few of them as can be.
"""

from __future__ import annotations

import threading
from functools import cache, reduce
from operator import and_, or_

import polars as pl
from arro3.core import Array

from airflow_provider_anaplat.output.lines import Lines, edited, lines_frame

__all__ = [
    "plain_lines",
]

_QUOTE, _COMMA, _BACKSLASH, _OPENING, _CLOSING = b'",\\[]'
_LINE_END = ord("\n")
_FIRST_TEXT = ord(" ")  # the control characters come before it
# Control characters that stand for a byte that goes, and for what is in a cell: a quotation mark or a line break.
_GONE, _KEPT_QUOTE, _LINE_FEED, _CARRIAGE_RETURN = _MARKS = range(4)
_STANDS_FOR = {_KEPT_QUOTE: b'"', _LINE_FEED: b"\n", _CARRIAGE_RETURN: b"\r"}
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
# Bytes that most texts have at most, and so few that it takes less time to number them than the usual ones.
_USUAL, _FEW = 5 << 19, 1 << 19
_COMPACT, _SPACED = (b",", b"],["), (b", ", b"], [")  # what stands between two cells, and between two rows

_one_at_a_time = threading.Lock()


class _NotPlainError(Exception):
    """Another way has to read the rows."""


def plain_lines(text: memoryview, width: int, form: Lines) -> pl.DataFrame | None:
    """Return rows as lines, or None if they are not that plain, and another way has to read them.

    :param text: a JSON list of rows, but for its brackets
    :param width: cells of each row
    :param form: of the lines
    """
    delimiter = ord(form.delimiter)
    looks_at_cells = form.formulas != "keep" or delimiter in _MARKS
    if looks_at_cells or not 0 < len(text) <= _LARGEST or (text[0], text[-1]) != (_OPENING, _CLOSING):
        return None
    try:
        body = _series(text)
        if (body < _FIRST_TEXT).any():
            return None
        places = _places(len(body))
        unescaped = _without_escapes(body, places)
        has_marks = unescaped is not body
        marked = _Cells(unescaped, places, width).marked(delimiter, has_marks=has_marks)
        marked = marked.filter((marked != _QUOTE) & (marked != _GONE) if has_marks else marked != _QUOTE)
        ends = places.head(len(marked)).filter(marked == _LINE_END) + 1
        for mark, byte in _STANDS_FOR.items():
            if has_marks or mark == _KEPT_QUOTE:
                marked = marked.zip_with(marked != mark, _series(byte))
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


def _nulls(body: pl.Series, places: pl.Series) -> pl.Series:
    """Return where nulls stand: some may be in a text, which is not plain then."""
    inner = max(0, len(body) - len("[null"))
    is_n, is_u, is_l = (body == byte for byte in b"nul")
    letters = is_n.slice(1), is_u.slice(2), is_l.slice(3), is_l.slice(4)
    before = places.head(inner).filter(reduce(and_, (letter.head(inner) for letter in letters)))
    for place, allowed in (0, b",[ "), (5, b",]"):
        beside = body[before + place]
        before = before.filter(reduce(or_, (beside == byte for byte in allowed)))
    return before + 1


class _Cells:
    """The cells of a text: between two quotation marks there is one, then a separator, and so on.

    A null is a cell as well: its first and last letter become quotation marks, and those between them go. If it
    was in a text, something now stands between two cells that cannot.

    ``_left`` and ``_right`` are where each two neighbours among the quotation marks stand, ``_apart`` is by how
    many bytes, and ``_is_cell`` tells whether a cell is between them.

    :param body: the bytes of a JSON list of rows, but for its brackets, without escapes
    :param places: of the bytes
    :param width: cells of each row
    :raises _NotPlainError: something else stands between two cells, or a row has not all of them
    """

    def __init__(self, body: pl.Series, places: pl.Series, width: int) -> None:
        self._nulls = _nulls(body, places)
        self._body = body = edited(body, [(self._nulls, _QUOTE), (self._nulls + 3, _QUOTE)])
        self._places, self._width = places, width
        self._is_quote = body == _QUOTE
        quotes = places.filter(self._is_quote)
        if not len(quotes) or len(quotes) % (2 * width) or (body[1], body[-2]) != (_QUOTE, _QUOTE):
            raise _NotPlainError
        self._left, self._right = quotes.head(-1), quotes.slice(1)
        self._apart = self._right - self._left
        self._is_cell = _alternation(len(self._left))
        # Quotation marks around a separator are two or four bytes apart, or three or five if a space is in it.
        self._has_spaces = self._apart[1:2].sum() % 2 == 1
        between_cells, between_rows = _SPACED if self._has_spaces else _COMPACT
        self._is_delimiter = self._between_cells(between_cells)
        self._ends, self._others = self._between_rows(between_rows)

    def marked(self, delimiter: int, *, has_marks: bool) -> pl.Series:
        """Return the text with delimiters and ends of lines for separators, and quotation marks for what goes.

        :param has_marks: whether marks may stand for what is in a cell
        """
        return self._with_kept_quotes(self._with_separators(delimiter), delimiter, has_marks=has_marks)

    def _with_separators(self, delimiter: int) -> pl.Series:
        marked = self._body
        if delimiter != _COMMA:
            marked = marked.zip_with(~self._is_delimiter, _series(bytes([delimiter])))
        if self._has_spaces:
            is_space = pl.concat([_no(1), self._is_delimiter.head(-1)], rechunk=True)
            marked = marked.zip_with(~is_space, _series(b'"'))
        gone = self._others, _place(0), self._nulls + 1, self._nulls + 2
        ends = self._ends, _place(len(marked) - 1)
        return edited(marked, [*((places, _QUOTE) for places in gone), *((places, _LINE_END) for places in ends)])

    def _between_cells(self, separator: bytes) -> pl.Series:
        """Return, for each byte, whether a separator between two cells begins there.

        :raises _NotPlainError: not as many are there as rows have cells
        """
        size = len(separator)
        most = max(0, len(self._body) - size - 1)
        is_there = self._is_quote.head(most) & self._is_quote.slice(size + 1)
        for place, byte in enumerate(separator, 1):
            is_there = is_there & (self._body == byte).slice(place, most)
        # Cells that look like a separator.
        alike = self._left.filter(self._is_cell & (self._apart == size + 1))
        for place, byte in enumerate(separator, 1):
            alike = alike.filter(self._body[alike + place] == byte)
        if len(alike):
            is_there = is_there.scatter(alike, False)
        cells = (len(self._left) + 1) // 2
        if is_there.sum() != cells - cells // self._width:
            raise _NotPlainError
        return pl.concat([_no(1), is_there, _no(size)], rechunk=True)

    def _between_rows(self, separator: bytes) -> tuple[pl.Series, pl.Series]:
        """Return where the separators between two rows begin, and where their other bytes are.

        :raises _NotPlainError: they are not where a row has all its cells
        """
        step = 2 * self._width
        before = self._left[pl.int_range(step - 1, len(self._left), step, dtype=pl.UInt32, eager=True)]
        expected = separator + b'"'
        found = pl.concat([before + place for place in range(1, len(expected) + 1)], rechunk=True)
        if (self._body[found] != _series(b"".join(bytes([byte]) * len(before) for byte in expected))).any():
            raise _NotPlainError
        return found.head(len(before)), found.slice(len(before), (len(separator) - 1) * len(before))

    def _with_kept_quotes(self, marked: pl.Series, delimiter: int, *, has_marks: bool) -> pl.Series:
        """Return a text with the quotation marks that CSV needs replaced: around empty cells, and odd ones.

        :param marked: the text with its separators replaced
        """
        is_empty = self._is_cell & (self._apart == 1)
        kept = [self._left.filter(is_empty), self._right.filter(is_empty)]
        is_odd = (marked == delimiter) & ~self._is_delimiter
        if has_marks:
            is_odd = is_odd | ((marked >= _KEPT_QUOTE) & (marked <= _CARRIAGE_RETURN))
        if is_odd.any():
            is_either = is_odd | self._is_quote
            places, is_odd = self._places.filter(is_either), is_odd.filter(is_either)
            before, behind = is_odd.head(-1), is_odd.slice(1)
            differ = before != behind
            kept += [places.head(-1).filter(behind & differ), places.slice(1).filter(before & differ)]
        return edited(marked, [(places, _KEPT_QUOTE) for places in kept])


def _places(count: int) -> pl.Series:
    """Return the numbers from 0 on."""
    if not _FEW < count <= _USUAL:
        return _numbers(count)
    with _one_at_a_time:  # or each thread would make the usual ones
        return _usual_places().head(count)


def _alternation(count: int) -> pl.Series:
    """Return true, false, and so on."""
    return _usual_alternation().head(count) if _FEW < count <= _USUAL else _trues_and_falses(count)


@cache
def _usual_places() -> pl.Series:
    return _numbers(_USUAL)


@cache
def _usual_alternation() -> pl.Series:
    return _trues_and_falses(_USUAL)


def _numbers(count: int) -> pl.Series:
    return pl.int_range(count, dtype=pl.UInt32, eager=True)


def _trues_and_falses(count: int) -> pl.Series:
    return (_series(b"\1\0" * (count // 2 + 1)) == 1).head(count)


def _series(text: bytes | memoryview) -> pl.Series:
    return pl.Series(Array.from_buffer(text)) if len(text) else pl.Series(dtype=pl.UInt8)


def _place(place: int) -> pl.Series:
    return pl.Series([place], dtype=pl.UInt32)


@cache
def _no(count: int) -> pl.Series:
    return pl.Series([False] * count, dtype=pl.Boolean)
