"""Export one dataset in three ways."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatExportRowsOperator

with DAG("export_rows", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatExportRowsOperator(task_id="all_rows", ds_id="ds1", output_path="/data/sales.parquet", sort_by="id")

    AnaplatExportRowsOperator(
        task_id="one_city",
        ds_id="ds1",
        output_path="/data/paris.csv.gz",
        filter={
            "combineType": "AND",
            "conditions": [
                {
                    "type": "condition",
                    "value": {"name": "city", "filterType": "EQ", "filterValue": ["Paris"]},
                }
            ],
        },
    )

    AnaplatExportRowsOperator(
        task_id="in_parts",
        ds_id="ds1",
        output_path="/data/sales",
        file_format="ndjson.zst",
        rows_per_file=1_000_000,
        page_size=10_000,
    )
