"""Airflow as it runs in production: CeleryExecutor, PostgreSQL, Redis, and each component a process of its own."""

from __future__ import annotations

import importlib.util
import json
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import requests
from conftest import LONG

from support.backends import BROKER, SERVER, missing
from support.running import AIRFLOW_2, RunningAirflow, wait_until

ENDED = {"success", "failed"}


@dataclass(frozen=True)
class Task:
    """A task instance of the latest run of a DAG."""

    dag_id: str
    task_id: str
    map_index: int
    state: str | None
    attempt: int
    celery_id: str | None


class Deployment:
    """A deployment for the length of a ``with`` block, amid one of ``backends``.

    Its database and all its keys in Redis are its own.

    :param home: its AIRFLOW_HOME
    :param dags: DAG files, which need not be paused or unpaused
    :param settings: further environment variables of all components
    :param workers: how many, named ``worker-1`` and so on
    :param concurrency: tasks that a worker runs at a time
    :param triggerer: whether there is one
    """

    def __init__(
        self,
        home: Path,
        dags: Sequence[Path],
        settings: Mapping[str, str],
        *,
        workers: int = 2,
        concurrency: int = 1,
        triggerer: bool = False,
    ) -> None:
        self.name = f"anaplat_test_{secrets.token_hex(6)}"
        self.workers = [f"worker-{number}" for number in range(1, workers + 1)]
        self.concurrency = concurrency
        self.airflow = RunningAirflow(home, {**_settings(self.name), **settings})
        self._components = ["api-server", "scheduler", "dag-processor", *(["triggerer"] if triggerer else [])]
        self._dags = dags
        self._stack = ExitStack()
        self._session = requests.Session()

    def __enter__(self) -> Deployment:
        with ExitStack() as stack:
            stack.enter_context(_database(self.name))
            stack.callback(_forget_keys, self.name)
            self.airflow.command("db", "migrate")
            self.add(self._dags)
            stack.callback(self.airflow.stop)
            for component in self._components:
                self.airflow.start(component)
            for worker in self.workers:
                self.start_worker(worker)
            wait_until(self._ready)
            token = requests.get(f"{self.airflow.url}/auth/token", timeout=LONG).json()["access_token"]
            # No connection is kept: OpenLineage forks the API server when a task's state is set by hand, and what
            # the child inherits stays open when the server lets go of it, so that a request on it is never read.
            self._session.headers.update({"Authorization": f"Bearer {token}", "Connection": "close"})
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close()
        self._stack.close()

    def _ready(self) -> bool:
        for name in self.airflow.dead():
            raise AssertionError(f"{name} ended: {self.airflow.component_log(name)[-3000:]}")
        return self.airflow.answers() and all(
            "ready." in self.airflow.component_log(name) for name in self.workers
        )

    def start_worker(self, name: str) -> None:
        self.airflow.start(
            name, "celery", "worker", "--celery-hostname", f"{name}@test", "--concurrency",
            str(self.concurrency), "--skip-serve-logs", "--pid", str(self.airflow.home / f"{name}.pid"),
        )  # fmt: skip

    def kill_worker(self, name: str) -> None:
        """Kill a worker with the tasks that it runs."""
        self.airflow.kill(name)
        (self.airflow.home / f"{name}.pid").unlink(missing_ok=True)

    def add(self, dags: Iterable[Path]) -> None:
        """Add DAG files."""
        for dag in dags:
            shutil.copy(dag, self.airflow.home / "dags")

    def trigger(self, dag_id: str, logical_date: str | None = None) -> None:
        """Start a run, as soon as the DAG is known."""
        wait_until(
            lambda: self.rows("SELECT 1 FROM serialized_dag WHERE dag_id = %s", dag_id),
            lambda: self.rows("SELECT filename, stacktrace FROM import_error"),
        )
        self._request("POST", f"dags/{dag_id}/dagRuns", {"logical_date": logical_date})

    def clear(self, dag_id: str, task_ids: Sequence[str]) -> None:
        """Clear these tasks of the latest run, mapped ones whole, whatever their state."""
        self._request(
            "POST",
            f"dags/{dag_id}/clearTaskInstances",
            {"dag_run_id": self._latest_run(dag_id), "task_ids": list(task_ids), "dry_run": False,
             "only_failed": False, "reset_dag_runs": True},
        )  # fmt: skip

    def set_state(self, dag_id: str, task_id: str, state: str) -> None:
        """Set the state of a task of the latest run, as a person does on its page."""
        path = f"dags/{dag_id}/dagRuns/{quote(self._latest_run(dag_id), safe='')}/taskInstances/{task_id}"
        self._request("PATCH", path, {"new_state": state})

    def connect(self, conn_id: str, **fields: Any) -> None:
        """Write a connection to Airflow's database, as a person does in its form."""
        self._request("POST", "connections", {"connection_id": conn_id, **fields})

    def set_variable(self, key: str, value: str) -> None:
        """Write a variable to Airflow's database."""
        self._request("POST", "variables", {"key": key, "value": value})

    def wait_for(self, dag_id: str, state: str) -> None:
        """Wait for the end of the latest run, which must be this one."""
        query = "SELECT state FROM dag_run WHERE dag_id = %s ORDER BY id DESC LIMIT 1"
        wait_until(lambda: self.rows(query, dag_id)[0][0] in ENDED, lambda: self.tasks(dag_id))
        assert self.rows(query, dag_id) == [(state,)], self.tasks(dag_id)

    def tasks(self, dag_id: str) -> list[Task]:
        """Return the task instances of the latest run."""
        rows = self.rows(
            "SELECT dag_id, task_id, map_index, state, try_number, external_executor_id FROM task_instance"
            " WHERE dag_id = %s AND run_id = %s ORDER BY task_id, map_index",
            dag_id, self._latest_run(dag_id),
        )  # fmt: skip
        return [Task(*row) for row in rows]

    def task_states(self, dag_id: str) -> dict[tuple[str, int], str | None]:
        """Return the states in the latest run, by task id and map index."""
        return {(task.task_id, task.map_index): task.state for task in self.tasks(dag_id)}

    def worker_of(self, task: Task) -> str:
        """Return the worker that took the task's latest attempt, as its own log says."""
        received = f"[{task.celery_id}] received"
        (worker,) = [name for name in self.workers if received in self.airflow.component_log(name)]
        return worker

    def xcom(self, dag_id: str, task_id: str, map_index: int = -1) -> Any:
        """Return what a task of the latest run returned."""
        ((value,),) = self.rows(
            "SELECT value FROM xcom WHERE dag_id = %s AND run_id = %s AND task_id = %s AND map_index = %s"
            " AND key = 'return_value'",
            dag_id, self._latest_run(dag_id), task_id, str(map_index),
        )  # fmt: skip
        return json.loads(value) if isinstance(value, str) else value

    def log(self, dag_id: str, task_id: str) -> str:
        """Return the logs of a task in all runs and attempts, all indexes of a mapped one."""
        logs = self.airflow.home.glob(f"logs/dag_id={dag_id}/run_id=*/task_id={task_id}/**/*.log")
        return "".join(path.read_text() for path in sorted(logs))

    def rows(self, query: str, *arguments: str) -> list[tuple[Any, ...]]:
        """Return what Airflow's database answers."""
        import psycopg2

        with closing(psycopg2.connect(f"postgresql://{SERVER}/{self.name}")) as connection:
            cursor = connection.cursor()
            cursor.execute(query, arguments)
            return cursor.fetchall()

    def execute(self, statement: str, *arguments: str) -> None:
        """Change something in Airflow's database."""
        import psycopg2

        with closing(psycopg2.connect(f"postgresql://{SERVER}/{self.name}")) as connection, connection:
            connection.cursor().execute(statement, arguments)

    def own_database(self) -> dict[str, Any]:
        """Return the fields of a connection to Airflow's database."""
        address = urlsplit(f"//{SERVER}")
        return {"host": address.hostname, "port": address.port, "login": address.username, "schema": self.name}

    def _latest_run(self, dag_id: str) -> str:
        query = "SELECT run_id FROM dag_run WHERE dag_id = %s ORDER BY id DESC LIMIT 1"
        return str(self.rows(query, dag_id)[0][0])

    def _request(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        answer = self._session.request(method, f"{self.airflow.url}/api/v2/{path}", json=body, timeout=LONG)
        assert answer.ok, answer.text


def skip_where_impossible() -> None:
    """Skip a test on a machine without what a deployment needs."""
    if AIRFLOW_2:
        pytest.skip("Airflow 2 has other components")
    if importlib.util.find_spec("airflow.providers.celery") is None:
        pytest.skip("apache-airflow-providers-celery is not installed")
    if lack := missing():
        pytest.skip(lack)


def _settings(name: str) -> dict[str, str]:
    return {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{SERVER}/{name}",
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CELERY__BROKER_URL": BROKER,
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql://{SERVER}/{name}",
        "AIRFLOW__CELERY__SYNC_PARALLELISM": "1",
        "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__GLOBAL_KEYPREFIX": name,
        # A worker that is gone is noticed within half a minute, and not after five minutes.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
    }


@contextmanager
def _database(name: str) -> Iterator[None]:
    import psycopg2

    with closing(psycopg2.connect(f"postgresql://{SERVER}/postgres")) as connection:
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE {name}")
        try:
            yield
        finally:
            connection.cursor().execute(f"DROP DATABASE {name} WITH (FORCE)")


def _forget_keys(prefix: str) -> None:
    import redis

    with redis.Redis.from_url(BROKER) as broker:
        for key in list(broker.scan_iter(f"{prefix}*")):
            broker.delete(key)
