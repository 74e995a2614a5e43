"""Export a dataset that the platform updates by itself, as soon as it holds the data of the run's day."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatDatasetFreshnessSensor, AnaplatExportRowsOperator

with DAG("wait_for_fresh_data", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    wait = AnaplatDatasetFreshnessSensor(
        task_id="wait",
        ds_id="ds1",
        deferrable=True,
        start_from_trigger=True,
        poke_interval=60,
        timeout=6 * 3600,
    )
    export = AnaplatExportRowsOperator(
        task_id="export", ds_id="ds1", output_path="/data/fresh/{{ run_id | replace(':', '') }}.parquet"
    )
    wait >> export
