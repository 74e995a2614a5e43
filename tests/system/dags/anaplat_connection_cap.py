"""Mapped exports by a connection with ``max_connections``, and by one without."""

from __future__ import annotations

import os

import pendulum

from airflow_provider_anaplat import AnaplatExportRowsOperator
from airflow_provider_anaplat._airflow.releases import DAG

EXPORTS = {"capped": 10, "uncapped": 3}

for name, exports in EXPORTS.items():
    with DAG(f"{name}_exports", schedule=None, start_date=pendulum.datetime(2026, 1, 1, tz="UTC"), catchup=False):
        AnaplatExportRowsOperator.partial(
            task_id="export", ds_id="ds1", page_size=100, concurrency=4, anaplat_conn_id=f"anaplat_{name}"
        ).expand(
            output_path=[f"{os.environ['ANAPLAT_EXPORT_PATH']}/{name}-{number}.csv" for number in range(exports)]
        )
