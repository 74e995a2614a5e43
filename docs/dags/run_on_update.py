"""Run whenever the platform has updated a dataset, whatever caused the update (Airflow 3)."""

import pendulum
from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_provider_anaplat import AnaplatDatasetUpdatedTrigger, AnaplatExportRowsOperator

sales = Asset(
    "sales",
    watchers=[AssetWatcher(name="updated", trigger=AnaplatDatasetUpdatedTrigger(ds_id="ds1", poll_interval=60))],
)

with DAG("run_on_update", schedule=[sales], start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatExportRowsOperator(
        task_id="export", ds_id="ds1", output_path="/data/updates/{{ run_id | replace(':', '') }}.parquet"
    )
