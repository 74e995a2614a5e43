"""What one task mapped over 200 exports asks of the platform at the same time, through two Celery workers.

It needs the programs of PostgreSQL and Redis, as the tests in ``tests/system`` do. Each worker runs two tasks at
a time, each task is a process, and each export reads four pages at a time: without a limit, that makes 16
requests. With ``max_connections=1`` in the connection, it makes four.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from page_server import page_server

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "tests"))

EXPORTS = 200
ROWS, PAGE_SIZE = 8_000, 1_000
WORKERS, TASKS_OF_A_WORKER = 2, 2
LATENCY = 0.1  # seconds for a page
DAG = """
import pendulum
from airflow.sdk import DAG
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator

with DAG("exports", schedule=None, start_date=pendulum.datetime(2026, 1, 1), max_active_tasks={exports}):
    AnaplatExportRowsOperator.partial(task_id="export", ds_id="bench", page_size={page_size}).expand(
        output_path=[{folder!r} + f"/{{number}}.csv" for number in range({exports})]
    )
"""


def counted(url: str) -> dict[str, int]:
    """Return how many pages were asked for, and how many at the same time."""
    with urllib.request.urlopen(url) as answer:
        numbers: dict[str, int] = json.load(answer)
    return numbers


def measure(max_connections: int | None) -> None:
    """Run the exports and print a line of the table."""
    from support.deployment import Deployment

    extra = {} if max_connections is None else {"max_connections": max_connections}
    with tempfile.TemporaryDirectory() as folder, page_server(ROWS, LATENCY) as url:
        home, files, dag = Path(folder, "airflow"), Path(folder, "files"), Path(folder, "exports.py")
        home.mkdir()
        files.mkdir()
        dag.write_text(DAG.format(exports=EXPORTS, page_size=PAGE_SIZE, folder=str(files)))
        connection = {"conn_type": "anaplat", "host": url, "password": "token", "extra": extra}
        settings = {
            "AIRFLOW_CONN_ANAPLAT_DEFAULT": json.dumps(connection),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }
        with Deployment(home, [dag], settings, workers=WORKERS, concurrency=TASKS_OF_A_WORKER) as deployment:
            deployment.trigger("exports")
            began = time.monotonic()
            while "success" not in (states := run_states(deployment)):
                assert "failed" not in states, deployment.tasks("exports")
                assert not deployment.airflow.dead()
                time.sleep(1)
            seconds = time.monotonic() - began
            shares = Counter(deployment.worker_of(task) for task in deployment.tasks("exports"))
        lengths = {len(path.read_bytes().splitlines()) for path in files.iterdir()}
        assert (len(list(files.iterdir())), lengths) == (EXPORTS, {ROWS + 1})
        found = counted(url)
        limit = WORKERS * TASKS_OF_A_WORKER * (max_connections or 4)
        assert found["most"] <= limit, found
        divided = " + ".join(str(share) for _, share in sorted(shares.items()))
        print(
            f"{max_connections or 'none':<17}{seconds:>9.0f}{divided:>13}{found['pages']:>9}"
            f"{found['most']:>16}{limit:>12}",
            flush=True,
        )


def run_states(deployment: Any) -> list[str]:
    """Return the state of the run, in a list of one."""
    return [state for (state,) in deployment.rows("SELECT state FROM dag_run WHERE dag_id = 'exports'")]


def main() -> None:
    """Print the table."""
    from support.backends import backends

    print(f"{EXPORTS} exports of {ROWS:,} rows in {ROWS // PAGE_SIZE} pages\n")
    print(
        f"{'max_connections':<17}{'seconds':>9}{'by worker':>13}{'pages':>9}{'most at a time':>16}{'at most':>12}"
    )
    with backends():
        for max_connections in (None, 1):
            measure(max_connections)


if __name__ == "__main__":
    main()
