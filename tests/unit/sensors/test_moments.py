"""Sensors that wait for a moment: a dataset's update, a subscription's delivery; poked and deferred."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from collections import UserList
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import jinja2
import pytest
from conftest import TEXTS

from airflow_provider_anaplat._airflow.releases import (
    DAG,
    AirflowFailException,
    AirflowSensorTimeout,
    TaskDeferred,
)
from airflow_provider_anaplat.sensors.base import END_OF_INTERVAL
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetFreshnessSensor, AnaplatDatasetTaskSensor
from airflow_provider_anaplat.sensors.subscriptions import AnaplatSubscriptionSensor
from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.triggers.base import CAN_BEGIN_IN_TRIGGERER
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetTaskTrigger
from airflow_provider_anaplat.waiting.conditions import SubscriptionsSent

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WAITING: dict[str, Any] = {"task_id": "wait", "poke_interval": 0.05, "timeout": 30}


def poked(sensor: type[Any], **arguments: Any) -> Any:
    return sensor(**{**WAITING, **arguments}, deferrable=False).execute({})


def deferred(sensor: type[Any], **arguments: Any) -> Any:
    given = {**WAITING, **arguments, "deferrable": True}
    with pytest.raises(TaskDeferred) as raised:
        sensor(**given).execute({})
    path, kwargs = json.loads(json.dumps(raised.value.trigger.serialize()))
    module, _, name = path.rpartition(".")
    trigger = getattr(importlib.import_module(module), name)(**kwargs)

    async def first_event() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    event = json.loads(json.dumps(asyncio.run(first_event())))
    return sensor(**given).resume_execution("execute_complete", {"event": event}, {})


@pytest.fixture(params=[poked, deferred])
def wait(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def connected(connect: Callable[..., None], simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 0})


def fresh(wait: Callable[..., Any], **arguments: Any) -> Any:
    return wait(AnaplatDatasetFreshnessSensor, **{"ds_id": "ds1", "newer_than": NOON.isoformat(), **arguments})


@pytest.mark.parametrize(
    "newer_than", [NOON, str(NOON), NOON.isoformat(), "2026-03-01T20:00:00+08:00", "2026-03-01"]
)
def test_an_update_at_or_after_the_moment_is_fresh(wait: Any, simulator: Simulator, newer_than: Any) -> None:
    simulator.platform.add_dataset("sales", TEXTS).utime = NOON
    found = fresh(wait, newer_than=newer_than)
    assert (found["dsId"], found["utime"]) == ("ds1", "2026-03-01 12:00:00+0000")


@pytest.mark.parametrize("word", ["FINISHED", "FAILED", "新状态"])
def test_an_older_one_is_waited_beyond_whatever_its_state(wait: Any, simulator: Simulator, word: str) -> None:
    dataset = simulator.platform.add_dataset("sales", TEXTS, [word])
    dataset.utime = NOON - timedelta(seconds=1)
    with pytest.raises(AirflowSensorTimeout):
        fresh(wait, timeout=0.2, unknown_state="fail")


def test_an_update_that_comes_while_waiting_ends_it(wait: Any, simulator: Simulator) -> None:
    dataset = simulator.platform.add_dataset("sales", TEXTS, ["FINISHED", "RUNNING", "FINISHED"])
    dataset.utime = NOON - timedelta(days=1)
    dataset.updating = True
    assert fresh(wait)["status"] == "FINISHED"
    assert len(simulator.requests("list_datasets")) == 3


def test_a_fresh_failure_fails(wait: Any, simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", TEXTS, ["FAILED"]).utime = NOON
    with pytest.raises(AirflowFailException, match="'FAILED', last updated 2026-03-01"):
        fresh(wait)


@pytest.mark.parametrize("given", ["tomorrow", "now", "20:00:00+08:00", "20:00", "", "2026", "P1D", None, 7])
def test_what_is_no_moment_is_named(wait: Any, simulator: Simulator, given: Any) -> None:
    simulator.platform.add_dataset("sales", TEXTS)
    with pytest.raises(AirflowFailException, match=re.escape(f"newer_than is {given!r}")):
        fresh(wait, newer_than=given)


def test_a_text_is_no_list_of_words(wait: Any, simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", TEXTS)
    with pytest.raises(AirflowFailException, match="success_states and failure_states must be lists"):
        fresh(wait, success_states="FINISHED")


@pytest.mark.parametrize("mistake", [{"newer_than": "None"}, {"success_states": "FINISHED"}])
def test_what_cannot_be_right_is_named_before_the_dataset_is_there(wait: Any, mistake: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match=next(iter(mistake))):
        fresh(wait, **{"timeout": 1.0, **mistake})


def test_a_text_is_no_list_of_subscriptions(wait: Any, simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match="subscription_ids is the text 'sc1'"):
        sent(wait, simulator, plan("s"), plan("c"), plan("1"), subscription_ids="sc1")


@pytest.mark.parametrize(
    ("context", "rendered"),
    [
        ({"data_interval_end": NOON, "dag_run": {}}, str(NOON)),
        ({"data_interval_end": None, "dag_run": {"run_after": NOON}}, str(NOON)),
        ({"dag_run": {"run_after": NOON}}, str(NOON)),
    ],
)
def test_the_default_moment_is_known_in_every_run(context: dict[str, Any], rendered: str) -> None:
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(END_OF_INTERVAL)
    assert template.render(context) == rendered


def plan(
    sc_id: str, sent: datetime | None = NOON, status: str | None = "SUCCESS", **fields: Any
) -> dict[str, Any]:
    millis = None if sent is None else int(sent.timestamp() * 1000)
    return {"scId": sc_id, "name": f"plan {sc_id}", "enabled": True, "lastSendTime": millis,
            "lastSendStatus": status, "cron": {"cronType": "DAILY"}, **fields}  # fmt: skip


def sent(wait: Callable[..., Any], simulator: Simulator, *plans: dict[str, Any], **arguments: Any) -> Any:
    simulator.platform.subscriptions = {plan["scId"]: plan for plan in plans}
    given = {"subscription_ids": ["a", "b"], "sent_after": NOON.isoformat(), **arguments}
    return wait(AnaplatSubscriptionSensor, **given)


def test_all_subscriptions_sent(wait: Any, simulator: Simulator) -> None:
    found = sent(wait, simulator, plan("a"), plan("b", NOON + timedelta(hours=1)))
    millis = int(NOON.timestamp() * 1000)
    nothing = {"scType": None, "resourceId": None}

    assert found["subscriptions"] == [
        {**nothing, "scId": "a", "name": "plan a", "lastSendTime": millis, "lastSendStatus": "SUCCESS"},
        {
            **nothing,
            "scId": "b",
            "name": "plan b",
            "lastSendTime": millis + 3_600_000,
            "lastSendStatus": "SUCCESS",
        },
    ]
    assert simulator.requests("get_subscriptions")[0].body["scIds"] == ["a", "b"]


def test_a_moment_of_sending_may_be_in_seconds(wait: Any, simulator: Simulator) -> None:
    seconds = int(NOON.timestamp())
    found = sent(wait, simulator, plan("a", lastSendTime=seconds), subscription_ids=["a"], timeout=0.3)
    assert [plan["lastSendTime"] for plan in found["subscriptions"]] == [seconds * 1000]


def test_a_plan_that_is_named_twice_is_one_plan(wait: Any, simulator: Simulator) -> None:
    found = sent(wait, simulator, plan("a"), subscription_ids=["a", "a"])
    assert [plan["scId"] for plan in found["subscriptions"]] == ["a"]


# What a mapped task returns is a sequence of Airflow's own.
@pytest.mark.parametrize(
    "several", [{"a", "b"}, ("a", "b"), UserList(["a", "b"])], ids=["set", "tuple", "sequence"]
)
def test_plans_may_be_named_in_anything_that_holds_texts(wait: Any, simulator: Simulator, several: Any) -> None:
    found = sent(wait, simulator, plan("a"), plan("b"), subscription_ids=several, success_states={"SUCCESS"})
    assert sorted(plan["scId"] for plan in found["subscriptions"]) == ["a", "b"]


def test_a_set_may_be_in_another_order_where_a_task_resumes() -> None:
    condition = SubscriptionsSent(subscription_ids=["a", "b"], sent_after=NOON)
    for found, is_result in [("ab", True), ("ba", True), ("a", False), ("aab", False), ("ac", False)]:
        assert condition.is_result({"subscriptions": [{"scId": sc_id} for sc_id in found]}) is is_result


def test_no_plan_is_no_success(wait: Any, simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match="subscription_ids is empty"):
        sent(wait, simulator, plan("a"), subscription_ids=[])


@pytest.mark.parametrize(
    "late",
    [
        plan("b", NOON - timedelta(seconds=1)),
        plan("b", NOON - timedelta(seconds=1), "FAILED"),
        plan("b", None),
        plan("b", NOON, "SENDING"),
    ],
)
def test_one_that_is_late_is_waited_for(wait: Any, simulator: Simulator, late: dict[str, Any]) -> None:
    with pytest.raises(AirflowSensorTimeout, match=r"timed out|plan b"):  # as Airflow or the wait itself ends it
        sent(wait, simulator, plan("a"), late, timeout=0.2)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (plan("b", NOON, "FAILED"), r"subscription b \(plan b\) was sent .* with 'FAILED'"),
        (plan("b", enabled=False), r"subscription b \(plan b\) is disabled"),
        (plan("c"), "subscription b does not exist"),
    ],
)
def test_one_that_failed_or_never_will_be_fails_at_once(
    wait: Any, simulator: Simulator, bad: dict[str, Any], says: str
) -> None:
    with pytest.raises(AirflowFailException, match=says):
        sent(wait, simulator, plan("a", NOON - timedelta(days=1)), bad)


def test_an_unknown_word_fails_where_that_is_asked_for(wait: Any, simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match=r"SENDING.*\(unknown\)"):
        sent(wait, simulator, plan("a"), plan("b", NOON, "SENDING"), unknown_state="fail")


def test_arguments_of_an_older_version_still_load(simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", TEXTS)
    trigger = AnaplatDatasetTaskTrigger(
        ds_id="ds1", anaplat_conn_id="anaplat_default", poll_interval=0.05, deadline=4e9,
        success_states=["FINISHED"], failure_states=["FAILED"], unknown_state="wait", max_poll_failures=3,
        silent_fail=False, version=1,
    )  # fmt: skip

    async def first_event() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    assert asyncio.run(first_event())["outcome"] == "done"


@pytest.mark.skipif(not CAN_BEGIN_IN_TRIGGERER, reason="this Airflow cannot begin a task in the triggerer")
def test_a_sensor_can_begin_in_the_triggerer() -> None:
    sensor = AnaplatDatasetTaskSensor(**WAITING, ds_id="{{ params.id }}", deferrable=True, start_from_trigger=True)
    assert sensor.start_from_trigger

    arguments = sensor.start_trigger_args.trigger_kwargs
    assert json.loads(json.dumps(arguments)) == arguments

    trigger: Any = AnaplatDatasetTaskTrigger(**arguments)
    assert (trigger.ds_id, trigger.deadline) == ("{{ params.id }}", None)
    assert sensor.start_trigger_args.timeout == timedelta(seconds=30)


def test_but_not_before_its_arguments_are_known() -> None:
    from airflow_provider_anaplat.operators.datasets import AnaplatCreateDatasetOperator

    with DAG("late"):
        create = AnaplatCreateDatasetOperator(task_id="create", account_id="a", name="n", table_query={})
        output: Any = create.output
        late = AnaplatDatasetTaskSensor(**WAITING, ds_id=output["dsId"], deferrable=True, start_from_trigger=True)
        several: Any = {**WAITING, "task_id": "wait_for_several", "subscription_ids": ["s1", output["dsId"]]}
        among = AnaplatSubscriptionSensor(**several, deferrable=True, start_from_trigger=True)
    assert not late.start_from_trigger
    assert not among.start_from_trigger
    assert not AnaplatDatasetTaskSensor(**WAITING, ds_id="ds1", start_from_trigger=True).start_from_trigger


@pytest.mark.parametrize(
    "mistake",
    [{"ds_id": 7}, {"dataset": "sales"}, {"probe": "Task"}, {"max_poll_failures": "10"}, {"poke_interval": 0}],
)
def test_nor_with_a_mistake_that_only_a_worker_would_name(mistake: dict[str, Any]) -> None:
    given = {**WAITING, "ds_id": "ds1", "deferrable": True, "start_from_trigger": True, **mistake}
    sensor = AnaplatDatasetTaskSensor(**given)
    assert not sensor.start_from_trigger
    with pytest.raises(AirflowFailException, match=next(iter(mistake))):
        sensor.execute({})
