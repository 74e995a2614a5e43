"""Waiting for a task of the platform itself, where a deployment can be asked for one; poked and deferred."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from conftest import TEXTS

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow.releases import AirflowFailException, AirflowSensorTimeout, TaskDeferred
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.tasks import TaskStatusCall
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetTaskSensor
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetTaskTrigger

Connect = Callable[..., None]
Wait = Callable[..., Any]


def sensor(**arguments: Any) -> AnaplatDatasetTaskSensor:
    given: dict[str, Any] = {"task_id": "wait", "ds_id": "ds1", "poke_interval": 0.05, "timeout": 30}
    return AnaplatDatasetTaskSensor(**{**given, "probe": "task", "platform_task_id": "t/1", **arguments})


def poked(**arguments: Any) -> Any:
    return sensor(**arguments, deferrable=False).execute({})


def trigger_of(**arguments: Any) -> AnaplatDatasetTaskTrigger:
    """Return the trigger after its round trip through Airflow's database."""
    with pytest.raises(TaskDeferred) as raised:
        sensor(**arguments, deferrable=True).execute({})
    _, kwargs = json.loads(json.dumps(raised.value.trigger.serialize()))
    return AnaplatDatasetTaskTrigger(**kwargs)


async def event_of(trigger: AnaplatDatasetTaskTrigger) -> Any:
    async for event in trigger.run():
        return event.payload
    raise AssertionError("the trigger ended without an event")


def deferred(**arguments: Any) -> Any:
    event = json.loads(json.dumps(asyncio.run(event_of(trigger_of(**arguments)))))
    return sensor(**arguments, deferrable=True).resume_execution("execute_complete", {"event": event}, {})


@pytest.fixture(params=[poked, deferred])
def wait(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def connected(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 0})


def says(simulator: Simulator, *answers: tuple[Any, Any], task_id: str = "t/1") -> None:
    simulator.platform.tasks[task_id] = [{"status": status, "result": result} for status, result in answers]


def test_the_task_is_asked_for_until_it_is_done(wait: Wait, simulator: Simulator) -> None:
    says(simulator, ("已提交", "处理中"), ("FINISHED", "处理中"), ("FINISHED", None))
    assert wait() == {"dsId": "ds1", "taskId": "t/1", "status": "FINISHED", "result": None}
    assert len(simulator.requests("get_task")) == 3
    assert simulator.requests("list_datasets") == []
    assert simulator.requests("get_task")[0].body == {}


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (("FAILED", None), "'FAILED'"),
        (("FINISHED", "FAILED"), "result 'FAILED'"),
        (("FAILED", "FINISHED"), "'FAILED'"),
        (("FINISHED", {"error": "no table sales"}), "no table sales"),
        (("处理中", {"error": {"message": "no table sales"}}), "no table sales"),
    ],
)
def test_a_failure_in_a_word_or_an_object_fails_the_task(
    wait: Wait, simulator: Simulator, answer: tuple[Any, Any], seen: str
) -> None:
    says(simulator, ("已提交", "处理中"), answer)
    with pytest.raises(AirflowFailException, match=f"reports that task t/1 is .*{seen}"):
        wait()


@pytest.mark.parametrize("answer", [("新状态", "FINISHED"), ("FINISHED", "新状态"), (None, None), (None, {})])
def test_an_unknown_word_is_never_a_success(wait: Wait, simulator: Simulator, answer: tuple[Any, Any]) -> None:
    says(simulator, answer)
    with pytest.raises(AirflowSensorTimeout):
        wait(timeout=0.3)
    with pytest.raises(AirflowFailException, match="unknown"):
        wait(unknown_state="fail")


@pytest.mark.parametrize(
    "answer", [("已提交", "FINISHED"), ("FINISHED", {"rows": 3}), (None, "FINISHED"), ("完成", " ")]
)
def test_the_result_counts_before_the_status(wait: Wait, simulator: Simulator, answer: tuple[Any, Any]) -> None:
    says(simulator, answer)
    assert wait(success_states=("FINISHED", "完成"))["taskId"] == "t/1"


def test_an_answer_about_another_task_is_no_success(wait: Wait, simulator: Simulator) -> None:
    simulator.platform.tasks["t/1"] = [{"taskId": "t/2", "status": "FINISHED", "result": None}]
    with pytest.raises(errors.AnaplatInvalidAnswerError, match=r"task t/1 and answers of 't/2'.*task_status"):
        wait()
    simulator.platform.tasks["t/1"][0]["taskId"] = "t/1"
    assert wait()["status"] == "FINISHED"
    simulator.platform.tasks["7"] = [{"taskId": 8, "status": "FINISHED", "result": None}]
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="task 7 and answers of '8'"):
        wait(platform_task_id="7")


def test_without_a_task_the_list_is_watched(wait: Wait, simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", TEXTS)
    assert wait(platform_task_id=None)["rowCount"] == 4
    assert simulator.requests("get_task") == []


def test_a_task_that_does_not_exist_is_an_error_at_once(wait: Wait) -> None:
    with pytest.raises(AirflowFailException, match="no task t/1"):
        wait()


def test_a_call_that_fails_for_a_while_is_tolerated(wait: Wait, simulator: Simulator) -> None:
    says(simulator, ("FINISHED", None))
    simulator.inject("get_task", replies.http_status(503), times=2)
    assert wait(max_poll_failures=3)["status"] == "FINISHED"


HEADER = {"path": "/public-api/data-source/{taskId}/columns", "method": "post", "params": {}, "auth_in": "header"}


def test_how_to_ask_comes_from_the_arguments_or_the_connection(
    wait: Wait, simulator: Simulator, connect: Connect
) -> None:
    answer = replies.content(b'{"result": "ok", "response": {"taskId": "ds1", "status": "FINISHED"}}')
    simulator.inject("get_columns", answer, times=None)

    assert wait(platform_task_id="ds1", task_status=HEADER)["status"] == "FINISHED"

    connect(simulator, extra={"task_status": json.dumps(HEADER)})
    assert wait(platform_task_id="ds1")["status"] == "FINISHED"
    for request in simulator.requests("get_columns"):
        assert request.path == "/public-api/data-source/ds1/columns"
        assert request.headers["x-auth-token"] == simulator.token

    says(simulator, ("FINISHED", None))
    call = {
        "path": "/public-api/task/status",
        "method": "GET",
        "params": {"taskId": "{taskId}"},
        "auth_in": "query",
    }

    assert wait(task_status=call)["status"] == "FINISHED"


@pytest.mark.parametrize(
    "call", [{"pth": "/public-api/x"}, {"auth_in": "cookie"}, {"params": "taskId"}, {"path": "/elsewhere"}]
)
def test_a_call_that_cannot_be_is_refused_before_it_is_sent(
    wait: Wait, simulator: Simulator, call: dict[str, Any]
) -> None:
    with pytest.raises(AirflowFailException, match=r"task_status is unusable|is refused"):
        wait(task_status=call)
    assert simulator.ledger == []


def test_deferred_sensors_of_different_tasks_ask_apart_and_of_one_together(simulator: Simulator) -> None:
    says(simulator, ("FINISHED", None), task_id="t1")
    says(simulator, ("处理中", None), ("FINISHED", None), task_id="t2")

    async def wait_for_all() -> list[Any]:
        tasks = ("t1", "t2", "t2")
        triggers = [trigger_of(platform_task_id=task_id) for task_id in tasks]
        return await asyncio.gather(*map(event_of, triggers))

    events = asyncio.run(wait_for_all())
    assert [event["result"]["taskId"] for event in events] == ["t1", "t2", "t2"]
    assert len(simulator.requests("get_task")) == 3


def test_arguments_of_a_trigger_from_before_still_load(simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", TEXTS)
    _, kwargs = trigger_of().serialize()
    for name in ("probe", "platform_task_id", "task_status"):
        del kwargs[name]
    event = asyncio.run(event_of(AnaplatDatasetTaskTrigger(**kwargs)))
    assert event["result"]["dsId"] == "ds1"


@pytest.mark.parametrize(
    "fault",
    [
        replies.reset(),
        replies.http_status(503),
        replies.redirect("http://elsewhere.example.com/?token=secret%2Ft0ken"),
        replies.content(b"<html>token=secret/t0ken"),
        replies.refusal("no: ?token=secret%2Ft0ken"),
        replies.content(b'{"result": "ok", "response": {"status": "x", "result": {"error": "secret/t0ken"}}}'),
    ],
)
def test_no_message_and_no_log_shows_the_token_in_the_query(
    fault: replies.Fault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with Simulator(token="secret/t0ken") as simulator:
        simulator.inject("get_task", fault)
        client = AnaplatClient(simulator.url, simulator.token, max_retries=0)
        try:
            said = str(client.find_task(["t1"]).get("t1"))
        except errors.AnaplatError as error:
            said = f"{error!r} {vars(error)} {error.__cause__!r}"

    assert "t0ken" not in said + caplog.text


def test_what_is_logged_of_the_address_is_the_rest_of_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "urllib3.connectionpool")
    with Simulator(token="secret/t0ken") as simulator:
        says(simulator, ("FINISHED", None), task_id="t1")
        AnaplatClient(simulator.url, simulator.token).find_task(["t1"])
    assert "/public-api/task/status?taskId=t1&token=***" in caplog.text
    assert "t0ken" not in caplog.text


def test_an_id_in_the_path_stays_one_segment() -> None:
    call = TaskStatusCall.of({"path": "/public-api/task/{taskId}"})
    assert call.operation("a/b?c").path == "/public-api/task/a%2Fb%3Fc"
