"""What 500 waiting sensors cost one triggerer of a deployment: requests, processor time, stalls of its event loop.

It needs the programs of PostgreSQL and Redis, as the tests in ``tests/system`` do. The sensors begin in the
triggerer, and a trigger beside them measures for how long the event loop stands still.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from waiting import DATASETS, list_server

if TYPE_CHECKING:
    from support.deployment import Deployment

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "tests"))

SENSORS = 500
DAGS = 10  # that share them: Airflow sends the whole of its DAG with each trigger that begins in the triggerer
INTERVAL = 5.0  # seconds
SECONDS = 60.0
DAG = """
import pendulum
from airflow.sdk import DAG, BaseOperator
from airflow.triggers.base import StartTriggerArgs
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetTaskSensor

class Heart(BaseOperator):
    start_from_trigger = True
    start_trigger_args = StartTriggerArgs(
        "heart.HeartTrigger", next_method="execute", trigger_kwargs={{"path": {path!r}}}
    )

with DAG("heart", schedule=None, start_date=pendulum.datetime(2026, 1, 1)):
    Heart(task_id="beat")

for dag in range({dags}):
    with DAG(f"waits_{{dag}}", schedule=None, start_date=pendulum.datetime(2026, 1, 1)):
        for number in range({sensors}):
            AnaplatDatasetTaskSensor(
                task_id=f"wait_{{number}}", ds_id=f"ds{{dag * {sensors} + number}}", deferrable=True,
                start_from_trigger=True, poke_interval={interval}, timeout=86_400,
            )
"""


def measure(triggerer: psutil.Process, heart: Path, url: str) -> dict[str, float]:
    """Look on for a while.

    :param triggerer: the process in which triggers run
    :param heart: the file in which the heart writes
    :param url: of the platform
    :return: requests an interval, share of a processor, and the median and longest of each second's longest stall
    """
    beats, requests, busy = len(heart.read_text().split()), counted(url), sum(triggerer.cpu_times()[:2])
    time.sleep(SECONDS)
    stalls = [float(line) for line in heart.read_text().split()[beats:]]
    return {
        "requests": (counted(url) - requests) / (SECONDS / INTERVAL),
        "cpu": (sum(triggerer.cpu_times()[:2]) - busy) / SECONDS * 100,
        "stall": statistics.median(stalls),
        "longest": max(stalls),
        "memory": triggerer.memory_info().rss / 1e6,
    }


def counted(url: str) -> int:
    """Return how many lists the platform has sent."""
    with urllib.request.urlopen(f"{url}/counted") as answer:
        return int(json.load(answer)["list"])


def trigger_runner(deployment: Any) -> psutil.Process:
    """Return the process in which triggers run: the busiest of the triggerer's family."""
    family = [process for process in deployment.airflow.processes() if is_of_triggerer(process)]
    found: psutil.Process = max(family, key=lambda process: process.memory_info().rss)
    return found


def is_of_triggerer(process: psutil.Process) -> bool:
    """Tell whether a process is a child of the triggerer's."""
    parent = process.parent()
    return parent is not None and parent.cmdline()[-1:] == ["triggerer"]


def all_deferred(deployment: Deployment, dag_id: str) -> bool:
    """Tell whether each task of a DAG's latest run is deferred."""
    return {*deployment.task_states(dag_id).values()} == {"deferred"}


def main() -> None:
    """Print the table."""
    from support.backends import backends
    from support.deployment import Deployment
    from support.running import wait_until

    print(f"{SENSORS} sensors, a list of {DATASETS:,} datasets, an interval of {INTERVAL:g} s, {SECONDS:g} s\n")
    print(f"{'waiting':<10}{'requests/interval':>20}{'CPU':>8}{'stall/second':>15}{'longest':>11}{'memory':>10}")
    with tempfile.TemporaryDirectory() as folder, list_server() as url, backends():
        home, heart, dag = Path(folder, "airflow"), Path(folder, "heart"), Path(folder, "waits.py")
        home.mkdir()
        dag.write_text(DAG.format(path=str(heart), dags=DAGS, sensors=SENSORS // DAGS, interval=INTERVAL))
        settings = {
            "AIRFLOW_CONN_ANAPLAT_DEFAULT": json.dumps({"conn_type": "anaplat", "host": url, "password": "t"}),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": str(Path(__file__).parent),
        }
        with Deployment(home, [dag], settings, workers=0, triggerer=True) as deployment:
            deployment.trigger("heart")
            wait_until(heart.exists)
            triggerer = trigger_runner(deployment)
            report(0, measure(triggerer, heart, url))
            for dag_id in (f"waits_{number}" for number in range(DAGS)):
                deployment.trigger(dag_id)
                wait_until(partial(all_deferred, deployment, dag_id))
            running = f"{SENSORS + 1} triggers currently running"
            wait_until(lambda: counted(url) and running in deployment.airflow.component_log("triggerer")[-5000:])
            report(SENSORS, measure(triggerer, heart, url))


def report(waiting: int, found: dict[str, float]) -> None:
    """Print a line of the table."""
    print(
        f"{waiting:<10}{found['requests']:>20.2f}{found['cpu']:>6.1f} %{found['stall']:>12.0f} ms"
        f"{found['longest']:>8.0f} ms{found['memory']:>7.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
