"""Create a dataset so that one DAG run creates at most one, whatever happens to requests and workers."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from typing import Any, Literal

import tenacity

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http.checks import is_same_address
from airflow_provider_anaplat.client.models import CreateDatasetRequest, CreationTask, Dataset
from airflow_provider_anaplat.datasets import InDoubt
from airflow_provider_anaplat.errors import (
    AnaplatDamagedStateError,
    AnaplatDatasetExistsError,
    AnaplatError,
    AnaplatNotSeenError,
    AnaplatOutcomeUnknownError,
    AnaplatRequestError,
)
from airflow_provider_anaplat.state import StateStore, damaged, forget_failed, read_note
from airflow_provider_anaplat.waiting.wait import may_pass

__all__ = [
    "Creation",
    "IfExists",
    "Wish",
]

log = logging.getLogger(__name__)

IfExists = Literal["reuse", "fail", "create"]

_KEY = "anaplat_dataset"
# How the dataset list shows the directory of a dataset that was created without one: the contract does not say.
_ROOT = ("", "root")
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 10.0  # seconds between two looks


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be created, and what to do if it is there already.

    :param request: the body of the request
    :param if_exists: if a dataset of this name stands in this directory that this DAG run did not create:
        ``reuse`` it, ``fail``, or ``create`` one more
    :param since: when this DAG run began; a dataset of this name that is younger is taken for its own if no
        store remembers. None if there is no DAG run
    :param settling_time: seconds for which the dataset list is watched for what an unanswered request created
    :param in_doubt: if it does not appear: ``fail``, so that a person looks, or let a repetition ``resend`` the
        request
    """

    request: CreateDatasetRequest
    if_exists: IfExists
    since: datetime | None
    settling_time: float
    in_doubt: InDoubt = "fail"

    def __post_init__(self) -> None:
        if not isinstance(self.settling_time, int | float) or not 0 <= self.settling_time < inf:  # NaN neither
            raise AnaplatRequestError(
                f"reconcile_timeout is {self.settling_time!r}; it must be a finite number of seconds, 0 at least. "
                "Nothing was sent."
            )


class Creation:
    """One attempt to have the dataset.

    The contract knows no idempotency key. So the attempt writes down that it is about to send the request, which
    datasets of the name there were before, and what was answered; and before it sends anything, it looks for
    what an earlier attempt has created.

    :param client: the platform
    :param store: what the attempts of this DAG run's task remember; None if nothing does
    :param wish: what is to be created
    """

    def __init__(self, client: AnaplatClient, store: StateStore | None, wish: Wish) -> None:
        self._client = client
        self._store = store
        self._wish = wish
        self._answered = False  # whether the platform has shown its list

    def find_or_create(self) -> CreationTask:
        """Return the creation of this DAG run, or of the dataset that it shall reuse.

        :raises AnaplatDatasetExistsError: the name is taken and ``if_exists`` is ``fail``, or it is ambiguous
        :raises AnaplatOutcomeUnknownError: the answer was lost, and the dataset list does not show the dataset
        :raises AnaplatNotSeenError: the same, if ``in_doubt`` is ``resend``
        :raises AnaplatDamagedStateError: what an earlier attempt noted cannot be read; nothing was sent
        :raises AnaplatError: the platform refuses, or does not answer
        """
        noted = read_note(self._store, _KEY, "note of a creation", self._created_or_known)
        if isinstance(noted, CreationTask):
            log.info("An earlier attempt of this DAG run has created dataset %s", noted.ds_id)
            return noted
        own = None if noted is None else self._look(noted)
        if own is not None:
            return self._adopt(own, "an earlier attempt of this DAG run has created")
        namesakes = self._namesakes()
        if noted is not None:  # what appeared since the last look is not yet known
            own = self._new(namesakes, noted)
        elif self._store is None:
            own = self._own_by_time(namesakes)
        if own is not None:
            return self._adopt(own, "an earlier attempt has created, as far as can be known,")
        return self._reuse(namesakes) or self._create([dataset.ds_id for dataset in namesakes])

    @property
    def _wished(self) -> list[str | None]:
        return [self._wish.request.name, self._wish.request.parent_dir_id]

    def _created_or_known(self, note: Any) -> CreationTask | list[str]:
        """Return what was created or, if only the intention was noted, the ids of the datasets of before.

        :raises AnaplatDamagedStateError: it is about another name, by which nobody could find what was created,
            or another platform
        """
        noted = _created_or_known(note)
        here = self._client.base_url
        if not is_same_address(note.get("platform", here), here):  # the connection was corrected
            raise AnaplatDamagedStateError(
                f"An earlier attempt of this run has asked for a dataset of {note['platform']}, and the "
                f"connection leads to {here} now. Nothing was sent. Trigger a new run to create it there; "
                "or let the connection lead back, and clear the task."
            )
        wished = note.get("wished", self._wished)
        # A mapped task has another name once its list has; those after it would work on the wrong dataset.
        if isinstance(noted, CreationTask) and wished != self._wished:
            raise AnaplatDamagedStateError(
                f"An earlier attempt of this run has got dataset {noted.ds_id}, which is {wished}, and "
                f"{self._wished} is wanted now; a run gets one dataset. Nothing was sent. Trigger a new run for "
                "the other; or let name and directory be as they were, and clear the task."
            )
        if self._store is not None and wished != self._wished:
            raise damaged(self._store, _KEY, f"a dataset {wished} was asked for, and {self._wished} is wanted now")
        return noted

    def _namesakes(self) -> list[Dataset]:
        """Return the datasets of the wished name in the wished directory; in any directory, if none is wished.

        What the list says of others may be malformed.

        :raises AnaplatInvalidAnswerError: what it says of one of the name is, so that its directory is not known
        """
        name, directory = self._wish.request.name, self._wish.request.parent_dir_id
        listed = self._client.find_datasets(())
        self._answered = True

        def may_be_it(record: Mapping[str, Any]) -> bool:
            shown = record.get("parentDirId")
            is_there = not directory or shown == directory or not isinstance(shown, str | None)
            return record.get("name") == name and is_there

        found = listed.matching(may_be_it)
        return [dataset for ds_id in found if (dataset := listed.get(ds_id)) is not None]

    def _new(self, namesakes: Iterable[Dataset], known: Collection[str]) -> Dataset | None:
        """Find the dataset that was not there before."""
        return self._only([dataset for dataset in namesakes if dataset.ds_id not in known])

    def _own_by_time(self, namesakes: Sequence[Dataset]) -> Dataset | None:
        """Find the dataset that this DAG run has created, by the platform's clock."""
        if self._wish.since is None:
            return None
        # The platform gives whole seconds.
        earliest = self._client.earliest_platform_time(self._wish.since) - timedelta(seconds=1)
        return self._only([dataset for dataset in namesakes if dataset.ctime and dataset.ctime >= earliest])

    def _reuse(self, namesakes: Sequence[Dataset]) -> CreationTask | None:
        if self._wish.request.parent_dir_id:
            here = namesakes
        else:
            here = [dataset for dataset in namesakes if (dataset.parent_dir_id or "").lower() in _ROOT]
        if not here or self._wish.if_exists == "create":
            return None
        if self._wish.if_exists == "fail":
            raise AnaplatDatasetExistsError(
                f"{self._called()} exists already: {_ids(here)}. Rename or remove it, choose another name, or set "
                "if_exists to 'reuse' or 'create'."
            )
        dataset = self._only(here)
        return None if dataset is None else self._adopt(dataset, "there is already")

    def _create(self, known: list[str]) -> CreationTask:
        self._note({"known": known, "wished": self._wished})
        try:
            task = self._client.create_dataset(self._wish.request)
        except AnaplatOutcomeUnknownError as error:
            log.warning("%s Looking whether the platform has created it.", error)
            return self._found_after(error, known)
        except AnaplatError:
            forget_failed(self._store, _KEY)  # nothing was created
            raise
        self._note_created(task)
        return task

    def _found_after(self, error: AnaplatOutcomeUnknownError, known: Sequence[str]) -> CreationTask:
        """Return the creation whose answer was lost; if it does not show, a person must look."""
        try:
            own = self._look(known)
        except AnaplatDatasetExistsError:
            raise
        except AnaplatError as unanswered:  # whatever it is, a retry must not send the request again
            log.warning("%s", unanswered)
            own = None
        if own is None:
            raise self._not_found(error) from error
        return self._adopt(own, "this attempt has created")

    def _look(self, known: Iterable[str]) -> Dataset | None:
        """Look for a dataset that was not there before, until the platform must have shown it.

        The time counts from now: the platform may have kept the request of a worker until that died.
        """
        known = set(known)
        end = time.monotonic() + self._wish.settling_time

        def look() -> Dataset | None:
            return self._new(self._namesakes(), known)

        looking = tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda found: found is None)
            | tenacity.retry_if_exception(lambda error: may_pass(error, answered=self._answered)),
            stop=lambda _: time.monotonic() >= end,
            wait=tenacity.wait_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            sleep=lambda seconds: time.sleep(max(0.0, min(seconds, end - time.monotonic()))),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        )
        found: Dataset | None = looking(look)
        return found

    def _only(self, datasets: Sequence[Dataset]) -> Dataset | None:
        if len(datasets) > 1:
            raise AnaplatDatasetExistsError(
                f"{self._called()} exists {len(datasets)} times ({_ids(datasets)}), and nothing tells which one "
                "is meant. Remove or rename all but one, then clear the task."
            )
        return datasets[0] if datasets else None

    def _adopt(self, dataset: Dataset, why: str) -> CreationTask:
        task = CreationTask(ds_id=dataset.ds_id, status=dataset.summary()["status"])
        self._note_created(task)
        log.info("Dataset %s (%r, %r) is adopted: %s it", dataset.ds_id, dataset.name, task.status, why)
        return task

    def _note(self, value: dict[str, Any]) -> None:
        if self._store is not None:
            self._store.set(_KEY, {**value, "platform": self._client.base_url})

    def _note_created(self, task: CreationTask) -> None:
        """Remember the result also after success, for a task that is cleared."""
        self._note({"created": _plain(task), "wished": self._wished})

    def _not_found(self, error: AnaplatOutcomeUnknownError) -> AnaplatError:
        resend = self._wish.in_doubt == "resend"
        advice = (
            "in_doubt is 'resend': a retry of this task looks once more, and sends the request again."
            if resend
            else "The request was not sent again. Look on the platform whether it still works on it. Then clear "
            "the task: it adopts the dataset if it is there by then, and sends the request anew if it is not."
        )
        return (AnaplatNotSeenError if resend else AnaplatOutcomeUnknownError)(
            f"{error} {self._called()} did not appear in the dataset list within {self._wish.settling_time:g} s. "
            f"{advice}",
            operation=error.operation,
            status=error.status,
        )

    def _called(self) -> str:
        directory = self._wish.request.parent_dir_id
        return f"Dataset {self._wish.request.name!r} in " + (f"directory {directory}" if directory else "the root")


def _created_or_known(note: Any) -> CreationTask | list[str]:
    """Return what was created or, if only the intention was noted, the ids of the datasets of before."""
    if "created" in note:
        task = CreationTask.model_validate(note["created"])
        _plain(task)  # which fails if its result is nested too deeply
        return task
    known = note["known"]
    if not isinstance(known, list) or not all(isinstance(ds_id, str) for ds_id in known):
        raise ValueError("no ids")
    return known


def _plain(task: CreationTask) -> dict[str, Any]:
    fields = {"task_id", "ds_id", "status", "result"}
    return task.model_dump(mode="json", by_alias=True, include=fields)


def _ids(datasets: Iterable[Dataset]) -> str:
    return ", ".join(f"{dataset.ds_id} (created {dataset.ctime})" for dataset in datasets)
