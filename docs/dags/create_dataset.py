"""Create a dataset every night, and go on when its rows are there."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatCreateDatasetOperator

with DAG("create_dataset", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatCreateDatasetOperator(
        task_id="create",
        account_id="warehouse",
        parent_dir_id="nightly",
        name="sales {{ ds }}",
        table_query={"table": "sales"},
        primary_key_columns=["id"],
        wait_for_completion=True,
        deferrable=True,
        timeout=2 * 3600,
        retries=2,
    )
