"""Create the people of a file that are not on the platform yet."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatCreateUsersOperator

with DAG("provision_users", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatCreateUsersOperator(
        task_id="create_users",
        users_path="/data/people.csv",
        existing_users="skip",
        isolate_rejected=True,
        on_rejected="report",
        retries=3,
    )
