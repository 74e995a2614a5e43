"""Waiting: the same scenarios poked and deferred, the trigger through a real round trip of its serialisation."""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from conftest import LONG, TEXTS

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow.releases import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetTaskSensor
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.triggers.poller import Watch

Connect = Callable[..., None]
Wait = Callable[..., Any]


def sensor(**arguments: Any) -> AnaplatDatasetTaskSensor:
    given: dict[str, Any] = {"task_id": "wait", "ds_id": "ds1", "poke_interval": 0.05, "timeout": 30}
    return AnaplatDatasetTaskSensor(**{**given, **arguments})


def poked(**arguments: Any) -> Any:
    return sensor(**arguments, deferrable=False).execute({})


def deferred(**arguments: Any) -> Any:
    """Defer, carry trigger and event through JSON as Airflow's database does, and resume on a new instance."""
    with pytest.raises(TaskDeferred) as raised:
        sensor(**arguments, deferrable=True).execute({})
    deferral = raised.value
    path, kwargs = json.loads(json.dumps(deferral.trigger.serialize()))
    module, _, name = path.rpartition(".")
    trigger = getattr(importlib.import_module(module), name)(**kwargs)
    event = json.loads(json.dumps(asyncio.run(_first_event(trigger)).payload))
    resumed = sensor(**arguments, deferrable=True)
    return resumed.resume_execution(deferral.method_name, {"event": event}, {})


async def _first_event(trigger: Any) -> Any:
    async for event in trigger.run():
        return event
    raise AssertionError("the trigger ended without an event")


@pytest.fixture(params=[poked, deferred])
def wait(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def connected(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 0})


def statuses(simulator: Simulator, words: Sequence[str | None]) -> None:
    simulator.platform.add_dataset("new", TEXTS, words)


def test_it_ends_when_the_creation_is_done(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, [None, "处理中", "RUNNING", "FINISHED"])
    dataset = simulator.platform.datasets["ds1"].fields()

    assert wait() == {
        "dsId": "ds1",
        "name": "new",
        "status": "FINISHED",
        "rowCount": 4,
        "colCount": 2,
        "parentDirId": "root",
        "ctime": dataset["ctime"],
        "utime": dataset["utime"],
    }
    assert len(simulator.requests("list_datasets")) == 4


@pytest.mark.parametrize("arguments", [{}, {"retries": 3}])
def test_a_failure_fails_at_once_and_for_good(wait: Wait, simulator: Simulator, arguments: dict[str, int]) -> None:
    statuses(simulator, ["处理中", "FAILED"])
    with pytest.raises(AirflowFailException, match="reports that dataset ds1 is 'FAILED'"):
        wait(**arguments)
    assert len(simulator.requests("list_datasets")) == 2


def test_an_unknown_word_is_waited_for(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, ["新状态", "新状态", "FINISHED"])
    assert wait()["status"] == "FINISHED"


def test_or_fails_where_that_is_asked_for(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, ["处理中", "新状态"])
    with pytest.raises(AirflowFailException, match=r"is '新状态' \(unknown\)"):
        wait(unknown_state="fail")


def test_words_of_the_users_own(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, ["处理中", "完成"])
    assert wait(success_states=["完成"])["status"] == "完成"


def test_words_of_failure_of_the_users_own(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, ["处理中", "失败"])
    with pytest.raises(AirflowFailException, match="失败"):
        wait(failure_states=("失败",))


@pytest.mark.parametrize("words", [["处理中"], [None], ["新状态"]])
def test_it_ends_at_the_time_out(wait: Wait, simulator: Simulator, words: list[str | None]) -> None:
    statuses(simulator, words)
    with pytest.raises(AirflowSensorTimeout):
        wait(timeout=0.3)


@pytest.mark.parametrize("skip", ["soft_fail", "never_fail"])
def test_a_time_out_skips_where_that_is_asked_for(wait: Wait, simulator: Simulator, skip: str) -> None:
    statuses(simulator, ["处理中"])
    with pytest.raises(AirflowSkipException):
        wait(timeout=0.3, **{skip: True})


@pytest.mark.parametrize("skip", ["soft_fail", "never_fail"])
def test_a_failure_skips_where_that_is_asked_for(wait: Wait, simulator: Simulator, skip: str) -> None:
    statuses(simulator, ["FAILED"])
    with pytest.raises(AirflowSkipException):
        wait(**{skip: True})


@pytest.mark.parametrize(
    "fault", [replies.reset(), replies.http_status(503), replies.http_status(429), replies.cut()]
)
def test_a_list_that_fails_for_a_while_is_tolerated(
    wait: Wait, simulator: Simulator, fault: replies.Fault
) -> None:
    statuses(simulator, ["处理中", "FINISHED"])
    simulator.inject("list_datasets", fault, times=2)
    assert wait(max_poll_failures=3)["status"] == "FINISHED"


def test_failures_that_are_not_in_a_row_are_not_added_up(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, ["处理中", "处理中", "FINISHED"])
    seen = iter([True, False, True, False, True, False])
    simulator.inject("list_datasets", replies.reset(), times=None, when=lambda _: next(seen, False))
    assert wait(max_poll_failures=2)["status"] == "FINISHED"


def test_a_list_that_keeps_failing_ends_in_its_own_error(wait: Wait, simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(503), times=None)
    with pytest.raises(errors.AnaplatServerError, match="503"):
        wait(max_poll_failures=3)
    assert len(simulator.requests("list_datasets")) == 3


def test_and_skips_where_never_fail_is_set(wait: Wait, simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(503), times=None)
    with pytest.raises(AirflowSkipException):
        wait(max_poll_failures=2, never_fail=True)


def test_but_does_not_skip_where_soft_fail_is(wait: Wait, simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(503), times=None)
    with pytest.raises(errors.AnaplatServerError):
        wait(max_poll_failures=2, soft_fail=True)


def test_a_list_that_is_down_until_the_time_out_is_a_time_out(wait: Wait, simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(503), times=None)
    with pytest.raises(AirflowSensorTimeout):
        wait(timeout=0.3, max_poll_failures=1000)


def test_it_looks_before_it_gives_up(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, ["FINISHED"])
    assert wait(timeout=0)["status"] == "FINISHED"


def test_the_last_look_may_come_an_interval_late(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, ["处理中", "FINISHED"])
    assert wait(timeout=4, poke_interval=4.5)["status"] == "FINISHED"


def test_a_long_retry_after_does_not_outlast_the_time_out(wait: Wait, simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(429, retry_after="86400"), times=None)
    with pytest.raises(AirflowSensorTimeout):
        wait(timeout=0.5)


def test_silent_fail_polls_on(wait: Wait, simulator: Simulator) -> None:
    statuses(simulator, ["FINISHED"])
    simulator.inject("list_datasets", replies.refusal("no", code=1004), times=3)
    assert wait(silent_fail=True, max_poll_failures=1)["status"] == "FINISHED"


def test_the_error_keeps_what_it_knows(wait: Wait, simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(503, retry_after="0"), times=None)
    with pytest.raises(errors.AnaplatServerError) as raised:
        wait(max_poll_failures=1)
    assert (raised.value.status, raised.value.retry_after) == (503, 0)
    assert raised.value.operation == "list_datasets"


def test_what_nobody_foresaw_is_an_error_too(wait: Wait, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_ANAPLAT_DEFAULT")
    with pytest.raises(Exception, match="anaplat_default"):
        wait()


def test_a_wrong_token_is_an_error_at_once(wait: Wait, connect: Connect, simulator: Simulator) -> None:
    connect(simulator, password="not-the-token")
    with pytest.raises(AirflowFailException) as raised:
        wait(retries=3)
    assert isinstance(raised.value.__cause__, errors.AnaplatAuthenticationError)
    assert "not-the-token" not in str(raised.value)
    assert len(simulator.requests("list_datasets")) == 1


@pytest.mark.parametrize(
    ("skip", "ends", "said"),
    [("soft_fail", AirflowFailException, "no rights"), ("never_fail", AirflowSkipException, "never_fail is set")],
)
def test_a_refusal_skips_where_any_failure_does(
    wait: Wait, simulator: Simulator, skip: str, ends: type[Exception], said: str
) -> None:
    simulator.inject("list_datasets", replies.refusal("no rights", code=1004), times=None)
    with pytest.raises(ends, match=said):
        wait(**{skip: True})


def test_a_connection_that_cannot_work_is_named(wait: Wait, connect: Connect) -> None:
    connect(host="")
    with pytest.raises(AirflowFailException, match="password field"):
        wait()


def test_the_trigger_holds_no_secret_and_a_deadline(simulator: Simulator) -> None:
    with pytest.raises(TaskDeferred) as raised:
        sensor(timeout=100, deferrable=True).execute({})
    _, kwargs = raised.value.trigger.serialize()
    assert simulator.token not in json.dumps(kwargs)
    assert kwargs["version"] == 2
    assert raised.value.timeout == timedelta(seconds=160.1)


@pytest.mark.parametrize(
    "event",
    [
        None,
        {},
        {"outcome": "finished"},
        {"outcome": "done"},
        {"outcome": "done", "result": None},
        {"outcome": "done", "result": {"dsId": "another"}},
        {"outcome": "failed"},
        {"status": "success"},
    ],
)
def test_an_event_that_is_not_understood_fails_the_task(event: dict[str, Any] | None) -> None:
    with pytest.raises(AirflowFailException, match="not understood"):
        sensor().execute_complete({}, event)


def test_a_state_of_before_a_deferred_sensor_began_is_none(simulator: Simulator) -> None:
    statuses(simulator, ["FINISHED", "FAILED"])  # since it was refreshed in between
    with pytest.raises(TaskDeferred) as raised:
        sensor(deferrable=True, poke_interval=3600).execute({})

    async def after_another() -> Any:
        with Watch("anaplat_default", "find_datasets", ["ds1"], 3600) as another:
            await another.look()
            return await _first_event(raised.value.trigger)

    assert asyncio.run(after_another()).payload["outcome"] == "failed"


def test_polling_does_not_block_the_event_loop(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 0, "read_timeout": LONG})
    statuses(simulator, ["FINISHED"])
    go_on = threading.Event()
    simulator.inject("list_datasets", replies.hold(go_on))
    with pytest.raises(TaskDeferred) as raised:
        sensor(deferrable=True, max_poll_failures=1).execute({})

    async def answer_once_the_loop_has_turned() -> Any:
        waiting = asyncio.create_task(_first_event(raised.value.trigger))
        while not simulator.requests("list_datasets"):
            await asyncio.sleep(0.01)
        assert not waiting.done()
        go_on.set()
        return await waiting

    # A blocked loop would never let the answer go, and the trigger would end in the read time-out's error.
    event = asyncio.run(answer_once_the_loop_has_turned())
    assert event.payload["outcome"] == "done"
