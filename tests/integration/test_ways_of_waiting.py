"""One table of scenarios, poked, rescheduled and deferred, each step in a fresh process: all must end alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from conftest import LONG, TEXTS
from support.running import AIRFLOW_2
from support.steps import Steps, wait

from airflow_provider_anaplat.simulator import Simulator, replies

LIST_DOWN = replies.http_status(503)
NO_ROUTE = replies.http_status(404, body=b"<html>404 page not found</html>")


@dataclass(frozen=True)
class Scenario:
    """What the platform shows and does, what the sensor is told, and how it must end."""

    name: str
    statuses: tuple[str | None, ...]
    ends: str
    says: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    list_down_times: int | None = 0
    down: replies.Fault = LIST_DOWN
    answered_before: int = 0
    killed_after: int = 0
    tries: int = 1


WORKING = "处理中"
SCENARIOS = [
    Scenario("finishes", (None, WORKING, "RUNNING", "FINISHED"), "FINISHED"),
    Scenario("fails", (WORKING, "FAILED"), "AirflowFailException", "dataset ds1 is 'FAILED'"),
    Scenario("unknown word", ("新状态", "FINISHED"), "FINISHED"),
    Scenario(
        "unknown word fails", (WORKING, "新状态"), "AirflowFailException", "新状态", {"unknown_state": "fail"}
    ),
    Scenario("absent for ever", (None,), "AirflowSensorTimeout", arguments={"timeout": 0.6}),
    Scenario("list down for a while", (WORKING, "FINISHED"), "FINISHED", list_down_times=2),
    Scenario("list down for ever", (WORKING,), "AnaplatServerError", "503", list_down_times=None),
    Scenario(
        "list down till the time-out", (WORKING,), "AirflowSensorTimeout", "",
        {"timeout": 0.6, "max_poll_failures": 1000}, list_down_times=None,
    ),
    Scenario("no list from the first look on", (WORKING,), "AirflowFailException", "404",
             list_down_times=None, down=NO_ROUTE),
    Scenario("no list for a while", (WORKING, WORKING, "FINISHED"), "FINISHED", list_down_times=2, down=NO_ROUTE,
             answered_before=1),
    Scenario("a page in its place for a while", (WORKING, WORKING, "FINISHED"), "FINISHED", list_down_times=2,
             down=replies.content(b"<html>back soon</html>", "text/html"), answered_before=2),
    Scenario("no list any more", (WORKING,), "AirflowFailException", "404", list_down_times=None, down=NO_ROUTE,
             answered_before=1),
    Scenario("time-out", (WORKING,), "AirflowSensorTimeout", arguments={"timeout": 0.6}),
    Scenario("soft_fail at a failure", ("FAILED",), "AirflowSkipException", "", {"soft_fail": True}),
    Scenario(
        "soft_fail at a time-out", (WORKING,), "AirflowSkipException", "", {"soft_fail": True, "timeout": 0.6}
    ),
    Scenario(
        "soft_fail, list down", (WORKING,), "AnaplatServerError", "", {"soft_fail": True}, list_down_times=None
    ),
    Scenario("never_fail at a failure", ("FAILED",), "AirflowSkipException", "", {"never_fail": True}),
    Scenario(
        "never_fail, list down", (WORKING,), "AirflowSkipException", "", {"never_fail": True}, list_down_times=None
    ),
    Scenario("retried", (WORKING, "FINISHED"), "FINISHED", list_down_times=3, tries=2),
    Scenario("killed", (WORKING,) * 6 + ("FINISHED",), "FINISHED", killed_after=2),
]  # fmt: skip


@pytest.fixture(scope="module")
def steps() -> Steps:
    return Steps()


@pytest.mark.parametrize("way", ["poked", "rescheduled", "deferred"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_way_ends_alike(
    scenario: Scenario, way: str, steps: Steps, simulator: Simulator, connect: Callable[..., None]
) -> None:
    if AIRFLOW_2 and way == "rescheduled":
        pytest.skip("Airflow 2 asks its database when a rescheduled task began; the DAGs of test_dags.py have one")
    connect(simulator, extra={"max_retries": 0})
    dataset = simulator.platform.add_dataset("new", TEXTS, scenario.statuses)
    if scenario.list_down_times != 0:
        answered = count(1)
        simulator.inject(
            "list_datasets", scenario.down, times=scenario.list_down_times,
            when=lambda _: next(answered) > scenario.answered_before,
        )  # fmt: skip
    if scenario.killed_after:
        steps.kill_when = lambda: len(simulator.requests("list_datasets")) >= scenario.killed_after
    arguments = {
        "ds_id": "ds1",
        "poke_interval": 0.1,
        "timeout": LONG,
        "max_poll_failures": 3,
        **scenario.arguments,
    }
    for _ in range(scenario.tries):
        found = wait(steps, "AnaplatDatasetTaskSensor", way, arguments)

    assert steps.kill_when is None

    if "returned" not in found:
        assert found["raised"] == scenario.ends
        assert scenario.says in found["message"]
        return
    shown = dataset.fields()
    names = ("dsId", "name", "parentDirId", "status", "rowCount", "colCount", "ctime", "utime")

    assert found["returned"] == {name: shown[name] for name in names}
    assert found["returned"]["status"] == scenario.ends
