"""Refresh a dataset so that one run asks for at most one update, whatever happens to requests and workers."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http.checks import is_same_address
from airflow_provider_anaplat.client.models import Dataset
from airflow_provider_anaplat.client.tasks import RefreshCall
from airflow_provider_anaplat.datasets import InDoubt
from airflow_provider_anaplat.errors import (
    AnaplatError,
    AnaplatNeedsAPersonError,
    AnaplatNotFoundError,
    AnaplatNotSeenError,
    AnaplatOutcomeUnknownError,
)
from airflow_provider_anaplat.state import StateStore, forget_failed, read_note
from airflow_provider_anaplat.waiting.moments import is_later
from airflow_provider_anaplat.waiting.states import State, StateTable

__all__ = [
    "Asked",
    "IfRunning",
    "Refresh",
    "RefreshWish",
]

log = logging.getLogger(__name__)

IfRunning = Literal["follow", "fail", "request"]

_KEY = "anaplat_refresh"
_LOOKS_AFTER_A_LOST_ANSWER = 3
_SECOND = timedelta(seconds=1)
# Of the platform's clock, which is known to within a second. A last update that is further ahead is none of now.
_LONGEST_SECOND = 3.0


@dataclass(frozen=True, slots=True)
class RefreshWish:
    """What is to be refreshed, and what to do if that is not clear.

    :param ds_id: id of the dataset
    :param call: how the platform is asked
    :param body: the request's body, without the token; None for none
    :param if_running: if an update is already running: ``follow`` it, ``fail``, or ``request`` one more
    :param in_doubt: if the answer was lost and no update is seen: ``fail``, so that a person looks, or let a
        repetition ``resend`` the request
    :param since: an update that ended since then, by our clock, is the one that is asked for; None if only the
        store tells
    :param states: what the dataset's status words mean
    :param pause: seconds between two looks after a lost answer
    """

    ds_id: str
    call: RefreshCall = field(default_factory=RefreshCall)
    body: Mapping[str, Any] | None = None
    if_running: IfRunning = "follow"
    in_doubt: InDoubt = "fail"
    since: datetime | None = None
    states: StateTable = field(default_factory=StateTable)
    pause: float = 10.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What was noted before the update, beyond which a wait has to look.

    :param dataset: summary of the dataset
    :param utime: its last update (ISO 8601); None if it was never updated, or if an update is followed,
        whose end is the status alone
    :param task_id: the platform's id of the update, if its answer names one
    :param accepted: whether the platform has accepted the request, or was not asked
    :param platform: address of the platform that was asked
    """

    dataset: dict[str, Any]
    utime: str | None
    task_id: str | None = None
    accepted: bool = False
    platform: str | None = None


class Refresh:
    """One attempt to have a dataset updated.

    Before the request is sent, the attempt notes what the dataset list showed. So the next attempt knows that a
    request was sent, and what an update has changed. After a lost answer the list is looked at: an update that
    runs or is done is this one.

    :param client: the platform
    :param store: what the attempts of one run remember; None if nothing does
    :param wish: what is to be refreshed
    """

    def __init__(self, client: AnaplatClient, store: StateStore | None, wish: RefreshWish) -> None:
        self._client = client
        self._store = store
        self._wish = wish

    def ask(self) -> Asked:
        """Have the platform update the dataset, unless an earlier attempt has, or an update is already running.

        :raises AnaplatNotFoundError: the dataset is not in the list
        :raises AnaplatNeedsAPersonError: an update is already running, and ``if_running`` is ``fail``; or the
            platform reports at once that the update failed
        :raises AnaplatDamagedStateError: what an earlier attempt noted cannot be read; nothing was sent
        :raises AnaplatOutcomeUnknownError: the answer was lost, and no update is seen
        :raises AnaplatNotSeenError: the same, if ``in_doubt`` is ``resend``
        :raises AnaplatError: the platform refuses, or does not answer
        """
        return self._asked_before() or self._ask_or_follow()

    def forget(self) -> None:
        """Forget this refresh: the next attempt asks for another."""
        if self._store is not None:
            self._store.delete(_KEY)

    def give_up(self) -> None:
        """Forget this refresh, which has failed."""
        forget_failed(self._store, _KEY)

    def look(self) -> Dataset:
        """Return the dataset as the list shows it.

        :raises AnaplatNotFoundError: it is not there
        """
        dataset = self._client.find_datasets([self._wish.ds_id]).get(self._wish.ds_id)
        if dataset is None:
            raise AnaplatNotFoundError(
                f"Dataset {self._wish.ds_id} is not in the dataset list, so it was not refreshed. Check the id, "
                "and the rights of the connection's token."
            )
        return dataset

    def _asked_before(self) -> Asked | None:
        """Return what an earlier attempt noted before it asked; None if none has asked."""
        if self._store is None:
            return self._updated_since()
        asked = read_note(self._store, _KEY, "note of a refresh", _asked)
        if asked is None or asked.dataset["dsId"] != self._wish.ds_id:
            return None
        if asked.platform is not None and not is_same_address(asked.platform, self._client.base_url):
            log.info("An earlier attempt has asked %s; the connection leads elsewhere now", asked.platform)
            return None
        log.info("An earlier attempt has asked for the refresh of dataset %s", self._wish.ds_id)
        if not asked.accepted:
            self._find_update(
                asked, AnaplatOutcomeUnknownError("An earlier attempt ended before its answer came.")
            )
        return asked

    def _updated_since(self) -> Asked | None:
        if self._wish.since is None:
            return None
        dataset = self.look()
        since = self._client.earliest_platform_time(self._wish.since)
        if dataset.utime is None or dataset.utime <= since or self._is_running(dataset):
            return None
        log.info("Dataset %s was updated at %s; this update counts", self._wish.ds_id, dataset.utime)
        return Asked(dataset.summary(), since.isoformat(), accepted=True)

    def _ask_or_follow(self) -> Asked:
        dataset = self.look()
        summary = dataset.summary()
        if self._is_running(dataset) and self._wish.if_running != "request":
            if self._wish.if_running == "fail":
                raise AnaplatNeedsAPersonError(
                    f"Dataset {self._wish.ds_id} is {summary['status']!r}: an update is already running. Wait "
                    "until it ends, or use if_running='follow' or if_running='request'."
                )
            log.info("Dataset %s is %r: following the running update", self._wish.ds_id, summary["status"])
            # When the platform sets `utime` of an update that runs is not known: its end is its status alone.
            return self._note(Asked(summary, None, accepted=True))
        self._let_second_pass(dataset.utime)
        return self._ask(self._note(Asked(summary, summary["utime"])))

    def _let_second_pass(self, utime: datetime | None) -> None:
        """Wait until the platform's clock has left the second of the last update.

        It shows whole seconds, so that an update that ends within the same one would never be seen.
        """
        if utime is None:
            return
        platform_now = self._client.earliest_platform_time(datetime.now(UTC))
        left = (utime + _SECOND - platform_now).total_seconds()
        if 0 < left < _LONGEST_SECOND:
            time.sleep(left)

    def _ask(self, asked: Asked) -> Asked:
        try:
            task = self._client.refresh_dataset(self._wish.ds_id, self._wish.call, self._wish.body)
        except AnaplatOutcomeUnknownError as error:
            log.warning("%s", error)
            self._find_update(asked, error)
            return asked
        except AnaplatError:  # it was refused, or never left
            self.give_up()
            raise
        if self._wish.states.failed_at_once(task):
            self.give_up()
            raise AnaplatNeedsAPersonError(
                f"The platform accepted the refresh of dataset {self._wish.ds_id} and reports that it failed: "
                f"status {task.status!r}, result {task.error or task.result!r}. Look at the dataset there, then "
                "clear this task to ask again."
            )
        log.info("The platform has accepted the refresh of dataset %s", self._wish.ds_id)
        return self._note(Asked(asked.dataset, asked.utime, task.task_id, accepted=True))

    def _note(self, asked: Asked) -> Asked:
        asked = replace(asked, platform=self._client.base_url)
        if self._store is not None:
            self._store.set(_KEY, asdict(asked))
        return asked

    def _find_update(self, asked: Asked, error: AnaplatOutcomeUnknownError) -> None:
        """See that a request whose answer was lost was accepted: something has changed, or is about to.

        :raises AnaplatOutcomeUnknownError: no sign of it is seen
        """
        why = str(error)
        for number in range(_LOOKS_AFTER_A_LOST_ANSWER):
            time.sleep(self._wish.pause if number else 0)
            try:
                dataset = self.look()
            except AnaplatError as unanswered:
                why = f"{why} {unanswered}"
                continue
            if self._is_running(dataset) or self._has_changed(dataset, asked):
                status = dataset.summary()["status"]
                log.info("It was accepted: dataset %s is %r", self._wish.ds_id, status)
                return
        self.give_up()
        resend = self._wish.in_doubt == "resend"
        advice = (
            "in_doubt is 'resend': a retry of this task asks again, which may update the dataset twice."
            if resend
            else "It was not asked for again. Look on the platform, then clear this task to ask again."
        )
        raise (AnaplatNotSeenError if resend else AnaplatOutcomeUnknownError)(
            f"It is not known whether the refresh of dataset {self._wish.ds_id} was accepted: no update was seen "
            f"since. {advice} {why}",
            operation=error.operation,
            status=error.status,
        ) from error

    def _is_running(self, dataset: Dataset) -> bool:
        return self._wish.states.read(dataset.status) is State.WORKING

    def _has_changed(self, dataset: Dataset, asked: Asked) -> bool:
        noted = datetime.fromisoformat(asked.utime) if asked.utime else None
        later = is_later(dataset.utime, noted, self._client.earliest_platform_time(datetime.now(UTC)))
        return later or dataset.summary()["status"] != asked.dataset["status"]


def _asked(note: Any) -> Asked:
    """Return what was noted, if all of it is what an attempt notes."""
    asked = Asked(**note)
    shown = Dataset.model_validate(asked.dataset).summary()
    if asdict(asked) != note or shown != asked.dataset or asked.utime not in (None, shown["utime"]):
        raise ValueError("no refresh")
    texts = isinstance(asked.task_id, str | None) and isinstance(asked.platform, str | None)
    if not texts or not isinstance(asked.accepted, bool):
        raise TypeError("no refresh")
    return asked
