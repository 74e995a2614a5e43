"""Tasks of a running Airflow are killed at the worst moments, and Airflow retries them: all happens once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import numbers
from support.running import RELEASE, ForkedAirflow, WarmAirflow, wait_until

from airflow_provider_anaplat.simulator import Simulator, replies

pytestmark = pytest.mark.skipif(
    RELEASE < (3, 3),
    reason="a retry remembers what the killed attempt did in the task state store, which is new in Airflow 3.3",
)

DAGS = Path(__file__).parent / "dags" / "anaplat_killed.py"
FAULTS = (
    "held", "late", "unsent", "answered", "cleared", "users_held", "users_doubt", "users_answered",
)  # fmt: skip
PASSWORD = "s3cret-of-{}"
TOKEN = "t0ken-of-the-killed"


class Killed:
    """A running Airflow, and an embedded platform for each fault."""

    def __init__(self, airflow: ForkedAirflow, platforms: dict[str, Simulator], held: threading.Event) -> None:
        self.airflow = airflow
        self.home = airflow.home
        self.platforms = platforms
        self.held = held

    def task(self, fault: str) -> tuple[str | None, int]:
        """Return the task's state and the number of its current attempt."""
        rows = self.rows("select state, try_number from task_instance where dag_id = ?", f"killed_{fault}")
        return rows[0] if rows else (None, 0)

    def ends(self, fault: str, attempt: int = 2) -> str:
        """Wait for the end of an attempt, and return the task's state."""
        wait_until(lambda: self.task(fault)[0] in ("success", "failed") and self.task(fault)[1] == attempt)
        return str(self.task(fault)[0])

    def xcom(self, fault: str) -> dict[str, Any]:
        query = "select value from xcom where dag_id = ? and key = 'return_value'"
        ((value,),) = self.rows(query, f"killed_{fault}")
        summary: dict[str, Any] = json.loads(value)
        return summary

    def log(self, fault: str) -> str:
        return "".join(path.read_text() for path in sorted(self.home.glob(f"logs/dag_id=killed_{fault}/**/*.log")))

    def rows(self, query: str, *arguments: str) -> list[Any]:
        with closing(sqlite3.connect(self.home / "airflow.db", timeout=30)) as database:
            return database.execute(query, arguments).fetchall()

    def kill_task_of(self, fault: str) -> None:
        """Kill the process that is connected to the platform of this fault."""
        port = int(self.platforms[fault].url.rpartition(":")[2])
        (process,) = {
            connection.pid
            for connection in psutil.net_connections("tcp4")
            if connection.raddr and connection.raddr.port == port and connection.pid not in (None, os.getpid())
        }
        os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def running(warm_airflow: WarmAirflow) -> Iterator[Killed]:
    home = warm_airflow.home
    users = [f"user{i},{PASSWORD.format(i)}" for i in range(6)]
    with ExitStack() as stack:
        platforms = {fault: stack.enter_context(Simulator({"t": numbers(1)}, token=TOKEN)) for fault in FAULTS}
        held = prepare(platforms)
        stack.callback(held.set)
        airflow = ForkedAirflow(warm_airflow, settings(home, platforms))
        (home / "users.csv").write_text("\n".join(["loginId,password", *users]))
        stack.callback(airflow.stop)
        airflow.start("api-server")
        airflow.start("scheduler", "scheduler", "--skip-serve-logs")
        airflow.start("dag-processor")
        wait_until(airflow.answers)
        shutil.copy(DAGS, home / "dags")  # now that tasks can run
        yield Killed(airflow, platforms, held)


def settings(home: Path, platforms: dict[str, Simulator]) -> dict[str, str]:
    connections = {
        f"AIRFLOW_CONN_ANAPLAT_{fault.upper()}": json.dumps(
            {"conn_type": "anaplat", "host": platform.url, "password": platform.token}
        )
        for fault, platform in platforms.items()
    }
    return {
        **connections,
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "ANAPLAT_TEST_USERS": str(home / "users.csv"),
    }


def prepare(platforms: dict[str, Simulator]) -> threading.Event:
    """Let each platform wait at the moment at which its task is to be killed; return what ends the waiting."""
    held = threading.Event()
    platforms["held"].inject("create_dataset", replies.hold(held))
    platforms["late"].inject("create_dataset", replies.act_later(held))
    platforms["unsent"].inject("list_datasets", replies.hold(held))
    platforms["answered"].inject("list_pages", replies.hold(held))
    for fault in ("users_held", "users_doubt"):
        platforms[fault].inject(
            "create_users", replies.hold(held), when=lambda body: body["users"][0]["loginId"] == "user2"
        )
    platforms["users_answered"].inject("list_pages", replies.hold(held))
    return held


def users_sent(simulator: Simulator) -> list[list[str]]:
    return [[user["loginId"] for user in request.body["users"]] for request in simulator.requests("create_users")]


def test_killed_after_the_platform_created_the_dataset_and_before_its_answer(running: Killed) -> None:
    simulator = running.platforms["held"]
    wait_until(lambda: simulator.platform.datasets)
    running.kill_task_of("held")

    assert running.ends("held") == "success"
    assert len(simulator.requests("create_dataset")) == len(simulator.platform.datasets) == 1

    xcom = running.xcom("held")
    assert (xcom["dsId"], xcom["taskId"]) == ("ds1", None)


def test_killed_after_the_answer_and_before_the_xcom(running: Killed) -> None:
    simulator = running.platforms["answered"]
    wait_until(lambda: simulator.requests("list_pages"))
    running.kill_task_of("answered")

    assert running.ends("answered") == "success"
    assert len(simulator.requests("create_dataset")) == len(simulator.platform.datasets) == 1
    assert running.xcom("answered") == {
        "taskId": "task-ds1", "dsId": "ds1", "status": "已提交", "result": "处理中"
    }  # fmt: skip


def test_killed_before_anything_was_sent(running: Killed) -> None:
    simulator = running.platforms["unsent"]
    wait_until(lambda: simulator.requests("list_datasets"))
    running.kill_task_of("unsent")
    assert running.ends("unsent") == "success"
    assert len(simulator.requests("create_dataset")) == len(simulator.platform.datasets) == 1


def test_cleared_after_success(running: Killed) -> None:
    simulator = running.platforms["cleared"]
    assert running.ends("cleared", attempt=1) == "success"

    before = running.xcom("cleared")
    running.airflow.command("tasks", "clear", "--yes", "killed_cleared")

    assert running.ends("cleared") == "success"
    assert running.xcom("cleared") == before
    assert len(simulator.requests("create_dataset")) == len(simulator.platform.datasets) == 1


def test_killed_amid_users_where_the_platform_can_be_asked(running: Killed) -> None:
    simulator = running.platforms["users_held"]
    wait_until(lambda: "user2" in simulator.platform.users)
    running.kill_task_of("users_held")

    assert running.ends("users_held") == "success"
    assert users_sent(simulator) == [["user0", "user1"], ["user2", "user3"], ["user4", "user5"]]

    xcom = running.xcom("users_held")
    assert (xcom["created"], xcom["skipped"], xcom["batches"]) == (6, 0, 3)


def test_killed_amid_users_where_it_cannot(running: Killed) -> None:
    simulator = running.platforms["users_doubt"]
    wait_until(lambda: "user2" in simulator.platform.users)
    running.kill_task_of("users_doubt")
    assert running.ends("users_doubt") == "failed"
    assert users_sent(simulator) == [["user0", "user1"], ["user2", "user3"]]
    assert "2 users are in doubt: user2, user3" in running.log("users_doubt")


def test_killed_after_the_last_user_and_before_the_xcom(running: Killed) -> None:
    simulator = running.platforms["users_answered"]
    wait_until(lambda: simulator.requests("list_pages"))
    running.kill_task_of("users_answered")
    assert running.ends("users_answered") == "success"
    assert len(users_sent(simulator)) == 3
    assert running.xcom("users_answered")["created"] == 6


def test_killed_before_the_platform_carried_the_request_out(running: Killed) -> None:
    simulator = running.platforms["late"]
    wait_until(lambda: simulator.requests("create_dataset"))
    running.kill_task_of("late")
    wait_until(lambda: len(simulator.requests("list_datasets")) > 1)
    running.held.set()

    assert running.ends("late") == "success"
    assert len(simulator.requests("create_dataset")) == len(simulator.platform.datasets) == 1


def test_no_secret_is_left(running: Killed) -> None:
    files = [path for path in running.home.rglob("*") if path.is_file() and path.name != "users.csv"]
    assert any(path.name == "airflow.db" for path in files)
    assert len([path for path in files if path.suffix == ".log"]) > len(FAULTS)
    secrets = [TOKEN.encode(), PASSWORD.format("").encode()]
    assert [path for path in files for secret in secrets if secret in path.read_bytes()] == []
