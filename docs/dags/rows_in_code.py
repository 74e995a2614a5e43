"""Work with rows in a task of Python, as a dataframe and as a stream."""

import pendulum
from airflow.sdk import DAG, task

from airflow_provider_anaplat import AnaplatHook

with DAG("rows_in_code", schedule="@daily", start_date=pendulum.datetime(2026, 1, 1), catchup=False):

    @task(retries=3)
    def sales_by_city():
        sales = AnaplatHook().get_df(dataset="sales")  # all rows, as a Polars dataframe
        return dict(sales.group_by("city").sum()["city", "amount"].rows())

    @task(retries=3)
    def largest_sale():
        frames = AnaplatHook().rows("ds1", memory_mb=128)  # however many rows there are
        largest = (frame["amount"].max() for frame in frames)  # None where all of a frame's are null
        return max((amount for amount in largest if amount is not None), default=None)

    sales_by_city()
    largest_sale()
