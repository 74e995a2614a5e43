"""Load a dataset into a table, which readers see as it was until all of it is there."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatToSqlOperator

with DAG("load_into_sql", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatToSqlOperator(
        task_id="current",
        ds_id="ds1",
        sql_conn_id="warehouse",
        table="sales",
        mode="upsert",
        key_columns=["id"],
        retries=2,
    ) >> AnaplatToSqlOperator(
        task_id="history",
        ds_id="ds1",
        sql_conn_id="warehouse",
        table="sales_history",
        mode="append",
        retries=2,
    )
