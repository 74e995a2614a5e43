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

__all__ = [
    "OffsetCheck",
]


class OffsetCheck:
    """Looks at pages in their order, and asks once more if they leave it open whether their offsets counted.

    No page says where its rows stand, and rows may repeat, so that pages alone prove nothing. Two things do:

    * **The end.** There are no rows behind the last one; a platform that ignores or limits the offset gives some.
      A last page that could have been longer shows the end. If it is as long as it could be, one row behind the
      end is asked for.
    * **A shift.** If a page begins like an earlier one, its rows but the first are asked for by their own
      offset. Had the page been another's, that answer would hold what that one begins with, which differs, unless
      all its rows are equal.

    :param what: what is read, for messages
    :param read: asks for rows by offset and limit
    """

    def __init__(self, what: str, read: Callable[[int, int], pl.DataFrame]) -> None:
        self._what = what
        self._read = read
        self._first_rows: set[int] = set()
        self._asked_again: set[int] = set()
        self._longest = 0
        self._end_shown = True

    def look(self, offset: int, limit: int, frame: pl.DataFrame) -> None:
        """Look at the next page.

        :param offset: the offset it was asked for with
        :param limit: the number of rows that was asked for
        :raises AnaplatInvalidAnswerError: its rows are not those of its offset
        """
        self._longest = max(self._longest, frame.height)
        # The first page has the only offset that cannot be ignored.
        self._end_shown = offset == 0 or frame.height < min(limit, self._longest)
        if frame.is_empty():
            return
        first_row = hash(repr(frame.row(0)))
        if first_row in self._first_rows - self._asked_again:
            self._asked_again.add(first_row)
            self._ask_shifted(offset, frame)
        self._first_rows.add(first_row)

    def look_behind(self, row_count: int) -> None:
        """Look for rows behind the last one, unless the pages have shown that there are none.

        :raises AnaplatRowCountError: there are
        """
        if self._end_shown:
            return
        try:
            behind = self._read(row_count, 1)
        except AnaplatRefusedError as error:
            # An offset without rows, refused or broken at: it is heeded.
            if type(error) in (AnaplatRefusedError, AnaplatServerError):
                return
            raise
        if not behind.is_empty():
            raise AnaplatRowCountError(
                f"{self._what}: the platform counts {row_count:,} rows, and gives more from offset "
                f"{row_count:,} on: either it counts too few, or it ignores the offset and repeats rows. "
                "Nothing was published; report this to the platform's administrator."
            )

    def _ask_shifted(self, offset: int, frame: pl.DataFrame) -> None:
        if frame.height == 1:
            return
        again = self._read(offset + 1, frame.height - 1)
        if again.is_empty() or not again.equals(frame.slice(1, again.height)):
            raise AnaplatInvalidAnswerError(
                f"{self._what}: the page at offset {offset:,} begins like an earlier one, and its rows "
                f"are others when asked for from offset {offset + 1:,} on: the platform ignores the offset, or "
                "its order changes. Nothing was published; give the rows an order (sort_by, or the card's "
                "own), or report this to the platform's administrator."
            )
