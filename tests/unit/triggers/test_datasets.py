"""The event trigger, watched through a real socket; its restarts with a store like Airflow 3.3's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest
from conftest import TEXTS, numbers

from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.platform import StoredDataset
from airflow_provider_anaplat.triggers import datasets
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetUpdatedTrigger


class Store:
    """What an event trigger sees of Airflow's asset state: values that outlive it."""

    def __init__(self, broken: Exception | None = None) -> None:
        self.values: dict[str, str] = {}
        self.broken = broken

    async def aget(self, key: str) -> str | None:
        if self.broken:
            raise self.broken
        return self.values.get(key)

    async def aset(self, key: str, value: str) -> None:
        self.values[key] = json.loads(json.dumps(value))


@pytest.fixture(autouse=True)
def connected(connect: Callable[..., None], simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(simulator, extra={"max_retries": 0})
    monkeypatch.setattr(datasets, "_EVENT_IS_KEPT", 0.0)


class Watcher:
    """A running trigger, and the events it emitted."""

    def __init__(self, simulator: Simulator, store: Store | None = None) -> None:
        self.platform = simulator
        self.events: list[dict[str, Any]] = []
        path, kwargs = AnaplatDatasetUpdatedTrigger(ds_id="ds1", poll_interval=0.03).serialize()
        assert path.endswith(AnaplatDatasetUpdatedTrigger.__qualname__)
        self.trigger = AnaplatDatasetUpdatedTrigger(**json.loads(json.dumps(kwargs)))
        self.trigger.asset_state_store = store  # type: ignore[assignment]  # no more of one than is used

    async def __aenter__(self) -> Watcher:
        self.task = asyncio.create_task(self._collect())
        await self.looks(2)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    async def _collect(self) -> None:
        async for event in self.trigger.run():
            self.events.append(event.payload)

    async def looks(self, count: int = 3) -> None:
        """Wait until the platform was asked so often, and what it answered to the first of them has arrived."""
        enough = len(self.platform.requests("list_datasets")) + count
        while len(self.platform.requests("list_datasets")) < enough:
            assert not self.task.done()
            await asyncio.sleep(0.01)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, 30))


@pytest.fixture
def dataset(simulator: Simulator) -> StoredDataset:
    return simulator.platform.add_dataset("sales", TEXTS)


def test_an_update_is_an_event_once(simulator: Simulator, dataset: StoredDataset) -> None:
    async def update() -> None:
        async with Watcher(simulator) as watcher:
            assert watcher.events == []
            simulator.platform.refresh("ds1", numbers(7))
            await watcher.looks()
            utime = dataset.fields()["utime"]
            assert watcher.events == [{"dsId": "ds1", "name": "sales", "utime": utime, "rowCount": 7}]
            simulator.platform.refresh("ds1")
            simulator.platform.refresh("ds1")
            await watcher.looks()
            assert [event["utime"] for event in watcher.events] == [utime, dataset.fields()["utime"]]

    run(update())


def test_an_update_is_an_event_after_a_clock_that_was_ahead_is_set_back(
    simulator: Simulator, dataset: StoredDataset
) -> None:
    now = dataset.utime
    dataset.utime = now + timedelta(days=365)

    async def set_back() -> None:
        async with Watcher(simulator) as watcher:
            for second in (0, 0, 1):
                dataset.utime = now + timedelta(seconds=second)
                await watcher.looks()
            assert [event["utime"] for event in watcher.events] == [
                (now + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S+0000") for second in (0, 1)
            ]

    run(set_back())


@pytest.mark.parametrize("word", ["RUNNING", "FAILED", None])
def test_only_an_update_that_succeeded_is_one(
    simulator: Simulator, dataset: StoredDataset, word: str | None
) -> None:
    async def update() -> None:
        async with Watcher(simulator) as watcher:
            dataset.statuses = [word]
            simulator.platform.refresh("ds1")
            await watcher.looks()
            assert watcher.events == []
            dataset.statuses = ["FINISHED"]
            await watcher.looks()
            assert len(watcher.events) == 1

    run(update())


def test_an_update_under_way_at_the_first_look_is_an_event_when_it_ends(
    simulator: Simulator, dataset: StoredDataset
) -> None:
    async def end() -> None:
        dataset.statuses = ["RUNNING"]
        async with Watcher(simulator) as watcher:
            assert watcher.events == []
            dataset.statuses = ["FINISHED"]
            await watcher.looks()
            assert len(watcher.events) == 1

    run(end())


def test_a_platform_that_fails_does_not_end_it(simulator: Simulator, dataset: StoredDataset) -> None:
    async def fail() -> None:
        async with Watcher(simulator) as watcher:
            simulator.inject("list_datasets", replies.http_status(403), times=3)
            await watcher.looks(4)
            simulator.platform.refresh("ds1")
            await watcher.looks()
            assert len(watcher.events) == 1

    run(fail())


def test_with_a_store_a_restart_loses_nothing_and_repeats_nothing(
    simulator: Simulator, dataset: StoredDataset
) -> None:
    async def restart() -> None:
        store = Store()
        async with Watcher(simulator, store) as watcher:
            simulator.platform.refresh("ds1")
            await watcher.looks()
            assert len(watcher.events) == 1
        async with Watcher(simulator, store) as watcher:
            await watcher.looks()
            assert watcher.events == []
        simulator.platform.refresh("ds1")
        async with Watcher(simulator, store) as watcher:
            await watcher.looks()
            assert [event["utime"] for event in watcher.events] == [dataset.fields()["utime"]]

    run(restart())


@pytest.mark.parametrize("store", [None, Store(ValueError("2 assets"))])
def test_without_one_an_update_in_between_is_no_event(
    simulator: Simulator, dataset: StoredDataset, store: Store | None
) -> None:
    async def restart() -> None:
        async with Watcher(simulator, store):
            pass
        simulator.platform.refresh("ds1")
        async with Watcher(simulator, store) as watcher:
            await watcher.looks()
            assert watcher.events == []

    run(restart())


@pytest.mark.parametrize("kept", ["yesterday", "2026-13-01", 7, ["2026-01-01"], {}, True])
def test_what_was_kept_and_is_no_moment_holds_no_event_back(
    simulator: Simulator, dataset: StoredDataset, kept: Any
) -> None:
    async def restart() -> None:
        store = Store()
        async with Watcher(simulator, store):
            pass
        store.values = dict.fromkeys(store.values, kept)
        async with Watcher(simulator, store) as watcher:
            assert watcher.events == []
            simulator.platform.refresh("ds1")
            await watcher.looks()
            assert len(watcher.events) == 1

    run(restart())


def test_watchers_share_the_requests(simulator: Simulator, dataset: StoredDataset) -> None:
    async def share() -> None:
        async with Watcher(simulator) as one, Watcher(simulator) as two:
            before = len(simulator.requests("list_datasets"))
            simulator.platform.refresh("ds1")
            await one.looks(4)
            assert len(one.events) == len(two.events) == 1
            assert len(simulator.requests("list_datasets")) - before <= 5

    run(share())


def test_a_text_is_no_list_of_words() -> None:
    with pytest.raises(AnaplatRequestError, match="must be lists of words"):
        AnaplatDatasetUpdatedTrigger(ds_id="ds1", success_states="FINISHED")


@pytest.mark.parametrize("interval", [0, -1, "60", None, float("nan")])
def test_nobody_watches_without_a_pause(interval: Any) -> None:
    with pytest.raises(AnaplatRequestError, match=r"poll_interval is .*above 0"):
        AnaplatDatasetUpdatedTrigger(ds_id="ds1", poll_interval=interval)
