"""Components of a deployment are killed amid everything, and the platform goes: all happens once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import psutil
import pytest
from conftest import TEXTS, numbers
from support.production import ROWS, SENSORS, WORKING, Production
from support.running import wait_until

from airflow_provider_anaplat.simulator import Simulator, replies

EXPORTED = list(range(ROWS))
IN_BATCHES = [["user0", "user1"], ["user2", "user3"], ["user4", "user5"]]
SECONDS_GONE = 30.0


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """An event that lets held answers go, at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


def hold_a_page(simulator: Simulator, offset: int, held: threading.Event) -> None:
    simulator.inject("read_rows", replies.hold(held), when=lambda body: body.get("offset") == offset)


def users_sent(simulator: Simulator) -> list[list[str]]:
    return [[user["loginId"] for user in request.body["users"]] for request in simulator.requests("create_users")]


def asked_for(simulator: Simulator, offset: int) -> bool:
    return offset in [request.body.get("offset") for request in simulator.requests("read_rows")]


def exported(running: Production, *names: str) -> list[int]:
    return [n for name in names for n in pl.read_csv(running.output / name)["n"].to_list()]


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith((".", "tmp"))]


def test_what_dead_workers_were_doing_is_done_once(running: Production, held: threading.Event) -> None:
    faults = [f"worker_dies_{what}" for what in ("creating", "amid_users", "exporting", "exporting_parts")]
    creating, users, *exporting = (running.platforms[fault] for fault in faults)
    creating.inject("create_dataset", replies.hold(held))
    users.inject("create_users", replies.hold(held), when=lambda body: body["users"][0]["loginId"] == "user2")
    for platform in exporting:
        platform.platform.add_dataset("numbers", numbers(ROWS))
        hold_a_page(platform, 500, held)
    target, parts = running.output / "worker_dies_exporting.csv", running.output / "worker_dies_exporting_parts"
    target.write_text("of yesterday")
    running.start(*faults)
    wait_until(lambda: creating.platform.datasets)
    wait_until(lambda: "user2" in users.platform.users)
    wait_until(lambda: all(asked_for(platform, 500) for platform in exporting))
    wait_until(lambda: len(hidden(parts)) > 4)

    for worker in running.deployment.workers:
        running.deployment.kill_worker(worker)
    assert len(hidden(parts)) == len(list(parts.iterdir())) > 4
    assert target.read_text() == "of yesterday"
    for worker in running.deployment.workers:
        running.deployment.start_worker(worker)
    for fault in faults:
        running.deployment.wait_for(fault, "success")
        assert running.attempts(fault) == {"task": 2}
    running.nobody_asks(*faults)

    assert len(creating.requests("create_dataset")) == len(creating.platform.datasets) == 1
    assert running.deployment.xcom("worker_dies_creating", "task")["dsId"] == "ds1"
    assert users_sent(users) == IN_BATCHES
    assert len(users.platform.users) == running.deployment.xcom("worker_dies_amid_users", "task")["created"] == 6
    assert exported(running, target.name) == EXPORTED
    names = [f"part-{number:05d}.csv" for number in range(1, 11)]
    assert sorted(path.name for path in parts.iterdir()) == ["_manifest.json", *names]
    assert exported(running, *(f"{parts.name}/{name}" for name in names)) == EXPORTED


def test_forty_sensors_outlive_their_triggerer(running: Production) -> None:
    platform, creating = running.platforms["triggerer_dies"], running.platforms["triggerer_dies_creating"]
    for number in range(1, SENSORS + 1):
        platform.platform.add_dataset(f"dataset {number}", TEXTS, [WORKING])
    creating.platform.creation_statuses = [WORKING]
    running.start("triggerer_dies_creating", "triggerer_dies")
    running.until("triggerer_dies_creating", "task", "deferred")
    wait_until(lambda: states(running) == {"deferred": SENSORS}, lambda: states(running))
    # Each takes a look of its own when it begins, which the last of them may just do.
    begun = len(platform.requests("list_datasets"))
    wait_until(lambda: len(platform.requests("list_datasets")) >= begun + 3)
    before, since = len(platform.requests("list_datasets")), time.monotonic()
    wait_until(lambda: len(platform.requests("list_datasets")) >= before + 4)
    # Every two seconds, however many wait.
    assert len(platform.requests("list_datasets")) - before <= (time.monotonic() - since) / 2 + 2

    running.deployment.airflow.kill("triggerer")
    asked = len(platform.requests("list_datasets"))
    for dataset in platform.platform.datasets.values():
        dataset.statuses = ["FAILED" if dataset.ds_id in ("ds7", "ds37") else "FINISHED"]
    creating.platform.datasets["ds1"].statuses = ["FINISHED"]
    running.deployment.airflow.start("triggerer")

    for share in range(10, SENSORS + 1, 10):
        wait_until(lambda share=share: ended(running) >= share, lambda: states(running))
    running.deployment.wait_for("triggerer_dies", "failed")
    running.deployment.wait_for("triggerer_dies_creating", "success")
    tasks = running.deployment.tasks("triggerer_dies")
    assert {(task.task_id, task.map_index) for task in tasks if task.state == "failed"} == {
        ("mapped", 6), ("ds37", -1),
    }  # fmt: skip
    assert states(running) == {"failed": 2, "success": SENSORS - 2}
    for task in tasks:
        if task.state == "success":
            found = running.deployment.xcom("triggerer_dies", task.task_id, task.map_index)["dsId"]
            assert found == (task.task_id if task.map_index == -1 else f"ds{task.map_index + 1}")
    for fault in ("triggerer_dies", "triggerer_dies_creating"):
        assert {*running.attempts(fault).values()} == {1}
    assert asked < len(platform.requests("list_datasets")) <= asked + 10
    assert len(creating.requests("create_dataset")) == len(creating.platform.datasets) == 1
    running.nobody_asks("triggerer_dies", "triggerer_dies_creating")


def states(running: Production) -> Counter[str | None]:
    """Count the states of the forty sensors."""
    return Counter(task.state for task in running.deployment.tasks("triggerer_dies"))


def ended(running: Production) -> int:
    found = states(running)
    return found["success"] + found["failed"]


def test_a_dead_scheduler_stops_nothing(running: Production, held: threading.Event) -> None:
    simulator = running.platforms["scheduler_dies"]
    dataset = simulator.platform.add_dataset("numbers", numbers(ROWS), [WORKING])
    hold_a_page(simulator, 500, held)
    simulator.inject("create_dataset", replies.hold(held))
    simulator.inject("create_users", replies.hold(held), when=lambda body: body["users"][0]["loginId"] == "user2")
    running.start("scheduler_dies")
    running.until("scheduler_dies", "wait", "deferred")
    wait_until(lambda: asked_for(simulator, 500))
    wait_until(lambda: simulator.requests("create_dataset") and "user2" in simulator.platform.users)

    running.deployment.airflow.kill("scheduler")
    held.set()
    for task in ("export", "create", "users"):
        running.until("scheduler_dies", task, "success")
    dataset.statuses = ["FINISHED"]
    running.until("scheduler_dies", "wait", "scheduled")
    running.deployment.airflow.start("scheduler")
    running.deployment.wait_for("scheduler_dies", "success")
    assert running.attempts("scheduler_dies") == {"wait": 1, "after": 1, "export": 1, "create": 1, "users": 1}
    assert exported(running, "scheduler_dies.csv") == exported(running, "scheduler_dies.csv.gz") == EXPORTED
    assert [name for name, found in simulator.platform.datasets.items() if found is not dataset] == ["ds2"]
    assert len(simulator.requests("create_dataset")) == 1
    assert users_sent(simulator) == IN_BATCHES
    assert len(simulator.platform.users) == running.deployment.xcom("scheduler_dies", "users")["created"] == 6
    running.nobody_asks("scheduler_dies")


@contextmanager
def gone(*platforms: Simulator) -> Iterator[None]:
    """Refuse all connections for the length of the block, and reset those that are open."""
    for platform in platforms:
        platform.__exit__(None, None, None)
    try:
        yield
    finally:
        for platform in platforms:
            platform.__enter__()


def test_a_platform_that_is_gone_for_a_while_is_waited_for(running: Production) -> None:
    platform, untried = running.platforms["platform_goes"], running.platforms["platform_is_gone"]
    platform.platform.add_dataset("numbers", numbers(ROWS))
    awaited = platform.platform.add_dataset("awaited", TEXTS, [WORKING])
    platform.inject("read_rows", replies.slow(1), times=None)
    # What is asked for is there at once, and the platform goes before it says so.
    platform.inject("create_dataset", replies.slow(3600))
    platform.inject("create_users", replies.slow(3600), when=lambda body: body["users"][0]["loginId"] == "user2")
    running.start("platform_goes")
    running.until("platform_goes", "deferred", "deferred")
    wait_until(lambda: platform.requests("read_rows"))
    wait_until(lambda: len(platform.platform.datasets) == 3 and "user2" in platform.platform.users)

    since = time.monotonic()
    with gone(platform, untried):
        running.start("platform_is_gone")
        for task in ("create", "users"):
            wait_until(lambda task=task: running.attempts("platform_is_gone").get(task, 0) > 1)
        for task in ("deferred", "rescheduled", "export", "create", "users"):
            wait_until(lambda task=task: "refused" in running.deployment.log("platform_goes", task))
        wait_until(lambda: time.monotonic() - since > SECONDS_GONE)
    awaited.statuses = ["FINISHED"]
    for fault in ("platform_goes", "platform_is_gone"):
        running.deployment.wait_for(fault, "success")
    assert set(running.attempts("platform_goes").values()) == {1}
    assert exported(running, "platform_goes.csv") == EXPORTED
    assert len(platform.requests("create_dataset")) == 1
    assert {*platform.platform.datasets} == {
        "ds1",
        "ds2",
        running.deployment.xcom("platform_goes", "create")["dsId"],
    }
    assert users_sent(platform) == IN_BATCHES
    assert len(platform.platform.users) == running.deployment.xcom("platform_goes", "users")["created"] == 6
    assert len(untried.requests("create_dataset")) == len(untried.platform.datasets) == 1
    assert users_sent(untried) == [[f"user{number}" for number in range(6)]]
    assert len(untried.platform.users) == 6
    running.nobody_asks("platform_goes", "platform_is_gone")


def test_no_temporary_file_is_left(running: Production) -> None:
    for name in ("worker_dies_exporting.csv", "worker_dies_exporting_parts/part-00001.csv"):
        assert (running.output / name).exists()  # which a worker was killed amid
    # The DAG of all secrets gives an export by several workers up.
    assert [path for path in hidden(running.output) if running.output / "secrets" not in path.parents] == []


HOLDS_A_CONNECTION = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
connection.request("GET", "/")
connection.getresponse().read()
sys.stdin.read()
"""


def test_a_connection_that_only_the_platform_closed_is_seen(running: Production) -> None:
    port = running.platforms["timed_out"].url.rpartition(":")[2]
    with subprocess.Popen([sys.executable, "-c", HOLDS_A_CONNECTION, port], stdin=subprocess.PIPE) as holder:
        process = psutil.Process(holder.pid)
        wait_until(lambda: [c.status for c in process.net_connections("tcp4")] == [psutil.CONN_CLOSE_WAIT])
        assert not running.is_left_alone("timed_out")
    wait_until(lambda: running.is_left_alone("timed_out"))
