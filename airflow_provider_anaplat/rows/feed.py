"""Items from this thread to a consumer that can only pull them, and that blocks while it does."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_SECONDS_BETWEEN_LOOKS = 0.1  # at whether the other side is still there


class _Stopped(Exception):  # noqa: N818 - ends the consumer, and nobody else sees it
    """The producer gave up."""


def feed(items: Iterator[T], consume: Callable[[Iterator[T]], None]) -> None:
    """Let a consumer pull items in a thread of its own, while this thread produces them.

    One item at most waits between the two.

    :raises Exception: what producing the items raised, or what the consumer raised
    """
    waiting: queue.Queue[T | BaseException | None] = queue.Queue(maxsize=1)
    with ThreadPoolExecutor(1, thread_name_prefix="anaplat-sink") as pool:
        consumer = pool.submit(consume, _pulled(waiting))
        try:
            for item in items:
                _put(waiting, item, consumer)
            _put(waiting, None, consumer)
        except BaseException:
            _put(waiting, _Stopped(), consumer)
            raise
        consumer.result()


def _put(waiting: queue.Queue[T], item: T, consumer: Future[None]) -> None:
    """Hand an item over, unless the consumer has ended; what ended it is raised."""
    while not consumer.done():
        try:
            waiting.put(item, timeout=_SECONDS_BETWEEN_LOOKS)
        except queue.Full:
            continue
        return
    if isinstance(item, _Stopped):
        return
    consumer.result()
    if item is not None:
        raise RuntimeError("the consumer ended before the items did")


def _pulled(waiting: queue.Queue[T | BaseException | None]) -> Iterator[T]:
    while (item := waiting.get()) is not None:
        if isinstance(item, _Stopped):
            raise item
        yield item  # type: ignore[misc]  # items are no exceptions
