"""DAGs that meet with faults; each has a connection, and an embedded platform, of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pendulum

from airflow_provider_anaplat import (
    AnaplatCreateDatasetOperator,
    AnaplatCreateUsersOperator,
    AnaplatDatasetTaskSensor,
    AnaplatExportRowsOperator,
)
from airflow_provider_anaplat._airflow.releases import DAG

OUTPUT = os.environ["ANAPLAT_EXPORT_PATH"]
USERS = os.environ["ANAPLAT_TEST_USERS"]
SENSORS, MAPPED = json.loads(os.environ["ANAPLAT_TEST_SENSORS"])

RETRIED = {"retries": 1, "retry_delay": timedelta(0)}
CREATED: dict[str, Any] = {"account_id": "a", "name": "sales", "table_query": {"table": "t"}}
DEFERRED: dict[str, Any] = {"deferrable": True, "poke_interval": 1, "timeout": 600}
AWAITED: dict[str, Any] = {"wait_for_completion": True, "deferrable": True, "poll_interval": 1, "timeout": 600}
EXPORTED: dict[str, Any] = {"page_size": 100, "concurrency": 2}


@contextmanager
def meets_with(fault: str, **defaults: Any) -> Iterator[str]:
    """Make a DAG whose tasks use the fault's connection, and yield the path of its file."""
    with DAG(
        dag_id=fault,
        schedule=None,
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=False,
        default_args={"anaplat_conn_id": f"anaplat_{fault}", **defaults},
    ):
        yield f"{OUTPUT}/{fault}.csv"


with meets_with("worker_dies_creating", **RETRIED):
    AnaplatCreateDatasetOperator(task_id="task", **CREATED)

with meets_with("worker_dies_amid_users", **RETRIED):
    AnaplatCreateUsersOperator(task_id="task", users_path=USERS, batch_size=2, existing_users="skip")

with meets_with("worker_dies_exporting", **RETRIED) as path:
    AnaplatExportRowsOperator(task_id="task", ds_id="ds1", output_path=path, **EXPORTED)

with meets_with("worker_dies_exporting_parts", **RETRIED) as path:
    AnaplatExportRowsOperator(
        task_id="task",
        ds_id="ds1",
        output_path=path.removesuffix(".csv"),
        file_format="csv",
        rows_per_file=100,
        **EXPORTED,
    )

# Those that begin in the triggerer need no worker before their end; Airflow does not let mapped ones do so.
SENSING: dict[str, Any] = {**DEFERRED, "poke_interval": 2}
with meets_with("triggerer_dies"):
    AnaplatDatasetTaskSensor.partial(task_id="mapped", **SENSING).expand(
        ds_id=[f"ds{number}" for number in range(1, MAPPED + 1)]
    )
    for number in range(MAPPED + 1, SENSORS + 1):
        AnaplatDatasetTaskSensor(task_id=f"ds{number}", ds_id=f"ds{number}", start_from_trigger=True, **SENSING)

with meets_with("triggerer_dies_creating"):
    AnaplatCreateDatasetOperator(task_id="task", **CREATED, **AWAITED)

with meets_with("scheduler_dies") as path:
    waited = AnaplatDatasetTaskSensor(task_id="wait", ds_id="ds1", **DEFERRED)
    waited >> AnaplatExportRowsOperator(task_id="after", ds_id="ds1", output_path=f"{path}.gz")
    AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=path, **EXPORTED)
    AnaplatCreateDatasetOperator(task_id="create", **CREATED)
    AnaplatCreateUsersOperator(task_id="users", users_path=USERS, batch_size=2)

with meets_with("platform_goes") as path:
    AnaplatCreateDatasetOperator(task_id="create", **CREATED, reconcile_timeout=600)
    AnaplatCreateUsersOperator(task_id="users", users_path=USERS, batch_size=2, existing_users="skip")
    AnaplatExportRowsOperator(task_id="export", ds_id="ds1", output_path=path, **EXPORTED)
    AnaplatDatasetTaskSensor(task_id="deferred", ds_id="ds2", **DEFERRED)
    AnaplatDatasetTaskSensor(task_id="rescheduled", ds_id="ds2", mode="reschedule", poke_interval=1, timeout=600)

with meets_with("platform_is_gone", retries=20, retry_delay=timedelta(seconds=1)):
    AnaplatCreateDatasetOperator(task_id="create", **CREATED)
    AnaplatCreateUsersOperator(task_id="users", users_path=USERS)

for fault in ("cleared", "failed_by_hand"):
    with meets_with(fault):
        AnaplatDatasetTaskSensor(task_id="wait", ds_id="ds1", **DEFERRED)
        AnaplatCreateDatasetOperator(task_id="create", **CREATED, **AWAITED)

with meets_with("timed_out"):
    AnaplatDatasetTaskSensor(task_id="wait", ds_id="ds1", **{**DEFERRED, "timeout": 3})
    AnaplatCreateDatasetOperator(task_id="create", **CREATED, **{**AWAITED, "timeout": 3})

with meets_with("bystander"):
    AnaplatDatasetTaskSensor(task_id="waits_on", ds_id="ds1", **{**DEFERRED, "timeout": 86400})
