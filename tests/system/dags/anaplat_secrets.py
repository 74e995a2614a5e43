"""A DAG of every operator and sensor; most answers are bad ones, which repeat the secrets of the request."""

from __future__ import annotations

import os
from typing import Any

import pendulum
from airflow.providers.openlineage.utils.selective_enable import enable_lineage

from airflow_provider_anaplat import (
    AnaplatAccessReportOperator,
    AnaplatCallOperator,
    AnaplatCreateDatasetOperator,
    AnaplatCreateUsersOperator,
    AnaplatDatasetTaskSensor,
    AnaplatExportRowsOperator,
    AnaplatRefreshDatasetOperator,
    AnaplatSchemaCheckOperator,
    AnaplatSubscriptionSensor,
    AnaplatToSqlOperator,
    partitioned_export,
)
from airflow_provider_anaplat._airflow.releases import DAG, BaseOperator

OUTPUT = os.environ["ANAPLAT_EXPORT_PATH"]
FAULTS = os.environ["ANAPLAT_TEST_FAULTS"].split(",")
WAITING: dict[str, Any] = {"poke_interval": 1, "timeout": 120, "max_poll_failures": 1}
DEFERRED: dict[str, Any] = {**WAITING, "deferrable": True}


class PlantOperator(BaseOperator):
    """Lets everybody read what it is given."""

    def execute(self, context: Any) -> None:
        planted = os.environ["ANAPLAT_TEST_PLANTED"]
        context["ti"].xcom_push("planted", planted)
        raise ValueError(planted)


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
    AnaplatDatasetTaskSensor(task_id="deferred", ds_id="ds1", **DEFERRED, anaplat_conn_id="anaplat_failing")
    for name, how in (("asks_for_a_task", DEFERRED), ("pokes_for_a_task", WAITING)):
        AnaplatDatasetTaskSensor(task_id=name, ds_id="ds1", probe="task", platform_task_id="t1", **how)
    for name, page_size in (("whole", 10), ("broken", 15)):
        partitioned_export(
            name, ds_id="ds1", output_path=f"{OUTPUT}/secrets/{name}", partitions=2, page_size=page_size
        )
    load: dict[str, Any] = {
        "ds_id": "ds1",
        "sql_conn_id": "hr_database",
        "table": "loaded",
        "anaplat_conn_id": "anaplat_secrets_user",
    }
    AnaplatToSqlOperator(task_id="load", **load)
    AnaplatToSqlOperator.partial(task_id="load_of_a_fault", **load).expand(
        filter=[{"fault": fault} for fault in FAULTS]
    )
    AnaplatToSqlOperator(task_id="load_that_does_not_fit", **{**load, "table": "employees"})
    AnaplatToSqlOperator(task_id="load_to_nowhere", **{**load, "sql_conn_id": "no_database"})
    AnaplatAccessReportOperator(
        task_id="access", user_ids=["u1", "u2"], output_path=f"{OUTPUT}/secrets/access.csv", concurrency=1
    )
    AnaplatSchemaCheckOperator(task_id="schema", ds_id="ds1", columns={"n": None})
    AnaplatCallOperator(
        task_id="call",
        path="/public-api/data-source/ds1/refresh",
        json={"password": "{{ var.value.first_pin }}"},
    )
    AnaplatRefreshDatasetOperator(task_id="refresh", ds_id="ds1")
    AnaplatSubscriptionSensor(task_id="subscription", subscription_ids=["s1"], **WAITING)
    AnaplatExportRowsOperator(
        task_id="by_proxy",
        ds_id="ds1",
        output_path=f"{OUTPUT}/no.csv",
        anaplat_conn_id="anaplat_secrets_by_proxy_http",
    )
    AnaplatDatasetTaskSensor(
        task_id="deferred_by_proxy", ds_id="ds1", **DEFERRED, anaplat_conn_id="anaplat_secrets_by_proxy_https"
    )
    signed: dict[str, Any] = {"anaplat_conn_id": "anaplat_signed"}
    AnaplatExportRowsOperator(
        task_id="signed", ds_id="ds1", output_path=f"{OUTPUT}/secrets/signed.csv", page_size=10, **signed
    )
    AnaplatExportRowsOperator.partial(
        task_id="signed_export", ds_id="ds1", output_path=f"{OUTPUT}/no.csv", **signed
    ).expand(filter=[{"fault": fault} for fault in FAULTS])
    AnaplatDatasetTaskSensor(
        task_id="signed_deferred", ds_id="ds1", probe="task", platform_task_id="t1", **DEFERRED, **signed
    )
    PlantOperator(task_id="plant")

enable_lineage(dag)
