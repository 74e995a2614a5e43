"""DAGs that export by several workers; each has an embedded platform of its own."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pendulum

from airflow_provider_anaplat import partitioned_export
from airflow_provider_anaplat._airflow.releases import DAG

OUTPUT = os.environ["ANAPLAT_TEST_OUTPUT"]
COMMON: dict[str, Any] = {
    "schedule": None,
    "start_date": pendulum.datetime(2026, 1, 1, tz="UTC"),
    "catchup": False,
    "default_args": {"retries": 1, "retry_delay": timedelta(0)},
}


PARTITIONS = {"parquet": 12, "csv": 4, "killed": 4, "refreshed": 4, "shrunk": 4}

for name, partitions in PARTITIONS.items():
    with DAG(f"partitioned_{name}", **COMMON):
        partitioned_export(
            "export",
            ds_id="ds1",
            output_path=f"{OUTPUT}/{name}",
            partitions=partitions,
            file_format="csv" if name == "csv" else "parquet",
            sort_by="n",
            page_size=100,
            concurrency=1,
            anaplat_conn_id=f"anaplat_{name}",
        )
