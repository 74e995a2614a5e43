"""Export what a chart shows, every morning."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatExportCardOperator

with DAG("export_card", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatExportCardOperator(
        task_id="export",
        card_id="sales-by-city",
        output_path="/data/sales-by-city-{{ dag_run.run_after | ds }}.parquet",
        filters=[{"name": "city", "filterType": "IN", "filterValue": ["Paris", "Rome"]}],
        retries=2,
    )
