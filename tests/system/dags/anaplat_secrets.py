"""A DAG whose every answer is a bad one, most of which repeat the secrets of the request."""

from __future__ import annotations

import os

import pendulum
from airflow.providers.common.compat.sdk import DAG
from airflow.providers.openlineage.utils.selective_enable import enable_lineage

from airflow_provider_anaplat.operators.datasets import AnaplatCreateDatasetOperator
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.operators.users import AnaplatCreateUsersOperator
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetTaskSensor

OUTPUT = os.environ["ANAPLAT_EXPORT_PATH"]
FAULTS = os.environ["ANAPLAT_TEST_FAULTS"].split(",")
WAITING = {"poke_interval": 1, "timeout": 120, "max_poll_failures": 1, "deferrable": True}

with DAG(
    dag_id="secrets",
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    default_args={"anaplat_conn_id": "anaplat_secrets"},
) as dag:
    AnaplatCreateUsersOperator.partial(task_id="users").expand(
        users=[[{"loginId": fault, "password": "{{ var.value.first_pin }}"}] for fault in FAULTS]
    )
    AnaplatExportRowsOperator.partial(
        task_id="export", ds_id="ds1", output_path=f"{OUTPUT}/no.csv", anaplat_conn_id="anaplat_secrets_user"
    ).expand(filter=[{"fault": fault} for fault in FAULTS])
    AnaplatCreateDatasetOperator.partial(
        task_id="create", account_id="a", table_query={"table": "t"}, reconcile_timeout=1
    ).expand(name=FAULTS)
    AnaplatCreateUsersOperator(
        task_id="users_of_a_query",
        users_sql="select login as login_id, first_password as password from hr.employees",
        sql_conn_id="hr_database",
    )
    AnaplatExportRowsOperator(
        task_id="wrong_token",
        ds_id="ds1",
        output_path=f"{OUTPUT}/no.csv",
        anaplat_conn_id="anaplat_secrets_wrong",
    )
    AnaplatDatasetTaskSensor(task_id="deferred", ds_id="ds1", **{**WAITING, "anaplat_conn_id": "anaplat_failing"})
    AnaplatDatasetTaskSensor(
        task_id="asks_for_a_task", ds_id="ds1", probe="task", platform_task_id="t1", **WAITING
    )

enable_lineage(dag)
