"""Which user may see and export which dataset and page, to a file."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from airflow_provider_anaplat.access.changes import Changes, Comparison, compared
from airflow_provider_anaplat.access.columns import COLUMNS
from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.client.models import AuthorizedResource, GrantingSubject
from airflow_provider_anaplat.errors import (
    PASSING_ERRORS,
    AnaplatAccessRefusedError,
    AnaplatAccessReportError,
    AnaplatAuthenticationError,
    AnaplatError,
    AnaplatRequestError,
)
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.output.schema import Caster, schema_of

__all__ = [
    "COLUMNS",
    "AccessQuery",
    "AccessSummary",
    "Kind",
    "Row",
    "write_access_report",
]

log = logging.getLogger(__name__)

Row = tuple[str, str, str, str | None, bool | None, bool | None, bool | None, str]
Kind = Literal["dataset", "page"]

_ROWS_PER_FRAME = 10_000
_HOPELESS = 20  # users in a row for whom the platform did not answer
_USERS_BETWEEN_LINES = 500


@dataclass
class AccessSummary:
    """What was reported.

    :param users: users whose rights are in the file
    :param failed: what went wrong, by the user's id; none of these users has a row
    :param bytes: size of the file
    :param changes: what is different from an earlier report; None if it was compared with none
    """

    users: int = 0
    datasets: int = 0
    pages: int = 0
    bytes: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    changes: Changes | None = None
    may_pass: bool = False  # at least one of these errors may be gone at a repetition

    def result(self) -> dict[str, Any]:
        """Return the numbers, under the names that a task and a command show them by."""
        changes = self.changes
        return {
            "users": self.users,
            "datasets": self.datasets,
            "pages": self.pages,
            "bytes": self.bytes,
            "failed": len(self.failed),
            "gained": changes.gained if changes else None,
            "lost": changes.lost if changes else None,
            "changesPath": str(changes.comparison.changes) if changes else None,
        }

    def raise_failed(self) -> None:
        """Raise what the users who failed come to, if there are any."""
        if not self.failed:
            return
        user_id, error = next(iter(self.failed.items()))
        raise (AnaplatAccessReportError if self.may_pass else AnaplatAccessRefusedError)(
            f"The rights of {len(self.failed):,} users could not be read; those of {self.users:,} are in the "
            f"file. The first was {user_id!r}: {error} The log names the others. Correct user_ids or the cause, "
            "or set on_user_error to 'report' to let such a task succeed."
        )


@dataclass(frozen=True)
class AccessQuery:
    """Whose rights to read, and how.

    :param user_ids: ids of the users (``uId``); one that comes again is not asked for again
    :param page_types: values of ``pgType`` to ask for, each in a request of its own; none leaves it out
    :param concurrency: requests in flight at most
    """

    user_ids: Sequence[str]
    page_types: Sequence[str] = ()
    concurrency: int = 8


def write_access_report(
    client: AnaplatClient, query: AccessQuery, place: Place, comparison: Comparison | None = None
) -> AccessSummary:
    """Write one row for each user and resource, in the order of the users; the file appears when it is complete.

    Memory is bounded by the rights of ``concurrency`` × 2 users, not by the number of users, and does not grow
    with an earlier report either.

    :param place: path, format and compression of the file
    :param comparison: an earlier report, and where to write what is different; it is read first
    :raises AnaplatAuthenticationError: the token is not good; nothing was written
    :raises AnaplatEarlierReportError: the earlier report is missing, damaged or cannot be read; nothing was sent
    :raises AnaplatError: the rights of no user could be read, or not those of many in a row; nothing was written
    :raises AnaplatOutputError: the file cannot be written
    """
    if query.concurrency < 1:
        raise AnaplatRequestError("concurrency must be at least 1.")
    summary = AccessSummary()
    with compared(comparison, place) as rights:
        with closing(_frames(client, query, summary)) as frames:
            noted = frames if rights is None else rights.noted(frames)
            texts = (frame.cast(pl.String) for frame in noted)
            summary.bytes = place.write(texts, Caster(COLUMNS)).bytes
        if rights is not None:
            summary.changes = rights.write_changes(summary.failed)
    return summary


def _frames(client: AnaplatClient, query: AccessQuery, summary: AccessSummary) -> Generator[pl.DataFrame]:
    schema = schema_of(COLUMNS, typed=True)
    waiting: list[Row] = []
    with closing(_rows_by_user(client, query, summary)) as users:
        for rows in users:
            waiting += rows
            if len(waiting) >= _ROWS_PER_FRAME:
                yield pl.DataFrame(waiting, schema=schema, orient="row")
                waiting = []
    if waiting:
        yield pl.DataFrame(waiting, schema=schema, orient="row")


def _rows_by_user(client: AnaplatClient, query: AccessQuery, summary: AccessSummary) -> Generator[list[Row]]:
    """Yield the rows of each user, in their order, and note who failed."""
    in_a_row = 0
    error: AnaplatError | None = None
    with closing(_answers(client, query)) as answers:
        for number, (user_id, answer) in enumerate(answers, 1):
            try:
                rows = answer.result()
            except AnaplatAuthenticationError:
                raise
            except AnaplatError as refused:
                error = refused
                summary.failed[user_id] = str(error)
                log.warning("User %s is not in the report: %s", user_id, error)
                may_pass = isinstance(error, PASSING_ERRORS)
                summary.may_pass |= may_pass
                in_a_row = in_a_row + 1 if may_pass else 0
                if in_a_row >= _HOPELESS:
                    raise
                continue
            in_a_row = 0
            summary.users += 1
            summary.pages += sum(row[1] == "page" for row in rows)
            summary.datasets += sum(row[1] == "dataset" for row in rows)
            if number % _USERS_BETWEEN_LINES == 0:
                log.info("The rights of %d of %d users are read", number, len(query.user_ids))
            yield rows
    if error is not None and not summary.users:
        raise error


def _answers(client: AnaplatClient, query: AccessQuery) -> Generator[tuple[str, Future[list[Row]]]]:
    """Yield each user's answer in the order of the users, with so many asked for ahead that no thread is idle."""
    names = _Names(client)
    users = iter(dict.fromkeys(query.user_ids))
    ahead: deque[tuple[str, Future[list[Row]]]] = deque()
    pool = ThreadPoolExecutor(query.concurrency, thread_name_prefix="anaplat-access")
    try:
        while True:
            while len(ahead) < 2 * query.concurrency and (user_id := next(users, None)) is not None:
                ahead.append((user_id, pool.submit(_read, client, query.page_types, names, user_id)))
            if not ahead:
                return
            user_id, answer = ahead.popleft()
            answer.exception()  # waits
            yield user_id, answer
            del answer
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _read(client: AnaplatClient, page_types: Sequence[str], names: _Names, user_id: str) -> list[Row]:
    """Return the rows of one user."""
    rows = [_row(user_id, "dataset", found, names) for found in client.list_authorized_datasets(user_id)]
    pages: dict[str, Row] = {}  # a page may come with more than one type
    for page_type in page_types or (None,):
        for found in client.list_authorized_pages(user_id, page_type=page_type):
            pages.setdefault(found.id, _row(user_id, "page", found, names))
    return [*rows, *pages.values()]


def _row(user_id: str, kind: Kind, found: AuthorizedResource, names: _Names) -> Row:
    return (
        user_id,
        kind,
        found.id,
        found.name or names.of(kind, found.id),
        found.is_owner,
        found.is_inherit,
        found.can_export,
        "; ".join(map(_called, found.sources or ())),
    )


def _called(subject: GrantingSubject) -> str:
    """Return a granting subject for a person to read: name, id, and whether it is the user."""
    marks = ", ".join(filter(None, (subject.id if subject.name else None, "self" if subject.is_self else None)))
    name = subject.name or subject.id or "unnamed"
    return f"{name} ({marks})" if marks else name


class _Names:
    """The names of datasets and pages, from the lists of all (operations 2 and 7), each read when first needed."""

    def __init__(self, client: AnaplatClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._by_kind: dict[Kind, dict[str, str | None]] = {}

    def of(self, kind: Kind, resource_id: str) -> str | None:
        """Return a name; None if the platform tells none."""
        with self._lock:
            if kind not in self._by_kind:
                self._by_kind[kind] = self._read(kind)
            return self._by_kind[kind].get(resource_id)

    def _read(self, kind: Kind) -> dict[str, str | None]:
        try:
            if kind == "dataset":
                return {dataset.ds_id: dataset.name for dataset in self._client.list_datasets()}
            return {page.pg_id: page.name for page in self._client.list_pages()}
        except AnaplatError as error:  # the rights matter more than the names
            log.warning("Some %ss stay without a name: %s", kind, error)
            return {}
