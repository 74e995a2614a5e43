from __future__ import annotations

import logging
import time

import pytest

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.lookup import Lookup
from airflow_provider_anaplat.client.metrics import POLLS
from airflow_provider_anaplat.client.models import Dataset
from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.waiting.conditions import DatasetDone
from airflow_provider_anaplat.waiting.wait import Outcome, Wait, backoff, wait_here

BUSY = errors.AnaplatRateLimitedError("busy", retry_after=400)
DOWN = errors.AnaplatServerError("down")
REFUSED = errors.AnaplatNotFoundError("no such call")


@pytest.mark.parametrize(
    ("interval", "failures", "error", "seconds"),
    [
        (60, 0, None, 60),
        (60, 1, errors.AnaplatServerError("down"), 60),
        (60, 3, errors.AnaplatServerError("down"), 240),
        (60, 9, errors.AnaplatServerError("down"), 300),
        (900, 9, errors.AnaplatServerError("down"), 900),
        (60, 1, BUSY, 400),
        (0.05, 10_000, None, 300),
    ],
)
def test_each_failure_doubles_the_wait_up_to_five_minutes(
    interval: float, failures: int, error: Exception | None, seconds: float
) -> None:
    assert backoff(interval, failures, error) == seconds


def shown(word: str) -> Lookup[Dataset]:
    return Lookup({"ds1": {}}, lambda _: Dataset(ds_id="ds1", status=word))


def test_a_line_when_the_state_changes_and_otherwise_one_in_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    caplog.set_level(logging.INFO)
    wait = Wait(DatasetDone(ds_id="ds1"), logging.getLogger("task"), None, 3)
    for minute in range(12):
        now = 1_000_000.0 + minute * 60
        assert wait.take(shown("处理中" if minute < 7 else "RUNNING")) is None

    assert [record.getMessage() for record in caplog.records if record.name == "task"] == [
        "Dataset ds1 is '处理中'",
        "Waiting for 5 minutes: dataset ds1 is '处理中'",
        "Dataset ds1 is 'RUNNING'",
    ]


def waiting(seconds: float | None = None) -> Wait:
    deadline = None if seconds is None else time.time() + seconds
    condition = DatasetDone(ds_id="ds1", unknown_state="fail")
    return Wait(condition, logging.getLogger("task"), deadline, 2)


@pytest.mark.parametrize(
    ("word", "outcome"), [("FINISHED", Outcome.DONE), ("FAILED", Outcome.FAILED), ("?", Outcome.UNKNOWN)]
)
def test_an_end_is_an_end_also_at_the_time_out(word: str, outcome: str) -> None:
    event = waiting(-1).take(shown(word))
    assert event is not None
    assert (event["outcome"], event["seen"]) == (outcome, f"dataset ds1 is {word!r}")
    assert (event["result"] or {}).get("dsId") == ("ds1" if outcome == Outcome.DONE else None)


def test_the_time_out_says_what_was_seen_last() -> None:
    seen = {"outcome": Outcome.TIMED_OUT, "seen": "dataset ds1 is 'RUNNING'"}
    assert waiting(-1).take(shown("RUNNING")) == seen
    assert waiting(100).take(shown("RUNNING")) is None


def test_failures_in_a_row_end_a_wait_and_a_look_between_them_forgives() -> None:
    wait = waiting()
    assert [wait.take(found) for found in (DOWN, shown("RUNNING"), DOWN)] == [None, None, None]
    event = wait.take(DOWN)
    assert event is not None
    assert (event["outcome"], event["error"]["message"]) == (Outcome.ERROR, "down")


def test_an_error_that_does_not_pass_ends_a_wait_at_once() -> None:
    event = waiting().take(REFUSED)
    assert event is not None
    assert event["outcome"] == Outcome.ERROR


PAGE = errors.AnaplatInvalidAnswerError("a page of an ingress")
UNKNOWN_TASK = errors.AnaplatNotFoundError("no such task", code=1002)


@pytest.mark.parametrize(
    "error", [REFUSED, PAGE, errors.AnaplatRedirectError("moved"), errors.AnaplatRefusedError("?", code=5001)]
)
def test_once_the_platform_has_answered_what_is_not_its_own_word_is_an_outage(error: Exception) -> None:
    wait = waiting()
    assert [wait.take(found) for found in (shown("RUNNING"), error, shown("RUNNING"), error)] == [None] * 4
    event = wait.take(error)
    assert event is not None
    assert event["error"]["message"] == str(error)


@pytest.mark.parametrize(
    "error",
    [
        UNKNOWN_TASK,
        errors.AnaplatAuthenticationError("expired"),
        errors.AnaplatPermissionError("no rights"),
        errors.AnaplatAnswerTooLargeError("too large"),
        errors.AnaplatRequestError("no such argument"),
    ],
)
def test_what_only_a_person_can_mend_is_none(error: Exception) -> None:
    wait = waiting()
    assert wait.take(shown("RUNNING")) is None
    assert wait.take(error) is not None


@pytest.mark.parametrize("error", [DOWN, REFUSED])
def test_or_none_does_where_failures_are_borne_for_ever(error: Exception) -> None:
    wait = waiting()
    wait.silent_fail = True
    assert [wait.take(error) for _ in range(5)] == [None] * 5
    assert wait.failures == 5


def test_a_wait_in_its_own_thread_sleeps_between_looks_and_not_beyond_its_deadline(simulator: Simulator) -> None:
    told: list[tuple[str, float]] = []
    client = AnaplatClient(
        simulator.url, simulator.token, observer=lambda metric, value, _: told.append((metric.name, value))
    )
    slept: list[float] = []
    wait = waiting(100)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            wait.deadline = 0.0

    event = wait_here(client, wait, 30, sleep)
    assert event == {"outcome": Outcome.TIMED_OUT, "seen": "dataset ds1 is not in the list"}
    assert slept == [30, 30]
    assert [value for name, value in told if name == POLLS.name] == [1, 1, 1]
    slept.clear()
    wait = waiting(20)
    wait_here(client, wait, 30, sleep)
    assert 0 < slept[0] <= 20
