"""How far an export is stands in the log."""

from __future__ import annotations

import logging

import pytest

from airflow_provider_anaplat.rows.budget import LEAST_MB, MEGABYTE, Budget
from airflow_provider_anaplat.rows.progress import ExportProgress


def test_every_few_seconds_a_line_says_how_far_it_is_and_how_long_it_takes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    caplog.set_level(logging.INFO)
    budget = Budget(LEAST_MB, 1_000, 1, LEAST_MB)
    progress = ExportProgress("ds1", 4_000, budget)
    for seconds, rows in ((4.0, 400), (5.0, 600), (9.0, 200), (10.0, 800)):
        now = 1_000.0 + seconds
        budget.saw(rows, 2 * MEGABYTE)
        progress.add(rows)
    progress.finish("/out.csv", 5_000)

    assert caplog.messages[:2] == [
        "Dataset ds1: 1,000 of 4,000 rows (25 %), 4 MB read, 200 rows/s, about 15 s left",
        "Dataset ds1: 2,000 of 4,000 rows (50 %), 8 MB read, 200 rows/s, about 10 s left",
    ]

    end = "Dataset ds1: exported 2,000 rows, 5,000 bytes, to /out.csv in 10.0 s (200 rows/s); pages had up to "
    said, _, megabytes = caplog.messages[2].removesuffix(" MB").rpartition(" ")
    assert said == f"{end}800 rows, and the process up to"
    assert 10 < int(megabytes) < 100_000
    assert len(caplog.messages) == 3


@pytest.mark.parametrize(("total", "rows"), [(0, 10), (4_000, 0)])
def test_where_nothing_can_be_said_nothing_is(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, total: int, rows: int
) -> None:
    now = 1_000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    caplog.set_level(logging.INFO)
    progress = ExportProgress("ds1", total, Budget(LEAST_MB, 1_000, 1, LEAST_MB))
    now += 100
    progress.add(rows)

    assert caplog.messages == []
