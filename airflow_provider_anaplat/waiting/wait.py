"""One wait for the platform: what each look means, when to give up, what to say meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from airflow_provider_anaplat.client._http.envelope import has_known_reason
from airflow_provider_anaplat.client.metrics import POLLS
from airflow_provider_anaplat.errors import (
    PASSING_ERRORS,
    AnaplatAuthenticationError,
    AnaplatError,
    AnaplatInvalidAnswerError,
    AnaplatNeedsAPersonError,
    AnaplatPermissionError,
    AnaplatRedirectError,
    AnaplatRefusedError,
    AnaplatRequestError,
    to_json,
)
from airflow_provider_anaplat.waiting.states import State

if TYPE_CHECKING:
    from airflow_provider_anaplat.client import AnaplatClient
    from airflow_provider_anaplat.client.lookup import Lookup
    from airflow_provider_anaplat.waiting.conditions import Condition

    Look: TypeAlias = Lookup[Any] | Exception

__all__ = [
    "Log",
    "Outcome",
    "Wait",
    "backoff",
    "check_pace",
    "look",
    "may_pass",
    "wait_here",
]

_QUIET = 300.0  # seconds without a word in the log
_LONGEST_BACKOFF = 300.0  # seconds; an interval that is longer stays as it is


class Log(Protocol):
    """Where a wait writes its progress: any logger, Airflow's or Python's."""

    def info(self, msg: str, /, *args: Any) -> Any:
        """Write a line."""

    def warning(self, msg: str, /, *args: Any) -> Any:
        """Write a warning."""


class Outcome:
    """How a wait ended, as its event says it."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    TIMED_OUT = "timed_out"
    ERROR = "error"


# What another than the platform may say in its place for a while, such as an ingress while it is rolled out.
_OF_ANOTHER = (AnaplatInvalidAnswerError, AnaplatRedirectError, AnaplatRefusedError)
_OF_THE_PLATFORM = (AnaplatAuthenticationError, AnaplatPermissionError, AnaplatNeedsAPersonError)
_OUTCOMES = {State.DONE: Outcome.DONE, State.FAILED: Outcome.FAILED, State.UNKNOWN: Outcome.UNKNOWN}


def check_pace(**seconds: Any) -> None:
    """See that one can wait like that: each is a number of seconds above 0.

    :param seconds: how long to wait in all, and between two looks, by their names
    :raises AnaplatRequestError: one is anything else; a pause of 0 s would be a flood of requests
    """
    for name, given in seconds.items():
        if not isinstance(given, int | float) or not 0 < given < float("inf"):
            raise AnaplatRequestError(
                f"{name} is {given!r}; it must be a number of seconds above 0. Nothing was sent."
            )


def backoff(interval: float, failures: int, error: Exception | None = None) -> float:
    """Return the seconds until the next look.

    :param interval: seconds between two looks that succeed
    :param failures: failures in a row; each doubles the wait, up to five minutes
    :param error: the last of them; its ``Retry-After`` is honoured
    """
    asked = error.retry_after if isinstance(error, AnaplatError) else None
    longer = interval * 2.0 ** min(max(failures - 1, 0), 30)
    return max(min(longer, max(interval, _LONGEST_BACKOFF)), asked or 0)


def may_pass(error: BaseException, *, answered: bool) -> bool:
    """Tell whether what a look met may be gone at the next one.

    :param answered: whether the platform has answered such a look well before. Then it is there and knows the
        call, so that HTTP 404, or a page that is not JSON, is an outage too
    """
    if isinstance(error, PASSING_ERRORS):
        return True
    if not isinstance(error, _OF_ANOTHER) or isinstance(error, _OF_THE_PLATFORM):
        return False
    return answered and not has_known_reason(error)


def look(client: AnaplatClient, condition: Condition) -> Look:
    """Look at the platform once; a failure is what was seen, too."""
    client.observe(POLLS, 1, kind=condition.request)
    try:
        found: Lookup[Any] = getattr(client, condition.request)(condition.ids, **condition.arguments)
    except AnaplatError as error:
        return error
    return found


@dataclass
class Wait:
    """One wait, fed with looks until it has its end.

    :param condition: what is waited for
    :param log: where progress is written
    :param deadline: when the wait ends, in seconds since the epoch; None if somebody else ends it
    :param max_poll_failures: failures in a row before the wait ends with the last one
    :param silent_fail: bear failures for ever
    :param answered: whether the platform has answered a look well
    """

    condition: Condition
    log: Log
    deadline: float | None
    max_poll_failures: int
    silent_fail: bool = False
    answered: bool = False
    failures: int = field(default=0, init=False)
    seen: str | None = field(default=None, init=False)
    _started: float = field(default_factory=lambda: time.time(), init=False)
    _said: float = field(default=0.0, init=False)

    def take(self, found: Look) -> dict[str, Any] | None:
        """Take in one look; return the event that ends the wait, as plain JSON, or None to wait on."""
        try:
            if isinstance(found, Exception):
                event = self._fail(found, passes=may_pass(found, answered=self.answered))
            else:
                event = self._judge(found)
        except AnaplatError as error:  # the record waited for is malformed, or an argument is
            event = self._fail(error, passes=False)
        if event is None and self.left() <= 0:
            return {"outcome": Outcome.TIMED_OUT, "seen": self.seen}
        return event

    def left(self) -> float:
        """Return the seconds until the deadline."""
        return float("inf") if self.deadline is None else self.deadline - time.time()

    def _judge(self, lookup: Lookup[Any]) -> dict[str, Any] | None:
        verdict = self.condition.judge(lookup)
        self.failures, self.answered = 0, True
        self._say(verdict.seen)
        if verdict.state is State.WORKING:
            return None
        return {"outcome": _OUTCOMES[verdict.state], "seen": verdict.seen, "result": verdict.result}

    def _fail(self, error: Exception, *, passes: bool) -> dict[str, Any] | None:
        self.failures += 1
        if (self.failures >= self.max_poll_failures or not passes) and not self.silent_fail:
            return {"outcome": Outcome.ERROR, "error": to_json(error)}
        self.log.warning("Poll failed (%d in a row): %s", self.failures, error)
        return None

    def _say(self, seen: str) -> None:
        """Write a line when what is seen has changed, and otherwise one every few minutes."""
        now = time.time()
        if seen != self.seen:
            self.log.info("%s%s", seen[:1].upper(), seen[1:])
        elif now - self._said >= _QUIET:
            self.log.info("Waiting for %.0f minutes: %s", (now - self._started) / 60, seen)
        else:
            return
        self.seen, self._said = seen, now


def wait_here(
    client: AnaplatClient, wait: Wait, interval: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Any]:
    """Look again and again in this very thread, until the wait has its end.

    :param client: a client that does not retry by itself
    :param wait: the wait
    :param interval: seconds between two looks
    :param sleep: what to do between them
    """
    while True:
        found = look(client, wait.condition)
        event = wait.take(found)
        if event is not None:
            return event
        error = found if isinstance(found, Exception) else None
        sleep(max(0.0, min(backoff(interval, wait.failures, error), wait.left())))
