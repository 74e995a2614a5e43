"""How many rows to ask for at a time, so that their pages fit into a budget of memory, whatever a row weighs."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from airflow_provider_anaplat.errors import AnaplatRequestError

__all__ = [
    "LEAST_MB",
    "MEGABYTE",
    "MEMORY_MB",
    "Budget",
    "Needs",
]

MEGABYTE = 1 << 20
MEMORY_MB = 256  # unless the user says otherwise
LEAST_MB = 64
# Rows of the first request: few, since nothing is known of them, and enough for a small dataset in one answer.
_FIRST_ROWS = 1000
# Measured: what threads and buffers take, whatever the rows.
_BASE_MB = 32
_SHORT_CELL = 11  # bytes, as it is sent; assumed of every cell until the number of columns is known
_HEAVY_ROW = 1 << 18  # bytes; rows above this are decoded a few at a time, which takes more copies
_COPIES_OF_HEAVY = 18  # more
_BYTES_TO_DESCRIBE = 6_000  # a column
_BYTES_PER_COLUMN = 72_000  # of all that is in memory, whatever its rows
_LEAST_PAGE = 3 * MEGABYTE // 4  # or fewer requests are in flight
_REMEMBERED = 8  # pages, the heaviest of which says what the next one may weigh


@dataclass(frozen=True)
class Needs:
    """What a page takes beside the answers that wait for their turn, once it is decoded and written; measured.

    :param copies: of its bytes
    :param cell_bytes: for each of its cells, however short
    :param base_mb: megabytes that threads take meanwhile, unless pages are small
    """

    copies: int
    cell_bytes: int
    base_mb: int = 0


_CELLS = Needs(copies=14, cell_bytes=215)
_LINES = Needs(copies=6, cell_bytes=0, base_mb=96)


class Budget:
    """Sizes pages by the bytes that the last ones had; safe to use from several threads.

    :param memory_mb: megabytes (1,048,576 bytes each) by which the export may let the process grow
    :param page_size: rows of a page at most
    :param concurrency: requests in flight at most
    :param max_answer_mb: megabytes of an answer at most, whatever the budget
    :param needs: of a page
    :ivar bytes_read: of all answers with rows
    :ivar most_rows: of a page
    :raises AnaplatRequestError: one of them is too small
    """

    def __init__(
        self, memory_mb: int, page_size: int, concurrency: int, max_answer_mb: int, needs: Needs = _CELLS
    ) -> None:
        if memory_mb < LEAST_MB:
            raise AnaplatRequestError(f"memory_mb is {memory_mb}; it must be at least {LEAST_MB}.")
        self._room = self._for_rows = (memory_mb - _BASE_MB) * MEGABYTE
        self._page_size = page_size
        self._concurrency = concurrency
        self._largest = max_answer_mb * MEGABYTE
        self._needs = needs
        self._cells: int | None = None  # of a row
        self.bytes_read = 0
        self.most_rows = 0
        self._lock = threading.RLock()
        self._weights: deque[float] = deque(maxlen=_REMEMBERED)

    def rows(self) -> int:
        """Return how many rows the next request may ask for."""
        with self._lock:
            if not self._weights:
                return min(_FIRST_ROWS, self._page_size)
            row = self._heaviest()
            copies = self._copies_of(row)
            page = min(self._for_rows / (self._answers_beside(copies) + copies), self._largest * 2 / 3)
            return max(1, min(self._page_size, int(page / row)))

    def requests(self) -> int:
        """Return how many requests of that many rows may be in flight."""
        with self._lock:
            row = self._heaviest()
            return max(1, min(self._concurrency, int(self._room / (self.rows() * row) - self._copies_of(row))))

    def most_bytes(self, rows: int) -> int:
        """Return how many bytes an answer may have that is worth reading to its end, unless it holds a single row.

        :param rows: how many are asked for
        """
        room = self._room * 5 // 4
        with self._lock:
            row = self._heaviest() if self._weights else _SHORT_CELL
            copies = self._answers_beside(self._copies_of(row)) + self._needs.copies
        if self._cells is None:
            most = room / (copies + self._needs.cell_bytes / _SHORT_CELL)
        else:
            room -= rows * self._cells * self._needs.cell_bytes
            most = max(min(room / copies, rows * _HEAVY_ROW), room / (copies + _COPIES_OF_HEAVY))
        return min(max(int(most), _LEAST_PAGE), self._largest)

    def has_columns(self, columns: int) -> None:
        """Note how many cells a row has."""
        self._cells = columns

    def makes_lines(self, columns: int) -> None:
        """Note that rows of so many columns become lines, page by page."""
        self._needs = _LINES
        # By a small budget, pages are small, and so is what threads take for them.
        beside = _LINES.base_mb * MEGABYTE + columns * _BYTES_TO_DESCRIBE
        self._room = self._for_rows = max(self._room // 4, self._room - beside)

    def makes_columns(self, columns: int) -> None:
        """Note that rows are put into so many columns, page by page."""
        self._for_rows = max(self._room // 2, self._room - columns * _BYTES_PER_COLUMN)

    def saw(self, rows: int, size: int) -> None:
        """Note what the rows of a page weighed.

        :param rows: how many
        :param size: bytes of their answer
        """
        with self._lock:
            self.bytes_read += size
            self.most_rows = max(self.most_rows, rows)
            if rows:
                self._weights.append(size / rows)

    def saw_too_much(self, rows: int, size: int | None) -> int:
        """Note that an answer was larger than it may be, and return how many rows to ask for instead.

        :param rows: how many were asked for
        :param size: bytes of the answer, if it said so
        """
        with self._lock:
            self._weights.append(max(size or 0, 2 * self.most_bytes(rows)) / rows)
        return min(self.rows(), rows // 2)

    def _copies_of(self, row: float) -> float:
        """Return how many copies of a page it takes once it is decoded, with what its cells take.

        :param row: bytes of one of its rows
        """
        cells = row / _SHORT_CELL if self._cells is None else self._cells
        return self._needs.copies + _COPIES_OF_HEAVY * (row > _HEAVY_ROW) + cells * self._needs.cell_bytes / row

    def _answers_beside(self, copies: float) -> float:
        """Return how many answers the budget has room for beside so many copies of a page."""
        return max(1, min(self._concurrency, self._room / _LEAST_PAGE - copies))

    def _heaviest(self) -> float:
        return max(self._weights, default=1.0) or 1.0
