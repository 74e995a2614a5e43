"""Items handed to a consumer that pulls them in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from conftest import LONG

from airflow_provider_anaplat.output.feed import feed


def test_every_item_arrives_in_order() -> None:
    taken: list[int] = []
    feed(iter(range(100)), taken.extend)
    assert taken == list(range(100))


@pytest.mark.parametrize("most", [1, 2])
def test_no_item_is_produced_while_as_many_wait_as_may(most: int) -> None:
    produced: list[int] = []
    seen: list[int] = []

    def consume(items: Iterator[int]) -> None:
        seen.extend(len(produced) for _ in items)

    def produce() -> Iterator[int]:
        for number in range(50):
            produced.append(number)
            yield number

    feed(produce(), consume, ahead=most)
    assert all(ahead <= taken + 1 + most for taken, ahead in enumerate(seen))


def test_what_the_producer_raises_ends_the_consumer() -> None:
    ended = threading.Event()

    def consume(items: Iterator[int]) -> None:
        try:
            for _ in items:
                pass
        finally:
            ended.set()

    def produce() -> Iterator[int]:
        yield 1
        yield 2
        raise KeyError("the producer's own")

    with pytest.raises(KeyError, match="the producer's own"):
        feed(produce(), consume)
    assert ended.is_set()


def test_what_the_consumer_raises_ends_the_producer() -> None:
    produced: list[int] = []

    def consume(items: Iterator[int]) -> None:
        next(items)
        raise OSError("the consumer's own")

    def produce() -> Iterator[int]:
        for number in range(1_000_000):
            produced.append(number)
            yield number

    with pytest.raises(OSError, match="the consumer's own"):
        feed(produce(), consume)
    assert len(produced) < 10


def test_no_item_is_dropped_in_silence() -> None:
    def consume(items: Iterator[int]) -> None:
        next(items)

    with pytest.raises(RuntimeError, match="ended before the items did"):
        feed(iter(range(100)), consume)


def test_a_consumer_that_waits_for_long_is_no_dead_lock() -> None:
    go_on = threading.Event()

    def consume(items: Iterator[int]) -> None:
        next(items)
        assert go_on.wait(LONG)
        list(items)

    def produce() -> Iterator[int]:
        yield 1
        try:
            raise KeyError("first")
        finally:
            go_on.set()

    with pytest.raises(KeyError, match="first"):
        feed(produce(), consume)


def test_what_a_consumer_waits_for_is_broken_off_until_it_has_ended() -> None:
    interrupts = threading.Semaphore(0)

    def consume(items: Iterator[int]) -> None:
        next(items)
        for _ in range(2):  # the first may come too early
            assert interrupts.acquire(timeout=LONG)

    def produce() -> Iterator[int]:
        yield 1
        raise KeyError("the producer's own")

    with pytest.raises(KeyError, match="the producer's own"):
        feed(produce(), consume, interrupt=interrupts.release)


def test_no_item_that_waits_is_taken_once_the_producer_gave_up() -> None:
    taken: list[int] = []
    first, go_on = threading.Event(), threading.Event()

    def consume(items: Iterator[int]) -> None:
        for item in items:
            taken.append(item)
            first.set()
            assert go_on.wait(LONG)

    def produce() -> Iterator[int]:
        yield 1
        yield 2
        assert first.wait(LONG)
        raise KeyError("the producer's own")

    with pytest.raises(KeyError, match="the producer's own"):
        feed(produce(), consume, ahead=2, interrupt=go_on.set)
    assert taken == [1]
