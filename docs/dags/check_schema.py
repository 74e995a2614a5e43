"""Export a dataset only while its columns are those that the readers of the file rely on."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatExportRowsOperator, AnaplatSchemaCheckOperator

with DAG("check_schema", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    check = AnaplatSchemaCheckOperator(
        task_id="check",
        ds_id="ds1",
        columns={"id": "INT", "city": "STRING", "amount": None},
        allow_extra=True,
    )
    export = AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path="/data/checked.parquet")
    check >> export
