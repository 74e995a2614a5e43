"""A dataset's rows as a stream of pages: in the platform's order, of one version, a few of them in flight."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal

from airflow_provider_anaplat.client._http.redaction import LONGEST_WORDS, brief
from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.client.operations import MAX_ROWS_PER_CALL
from airflow_provider_anaplat.errors import (
    AnaplatAnswerTooLargeError,
    AnaplatDatasetChangedError,
    AnaplatInvalidAnswerError,
    AnaplatRequestError,
    AnaplatRowCountError,
)
from airflow_provider_anaplat.output.lines import Lines, Shape
from airflow_provider_anaplat.rows.budget import MEGABYTE, MEMORY_MB, Budget
from airflow_provider_anaplat.rows.decode import Head, RowPage, Said, Snapshot, read_head
from airflow_provider_anaplat.rows.offsets import OffsetCheck

__all__ = [
    "PageReader",
    "RowQuery",
]

log = logging.getLogger(__name__)

_DECODERS = 2
# Pages decoded at a time, the one that is handed on next among them: decoded, a page takes three times the memory.
_DECODED = 2
_VERY_MANY_COLUMNS = 2_000  # of which each takes memory in a page, however few the rows; one page at a time then


@dataclass(frozen=True)
class RowQuery:
    """Which rows of which dataset, and how to ask for them.

    :param ds_id: id of the dataset
    :param sort_by: name of the column to sort by; without it, the contract promises no order
    :param sort_type: ``asc`` or ``desc``
    :param filter: the body's ``filter``
    :param page_size: rows a request asks for at most
    :param concurrency: requests in flight, and pages in memory, at most
    :param memory_mb: megabytes by which the process may grow; pages are made to fit
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
    memory_mb: int = MEMORY_MB


@dataclass(frozen=True)
class _Segment:
    """Rows that are being read.

    :param end: number of the first row behind them
    :param turn: set when they may be decoded
    :param pages: what comes of it, each page with the number of rows that was asked for
    """

    end: int
    turn: threading.Event
    pages: Future[list[tuple[RowPage, int]]]


class PageReader:
    """Reads the pages of one query; it asks for the first one at once, for ``columns`` and ``snapshot``.

    The first page is small. From then on, pages are as large as the budget allows by what the last ones weighed.

    Without a filter, the rows are as many as the first page's ``rowCount`` says. With a filter, the contract
    does not say what ``rowCount`` counts, so the rows end when the platform returns none; but a dataset has no
    more than it counts. :class:`OffsetCheck` finds out whether the platform heeds offsets.

    ``expected_rows`` is how many there will be, or, with a filter, how many there can be.

    :param snapshot: the state that the dataset must be in; by default, whatever state the first page is of
    :param shape: in which shape rows of so many columns are wanted; by default, in columns
    :raises AnaplatDatasetChangedError: the dataset is in another state
    :raises AnaplatRequestError: ``sort_by`` names no column
    :raises AnaplatError: the first page cannot be read
    """

    def __init__(
        self,
        client: AnaplatClient,
        query: RowQuery,
        snapshot: Snapshot | None = None,
        *,
        shape: Callable[[int], Shape] = lambda _: "columns",
    ) -> None:
        if query.page_size < 1 or query.concurrency < 1 or (query.max_rows or 0) < 0:
            raise AnaplatRequestError("page_size and concurrency must be at least 1, and max_rows at least 0.")
        if query.page_size > MAX_ROWS_PER_CALL:
            raise AnaplatRequestError(
                f"page_size is {query.page_size:,}; the platform gives {MAX_ROWS_PER_CALL:,} rows at most."
            )
        self.budget = Budget(query.memory_mb, query.page_size, query.concurrency, client.max_answer_mb)
        self.ds_id = query.ds_id
        self._client = client
        # Decoding takes several times the memory of what it reads, so fewer threads do it than ask.
        self._decoder = ThreadPoolExecutor(_DECODERS, thread_name_prefix="anaplat-decode")
        self._decoded = _DECODED
        self._position = query.offset
        self._query = query
        self._said: Said | None = None
        if query.sort_by is not None:
            self._check_sort_column(query.sort_by)
        first, limit = self._ask(query.offset, max(1, self._within(query.offset, self.budget.rows())))
        self._first = [(first, limit)]  # taken from here when it is read, so that nothing keeps it in memory
        self._said = said = first.said
        self.columns = said.described.columns
        self.budget.has_columns(len(self.columns))
        self._shape = shape(len(self.columns))
        if isinstance(self._shape, Lines):
            self.budget.makes_lines(len(self.columns))
        if self._shape == "columns":
            self.budget.makes_columns(len(self.columns))
            if len(self.columns) >= _VERY_MANY_COLUMNS:
                self._decoded = 1
        self.snapshot = snapshot or said.snapshot
        self.parent_dir_id = said.parent_dir_id
        self._check_snapshot(first)
        left = max(0, self.snapshot.row_count - query.offset)
        self.expected_rows = self._within(query.offset, left)
        self._offsets = OffsetCheck(
            f"Dataset {query.ds_id}",
            lambda offset, limit: self._read(offset, limit)[0].frame,
            sees_end=self.expected_rows == left,
        )

    def pages(self) -> Generator[RowPage]:
        """Yield the pages in their order, each once; the stream can be read once.

        :raises AnaplatDatasetChangedError: the dataset was updated in between
        :raises AnaplatRowCountError: the rows are not as many as the platform says
        :raises AnaplatInvalidAnswerError: the platform gives other rows than those that were asked for
        """
        try:
            yield from self._all()
        finally:
            self._decoder.shutdown(wait=False)

    def _all(self) -> Iterator[RowPage]:
        if self._query.max_rows != 0:
            yield from self._planned()
        if self._query.filter is not None:
            yield from self._beyond()
        self._offsets.look_again()  # says more than a count that is wrong
        self._check_count()
        self._offsets.look_behind(self.snapshot.row_count)

    def _planned(self) -> Iterator[RowPage]:
        """Yield the pages up to the expected end."""
        end = self._query.offset + max(self.expected_rows, 1)  # the first page is read whatever is expected
        ahead = deque([self._first_segment()])
        while self._position < end:
            before = self._position
            yield from self._ahead(ahead, end)
            if self._position == before:  # no rows if some were expected: what follows leaves a gap
                return
            ahead = deque()

    def _first_segment(self) -> _Segment:
        """Return the first page, decoded, since its weight says how many rows the others may have."""
        head, limit = self._first.pop()
        page = self._decoded_page(head, self._query.offset, limit)
        pages: Future[list[tuple[RowPage, int]]] = Future()
        pages.set_result([(page, limit)])
        return _Segment(self._query.offset + page.frame.height, threading.Event(), pages)

    def _ahead(self, ahead: deque[_Segment], end: int) -> Iterator[RowPage]:
        """Yield pages, several requests ahead of the one that is yielded, until one is not what was planned.

        :param ahead: what is read already
        """
        start = ahead[-1].end if ahead else self._position
        stopped = threading.Event()
        pool = ThreadPoolExecutor(self._query.concurrency, thread_name_prefix="anaplat-rows")
        replan = False
        try:
            while True:
                while start < end and len(ahead) < min(self._query.concurrency, self.budget.requests()):
                    asked_end, turn = start + self.budget.rows(), threading.Event()
                    pages = pool.submit(self._segment, start, min(asked_end, end), asked_end, turn, stopped)
                    start = min(asked_end, end)
                    ahead.append(_Segment(start, turn, pages))
                if not ahead:
                    return
                for segment in islice(ahead, self._decoded):
                    segment.turn.set()
                segment_end, read = ahead[0].end, ahead.popleft().pages.result()
                while read:  # nothing here keeps a page that was handed on
                    self._pass(*read[0])
                    yield read.pop(0)[0]
                if self._position < segment_end:
                    replan = True
                    return
        finally:
            stopped.set()
            for segment in ahead:
                segment.turn.set()
            ahead.clear()
            # A new plan's requests wait for those in flight, or there would be more than `concurrency`.
            pool.shutdown(wait=replan, cancel_futures=True)

    def _segment(
        self, start: int, end: int, asked_end: int, turn: threading.Event, stopped: threading.Event
    ) -> list[tuple[RowPage, int]]:
        """Read rows from start to end; a page shorter than asked for is legal, and is completed.

        If rows are too heavy to be read at once, all but the first of them are left to a new plan.

        :param asked_end: the last segment asks for a whole page, so that rows beyond the platform's count come to
            light
        :param turn: set when the rows may be decoded
        :param stopped: set when nobody wants them any more
        """

        def wait() -> None:
            turn.wait()
            if stopped.is_set():
                raise CancelledError  # which nobody hears

        pages: list[tuple[RowPage, int]] = []
        offset = start
        while offset < end and not stopped.is_set():
            planned = self._within(offset, asked_end - offset)
            page, limit = self._read(offset, planned, wait)
            if page.frame.is_empty():
                break
            pages.append((page, limit))
            offset += page.frame.height
            if limit < planned:
                break
            if offset < end:  # what is missing is known, and asked for, only when a page is decoded
                self._decoded = self._query.concurrency
        return pages

    def _beyond(self) -> Iterator[RowPage]:
        """Yield pages until the platform returns none."""
        while planned := self._within(self._position, self.budget.rows()):
            self._check_count()
            page, limit = self._read(self._position, planned)
            self._pass(page, limit)
            if page.frame.is_empty():
                return
            yield page

    def _pass(self, page: RowPage, limit: int) -> None:
        """Look at a page that is handed on next."""
        self._offsets.look(self._position, limit, page.frame)
        self._position += page.frame.height

    def _within(self, offset: int, rows: int) -> int:
        """Return how many of these rows max_rows still allows."""
        if self._query.max_rows is None:
            return rows
        return max(0, min(rows, self._query.offset + self._query.max_rows - offset))

    def _read(self, offset: int, planned: int, wait: Callable[[], None] = lambda: None) -> tuple[RowPage, int]:
        """Return a page, and how many rows were asked for: fewer than planned if that many are too heavy.

        :param wait: returns when the rows may be decoded
        """
        head, limit = self._ask(offset, planned)
        self._check_snapshot(head)
        wait()
        return self._decoded_page(head, offset, limit), limit

    def _decoded_page(self, head: Head, offset: int, limit: int) -> RowPage:
        page = head.page(self._decoder.map, limit, self._shape)
        if page.frame.height > limit:
            raise AnaplatInvalidAnswerError(
                f"read_rows: {limit:,} rows were asked for at offset {offset:,}, and more came."
            )
        self.budget.saw(page.frame.height, len(head.answer.body))
        return page

    def _check_snapshot(self, head: Head) -> None:
        if head.said.snapshot != self.snapshot:
            raise AnaplatDatasetChangedError(
                f"Dataset {self.ds_id} was updated while its rows were being read: "
                f"{_differences(self.snapshot, head.said.snapshot)}. Nothing was published; run the task again."
            )

    def _ask(self, offset: int, limit: int) -> tuple[Head, int]:
        """Ask for rows, or for fewer if that many are too heavy, and return how many were asked for in the end."""
        while True:
            most = self.budget.most_bytes(limit) if limit > 1 else None
            try:
                head = self._ask_for(offset, limit, most)
            except AnaplatAnswerTooLargeError as error:
                if limit == 1:
                    raise
                limit = self.budget.saw_too_much(limit, error.size)
                continue
            if most is None and len(head.answer.body) > self.budget.most_bytes(1):
                log.info(
                    "Dataset %s: row %d alone has %.1f MB, more than the memory_mb=%d of the task allow for; it "
                    "is exported all the same",
                    self.ds_id, offset + 1, len(head.answer.body) / MEGABYTE, self._query.memory_mb,
                )  # fmt: skip
            return head, limit

    def _ask_for(self, offset: int, limit: int, most: int | None) -> Head:
        query = self._query
        return self._client.read_rows_with(
            partial(read_head, ds_id=query.ds_id, known=self._said),
            query.ds_id,
            offset=offset,
            limit=limit,
            sort_by=query.sort_by,
            sort_type=query.sort_type,
            filter=query.filter,
            most=most,
        )

    def _check_sort_column(self, name: str) -> None:
        names = [column.name for column in self._client.get_columns(self._query.ds_id)]
        if name not in names:
            raise AnaplatRequestError(
                f"sort_by: dataset {self._query.ds_id} has no column {name!r}; "
                f"it has {brief(', '.join(map(repr, names)), LONGEST_WORDS)}."
            )

    def _check_count(self) -> None:
        read, expected = self._position - self._query.offset, self.expected_rows
        if read > expected or (self._query.filter is None and read < expected):
            difference = f"{abs(expected - read):,} are {'missing' if read < expected else 'too many'}"
            raise AnaplatRowCountError(
                f"Dataset {self._query.ds_id}: the platform gave {read:,} rows, but counts {expected:,}; "
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
    return brief(", ".join(changes), LONGEST_WORDS)
