"""How far a provisioning is stands in the log."""

from __future__ import annotations

import logging

import pytest

from airflow_provider_anaplat.users.progress import UserProgress


def test_every_few_seconds_a_line_says_how_far_it_is_and_how_long_it_takes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    caplog.set_level(logging.INFO)
    progress = UserProgress(4_000)
    for seconds, users in ((4.0, 400), (5.0, 600), (9.0, 200), (10.0, 800), (16.0, 0)):
        now = 1_000.0 + seconds
        progress.add(users)

    assert caplog.messages == [
        "1,000 of 4,000 users (25 %), 200 users/s, about 15 s left",
        "2,000 of 4,000 users (50 %), 200 users/s, about 10 s left",
        "2,000 of 4,000 users (50 %), 125 users/s, about 16 s left",
    ]


def test_before_the_first_user_nothing_is_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    caplog.set_level(logging.INFO)
    progress = UserProgress(4_000)
    now += 100
    progress.add(0)

    assert caplog.messages == []
