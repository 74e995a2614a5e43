"""Items from this thread to a consumer that can only pull them, and that blocks while it does."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_SECONDS_BETWEEN_LOOKS = 0.1  # at whether the other side is still there


class _Stopped(Exception):  # noqa: N818 - ends the consumer, and nobody else sees it
    """The producer gave up."""


def feed(items: Iterator[T], consume: Callable[[Iterator[T]], None]) -> None:
    """Let a consumer pull items in a thread of its own, while this thread produces them.

    One item at most waits between the two. Nothing that follows an exception in this thread waits for the
    consumer's consent: a second signal may come at any moment.

    :raises Exception: what producing the items raised, or what the consumer raised
    """
    waiting: queue.Queue[T | None] = queue.Queue(maxsize=1)
    stopped = threading.Event()
    with ThreadPoolExecutor(1, thread_name_prefix="anaplat-sink") as pool:
        consumer = pool.submit(consume, _pulled(waiting, stopped))
        try:
            for item in items:
                _put(waiting, item, consumer)
                del item  # it may be large, and the next one takes its time
            _put(waiting, None, consumer)
            consumer.result()
        finally:
            stopped.set()


def _put(waiting: queue.Queue[T | None], item: T | None, consumer: Future[None]) -> None:
    """Hand an item over; if the consumer has ended, what ended it is raised."""
    while not consumer.done():
        try:
            waiting.put(item, timeout=_SECONDS_BETWEEN_LOOKS)
        except queue.Full:
            continue
        return
    consumer.result()
    if item is not None:
        raise RuntimeError("the consumer ended before the items did")


def _pulled(waiting: queue.Queue[T | None], stopped: threading.Event) -> Iterator[T]:
    while True:
        try:
            item = waiting.get(timeout=_SECONDS_BETWEEN_LOOKS)
        except queue.Empty:
            if stopped.is_set():
                raise _Stopped from None
            continue
        if item is None:
            return
        yield item
