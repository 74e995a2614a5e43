"""What a small task costs: the export of 1,000 rows beside requests and csv, and what the first task imports.

``python benchmarks/small.py`` prints the median of many exports, in turns, and for each kind of task the processor
time and memory that its first run takes in a process that has imported Airflow.
"""

from __future__ import annotations

import csv
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import requests
from page_server import page_server
from ways import DATA, execute

from airflow_provider_anaplat.simulator import Simulator, Table

ROWS = 1_000
RUNS = 50
TOKEN = "a-token-of-benchmarks"
TASKS = {
    "export to CSV": "AnaplatExportRowsOperator(task_id='t', ds_id='ds1', output_path='{folder}/out.csv')",
    "export to Parquet": "AnaplatExportRowsOperator(task_id='t', ds_id='ds1', output_path='{folder}/out.parquet')",
    "a sensor": "AnaplatDatasetTaskSensor(task_id='t', ds_id='ds1')",
    "users": "AnaplatCreateUsersOperator(task_id='t', users=[{{'loginId': 'ada', 'password': 's3cret-word'}}])",
    "a call": "AnaplatCallOperator(task_id='t', path='/public-api/data-source/ds1/refresh')",
}
FIRST = """
import re, sys, time
import airflow.sdk
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
before, memory = time.process_time(), peak()
import airflow_provider_anaplat
airflow_provider_anaplat.{task}.execute({{}})
milliseconds, grown = (time.process_time() - before) * 1000, peak() - memory
polars = "with Polars" if "polars" in sys.modules else ""
print(f"RESULT{{milliseconds:6.0f}} ms {{grown:5.0f}} MB", polars)
"""


def by_hand(url: str, path: Path) -> None:
    """What users write."""
    body = {"token": TOKEN, "offset": 0, "limit": ROWS}
    response = requests.post(url + DATA, json=body, timeout=60).json()["response"]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([column["name"] for column in response["columns"]])
        writer.writerows(response["preview"])


def by_operator(path: Path) -> None:
    """What this package does."""
    from airflow_provider_anaplat import AnaplatExportRowsOperator

    execute(AnaplatExportRowsOperator(task_id="small", ds_id="bench", output_path=str(path)))


def milliseconds(run: Callable[[], None]) -> float:
    """Return what a run takes."""
    before = time.perf_counter()
    run()
    return (time.perf_counter() - before) * 1000


def connection(url: str, token: str) -> dict[str, str]:
    """Return the variable that holds the connection."""
    given = {"conn_type": "anaplat", "host": url, "password": token}
    return {"AIRFLOW_CONN_ANAPLAT_DEFAULT": json.dumps(given)}


def main() -> None:
    """Measure."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / "out.csv"
        with page_server(ROWS) as url:
            os.environ |= connection(url, TOKEN)
            logging.disable()
            ways = {"by hand": lambda: by_hand(url, path), "the operator": lambda: by_operator(path)}
            rounds = [[milliseconds(run) for run in ways.values()] for _ in range(RUNS + 1)][1:]
            for name, runs in zip(ways, zip(*rounds, strict=True), strict=True):
                print(f"{ROWS:,} rows, {name:<14}{statistics.median(runs):>8.1f} ms")
        with Simulator() as simulator:
            simulator.platform.add_dataset("one", Table.of_rows([("n", "LONG")], [["1"]]))
            variables = {**os.environ, **connection(simulator.url, simulator.token)}
            for name, task in TASKS.items():
                program = FIRST.format(task=task.format(folder=folder))
                done = subprocess.run(
                    [sys.executable, "-c", program], env=variables, capture_output=True, check=True
                )
                (result,) = (line for line in done.stdout.decode().splitlines() if line.startswith("RESULT"))
                print(f"first run of {name:<20}{result.removeprefix('RESULT')}")


if __name__ == "__main__":
    main()
