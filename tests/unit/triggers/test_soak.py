"""A shift of the triggerer: an hour's polls, with every fault among them, leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest
from airflow.triggers.base import BaseTrigger
from conftest import LONG, TEXTS

from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.platform import Platform
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetTaskTrigger, AnaplatDatasetUpdatedTrigger
from airflow_provider_anaplat.triggers.subscriptions import AnaplatSubscriptionTrigger

POLLS = 100  # in a round, in which everybody comes, waits and goes
AN_HOUR = 12  # rounds, with a poll every three seconds
WAITERS = 5
FAULTS = (replies.http_status(503), replies.reset(), replies.cut(), replies.http_status(429, retry_after="0"))
EVERY = 20  # polls, one of which meets with a fault
POLLING: dict[str, Any] = {"anaplat_conn_id": "anaplat_default", "poll_interval": 0.001}


@dataclass(frozen=True)
class Kind:
    """What is waited for.

    :param operation: what is asked at each poll
    :param trigger: makes a trigger
    :param prepare: lets the platform say that it is not yet so
    :param finish: lets it be so
    :param ends: tells whether this is the event of its being so
    :param rounds: how many
    """

    operation: str
    trigger: Callable[[], BaseTrigger]
    prepare: Callable[[Platform], object]
    finish: Callable[[Platform], object]
    ends: Callable[[Any], bool]
    rounds: int


def status(word: str) -> Callable[[Platform], object]:
    return lambda platform: setattr(platform.datasets["ds1"], "statuses", [word])


def update(platform: Platform) -> None:
    platform.datasets["ds1"].utime += timedelta(seconds=1)


def last_sent(moment: datetime) -> Callable[[Platform], object]:
    plan = {"scId": "sc1", "name": "s", "lastSendStatus": "SUCCESS"}
    sent = {**plan, "lastSendTime": round(moment.timestamp() * 1000)}
    return lambda platform: platform.subscriptions.update(sc1=sent)


NOW = datetime.now(UTC)
KINDS = {
    "task": Kind(
        "list_datasets",
        lambda: AnaplatDatasetTaskTrigger(ds_id="ds1", max_poll_failures=10, **POLLING),
        status("处理中"),
        status("FINISHED"),
        lambda event: event["outcome"] == "done",
        AN_HOUR,
    ),
    "watcher": Kind(
        "list_datasets",
        lambda: AnaplatDatasetUpdatedTrigger(ds_id="ds1", **POLLING),
        status("FINISHED"),
        update,
        lambda event: event["dsId"] == "ds1",
        4,
    ),
    "subscription": Kind(
        "get_subscriptions",
        lambda: AnaplatSubscriptionTrigger(
            subscription_ids=["sc1"], sent_after=NOW.isoformat(), max_poll_failures=10, **POLLING
        ),
        last_sent(NOW - timedelta(days=1)),
        last_sent(NOW + timedelta(days=1)),
        lambda event: event["outcome"] == "done",
        4,
    ),
}


async def threads_and_files() -> tuple[int, int]:
    """Return how many threads there are, and how many open files, once the last poller's thread has ended."""
    async with asyncio.timeout(LONG):
        while any(thread.name.startswith("anaplat-anaplat_default") for thread in threading.enumerate()):
            await asyncio.sleep(0.01)
    return threading.active_count(), psutil.Process().num_fds()


async def nothing_is_left_of(before: tuple[int, int]) -> None:
    """Wait until there are no more threads and open files than before; a socket takes a moment to be closed."""
    async with asyncio.timeout(LONG):
        while any(now > then for now, then in zip(await threads_and_files(), before, strict=True)):
            await asyncio.sleep(0.01)


def held() -> tuple[int, int]:
    """Return how many blocks of memory Python holds, and how many bytes the process has."""
    gc.collect()
    return sys.getallocatedblocks(), psutil.Process().memory_info().rss


@dataclass
class Shift:
    """Rounds of one kind, whose polls and faults are counted."""

    platform: Simulator
    kind: Kind
    polls: int = 0
    faults: int = 0

    def __post_init__(self) -> None:
        faults = itertools.cycle(FAULTS)

        def is_hit(_: Any) -> bool:
            self.polls += 1
            return self.polls % EVERY == 0

        def spoil(reply: replies.Reply) -> replies.Reply:
            self.faults += 1
            return next(faults).spoil(reply)

        fault = replies.Fault(spoil, needs_answer=True)
        self.platform.inject(self.kind.operation, fault, times=None, when=is_hit)

    async def round(self) -> None:
        """Let five triggers wait for so many polls; then one is cancelled, and the others end."""
        self.kind.prepare(self.platform.platform)
        enough = self.polls + POLLS
        waiting = [asyncio.create_task(self.event()) for _ in range(WAITERS)]
        async with asyncio.timeout(LONG):
            while self.polls < enough:
                await asyncio.sleep(0.01)
                assert not any(task.done() for task in waiting)
            waiting[0].cancel()
            self.kind.finish(self.platform.platform)
            events = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(events[0], asyncio.CancelledError)
        assert all(map(self.kind.ends, events[1:]))
        self.platform.ledger.clear()

    async def event(self) -> Any:
        running: Any = self.kind.trigger().run()
        async with aclosing(running) as events:
            return (await anext(events)).payload


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Pytest keeps what is logged, and its memory grows with it."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_hour_of_polls_leaves_nothing_behind(
    simulator: Simulator, connect: Callable[..., None], kind: Kind
) -> None:
    connect(simulator, extra={"max_retries": 0, "read_timeout": LONG})
    simulator.platform.add_dataset("awaited", TEXTS)
    shift = Shift(simulator, kind)

    async def work() -> None:
        await shift.round()  # imports, caches and pools are as they will be
        before = await threads_and_files()
        await shift.round()
        for _ in range(3):  # what is left by each poll is left each time, and what is made once is not
            python, process = held()
            for _ in range(kind.rounds - 2):
                await shift.round()
            python, process = held()[0] - python, held()[1] - process
            # One object left by each poll would be more, and so would be what Python does not count, such as TLS.
            if few := python < (kind.rounds - 2) * POLLS and process < 8_000_000:
                break
        assert few, (python, process)
        await nothing_is_left_of(before)

    asyncio.run(work())
    assert shift.faults >= kind.rounds * POLLS // EVERY - 1  # one may have met with nobody who waited
