"""What an observer of the client is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import numbers

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.metrics import METRICS, Metric, outcome_of
from airflow_provider_anaplat.output.formats import CsvSink
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.targets import FileTarget
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.waiting.conditions import DatasetDone
from airflow_provider_anaplat.waiting.wait import look


class Told:
    """An observer that sums up."""

    def __init__(self) -> None:
        self.sums: Counter[Any] = Counter()

    def __call__(self, metric: Metric, value: float, tags: Mapping[str, str]) -> None:
        assert metric in METRICS
        assert set(tags) == set(metric.tags)
        self.sums[metric.name.removeprefix("anaplat."), *(tags[tag] for tag in metric.tags)] += value  # type: ignore[assignment]  # sums of seconds, too


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def watched(simulator: Simulator, told: Told) -> AnaplatClient:
    return AnaplatClient(simulator.url, simulator.token, max_retries=1, observer=told)


def test_each_attempt_counts_with_its_outcome(simulator: Simulator, watched: AnaplatClient, told: Told) -> None:
    simulator.inject("list_datasets", replies.http_status(429, retry_after="0"))
    watched.list_datasets()

    assert told.sums == {
        ("requests", "list_datasets", "rate_limited"): 1,
        ("retry_after", "list_datasets"): 0,
        ("retries", "list_datasets"): 1,
        ("requests", "list_datasets", "ok"): 1,
    }


def test_what_was_never_sent_does_not_count(watched: AnaplatClient, told: Told) -> None:
    with pytest.raises(errors.AnaplatRequestError):
        watched.call("/public-api/x", json={"a": float("nan")})
    assert told.sums == {}


def test_a_path_is_no_name(watched: AnaplatClient, told: Told) -> None:
    with pytest.raises(errors.AnaplatError):
        watched.call("/public-api/nowhere/ds1")
    assert {key[:2] for key in told.sums} == {("requests", "call")}


def test_exports_and_polls(simulator: Simulator, watched: AnaplatClient, told: Told, tmp_path: Path) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    path = tmp_path / "x.csv"
    export_rows(watched, ExportPlan(RowQuery(ds_id="ds1"), FileTarget(Place(path, CsvSink()))))
    look(watched.without_retries(), DatasetDone(ds_id="ds1"))

    assert told.sums["rows_exported",] == 30
    assert told.sums["bytes_exported",] == path.stat().st_size
    assert told.sums["polls", "find_datasets"] == 1


def test_an_observer_that_breaks_undoes_nothing(simulator: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    def broken(metric: Metric, value: float, tags: Mapping[str, str]) -> None:
        raise OSError("no room")

    client = AnaplatClient(simulator.url, simulator.token, observer=broken)
    assert client.list_datasets() == []
    assert "anaplat.requests is not counted: OSError (no room)" in caplog.text


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (errors.AnaplatRateLimitedError("x"), "rate_limited"),
        (errors.AnaplatTimeoutError("x"), "timeout"),
        (errors.AnaplatConnectTimeoutError("x"), "connect_timeout"),
        (errors.AnaplatError("x"), "error"),
    ],
)
def test_the_word_for_a_failure(error: errors.AnaplatError, word: str) -> None:
    assert outcome_of(error) == word


def test_the_readme_names_each_metric() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    for metric in METRICS:
        tags = ", ".join(f"`{tag}`" for tag in metric.tags)
        assert f"| `{metric.name}` | {metric.kind} | {tags} | {metric.meaning} |" in readme
