"""Export one large dataset by twelve tasks, and publish all of it or nothing."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import partitioned_export

with DAG(
    "export_by_several_workers",
    schedule="@weekly",
    start_date=pendulum.datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
):
    partitioned_export("export", ds_id="ds1", output_path="/data/history", partitions=12, sort_by="id", retries=2)
