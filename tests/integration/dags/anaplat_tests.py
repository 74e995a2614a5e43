"""DAGs of the tests: templates, mapped tasks and each way of waiting."""

from __future__ import annotations

import os
from typing import Any

import pendulum

from airflow_provider_anaplat import (
    AnaplatCreateDatasetOperator,
    AnaplatCreateUsersOperator,
    AnaplatDatasetTaskSensor,
    AnaplatExportRowsOperator,
    AnaplatListDatasetsOperator,
    AnaplatToSqlOperator,
    partitioned_export,
)
from airflow_provider_anaplat._airflow.releases import DAG, task

OUTPUT = os.environ.get("ANAPLAT_TEST_OUTPUT", "/nowhere")
COMMON: dict[str, Any] = {
    "schedule": None,
    "start_date": pendulum.datetime(2026, 1, 1, tz="UTC"),
    "catchup": False,
}

for mode in ("poke", "reschedule", "deferred"):
    with DAG(dag_id=f"wait_{mode}", **COMMON):
        create = AnaplatCreateDatasetOperator(
            task_id="create", account_id="a", name="{{ run_id }}", table_query={"table": "numbers"}
        )
        AnaplatDatasetTaskSensor(
            task_id="wait",
            ds_id=create.output["dsId"],
            mode="poke" if mode == "deferred" else mode,
            deferrable=mode == "deferred",
            poke_interval=0.2,
            timeout=60,
        )

with DAG(dag_id="retried", default_args={"retries": 2, "retry_delay": 0}, **COMMON):
    AnaplatCreateDatasetOperator(task_id="create", account_id="a", name="once", table_query={"table": "numbers"})
    AnaplatCreateUsersOperator(task_id="users", users=[{"loginId": "a", "password": "s3cret-a"}])


class LoadThenFail(AnaplatToSqlOperator):
    """Its first attempt loads, and is lost before Airflow knows."""

    def execute(self, context: Any) -> Any:
        result = super().execute(context)
        if context["ti"].try_number == 1:
            raise RuntimeError("the worker was lost")
        return result


with DAG(dag_id="to_sql", default_args={"retries": 1, "retry_delay": 0}, **COMMON):
    LoadThenFail(
        task_id="append", ds_id="ds1", sql_conn_id="anaplat_test_sql", table="{{ task.task_id }}", mode="append"
    )
    AnaplatToSqlOperator.partial(
        task_id="mapped", ds_id="ds1", sql_conn_id="anaplat_test_sql", mode="append"
    ).expand(table=["a", "b"])

with DAG(dag_id="mapped", **COMMON):
    creates = AnaplatCreateDatasetOperator.partial(
        task_id="create", account_id="a", table_query={"table": "numbers"}
    ).expand(name=["one", "two"])
    waits = AnaplatDatasetTaskSensor.partial(task_id="wait", poke_interval=0.2).expand(
        ds_id=creates.output.map(lambda created: created["dsId"])
    )

    @task
    def exports_of(created: list[dict[str, str]]) -> list[dict[str, str]]:
        return [{"ds_id": item["dsId"], "output_path": f"{OUTPUT}/{item['dsId']}.csv"} for item in created]

    created: Any = creates.output
    exports = AnaplatExportRowsOperator.partial(task_id="export").expand_kwargs(exports_of(created))
    users = AnaplatCreateUsersOperator.partial(task_id="users").expand(
        users=[[{"loginId": "a", "password": "s3cret-a"}], [{"loginId": "b", "password": "s3cret-b"}]]
    )
    waits >> exports >> users

with DAG(dag_id="partitioned", **COMMON):
    partitioned_export(
        "export",
        ds_id="{{ 'ds1' }}",
        output_path=f"{OUTPUT}/{{{{ dag.dag_id }}}}",
        partitions=3,
        page_size=10,
        file_format="csv.gz",
    ) >> AnaplatCreateUsersOperator(task_id="users", users=[{"loginId": "a", "password": "s3cret-a"}])

with DAG(dag_id="unchanged", **COMMON):
    for word in ("return", "skip"):
        partitioned_export(
            word,
            ds_id="ds1",
            output_path=f"{OUTPUT}/{word}",
            partitions=2,
            page_size=10,
            if_unchanged=word,
        ) >> AnaplatListDatasetsOperator(task_id=f"after_{word}")
