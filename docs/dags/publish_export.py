"""Export a dataset, and say so: DAGs that are scheduled on the asset run, and know what was written."""

import pendulum
from airflow.sdk import DAG, Asset, task

from airflow_provider_anaplat import AnaplatExportRowsOperator

sales_file = Asset("file:///data/published/sales.parquet")

with DAG("publish_export", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatExportRowsOperator(
        task_id="export", ds_id="ds1", output_path="/data/published/sales.parquet", outlets=[sales_file]
    )

with DAG("read_export", schedule=[sales_file], start_date=pendulum.datetime(2026, 1, 1), catchup=False):

    @task
    def rows_of(triggering_asset_events=None):
        """Return how many rows each event of the asset speaks of."""
        events = (triggering_asset_events or {}).get(sales_file, [])
        return [event.extra["rows"] for event in events]

    rows_of()
