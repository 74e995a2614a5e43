"""A DAG for OpenLineage: everything that makes a dataset or takes its rows somewhere."""

from __future__ import annotations

import os

import pendulum

from airflow_provider_anaplat import (
    AnaplatCreateDatasetOperator,
    AnaplatExportRowsOperator,
    AnaplatRefreshDatasetOperator,
    AnaplatToSqlOperator,
    partitioned_export,
)
from airflow_provider_anaplat._airflow.releases import DAG, Asset

OUTPUT = os.environ.get("ANAPLAT_TEST_OUTPUT", "/nowhere")

with DAG(
    dag_id="lineage",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    is_paused_upon_creation=False,
):
    create = AnaplatCreateDatasetOperator(
        task_id="create",
        account_id="a",
        name="{{ dag.dag_id }} of sales",
        table_query={"table": "sales", "query": "SELECT * FROM sales"},
        wait_for_completion=True,
        deferrable=True,
        poll_interval=0.2,
        inlets=[Asset("postgres://warehouse:5432/erp/public/sales")],
    )
    refresh = AnaplatRefreshDatasetOperator(task_id="refresh", ds_id=create.output["dsId"], poll_interval=0.2)
    export = AnaplatExportRowsOperator(
        task_id="export", ds_id="ds1", output_path=f"{OUTPUT}/{{{{ dag.dag_id }}}}.csv"
    )
    group = partitioned_export("parts", ds_id="ds1", output_path=f"{OUTPUT}/parts", partitions=2, page_size=2)
    load = AnaplatToSqlOperator(task_id="load", ds_id="ds1", sql_conn_id="database", table="sales")
    to_a_file = AnaplatToSqlOperator(
        task_id="load_sqlite",
        ds_id="ds1",
        sql_conn_id="sqlite",
        table="sales",
        outlets=[Asset(f"file://{OUTPUT}/sales.db")],
    )
    fails = AnaplatExportRowsOperator(task_id="fails", ds_id="gone", output_path=f"{OUTPUT}/gone.csv")
    create >> refresh
    export >> load >> to_a_file
