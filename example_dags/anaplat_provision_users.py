"""Every night, create on the platform the people whom the HR database has and the platform has not."""

from __future__ import annotations

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatCreateUsersOperator

with DAG(
    dag_id="anaplat_provision_users",
    schedule="0 2 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 3},
    tags=["anaplat"],
    doc_md=__doc__,
):
    AnaplatCreateUsersOperator(
        task_id="create_users",
        sql_conn_id="hr_database",
        # Passwords go from the database to the platform, and never through Airflow's.
        users_sql="""
            select login as login_id, full_name as name, first_password as password, 'participant' as role,
                   work_email as email, string_to_array(teams, ',') as user_group_ids,
                   chat_account as "userDefinedProperties.chat"
            from employees
            where hired_on <= '{{ ds }}' and left_on is null
        """,
        existing_users="skip",  # so that a second run creates nobody
    )
