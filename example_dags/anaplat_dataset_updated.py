"""Run when a dataset of the platform was updated: an asset whose watcher looks at the platform (Airflow 3)."""

from __future__ import annotations

import os

import pendulum
from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_provider_anaplat import AnaplatDatasetUpdatedTrigger, AnaplatExportRowsOperator

EXPORT_PATH = os.environ.get("ANAPLAT_EXPORT_PATH", "/tmp/anaplat")  # noqa: S108 - yours will be another
DS_ID = os.environ.get("ANAPLAT_DS_ID", "ds1")

sales = Asset(
    "anaplat_sales",
    watchers=[AssetWatcher(name="updated", trigger=AnaplatDatasetUpdatedTrigger(ds_id=DS_ID, poll_interval=60))],
)

with DAG(
    dag_id="anaplat_dataset_updated",
    schedule=[sales],
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    tags=["anaplat"],
    doc_md=__doc__,
):
    AnaplatExportRowsOperator(
        task_id="export",
        ds_id=DS_ID,
        output_path=f"{EXPORT_PATH}/updated-{{{{ run_id | replace(':', '') }}}}.parquet",
    )
