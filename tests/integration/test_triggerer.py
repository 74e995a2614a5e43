"""A real scheduler and a real triggerer, with the connection in Airflow's database: what ``dag.test()`` hides."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from airflow import __version__ as airflow_version
from conftest import TEXTS

from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.triggers.base import CAN_BEGIN_IN_TRIGGERER

AIRFLOW_2 = airflow_version.startswith("2.")
AIRFLOW = Path(sys.executable).with_name("airflow")
DAG_FILE = Path(__file__).parent / "dags" / "anaplat_triggerer.py"
COMPONENTS = ("scheduler", "triggerer") if AIRFLOW_2 else ("api-server", "dag-processor", "scheduler", "triggerer")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Airflow:
    """The components of an Airflow of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        port = free_port()
        self.environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "PATH": f"{AIRFLOW.parent}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__EXECUTOR": "SequentialExecutor" if AIRFLOW_2 else "LocalExecutor",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__CORE__INTERNAL_API_SECRET_KEY": "a-secret-of-this-test",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": "a-secret-of-this-test-that-is-long-enough-for-sha512-and-more",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "5",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        }
        self.environment.pop("AIRFLOW_CONN_ANAPLAT_DEFAULT", None)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def command(self, *arguments: str) -> None:
        subprocess.run([AIRFLOW, *arguments], env=self.environment, check=True, capture_output=True)

    def start(self, component: str) -> None:
        with (self.home / f"{component}.log").open("ab") as log:
            self.processes[component] = subprocess.Popen(
                [AIRFLOW, component], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, component: str, how: int = 9) -> None:
        process = self.processes.pop(component)
        os.killpg(process.pid, how)
        process.wait()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "airflow.db", timeout=30)) as database:
            return database.execute(sql).fetchall()

    def states(self) -> dict[tuple[str, int], str]:
        rows = self.query("select task_id, map_index, state from task_instance where dag_id = 'triggerer_waits'")
        return {(task, index): state for task, index, state in rows}

    def runs_of_the_watched(self) -> int:
        return len(self.query("select 1 from dag_run where dag_id = 'triggerer_updated'"))


def until(condition: Callable[[], bool], airflow: Airflow, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            logs = {name: (airflow.home / f"{name}.log").read_text()[-3000:] for name in COMPONENTS}
            raise AssertionError(
                f"{airflow.states()}\n" + "\n".join(f"{name}: {log}" for name, log in logs.items())
            )
        time.sleep(0.2)


@pytest.fixture
def airflow(tmp_path: Path, platform: Simulator) -> Iterator[Airflow]:
    (tmp_path / "dags").mkdir()
    shutil.copy(DAG_FILE, tmp_path / "dags")
    airflow = Airflow(tmp_path)
    airflow.command("db", "migrate")
    airflow.command(
        "connections", "add", "anaplat_default", "--conn-type", "anaplat", "--conn-host", platform.url,
        "--conn-password", platform.token, "--conn-extra", '{"max_retries": 0}',
    )  # fmt: skip
    try:
        for component in COMPONENTS:
            airflow.start(component)
        yield airflow
    finally:
        for component in list(airflow.processes):
            airflow.kill(component)


def test_waits_and_watchers_outlive_their_triggerer(airflow: Airflow, platform: Simulator) -> None:
    datasets = [platform.platform.add_dataset(f"dataset {number}", TEXTS, ["处理中"]) for number in range(1, 6)]
    platform.platform.add_dataset("watched", TEXTS)
    until(lambda: airflow.query("select 1 from dag where dag_id = 'triggerer_waits'") != [], airflow)
    airflow.command("dags", "trigger", "triggerer_waits")

    waiting = {("begins_there", -1), ("defers", 0), ("defers", 1), ("defers", 2), ("fails", -1)}
    until(lambda: all(airflow.states().get(key) == "deferred" for key in waiting), airflow)
    until(lambda: airflow.states()["no_connection", -1] == "failed", airflow)
    if CAN_BEGIN_IN_TRIGGERER:
        assert airflow.query("select pid from task_instance where task_id = 'begins_there'") == [(None,)]
    before, since = len(platform.requests("list_datasets")), time.monotonic()
    until(lambda: len(platform.requests("list_datasets")) >= before + 5, airflow)
    assert len(platform.requests("list_datasets")) - before <= time.monotonic() - since + 1

    airflow.kill("triggerer")
    asked = len(platform.requests("list_datasets"))
    platform.platform.refresh("ds6")
    for dataset in datasets:
        dataset.statuses = ["FINISHED"]
    datasets[4].statuses = ["FAILED"]
    airflow.start("triggerer")

    until(lambda: set(airflow.states().values()) <= {"success", "failed"}, airflow)
    assert len(platform.requests("list_datasets")) > asked
    assert {key for key, state in airflow.states().items() if state == "failed"} == {
        ("fails", -1),
        ("no_connection", -1),
    }
    if not AIRFLOW_2:
        _the_watcher_missed_nothing(airflow, platform)
    assert all(platform.token not in str(row) for row in airflow.query("select * from trigger"))
    logs = [path for path in airflow.home.rglob("*.log") if platform.token in path.read_text(errors="replace")]
    assert logs == []


def _the_watcher_missed_nothing(airflow: Airflow, platform: Simulator) -> None:
    remembers = bool(airflow.query("select 1 from sqlite_master where name = 'asset_state_store'"))
    missed = 1 if remembers else 0
    until(lambda: airflow.runs_of_the_watched() == missed, airflow)
    platform.platform.refresh("ds6")
    until(lambda: airflow.runs_of_the_watched() == missed + 1, airflow)
