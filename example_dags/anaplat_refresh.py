"""Create a dataset, wait for it, export its rows and create users: the whole of a nightly refresh."""

from __future__ import annotations

import os

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import (
    AnaplatCreateDatasetOperator,
    AnaplatCreateUsersOperator,
    AnaplatDatasetTaskSensor,
    AnaplatExportRowsOperator,
)

EXPORT_PATH = os.environ.get("ANAPLAT_EXPORT_PATH", "/tmp/anaplat")  # noqa: S108 - yours will be another

with DAG(
    dag_id="anaplat_refresh",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    tags=["anaplat"],
    doc_md=__doc__,
):
    create = AnaplatCreateDatasetOperator(
        task_id="create_dataset",
        account_id="warehouse",
        name="flights {{ run_id }}",
        table_query={"query_type": "table", "table": "flights"},
    )
    wait = AnaplatDatasetTaskSensor(
        task_id="wait_for_dataset",
        ds_id=create.output["dsId"],
        poke_interval=1,
        timeout=600,
    )
    export_parquet = AnaplatExportRowsOperator(
        task_id="export_parquet",
        ds_id=create.output["dsId"],
        output_path=f"{EXPORT_PATH}/flights.parquet",
    )
    export_csv = AnaplatExportRowsOperator(
        task_id="export_csv",
        ds_id=create.output["dsId"],
        output_path=f"{EXPORT_PATH}/flights.csv",
    )
    create_users = AnaplatCreateUsersOperator(
        task_id="create_users",
        users=[
            {"loginId": "ada", "name": "Ada", "role": "participant", "enabled": True},
            {"loginId": "blaise", "name": "Blaise", "role": "participant", "enabled": True},
            {"loginId": "carl", "name": "Carl", "role": "participant", "enabled": True},
        ],
    )

    create >> wait >> [export_parquet, export_csv] >> create_users
