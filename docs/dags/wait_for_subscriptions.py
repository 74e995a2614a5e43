"""Wait until the reports of the day were sent."""

import pendulum
from airflow.sdk import DAG

from airflow_provider_anaplat import AnaplatSubscriptionSensor

with DAG("wait_for_subscriptions", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):
    AnaplatSubscriptionSensor(
        task_id="wait",
        subscription_ids=["board-report", "sales-report"],
        deferrable=True,
        poke_interval=60,
        timeout=4 * 3600,
    )
