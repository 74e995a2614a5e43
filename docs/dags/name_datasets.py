"""Export one dataset by its name, and refresh all whose names fit a pattern."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import (
    AnaplatExportRowsOperator,
    AnaplatListDatasetsOperator,
    AnaplatRefreshDatasetOperator,
)

with DAG("name_datasets", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatExportRowsOperator(task_id="export", dataset="sales", output_path="/data/by-name.parquet")

    regions = AnaplatListDatasetsOperator(task_id="regions", name_pattern="region *", states=["FINISHED"])
    AnaplatRefreshDatasetOperator.partial(task_id="refresh").expand(ds_id=regions.output)
