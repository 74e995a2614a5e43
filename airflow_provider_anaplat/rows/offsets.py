"""Whether a platform gives the rows of the offset that it is asked for, or the same ones again."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from airflow_provider_anaplat.errors import (
    AnaplatInvalidAnswerError,
    AnaplatRefusedError,
    AnaplatRowCountError,
    AnaplatServerError,
)
from airflow_provider_anaplat.output.lines import is_lines, line_texts
from airflow_provider_anaplat.output.whole import is_whole

__all__ = [
    "OffsetCheck",
]

_STEP = 100  # rows; a platform that rounds offsets, whatever the limit, may do so to this or a multiple
_FAR = 10**9  # an offset at which there are no rows
_ENOUGH = 1000  # rows of a page to ask for again, if nothing is odd about them


class OffsetCheck:
    """Looks at pages in their order, and asks once more if they leave it open whether their offsets counted.

    No page says where its rows stand, and rows may repeat, so that pages alone prove nothing. Three things do:

    * **The end.** There are no rows behind the last one; a platform that ignores, limits or rounds the offset
      gives some. A last page that could have been longer shows the end. If it is as long as it could be, rows
      behind the end are asked for.
    * **A shift.** If a page begins like an earlier one, its rows but the first are asked for by their own
      offset. Had the page been another's, that answer would hold what that one begins with, which differs, unless
      all its rows are equal. The earlier page's first row is asked for as well: that page may be the answer to the
      other request. Where the end is not seen, rows of a page are asked for so whatever it begins like: a
      platform may count in pages, and round an offset between two of them. If a page's rows are equal, or it has
      no more than one, they tell nothing, and would come without end: then rows are asked for far behind.
    * **A step.** A platform may round offsets in steps of its own. Of the first page whose offset is no round
      number, the second row is asked for alone, which one that counts in pages of the limit gives as well.

    :param what: what is read, for messages
    :param read: asks for rows by offset and limit
    :param sees_end: the rows are read to their end, and how many there are is known
    """

    def __init__(self, what: str, read: Callable[[int, int], pl.DataFrame], *, sees_end: bool = True) -> None:
        self._what = what
        self._read = read
        self._first_rows: dict[int, int] = {}  # of pages, each with the first offset that it came from
        self._asked_again: set[int] = set()
        self._longest = 0
        self._last_limit = 1
        self._end_shown = True
        self._sees_end = sees_end
        self._may_round = not sees_end
        self._may_step = True
        self._doubts: list[tuple[int, int, int]] = []  # offset and hash of a row, and where its page begins

    def look(self, offset: int, limit: int, frame: pl.DataFrame) -> None:
        """Look at the next page.

        :param offset: the offset it was asked for with
        :param limit: the number of rows that was asked for
        :raises AnaplatInvalidAnswerError: its rows are not those of its offset
        """
        self._longest = max(self._longest, frame.height)
        self._last_limit = limit
        # The first page has the only offset that cannot be ignored.
        self._end_shown = offset == 0 or frame.height < min(limit, self._longest)
        if frame.is_empty():
            return
        first_row = _first_row(frame)
        if first_row in self._first_rows and first_row not in self._asked_again:
            self._asked_again.add(first_row)
            if not self._ask_shifted(offset, frame) and not self._sees_end and self._has_rows(_FAR, 1):
                raise self._others(offset, _FAR)
            earlier = self._first_rows[first_row]
            self._doubts.append((earlier, first_row, earlier))
        elif self._may_round and offset % limit:
            self._may_round = not self._ask_shifted(offset, frame.head(_telling_rows(offset, limit, frame)))
        self._first_rows.setdefault(first_row, offset)
        # What is not larger than a first page is mostly read at once.
        is_odd = offset > _ENOUGH and offset % _STEP
        if self._may_step and is_odd and frame.height > 1 and _first_row(frame) != _first_row(frame.slice(1)):
            self._may_step = False
            self._doubts.append((offset + 1, _first_row(frame.slice(1)), offset))

    def look_again(self) -> None:
        """Ask again for single rows of pages that may have been others', once all are read: it would hold them up.

        :raises AnaplatInvalidAnswerError: the rows of a page are not those of its offset
        """
        for offset, row, page in self._doubts:
            again = self._read(offset, 1)
            if again.is_empty() or _first_row(again) != row:
                raise self._others(page, offset)

    def look_behind(self, row_count: int) -> None:
        """Look for rows behind the last one, unless the pages have shown that there are none.

        :raises AnaplatRowCountError: there are
        """
        if self._end_shown:
            return
        if self._has_rows(row_count, self._last_limit):
            raise AnaplatRowCountError(
                f"{self._what}: the platform counts {row_count:,} rows, and gives more from offset "
                f"{row_count:,} on: either it counts too few, or it ignores the offset and repeats rows. "
                "Nothing was published; report this to the platform's administrator."
            )

    def _has_rows(self, offset: int, limit: int) -> bool:
        try:
            return not self._read(offset, limit).is_empty()
        except AnaplatRefusedError as error:
            # An offset without rows, refused or broken at: it is heeded.
            if type(error) in (AnaplatRefusedError, AnaplatServerError):
                return False
            raise

    def _ask_shifted(self, offset: int, frame: pl.DataFrame) -> bool:
        """Ask for the rows behind the first, and tell whether another page's would have looked different."""
        if frame.height == 1:
            return False
        again = self._read(offset + 1, frame.height - 1)
        if again.is_empty() or not again.equals(frame.slice(1, again.height)):
            raise self._others(offset, offset + 1)
        return not again.equals(frame.head(again.height))

    def _others(self, offset: int, again: int) -> AnaplatInvalidAnswerError:
        return AnaplatInvalidAnswerError(
            f"{self._what}: the page at offset {offset:,} begins like another one or within it: its "
            f"rows are others when asked for from offset {again:,} on. The platform ignores the offset, "
            "or rounds it, or its order changes. Nothing was published; give the rows an order (sort_by, "
            "or the card's own), or report this to the platform's administrator."
        )


def _first_row(frame: pl.DataFrame) -> int:
    if is_lines(frame):
        return hash(b"".join(line_texts(frame.head(1))))
    cells = frame.row(0)
    return hash(tuple(cells[0]) if is_whole(frame) else cells)


def _telling_rows(offset: int, limit: int, frame: pl.DataFrame) -> int:
    """Return how many rows to ask for again, the first among them.

    Rounded as well, the question may be of just those rows that follow the first one of a rounded page.
    """
    rows = min(frame.height, _ENOUGH)
    while rows > 1 and _rounded(offset + 1, rows - 1) == _rounded(offset, limit) + 1:
        rows -= 1
    return rows


def _rounded(offset: int, limit: int) -> int:
    """Return the offset at which the page begins that an offset is in."""
    return offset - offset % limit
