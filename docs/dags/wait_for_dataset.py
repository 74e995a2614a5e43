"""Create several datasets at once, and wait for each of them in the triggerer."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatCreateDatasetOperator, AnaplatDatasetTaskSensor

with DAG("wait_for_dataset", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    create = AnaplatCreateDatasetOperator.partial(
        task_id="create", account_id="warehouse", table_query={"table": "sales"}
    ).expand(name=["sales north {{ ds }}", "sales south {{ ds }}"])

    AnaplatDatasetTaskSensor.partial(task_id="wait", deferrable=True, poke_interval=30, timeout=2 * 3600).expand(
        ds_id=create.output.map(lambda created: created["dsId"])
    )
