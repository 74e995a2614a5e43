"""DAGs for a real triggerer: sensors that defer or begin there, and an asset whose watcher lives there."""

from __future__ import annotations

from typing import Any

import pendulum
from airflow import __version__ as airflow_version

from airflow_provider_anaplat import AnaplatDatasetTaskSensor, AnaplatDatasetUpdatedTrigger
from airflow_provider_anaplat._airflow.releases import DAG, task

# The local executor of Airflow 3.0 may start a task before the scheduler has written that it is queued, and then
# fails it unrun.
MAY_FAIL_UNRUN = airflow_version.startswith("3.0.")
COMMON: dict[str, Any] = {
    "default_args": {"retries": 5 if MAY_FAIL_UNRUN else 0, "retry_delay": 0},
    "start_date": pendulum.datetime(2026, 1, 1, tz="UTC"),
    "catchup": False,
    "is_paused_upon_creation": False,
}
WAITING: dict[str, Any] = {"poke_interval": 1, "timeout": 3600, "deferrable": True}

with DAG(dag_id="triggerer_waits", schedule=None, params={"first": "ds1"}, **COMMON):
    AnaplatDatasetTaskSensor(
        task_id="begins_there", ds_id="{{ params.first }}", start_from_trigger=True, **WAITING
    )
    AnaplatDatasetTaskSensor.partial(task_id="defers", **WAITING).expand(ds_id=["ds2", "ds3", "ds4"])
    AnaplatDatasetTaskSensor(task_id="fails", ds_id="ds5", **WAITING)
    AnaplatDatasetTaskSensor(task_id="no_connection", ds_id="ds1", anaplat_conn_id="nowhere", **WAITING)

try:
    from airflow.sdk import Asset, AssetWatcher
except ImportError:  # Airflow 2 has no watchers
    pass
else:
    watcher = AssetWatcher(name="updated", trigger=AnaplatDatasetUpdatedTrigger(ds_id="ds6", poll_interval=1))

    with DAG(dag_id="triggerer_updated", schedule=[Asset("anaplat_ds6", watchers=[watcher])], **COMMON):

        @task
        def updated() -> None:
            """Be run."""

        updated()
