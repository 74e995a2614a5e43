"""A shift of the triggerer: an hour's polls, with every fault among them, leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest
from conftest import TEXTS

from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetTaskTrigger

POLLS = 1800  # of an hour, one every two seconds
ROUNDS = 12  # in which everybody comes, waits and goes
WAITERS = 5
FAULTS = (replies.http_status(503), replies.reset(), replies.cut(), replies.http_status(429, retry_after="0"))
EVERY = 20  # polls, one of which meets with a fault


async def threads_and_files() -> tuple[int, int]:
    """Return how many threads there are, and how many open files, once the last poller's thread has ended."""
    while any(thread.name.startswith("anaplat-anaplat_default") for thread in threading.enumerate()):
        await asyncio.sleep(0.01)
    return threading.active_count(), psutil.Process().num_fds()


async def nothing_is_left_of(before: tuple[int, int]) -> None:
    """Wait until there are no more threads and open files than before; a socket takes a moment to be closed."""
    async with asyncio.timeout(30):
        while any(now > then for now, then in zip(await threads_and_files(), before, strict=True)):
            await asyncio.sleep(0.01)


@contextmanager
def traced_memory() -> Iterator[Callable[[], int]]:
    """Yield what tells how many bytes are held that were allocated since."""
    tracemalloc.start()

    def held() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    yield held
    tracemalloc.stop()


async def a_round(platform: Simulator, polls: int) -> None:
    """Let five sensors wait for so many polls; then one is cancelled, and the others end."""
    dataset = platform.platform.datasets["ds1"]
    dataset.listed, dataset.statuses = 0, ["处理中"] * polls + ["FINISHED"]
    waiting = [asyncio.create_task(event_of_a_wait()) for _ in range(WAITERS)]
    while dataset.listed < polls / 2:
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in waiting)
    waiting[0].cancel()
    events = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(events[0], asyncio.CancelledError)
    assert [event["outcome"] for event in events[1:]] == ["done"] * (WAITERS - 1)
    platform.ledger.clear()


async def event_of_a_wait() -> dict[str, object]:
    trigger = AnaplatDatasetTaskTrigger(
        ds_id="ds1", anaplat_conn_id="anaplat_default", poll_interval=0.001, max_poll_failures=10
    )
    event = await anext(trigger.run())
    return dict(event.payload)


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Pytest keeps what is logged, and its memory grows with it."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def test_an_hour_of_polls_leaves_nothing_behind(platform: Simulator, connect: Callable[..., None]) -> None:
    connect(platform, extra={"max_retries": 0, "read_timeout": 5})
    platform.platform.add_dataset("awaited", TEXTS)
    polls, faults = itertools.cycle(range(EVERY)), itertools.cycle(FAULTS)
    fault = replies.Fault(lambda reply: next(faults).spoil(reply), needs_answer=True)
    platform.inject("list_datasets", fault, times=None, when=lambda _: next(polls) == 0)

    async def shift() -> None:
        await a_round(platform, POLLS // ROUNDS)  # imports, caches and pools are as they will be
        before = await threads_and_files()
        with traced_memory() as held:
            await a_round(platform, POLLS // ROUNDS)
            first = held()
            for _ in range(ROUNDS - 2):
                await a_round(platform, POLLS // ROUNDS)
            grown = held() - first
        assert grown < 100_000  # bytes; one object left by each poll would be more
        await nothing_is_left_of(before)

    asyncio.run(shift())
