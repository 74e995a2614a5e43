from __future__ import annotations

import logging

import pytest

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client.lookup import Lookup
from airflow_provider_anaplat.client.models import Dataset
from airflow_provider_anaplat.waiting.conditions import DatasetDone
from airflow_provider_anaplat.waiting.wait import Wait, backoff

BUSY = errors.AnaplatRateLimitedError("busy", retry_after=400)


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
