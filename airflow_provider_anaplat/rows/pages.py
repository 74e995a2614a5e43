"""A dataset's rows as a stream of pages: in the platform's order, of one version, a few of them in flight."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal

from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.client.operations import MAX_ROWS_PER_CALL
from airflow_provider_anaplat.errors import (
    AnaplatAnswerTooLargeError,
    AnaplatDatasetChangedError,
    AnaplatInvalidAnswerError,
    AnaplatRequestError,
    AnaplatRowCountError,
)
from airflow_provider_anaplat.rows.decode import Head, Page, Snapshot, read_head
from airflow_provider_anaplat.rows.memory import keep_large_blocks_apart
from airflow_provider_anaplat.rows.offsets import OffsetCheck

log = logging.getLogger(__name__)

_DECODERS = 2
# Pages decoded at a time, the one that is handed on next among them: decoded, a page takes three times the memory.
_DECODED = 2


@dataclass(frozen=True)
class RowQuery:
    """Which rows of which dataset, and how to ask for them.

    :param ds_id: id of the dataset
    :param sort_by: name of the column to sort by; without it, the contract promises no order
    :param sort_type: ``asc`` or ``desc``
    :param filter: the body's ``filter``
    :param page_size: rows a request asks for
    :param concurrency: requests in flight, and pages in memory, at most
    :param max_rows: rows at most; None for all
    :param offset: number of the first row, counted from 0
    """

    ds_id: str
    sort_by: str | None = None
    sort_type: Literal["asc", "desc"] = "asc"
    filter: Mapping[str, Any] | None = None
    page_size: int = MAX_ROWS_PER_CALL
    concurrency: int = 4
    max_rows: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class _Segment:
    """Rows that are being read.

    :param end: number of the first row behind them
    :param turn: set when they may be decoded
    :param pages: what comes of it, each page with the number of rows that was asked for
    """

    end: int
    turn: threading.Event
    pages: Future[list[tuple[Page, int]]]


class PageReader:
    """Reads the pages of one query; it asks for the first one at once, for ``columns`` and ``snapshot``.

    Without a filter, the rows are as many as the first page's ``rowCount`` says. With a filter, the contract
    does not say what ``rowCount`` counts, so the rows end where the platform returns none; but a dataset has no
    more than it counts. Whether the platform heeds offsets, :class:`OffsetCheck` finds out.

    ``expected_rows`` is how many there will be, or, with a filter, how many there can be.

    :param snapshot: the state that the dataset must be in; by default, whatever state the first page is of
    :raises AnaplatDatasetChangedError: the dataset is in another state
    :raises AnaplatRequestError: ``sort_by`` names no column
    :raises AnaplatError: the first page cannot be read
    """

    def __init__(self, client: AnaplatClient, query: RowQuery, snapshot: Snapshot | None = None) -> None:
        if query.page_size < 1 or query.concurrency < 1 or (query.max_rows or 0) < 0:
            raise AnaplatRequestError("page_size and concurrency must be at least 1, and max_rows at least 0.")
        keep_large_blocks_apart()
        self.ds_id = query.ds_id
        self._client = client
        # Decoding takes several times the memory of what it reads, so fewer threads do it than ask.
        self._decoder = ThreadPoolExecutor(_DECODERS, thread_name_prefix="anaplat-decode")
        self._stopped = threading.Event()
        self._decoded = _DECODED
        self._position = query.offset
        self._most = query.page_size
        self._query = query
        self._offsets = OffsetCheck(
            f"Dataset {query.ds_id}", lambda offset, limit: self._read(offset, limit).frame
        )
        if query.sort_by is not None:
            self._check_sort_column(query.sort_by)
        first = self._ask(query.offset, max(1, self._within(query.offset, query.page_size)))
        # Taken from here when it is read, so that nothing keeps it in memory.
        self._answered = {query.offset: first}
        self.columns = first.columns
        self.snapshot = snapshot or first.snapshot
        self.parent_dir_id = first.parent_dir_id
        self._check_snapshot(first)
        self.expected_rows = self._within(query.offset, max(0, self.snapshot.row_count - query.offset))

    def pages(self) -> Generator[Page]:
        """Yield the pages in their order, each once; the stream can be read once.

        :raises AnaplatDatasetChangedError: the dataset was updated in between
        :raises AnaplatRowCountError: the rows are not as many as the platform says
        :raises AnaplatInvalidAnswerError: the platform gives other rows than those that were asked for
        """
        try:
            yield from self._all()
        finally:
            self._decoder.shutdown(wait=False)

    def _all(self) -> Iterator[Page]:
        if self._query.max_rows != 0:
            yield from self._planned()
        if self._query.filter is not None:
            yield from self._beyond()
        self._check_count()
        self._offsets.look_behind(self.snapshot.row_count)

    def _planned(self) -> Iterator[Page]:
        """Yield the pages up to the expected end, several requests ahead of the one that is yielded."""
        first = self._query.offset
        end = first + max(self.expected_rows, 1)  # the first page is read whatever is expected
        starts = iter(range(first, end, self._query.page_size))
        pool = ThreadPoolExecutor(self._query.concurrency, thread_name_prefix="anaplat-rows")
        ahead: deque[_Segment] = deque()
        try:
            while True:
                while len(ahead) < self._query.concurrency and (start := next(starts, None)) is not None:
                    segment_end, turn = min(start + self._query.page_size, end), threading.Event()
                    pages = pool.submit(self._segment, start, segment_end, turn)
                    ahead.append(_Segment(segment_end, turn, pages))
                if not ahead:
                    return
                for segment in islice(ahead, self._decoded):
                    segment.turn.set()
                segment_end, read = ahead[0].end, ahead.popleft().pages.result()
                while read:  # nothing here keeps a page that was handed on
                    self._pass(*read[0])
                    yield read.pop(0)[0]
                if self._position < segment_end:  # no rows where some were expected: what follows leaves a gap
                    return
        finally:
            self._stopped.set()
            for segment in ahead:
                segment.turn.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _segment(self, start: int, end: int, turn: threading.Event) -> list[tuple[Page, int]]:
        """Read rows from start to end; a page shorter than asked for is legal and completed.

        The last segment asks for a whole page, so that rows beyond the platform's count come to light.

        :param turn: set when the rows may be decoded
        """
        pages: list[tuple[Page, int]] = []
        offset = start
        last = end >= self._query.offset + self.expected_rows
        asked_end = start + self._query.page_size if last else end
        while offset < end and not self._stopped.is_set():
            limit = self._within(offset, asked_end - offset)
            page = self._read(offset, limit, turn)
            if page.frame.is_empty():
                break
            pages.append((page, limit))
            offset += page.frame.height
            if offset < end:  # what is missing is known, and asked for, only where a page is decoded
                self._decoded = self._query.concurrency
        return pages

    def _beyond(self) -> Iterator[Page]:
        """Yield pages until the platform returns none."""
        while limit := self._within(self._position, self._query.page_size):
            self._check_count()
            page = self._read(self._position, limit)
            self._pass(page, limit)
            if page.frame.is_empty():
                return
            yield page

    def _pass(self, page: Page, limit: int) -> None:
        """Look at a page that is handed on next."""
        self._offsets.look(self._position, limit, page.frame)
        self._position += page.frame.height

    def _within(self, offset: int, rows: int) -> int:
        """Return how many of these rows max_rows still allows."""
        if self._query.max_rows is None:
            return rows
        return max(0, min(rows, self._query.offset + self._query.max_rows - offset))

    def _read(self, offset: int, limit: int, turn: threading.Event | None = None) -> Page:
        head = self._answered.pop(offset, None) or self._ask(offset, limit)
        self._check_snapshot(head)
        if turn is not None:
            turn.wait()
            if self._stopped.is_set():
                raise CancelledError  # which nobody hears
        page = head.page(self._decoder.map)
        if page.frame.height > limit:
            raise AnaplatInvalidAnswerError(
                f"read_rows: {limit:,} rows were asked for at offset {offset:,}, and {page.frame.height:,} came."
            )
        return page

    def _check_snapshot(self, head: Head) -> None:
        if head.snapshot != self.snapshot:
            raise AnaplatDatasetChangedError(
                f"Dataset {self.ds_id} was updated while its rows were being read: "
                f"{_differences(self.snapshot, head.snapshot)}. Nothing was published; run the task again."
            )

    def _ask(self, offset: int, limit: int) -> Head:
        """Ask for rows, and for fewer from then on where so many are larger than an answer may be."""
        while True:
            limit = min(limit, self._most)
            try:
                return self._ask_for(offset, limit)
            except AnaplatAnswerTooLargeError:
                if limit == 1:
                    raise
                self._most = limit // 2
                log.info("Dataset %s: at most %d rows a request from now on", self.ds_id, self._most)

    def _ask_for(self, offset: int, limit: int) -> Head:
        query = self._query
        return self._client.read_rows_with(
            partial(read_head, ds_id=query.ds_id),
            query.ds_id,
            offset=offset,
            limit=limit,
            sort_by=query.sort_by,
            sort_type=query.sort_type,
            filter=query.filter,
        )

    def _check_sort_column(self, name: str) -> None:
        names = [column.name for column in self._client.get_columns(self._query.ds_id)]
        if name not in names:
            raise AnaplatRequestError(
                f"sort_by: dataset {self._query.ds_id} has no column {name!r}; "
                f"it has {', '.join(map(repr, names))}."
            )

    def _check_count(self) -> None:
        read, expected = self._position - self._query.offset, self.expected_rows
        if read > expected or (self._query.filter is None and read < expected):
            difference = f"{abs(expected - read):,} are {'missing' if read < expected else 'too many'}"
            raise AnaplatRowCountError(
                f"Dataset {self._query.ds_id}: the platform gave {read:,} rows where it counts {expected:,}; "
                f"{difference}. Nothing was published; run the task again."
            )


def _differences(before: Snapshot, after: Snapshot) -> str:
    changes = [
        f"{name} {old} became {new}"
        for name, old, new in (
            ("version", before.version, after.version),
            ("utime", before.utime, after.utime),
            ("rowCount", before.row_count, after.row_count),
            ("columns", list(before.columns), list(after.columns)),
        )
        if old != new
    ]
    return ", ".join(changes)
