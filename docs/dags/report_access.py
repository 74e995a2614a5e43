"""Write who may see and export what, for an audit."""

import pendulum
from airflow.sdk import DAG, task

from airflow_provider_anaplat import AnaplatAccessReportOperator

with DAG("report_access", schedule="@monthly", start_date=pendulum.datetime(2026, 1, 1), catchup=False):

    @task
    def users() -> list[str]:
        """Return the ids to report on; yours will come from where your people are kept."""
        return ["u1", "u2"]

    AnaplatAccessReportOperator(
        task_id="report", user_ids=users(), output_path="/data/access.parquet", on_user_error="report", retries=2
    )
