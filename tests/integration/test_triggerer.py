"""A real scheduler and a real triggerer, with the connection in Airflow's database: what ``dag.test()`` hides."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import TEXTS
from support.running import AIRFLOW_2, ForkedAirflow, WarmAirflow, wait_until

from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.triggers.base import CAN_BEGIN_IN_TRIGGERER

DAG_FILE = Path(__file__).parent / "dags" / "anaplat_triggerer.py"
COMPONENTS = ("scheduler", "triggerer") if AIRFLOW_2 else ("api-server", "dag-processor", "scheduler", "triggerer")


class Airflow(ForkedAirflow):
    """An Airflow with a triggerer."""

    def __init__(self, warm: WarmAirflow) -> None:
        executor = "SequentialExecutor" if AIRFLOW_2 else "LocalExecutor"
        super().__init__(warm, {"AIRFLOW__CORE__EXECUTOR": executor})
        self.environment.pop("AIRFLOW_CONN_ANAPLAT_DEFAULT", None)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "airflow.db", timeout=30)) as database:
            return database.execute(sql).fetchall()

    def states(self) -> dict[tuple[str, int], str]:
        rows = self.query("select task_id, map_index, state from task_instance where dag_id = 'triggerer_waits'")
        return {(task, index): state for task, index, state in rows}

    def begin(self) -> None:
        """Start all components, and wait until a task could run: one that finds no API server fails."""
        for component in COMPONENTS:
            self.start(component)
        until(lambda: AIRFLOW_2 or self.answers(), self)
        until(lambda: self.query("select 1 from dag where dag_id = 'triggerer_waits'") != [], self)

    def runs_of_the_watched(self) -> int:
        return len(self.query("select 1 from dag_run where dag_id = 'triggerer_updated'"))


def until(condition: Callable[[], bool], airflow: Airflow) -> None:
    def explain() -> str:
        logs = {name: airflow.component_log(name)[-3000:] for name in COMPONENTS}
        of_tasks = {str(path): path.read_text(errors="replace") for path in airflow.home.rglob("attempt=*.log*")}
        return f"{airflow.states()}\n" + "\n".join(f"{name}: {log}" for name, log in {**logs, **of_tasks}.items())

    wait_until(condition, explain)


@pytest.fixture
def airflow(warm_airflow: WarmAirflow, simulator: Simulator) -> Iterator[Airflow]:
    airflow = Airflow(warm_airflow)
    shutil.copy(DAG_FILE, warm_airflow.dags)
    airflow.command(
        "connections", "add", "anaplat_default", "--conn-type", "anaplat", "--conn-host", simulator.url,
        "--conn-password", simulator.token, "--conn-extra", '{"max_retries": 0}',
    )  # fmt: skip
    try:
        yield airflow
    finally:
        airflow.stop()


def test_waits_and_watchers_outlive_their_triggerer(airflow: Airflow, simulator: Simulator) -> None:
    datasets = [simulator.platform.add_dataset(f"dataset {number}", TEXTS, ["处理中"]) for number in range(1, 6)]
    simulator.platform.add_dataset("watched", TEXTS)
    airflow.begin()
    airflow.command("dags", "trigger", "triggerer_waits")

    waiting = {("begins_there", -1), ("defers", 0), ("defers", 1), ("defers", 2), ("fails", -1)}
    until(lambda: all(airflow.states().get(key) == "deferred" for key in waiting), airflow)
    until(lambda: airflow.states()["no_connection", -1] == "failed", airflow)
    if CAN_BEGIN_IN_TRIGGERER:
        assert airflow.query("select pid from task_instance where task_id = 'begins_there'") == [(None,)]
    before, since = len(simulator.requests("list_datasets")), time.monotonic()
    until(lambda: len(simulator.requests("list_datasets")) >= before + 5, airflow)
    assert len(simulator.requests("list_datasets")) - before <= time.monotonic() - since + 1

    airflow.kill("triggerer")
    asked = len(simulator.requests("list_datasets"))
    simulator.platform.refresh("ds6")
    for dataset in datasets:
        dataset.statuses = ["FINISHED"]
    datasets[4].statuses = ["FAILED"]
    airflow.start("triggerer")

    until(lambda: set(airflow.states().values()) <= {"success", "failed"}, airflow)
    assert len(simulator.requests("list_datasets")) > asked
    assert {key for key, state in airflow.states().items() if state == "failed"} == {
        ("fails", -1),
        ("no_connection", -1),
    }
    if not AIRFLOW_2:
        _the_watcher_missed_nothing(airflow, simulator)
    assert all(simulator.token not in str(row) for row in airflow.query("select * from trigger"))
    logs = [path for path in airflow.home.rglob("*.log") if simulator.token in path.read_text(errors="replace")]
    assert logs == []


def _the_watcher_missed_nothing(airflow: Airflow, simulator: Simulator) -> None:
    remembers = bool(airflow.query("select 1 from sqlite_master where name = 'asset_state_store'"))
    missed = 1 if remembers else 0
    until(lambda: airflow.runs_of_the_watched() == missed, airflow)
    simulator.platform.refresh("ds6")
    until(lambda: airflow.runs_of_the_watched() == missed + 1, airflow)
