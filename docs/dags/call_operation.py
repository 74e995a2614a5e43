"""Ask the platform which people have an account, by an operation that the contract does not describe."""

import pendulum
from airflow.sdk import DAG, task

from airflow_provider_anaplat import AnaplatCallOperator

with DAG("call_operation", schedule=None, start_date=pendulum.datetime(2026, 1, 1)):
    ask = AnaplatCallOperator(
        task_id="ask",
        path="/public-api/users/get",
        json={"users": ["ada", "blaise"]},
        repeatable=True,
        multiple_outputs=True,
    )

    @task
    def without_account(known: list[str]) -> list[str]:
        """Return who is missing."""
        return sorted({"ada", "blaise"} - set(known))

    without_account(ask.output["userExist"])
