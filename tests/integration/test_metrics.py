"""Airflow's metrics of a task over real sockets: StatsD and OpenTelemetry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from conftest import numbers
from support.running import RELEASE
from support.statsd import StatsD

from airflow_provider_anaplat.simulator import Simulator, replies

EXPORT = """
import sys
from airflow_provider_anaplat._airflow.releases import BaseOperator
try:  # as Airflow's own task runner does
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils
except ImportError:  # before Airflow 3.2
    pass
else:
    if hasattr(stats, "initialize"):
        stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)
    else:
        stats.Stats.initialize(factory=stats_utils.get_stats_factory(stats.Stats))
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=sys.argv[1]).execute({})
try:  # Airflow 2 leaves it to time, and this process has none
    from opentelemetry.metrics import get_meter_provider
    get_meter_provider().force_flush()
except (ImportError, AttributeError):
    pass
"""


class Collector(ThreadingHTTPServer):
    """Takes what is sent to it by OTLP over HTTP.

    :ivar received: the points of each metric by its tags; of a histogram, how many values and their sum
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Otlp)
        self.received: dict[tuple[str, frozenset[tuple[str, str]]], Any] = {}
        self.paths: set[str] = set()

    def environment(self) -> dict[str, str]:
        return {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "AIRFLOW__METRICS__OTEL_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__OTEL_PORT": str(self.server_port),
        }

    def value(self, name: str, **tags: str) -> Any:
        return self.received.get((f"airflow.anaplat.{name}", frozenset(tags.items())))


class _Otlp(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as otlp

        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = otlp.ExportMetricsServiceRequest.FromString(body)
        self.server.paths.add(self.path)
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self._take(metric)
        answer = otlp.ExportMetricsServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _take(self, metric: Any) -> None:
        kind = metric.WhichOneof("data")
        for point in getattr(metric, kind).data_points:
            tags = frozenset((tag.key, tag.value.string_value) for tag in point.attributes)
            is_histogram = kind.endswith("histogram")
            value = (point.count, point.sum) if is_histogram else getattr(point, point.WhichOneof("value"))
            self.server.received[metric.name, tags] = value

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the library's name
        """Print nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.sdk.metrics", reason="Airflow's extra otel is not installed")
    pytest.importorskip("opentelemetry.proto.collector", reason="opentelemetry-proto is not installed")
    with Collector() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def export(simulator: Simulator, path: Path, environment: dict[str, str]) -> None:
    simulator.platform.add_dataset("numbers", numbers(30))
    simulator.inject("read_rows", replies.http_status(429, retry_after="1"))
    connection = json.dumps({"conn_type": "anaplat", "host": simulator.url, "password": simulator.token})
    environment = {**os.environ, "AIRFLOW_CONN_ANAPLAT_DEFAULT": connection, **environment}
    subprocess.run([sys.executable, "-c", EXPORT, str(path)], env=environment, check=True, capture_output=True)


def test_an_export_is_measured(simulator: Simulator, tmp_path: Path, statsd: StatsD) -> None:
    path = tmp_path / "x.csv"
    export(simulator, path, statsd.environment())

    assert statsd.values("requests.anaplat_default.read_rows.ok") == ["1|c"]
    assert statsd.values("requests.anaplat_default.read_rows.rate_limited") == ["1|c"]
    assert statsd.values("requests") == ["1|c", "1|c"]
    assert statsd.values("retries.anaplat_default.read_rows") == ["1|c"]
    assert statsd.values("retry_after.anaplat_default.read_rows") == ["1000.000000|ms"]
    assert statsd.values("rows_exported.anaplat_default") == ["30|c"]
    assert statsd.values("bytes_exported.anaplat_default") == [f"{path.stat().st_size}|c"]


def test_an_export_is_measured_by_opentelemetry(
    simulator: Simulator, tmp_path: Path, collector: Collector
) -> None:
    path, conn = tmp_path / "x.csv", "anaplat_default"
    export(simulator, path, collector.environment())

    assert collector.paths == {"/v1/metrics"}
    assert collector.value("requests", conn_id=conn, operation="read_rows", outcome="ok") == 1
    assert collector.value("requests", conn_id=conn, operation="read_rows", outcome="rate_limited") == 1
    assert collector.value("retries", conn_id=conn, operation="read_rows") == 1

    # A histogram of milliseconds; before Airflow 3.3, a gauge of them, and in Airflow 2 one of seconds.
    waited = (1, 1000.0) if RELEASE >= (3, 3) else 1000.0 if RELEASE >= (3, 0) else 1.0
    assert collector.value("retry_after", conn_id=conn, operation="read_rows") == waited
    assert collector.value("rows_exported", conn_id=conn) == 30
    assert collector.value("bytes_exported", conn_id=conn) == path.stat().st_size


def test_nothing_is_sent_where_airflows_metrics_are_off(
    simulator: Simulator, tmp_path: Path, statsd: StatsD
) -> None:
    export(simulator, tmp_path / "x.csv", statsd.environment(on=False))
    assert statsd.values("requests") == []
    assert statsd.heard == {}
