"""Items from this thread to a consumer that can only pull them, and that blocks while it does."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = [
    "feed",
]

T = TypeVar("T")

_SECONDS_BETWEEN_LOOKS = 0.1  # at whether the other side is still there
_SECONDS_BEFORE_AN_INTERRUPT = 0.5  # mostly, the consumer ends by itself


class _Stopped(Exception):  # noqa: N818 - ends the consumer, and nobody else sees it
    """The producer gave up."""


def feed(
    items: Iterator[T],
    consume: Callable[[Iterator[T]], None],
    *,
    ahead: int = 1,
    interrupt: Callable[[], object] = lambda: None,
) -> None:
    """Let a consumer pull items in a thread of its own, while this thread produces them.

    No item is produced while as many wait between the two as may. Nothing that follows an exception in this thread
    waits for the consumer's consent: a second signal may come at any moment.

    :param ahead: items that wait at most
    :param interrupt: breaks off what the consumer may be waiting for, once nobody wants it any more; it is called
        again until the consumer has ended, since it may come just before what it is meant for
    :raises Exception: what producing the items raised, or what the consumer raised
    """
    waiting: queue.SimpleQueue[T | None] = queue.SimpleQueue()
    room = threading.Semaphore(ahead)
    stopped = threading.Event()
    with ThreadPoolExecutor(1, thread_name_prefix="anaplat-sink") as pool:
        consumer = pool.submit(consume, _pulled(waiting, room, stopped))
        try:
            while _has_room(room, consumer) and (item := next(items, None)) is not None:
                waiting.put(item)
                del item  # it may be large, and the next one takes its time
            waiting.put(None)
            consumer.result()
        finally:
            stopped.set()
            while wait([consumer], _SECONDS_BEFORE_AN_INTERRUPT).not_done:
                interrupt()


def _has_room(room: threading.Semaphore, consumer: Future[None]) -> bool:
    """Wait until an item can be handed over; if the consumer has ended, what ended it is raised."""
    while not room.acquire(timeout=_SECONDS_BETWEEN_LOOKS):
        if consumer.done():
            consumer.result()
            raise RuntimeError("the consumer ended before the items did")
    return True


def _pulled(
    waiting: queue.SimpleQueue[T | None], room: threading.Semaphore, stopped: threading.Event
) -> Iterator[T]:
    while True:
        if stopped.is_set():
            raise _Stopped
        try:
            item = waiting.get(timeout=_SECONDS_BETWEEN_LOOKS)
        except queue.Empty:
            continue
        if item is None:
            return
        room.release()
        yield item
        del item
