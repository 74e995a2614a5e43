"""Wait for datasets in the triggerer, and watch them for assets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import TriggerEvent

from airflow_provider_anaplat._airflow.releases import BaseEventTrigger
from airflow_provider_anaplat.client.names import check_one_given, id_of
from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.triggers.base import AnaplatWaitTrigger
from airflow_provider_anaplat.triggers.poller import Watch
from airflow_provider_anaplat.waiting.conditions import (
    DatasetDone,
    DatasetFresh,
    DatasetRefreshed,
)
from airflow_provider_anaplat.waiting.moments import is_later, moment
from airflow_provider_anaplat.waiting.states import SUCCESS_STATES, State, StateTable
from airflow_provider_anaplat.waiting.wait import check_pace

if TYPE_CHECKING:
    from airflow_provider_anaplat.client.lookup import Lookup
    from airflow_provider_anaplat.client.models import Dataset

__all__ = [
    "AnaplatDatasetFreshnessTrigger",
    "AnaplatDatasetRefreshTrigger",
    "AnaplatDatasetTaskTrigger",
    "AnaplatDatasetUpdatedTrigger",
]

_PAYLOAD = ("dsId", "name", "utime", "rowCount")
# After this many seconds, Airflow has an event in its database.
_EVENT_IS_KEPT = 5.0


class AnaplatDatasetTaskTrigger(AnaplatWaitTrigger):
    """Wait until a dataset's status in the dataset list has left the state of being worked on.

    Arguments: those of :class:`~airflow_provider_anaplat.waiting.conditions.DatasetDone` and of
    :class:`~airflow_provider_anaplat.triggers.base.AnaplatWaitTrigger`.
    """

    condition = DatasetDone


class AnaplatDatasetFreshnessTrigger(AnaplatWaitTrigger):
    """Wait until a dataset's last update is at or after a moment, with success.

    Arguments: those of :class:`~airflow_provider_anaplat.waiting.conditions.DatasetFresh` and of
    :class:`~airflow_provider_anaplat.triggers.base.AnaplatWaitTrigger`.
    """

    condition = DatasetFresh


class AnaplatDatasetRefreshTrigger(AnaplatWaitTrigger):
    """Wait until a dataset was updated after a refresh was asked for, with success.

    Arguments: those of :class:`~airflow_provider_anaplat.waiting.conditions.DatasetRefreshed` and of
    :class:`~airflow_provider_anaplat.triggers.base.AnaplatWaitTrigger`.
    """

    condition = DatasetRefreshed


class AnaplatDatasetUpdatedTrigger(BaseEventTrigger):
    """Emit an event each time a dataset was updated with success, for an ``AssetWatcher``.

    An update is seen when ``utime`` has advanced and the status is a success; several between two polls are one
    event, with the newest ``utime``. All watchers and waiting triggers of a connection share one request an
    interval. A platform that cannot be asked is logged and asked again.

    The first poll sets the baseline: an update that finished earlier is no event, one that is running is an event
    when it ends. On Airflow 3.3 what was seen is kept in the asset's state, so that an update while no
    triggerer ran is an event afterwards; a triggerer that dies within five seconds of an event emits it again.
    Before 3.3, or if two assets share this very trigger, each start sets a new baseline, and an update while
    no triggerer ran is no event.

    Its event holds ``dsId``, ``name``, ``utime`` and ``rowCount`` of the dataset.

    :param ds_id: id of the dataset
    :param dataset: its name in place of its id, also as ``directory/name``, looked for at each poll; while several
        have it, that is logged, and none is watched
    :param poll_interval: seconds between two polls at most
    :param success_states: status words that mean that an update succeeded
    :param anaplat_conn_id: id of the Airflow connection
    :param version: version of these arguments; those of older ones still load
    :raises AnaplatRequestError: both ``ds_id`` and ``dataset`` are given, or none; the interval is no number of
        seconds above 0; or the words are no list
    """

    def __init__(
        self,
        *,
        ds_id: str | None = None,
        dataset: str | None = None,
        poll_interval: float = 60,
        success_states: Sequence[str] = SUCCESS_STATES,
        anaplat_conn_id: str = AnaplatHook.default_conn_name,
        version: int = 1,
    ) -> None:
        super().__init__()
        check_one_given(ds_id, dataset)  # no template stands here, and a DAG file's error is seen at once
        check_pace(poll_interval=poll_interval)
        StateTable(success_states)  # of a text, each character would be a word
        self.ds_id = ds_id
        self.dataset = dataset
        self.poll_interval = poll_interval
        self.success_states = success_states
        self.anaplat_conn_id = anaplat_conn_id
        self.version = version

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments; none of them is a secret."""
        return (
            "airflow_provider_anaplat.triggers.datasets.AnaplatDatasetUpdatedTrigger",
            {
                "ds_id": self.ds_id,
                "dataset": self.dataset,
                "poll_interval": self.poll_interval,
                "success_states": list(self.success_states),
                "anaplat_conn_id": self.anaplat_conn_id,
                "version": self.version,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, and emit, for ever."""
        seen = await self._recall()
        ids = [self.ds_id] if self.ds_id else []
        with Watch(self.anaplat_conn_id, "find_datasets", ids, self.poll_interval) as watch:
            while True:
                found = await watch.look()
                try:
                    updated = self._updated(found, seen)
                except Exception as error:  # noqa: BLE001 - a watcher that ends is not started again
                    self.log.warning("Watching dataset %s: %s", self._called, error)
                    continue
                if updated is not None:
                    self.log.info("Dataset %s was updated at %s", self._called, updated["utime"])
                    yield TriggerEvent({name: updated[name] for name in _PAYLOAD})
                    # Not before: an event that is lost is worse than one that comes twice.
                    await asyncio.sleep(_EVENT_IS_KEPT)
                now_seen = self._seen(found, seen) if updated is None else updated["utime"]
                if now_seen != seen:
                    seen = now_seen
                    await self._remember(seen)

    def _updated(self, found: Lookup[Dataset] | Exception, seen: str | None) -> dict[str, Any] | None:
        """Return the dataset's summary if it was updated since what was seen."""
        dataset = self._successful(found)
        if dataset is None or isinstance(found, Exception) or seen is None:
            return None
        last, platform_now = moment("utime", seen) if seen else None, datetime.now(UTC) + found.clock_ahead
        return dataset.summary() if is_later(dataset.utime, last, platform_now) else None

    def _seen(self, found: Lookup[Dataset] | Exception, seen: str | None) -> str | None:
        """Return what counts as seen after a look that brought no event.

        That is nothing ("") if the first look finds no finished update: the next one to finish is an event.
        """
        if seen is not None or isinstance(found, Exception):
            return seen
        dataset = self._successful(found)
        return dataset.summary()["utime"] or "" if dataset is not None else ""

    def _successful(self, found: Lookup[Dataset] | Exception) -> Dataset | None:
        if isinstance(found, Exception):
            raise found
        ds_id = self.ds_id or id_of(self.dataset or "", found)
        dataset = None if ds_id is None else found.get(ds_id)
        if dataset is None:
            return None
        return dataset if StateTable(self.success_states).read(dataset.status) is State.DONE else None

    @property
    def _called(self) -> str | None:
        return self.ds_id or self.dataset

    @property
    def _key(self) -> str:
        return f"anaplat.{self.anaplat_conn_id}.{self._called}.utime"

    async def _recall(self) -> str | None:
        """Return what was seen before a restart; None if that is not known."""
        store = getattr(self, "asset_state_store", None)
        while store is not None:
            try:
                seen = await store.aget(self._key)
            except ValueError as error:  # of several assets
                self.log.warning("What dataset %s was is not remembered over a restart: %s", self._called, error)
                break
            except Exception as error:  # noqa: BLE001 - a watcher that ends is not started again
                self.log.warning("Asking Airflow what was seen of dataset %s: %s", self._called, error)
                await asyncio.sleep(self.poll_interval)
            else:
                return self._understood(seen)
        return None

    def _understood(self, seen: Any) -> str | None:
        """Return what was kept, if that is a moment or nothing (""); anything else would keep all events back."""
        try:
            if seen:
                moment("utime", seen)
        except AnaplatRequestError:
            self.log.warning("What was seen of dataset %s cannot be read: this look is the first", self._called)
            return None
        return seen if isinstance(seen, str) else None

    async def _remember(self, seen: str | None) -> None:
        store = getattr(self, "asset_state_store", None)
        if store is None or seen is None:
            return
        try:
            await store.aset(self._key, seen)
        except Exception as error:  # noqa: BLE001 - the next event is tried again
            self.log.warning("What was seen of dataset %s could not be kept: %s", self._called, error)
