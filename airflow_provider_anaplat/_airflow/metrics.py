"""What the client measures, to Airflow's own metrics: StatsD or OpenTelemetry, off when they are off."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_anaplat.client.metrics import Metric


class AirflowMetrics:
    """An observer that writes to Airflow's Stats; it may be called in any thread.

    Each value goes out under the metric's name with its tags and ``conn_id``, and also under a name that holds
    their values, for StatsD without tags: ``anaplat.requests.<conn_id>.<operation>.<outcome>``.

    :param conn_id: id of the Airflow connection
    """

    def __init__(self, conn_id: str) -> None:
        self._conn_id = conn_id

    def __call__(self, metric: Metric, value: float, tags: Mapping[str, str]) -> None:
        """Write one value."""
        from airflow_provider_anaplat._airflow.releases import Stats

        all_tags = {"conn_id": self._conn_id, **{name: tags[name] for name in metric.tags}}
        in_name = ".".join(
            [metric.name, *(re.sub(r"[^\w-]", "_", tag, flags=re.ASCII) for tag in all_tags.values())]
        )
        for name, given in ((metric.name, all_tags), (in_name, None)):
            _write(Stats, metric.kind, name, value, given)


def _write(stats: Any, kind: str, name: str, value: float, tags: dict[str, str] | None) -> None:
    if kind == "counter":
        stats.incr(name, int(value), tags=tags)
    elif kind == "gauge":
        stats.gauge(name, value, tags=tags)
    else:
        stats.timing(name, timedelta(seconds=value), tags=tags)
