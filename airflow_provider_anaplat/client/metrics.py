"""What the client measures, as a table. Who counts it is the observer's business."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from airflow_provider_anaplat.errors import AnaplatError

__all__ = [
    "BYTES_EXPORTED",
    "METRICS",
    "POLLS",
    "POLL_WAITERS",
    "REQUESTS",
    "RETRIES",
    "RETRY_AFTER",
    "ROWS_EXPORTED",
    "Metric",
    "Observer",
    "observe",
    "outcome_of",
]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is measured.

    :param name: its name
    :param kind: a ``counter`` that grows, a ``gauge`` that goes up and down, or a ``timing`` in seconds
    :param tags: what tells its values apart
    :param meaning: what it counts
    """

    name: str
    kind: Literal["counter", "gauge", "timing"]
    tags: tuple[str, ...]
    meaning: str


REQUESTS = Metric("anaplat.requests", "counter", ("operation", "outcome"), "requests sent, each attempt counted")
RETRIES = Metric("anaplat.retries", "counter", ("operation",), "attempts that follow a failed one")
RETRY_AFTER = Metric(
    "anaplat.retry_after", "timing", ("operation",), "the wait that an answer's `Retry-After` asked for"
)
ROWS_EXPORTED = Metric("anaplat.rows_exported", "counter", (), "rows of exports and loads that are complete")
BYTES_EXPORTED = Metric("anaplat.bytes_exported", "counter", (), "bytes of files that are complete")
POLLS = Metric("anaplat.polls", "counter", ("kind",), "polls of sensors, triggers and operators that wait")
POLL_WAITERS = Metric("anaplat.poll_waiters", "gauge", ("kind",), "triggers that share a triggerer's last poll")

METRICS = (REQUESTS, RETRIES, RETRY_AFTER, ROWS_EXPORTED, BYTES_EXPORTED, POLLS, POLL_WAITERS)

Observer = Callable[[Metric, float, Mapping[str, str]], None]


def observe(observer: Observer | None, metric: Metric, value: float, **tags: str) -> None:
    """Tell an observer, if there is one. What goes wrong there is logged: it undoes nothing on the platform.

    :param observer: is called in the thread that measured
    :param metric: what was measured
    :param value: a number; seconds, for a timing
    :param tags: the metric's tags
    """
    if observer is None:
        return
    try:
        observer(metric, value, tags)
    except Exception as error:  # noqa: BLE001 - a write whose answer is known shall not be lost for a number
        log.warning("The metric %s is not counted: %s (%s)", metric.name, type(error).__name__, error)


def outcome_of(error: AnaplatError) -> str:
    """Return the word for how a request failed: the error's type without its ornaments, as in ``rate_limited``."""
    words = type(error).__name__.removeprefix("Anaplat").removesuffix("Error")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in words).lstrip("_") or "error"
