"""How many rows to ask for at a time, so that their pages fit into a budget of memory, whatever a row weighs."""

from __future__ import annotations

import threading
from collections import deque

from airflow_provider_anaplat.errors import AnaplatRequestError

__all__ = [
    "LEAST_MB",
    "MEGABYTE",
    "MEMORY_MB",
    "Budget",
]

MEGABYTE = 1 << 20
MEMORY_MB = 256  # unless the user says otherwise
LEAST_MB = 64
# Rows of the first request: few, since nothing is known of them, and enough for a small dataset in one answer.
_FIRST_ROWS = 1000
# Measured: what threads and buffers take, whatever the rows.
_BASE_MB = 32
# How many pages, beside the answers that wait for their turn, the budget has room for. One that is decoded and
# written takes ten times its own bytes; larger pages than these are hardly faster.
_COPIES = 32
_BYTES_PER_COLUMN = 2_000  # of a page, whatever its rows
# Of a row, for each of its cells: one that is empty or null is sent in 3 or 5, and takes 20 once it is decoded.
_LEAST_CELL = 8
_LEAST_PAGE = 3 * MEGABYTE // 4
_REMEMBERED = 8  # pages, the heaviest of which says what the next one may weigh


class Budget:
    """Sizes pages by the bytes that the last ones had; safe to use from several threads.

    :param memory_mb: megabytes (1,048,576 bytes each) by which the export may let the process grow
    :param page_size: rows of a page at most
    :param concurrency: requests in flight at most
    :param max_answer_mb: megabytes of an answer at most, whatever the budget
    :param copies: how many pages the budget has room for, beside the answers that wait for their turn
    :ivar most_bytes: of an answer that is worth reading to its end, unless it holds a single row
    :ivar bytes_read: of all answers with rows
    :ivar most_rows: of a page
    :raises AnaplatRequestError: one of them is too small
    """

    def __init__(
        self, memory_mb: int, page_size: int, concurrency: int, max_answer_mb: int, copies: int = _COPIES
    ) -> None:
        if memory_mb < LEAST_MB:
            raise AnaplatRequestError(f"memory_mb is {memory_mb}; it must be at least {LEAST_MB}.")
        room = (memory_mb - _BASE_MB) * MEGABYTE
        page_bytes = max(_LEAST_PAGE, room // (concurrency + copies))
        self.most_bytes = min(page_bytes * 3 // 2, max_answer_mb * MEGABYTE)
        self._page_bytes = min(page_bytes, self.most_bytes * 2 // 3)
        self._for_rows = self._page_bytes
        self._page_size = page_size
        # Fewer than `concurrency` where pages cannot be small enough.
        self._in_flight = min(concurrency * self._page_bytes, room - copies * self._page_bytes)
        self._least_row = 0
        self.bytes_read = 0
        self.most_rows = 0
        self._lock = threading.Lock()
        self._weights: deque[float] = deque(maxlen=_REMEMBERED)

    def rows(self) -> int:
        """Return how many rows the next request may ask for."""
        with self._lock:
            if not self._weights:
                return min(_FIRST_ROWS, self._page_size)
            return max(1, min(self._page_size, int(self._for_rows / self._heaviest())))

    def requests(self) -> int:
        """Return how many requests of that many rows may be in flight."""
        rows = self.rows()
        with self._lock:
            return max(1, int(self._in_flight / (rows * self._heaviest())))

    def has_columns(self, columns: int) -> None:
        """Note how many cells a row has."""
        self._least_row = columns * _LEAST_CELL

    def makes_columns(self, columns: int) -> None:
        """Note that rows are put into so many columns, page by page."""
        self._for_rows = max(self._page_bytes // 2, self._page_bytes - columns * _BYTES_PER_COLUMN)

    def saw(self, rows: int, size: int) -> None:
        """Note what the rows of a page weighed.

        :param rows: how many
        :param size: bytes of their answer
        """
        with self._lock:
            self.bytes_read += size
            self.most_rows = max(self.most_rows, rows)
            if rows:
                self._weights.append(max(size / rows, self._least_row))

    def saw_too_much(self, rows: int, size: int | None) -> int:
        """Note that an answer was larger than it may be, and return how many rows to ask for instead.

        :param rows: how many were asked for
        :param size: bytes of the answer, if it said so
        """
        with self._lock:
            self._weights.append(max(size or 0, 2 * self.most_bytes) / rows)
        return min(self.rows(), rows // 2)

    def _heaviest(self) -> float:
        return max(self._weights, default=1.0) or 1.0
