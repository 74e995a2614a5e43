"""Have the platform update a dataset after its source was loaded, and go on when it has."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatRefreshDatasetOperator

with DAG("refresh_dataset", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatRefreshDatasetOperator(
        task_id="refresh", ds_id="ds1", deferrable=True, poll_interval=30, timeout=2 * 3600, retries=2
    )
