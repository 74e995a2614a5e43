"""DAGs whose tasks a browser looks at."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, task

from airflow_provider_anaplat import AnaplatCreateUsersOperator, AnaplatExportRowsOperator, AnaplatHook

OUTPUT = os.environ["ANAPLAT_TEST_OUTPUT"]
PASSWORD = os.environ["ANAPLAT_TEST_PASSWORD"]
COMMON: dict[str, Any] = {
    "schedule": None,
    "start_date": pendulum.datetime(2026, 1, 1, tz="UTC"),
    "catchup": False,
}

with DAG("browser_mapped", **COMMON):
    AnaplatExportRowsOperator.partial(task_id="export").expand_kwargs(
        [{"ds_id": ds_id, "output_path": f"{OUTPUT}/{ds_id}.csv"} for ds_id in ("ds1", "ds2")]
    )

with DAG("browser_users", **COMMON):
    users = [{"loginId": f"user{number}", "name": "Ada", "password": PASSWORD} for number in range(4)]
    AnaplatCreateUsersOperator(task_id="plain", users=users[:2])
    AnaplatCreateUsersOperator.partial(task_id="mapped").expand(users=[[users[2]], [users[3]]])

with DAG("browser_settings", **COMMON):

    @task
    def settings(dag_run: Any = None) -> None:
        """Write what a client is told for each of the connections that the run names."""
        found = {}
        for conn_id in dag_run.conf["conn_ids"]:
            transport = AnaplatHook(conn_id).get_conn()._transport
            found[conn_id] = asdict(replace(transport._settings, observer=None, token_store=None))
        (Path(OUTPUT) / "settings.json").write_text(json.dumps(found))

    settings()
