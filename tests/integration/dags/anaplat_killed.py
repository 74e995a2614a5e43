"""DAGs whose tasks are killed, one a fault; each has an embedded platform of its own."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pendulum

from airflow_provider_anaplat import AnaplatCreateDatasetOperator, AnaplatCreateUsersOperator, AnaplatHook
from airflow_provider_anaplat._airflow.releases import DAG

USERS = os.environ.get("ANAPLAT_TEST_USERS", "/nowhere/users.csv")
DATASETS = ("held", "late", "unsent", "answered", "cleared")
USER_RULES = {"users_held": "skip", "users_doubt": "error", "users_answered": "error"}


def linger(context: Any, result: Any) -> None:
    """Come after the task's work and before its XCom, and be seen by the platform there."""
    AnaplatHook(context["task"].anaplat_conn_id).get_conn().list_pages()


COMMON: dict[str, Any] = {
    "schedule": "@once" if "ANAPLAT_TEST_USERS" in os.environ else None,
    "start_date": pendulum.datetime(2026, 1, 1, tz="UTC"),
    "catchup": False,
    "default_args": {"retries": 1, "retry_delay": timedelta(seconds=0), "post_execute": linger},
}

for fault in DATASETS:
    with DAG(dag_id=f"killed_{fault}", **COMMON):
        AnaplatCreateDatasetOperator(
            task_id="task",
            account_id="a",
            name="sales",
            parent_dir_id="dir",
            table_query={"table": "t"},
            if_exists="create",
            reconcile_timeout=20,
            anaplat_conn_id=f"anaplat_{fault}",
        )

for fault, existing_users in USER_RULES.items():
    with DAG(dag_id=f"killed_{fault}", **COMMON):
        AnaplatCreateUsersOperator(
            task_id="task",
            users_path=USERS,
            batch_size=2,
            existing_users=existing_users,  # type: ignore[arg-type]  # one of its words
            anaplat_conn_id=f"anaplat_{fault}",
        )
