"""Airflow's metrics over a real StatsD socket: from a task, and from a real triggerer."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TEXTS, numbers
from test_triggerer import COMPONENTS, DAG_FILE, Airflow, until

from airflow_provider_anaplat.simulator import Simulator, replies

pytest.importorskip("statsd", reason="Airflow writes to StatsD with this library")

EXPORT = """
import sys
from airflow.providers.common.compat.sdk import BaseOperator
try:  # as Airflow's own task runner does
    from airflow.sdk.observability.metrics import stats_utils
    from airflow.sdk.observability.stats import initialize
    initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)
except ImportError:
    pass
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=sys.argv[1]).execute({})
"""


class StatsD:
    """Hears what is sent."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0)
        self.heard: dict[str, list[str]] = {}

    def environment(self, on: bool = True) -> dict[str, str]:
        return {
            "AIRFLOW__METRICS__STATSD_ON": str(on),
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(self.socket.getsockname()[1]),
        }

    def values(self, name: str) -> list[str]:
        while True:
            try:
                text = self.socket.recv(65536).decode()
            except BlockingIOError:
                break
            for line in text.splitlines():
                key, _, value = line.partition(":")
                self.heard.setdefault(key, []).append(value)
        return self.heard.get(f"airflow.anaplat.{name}", [])


@pytest.fixture
def statsd() -> Iterator[StatsD]:
    server = StatsD()
    yield server
    server.socket.close()


def export(platform: Simulator, path: Path, environment: dict[str, str]) -> None:
    platform.platform.add_dataset("numbers", numbers(30))
    platform.inject("read_rows", replies.http_status(429, retry_after="1"))
    connection = json.dumps({"conn_type": "anaplat", "host": platform.url, "password": platform.token})
    environment = {**os.environ, "AIRFLOW_CONN_ANAPLAT_DEFAULT": connection, **environment}
    subprocess.run([sys.executable, "-c", EXPORT, str(path)], env=environment, check=True, capture_output=True)


def test_an_export_is_measured(platform: Simulator, tmp_path: Path, statsd: StatsD) -> None:
    path = tmp_path / "x.csv"
    export(platform, path, statsd.environment())
    assert statsd.values("requests.anaplat_default.read_rows.ok") == ["1|c"]
    assert statsd.values("requests.anaplat_default.read_rows.rate_limited") == ["1|c"]
    assert statsd.values("requests") == ["1|c", "1|c"]
    assert statsd.values("retries.anaplat_default.read_rows") == ["1|c"]
    assert statsd.values("retry_after.anaplat_default.read_rows") == ["1000.000000|ms"]
    assert statsd.values("rows_exported.anaplat_default") == ["30|c"]
    assert statsd.values("bytes_exported.anaplat_default") == [f"{path.stat().st_size}|c"]


def test_nothing_is_sent_where_airflows_metrics_are_off(
    platform: Simulator, tmp_path: Path, statsd: StatsD
) -> None:
    export(platform, tmp_path / "x.csv", statsd.environment(on=False))
    assert statsd.values("requests") == []
    assert statsd.heard == {}


def test_a_triggerer_is_measured(platform: Simulator, tmp_path: Path, statsd: StatsD) -> None:
    for number in range(1, 6):
        platform.platform.add_dataset(f"dataset {number}", TEXTS, ["处理中"])
    (tmp_path / "dags").mkdir()
    shutil.copy(DAG_FILE, tmp_path / "dags")
    airflow = Airflow(tmp_path)
    airflow.environment |= statsd.environment()
    airflow.command("db", "migrate")
    airflow.command(
        "connections", "add", "anaplat_default", "--conn-type", "anaplat", "--conn-host", platform.url,
        "--conn-password", platform.token,
    )  # fmt: skip
    try:
        for component in COMPONENTS:
            airflow.start(component)
        until(lambda: airflow.query("select 1 from dag where dag_id = 'triggerer_waits'") != [], airflow)
        airflow.command("dags", "trigger", "triggerer_waits")
        # All five, and on Airflow 3 the watcher.
        everybody = {"5|g", "6|g"}
        until(lambda: bool(everybody & {*statsd.values("poll_waiters.anaplat_default.find_datasets")}), airflow)
        assert "1|c" in statsd.values("polls.anaplat_default.find_datasets")
        assert "1|c" in statsd.values("requests.anaplat_default.list_datasets.ok")
    finally:
        airflow.stop()
