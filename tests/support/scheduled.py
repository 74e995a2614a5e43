"""A real scheduler and a real triggerer, as forks of a warm Airflow."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from conftest import LONG

from support.running import AIRFLOW_2, ForkedAirflow, WarmAirflow, wait_until

DAG_FILE = Path(__file__).parents[1] / "integration" / "dags" / "anaplat_triggerer.py"
COMPONENTS = ("scheduler", "triggerer") if AIRFLOW_2 else ("api-server", "dag-processor", "scheduler", "triggerer")


class ScheduledAirflow(ForkedAirflow):
    """An Airflow with a triggerer."""

    def __init__(self, warm: WarmAirflow) -> None:
        executor = "SequentialExecutor" if AIRFLOW_2 else "LocalExecutor"
        super().__init__(warm, {"AIRFLOW__CORE__EXECUTOR": executor})
        self.environment.pop("AIRFLOW_CONN_ANAPLAT_DEFAULT", None)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "airflow.db", timeout=LONG)) as database:
            return database.execute(sql).fetchall()

    def states(self) -> dict[tuple[str, int], str]:
        rows = self.query("select task_id, map_index, state from task_instance where dag_id = 'triggerer_waits'")
        return {(task, index): state for task, index, state in rows}

    def begin(self, dag_id: str) -> None:
        """Start all components, and wait until a task of this DAG could run: one without an API server fails."""
        for component in COMPONENTS:
            self.start(component)
        until(lambda: AIRFLOW_2 or self.answers(), self)
        until(lambda: self.query(f"select 1 from dag where dag_id = '{dag_id}'") != [], self)

    def runs_of_the_watched(self) -> int:
        return len(self.query("select 1 from dag_run where dag_id = 'triggerer_updated'"))


def until(condition: Callable[[], bool], airflow: ScheduledAirflow) -> None:
    def explain() -> str:
        logs = {name: airflow.component_log(name)[-3000:] for name in COMPONENTS}
        of_tasks = {str(path): path.read_text(errors="replace") for path in airflow.home.rglob("attempt=*.log*")}
        return f"{airflow.states()}\n" + "\n".join(f"{name}: {log}" for name, log in {**logs, **of_tasks}.items())

    wait_until(condition, explain)
