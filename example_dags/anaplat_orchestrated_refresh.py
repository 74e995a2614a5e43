"""Refresh three datasets, check their columns, export them and tell the DAGs that wait for them."""

from __future__ import annotations

import os
from typing import Any

import pendulum
from airflow.sdk import DAG, Asset, task

from airflow_provider_anaplat import (
    AnaplatDatasetFreshnessSensor,
    AnaplatExportRowsOperator,
    AnaplatHook,
    AnaplatRefreshDatasetOperator,
)

EXPORT_PATH = os.environ.get("ANAPLAT_EXPORT_PATH", "/tmp/anaplat")  # noqa: S108 - yours will be another
DS_IDS = os.environ.get("ANAPLAT_DS_IDS", "ds1,ds2,ds3").split(",")
EXPECTED_COLUMNS = {"carrier", "distance"}

exports_are_there = Asset("anaplat-exports")

with DAG(
    dag_id="anaplat_orchestrated_refresh",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    tags=["anaplat"],
    doc_md=__doc__,
):
    refresh = AnaplatRefreshDatasetOperator.partial(
        task_id="refresh", wait_for_completion=False, retries=2
    ).expand(ds_id=DS_IDS)

    # The datasets that were not refreshed by this DAG, but by the platform's own schedule, are waited for alike.
    wait = AnaplatDatasetFreshnessSensor.partial(
        task_id="wait",
        newer_than="{{ dag_run.start_date.replace(microsecond=0) }}",
        deferrable=True,
        poke_interval=1,
        timeout=3600,
    ).expand(ds_id=DS_IDS)

    @task
    def check_columns(ds_id: str) -> dict[str, Any]:
        """Stop here, rather than in whatever reads the files, where a column has gone."""
        missing = EXPECTED_COLUMNS - {column.name for column in AnaplatHook().get_conn().get_columns(ds_id)}
        if missing:
            raise ValueError(f"Dataset {ds_id} has lost the columns {sorted(missing)}.")
        return {"ds_id": ds_id, "output_path": f"{EXPORT_PATH}/{ds_id}.parquet"}

    checked = check_columns.expand(ds_id=DS_IDS)
    export = AnaplatExportRowsOperator.partial(task_id="export").expand_kwargs(checked)

    @task(outlets=[exports_are_there])
    def publish() -> None:
        """Succeed, which is what tells the DAGs that are scheduled on the asset."""

    refresh >> wait >> checked
    export >> publish()
