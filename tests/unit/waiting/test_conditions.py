"""What each condition asks for, and what it makes of one look."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest

from airflow_provider_anaplat.client.lookup import Lookup
from airflow_provider_anaplat.client.models import Dataset, SubscriptionPlan, TaskStatus
from airflow_provider_anaplat.errors import AnaplatRequestError
from airflow_provider_anaplat.waiting.conditions import (
    DatasetDone,
    DatasetFresh,
    DatasetRefreshed,
    SubscriptionsSent,
)
from airflow_provider_anaplat.waiting.states import State

NOON = "2026-01-31T12:00:00+00:00"
BEFORE = "2026-01-31T11:59:59+00:00"
AFTER = "2026-01-31T12:00:01+00:00"
FAR_AHEAD = "9000-01-31T12:00:00+00:00"


def listed(status: str, utime: str | None = None) -> Lookup[Dataset]:
    at = datetime.fromisoformat(utime) if utime else None
    record = Dataset(ds_id="ds1", name="Sales", status=status, utime=at)
    return Lookup({"ds1": {"name": "Sales"}}, lambda _: record)


def worked_on(status: str | None, result: Any) -> Lookup[TaskStatus]:
    return Lookup({"t1": {}}, lambda _: TaskStatus(status=status, result=result))


def plans(**last: tuple[str | None, str | None, bool]) -> Lookup[SubscriptionPlan]:
    def read(sc_id: str) -> SubscriptionPlan:
        at, status, enabled = last[sc_id]
        time = pendulum.instance(datetime.fromisoformat(at)) if at else None
        return SubscriptionPlan(
            sc_id=sc_id, name="Daily", last_send_time=time, last_send_status=status, enabled=enabled
        )

    return Lookup({sc_id: sc_id for sc_id in last}, read)


def test_a_condition_is_made_of_the_attributes_of_a_sensor() -> None:
    condition = DatasetFresh(ds_id="ds1", newer_than=NOON)
    assert DatasetFresh.of(SimpleNamespace(**vars(condition), interval=60)) == condition


@pytest.mark.parametrize(
    ("condition", "request_", "ids", "arguments"),
    [
        (DatasetFresh(ds_id="ds1", newer_than=NOON), "find_datasets", ("ds1",), {}),
        (DatasetFresh(dataset="Sales", newer_than=NOON), "find_datasets", (), {}),
        (DatasetDone(ds_id="ds1", platform_task_id="t1"), "find_datasets", ("ds1",), {}),
        (DatasetDone(ds_id="ds1", probe="task"), "find_datasets", ("ds1",), {}),
        (DatasetDone(ds_id="ds1", probe="task", platform_task_id="t1"), "find_task", ("t1",), {"call": {}}),
        (
            DatasetDone(probe="task", platform_task_id="t1", task_status={"path": "/x"}),
            "find_task",
            ("t1",),
            {"call": {"path": "/x"}},
        ),
        (
            SubscriptionsSent(subscription_ids=["b", "a", "b"], sent_after=NOON),
            "find_subscriptions",
            ("b", "a"),
            {},
        ),
    ],
)
def test_what_is_asked_for(condition: Any, request_: str, ids: tuple[str, ...], arguments: dict[str, Any]) -> None:
    assert (condition.request, condition.ids, condition.arguments) == (request_, ids, arguments)


@pytest.mark.parametrize(
    ("condition", "result", "is_one"),
    [
        (DatasetDone(ds_id="ds1"), {"dsId": "ds1"}, True),
        (DatasetDone(ds_id="ds1"), {"dsId": "ds2"}, False),
        (DatasetDone(ds_id="ds1"), "ds1", False),
        (DatasetDone(dataset="Sales"), {"dsId": "ds2"}, True),
        (SubscriptionsSent(subscription_ids=["a"], sent_after=NOON), {"subscriptions": [{"scId": "a"}]}, True),
        (SubscriptionsSent(subscription_ids=["a"], sent_after=NOON), {"subscriptions": [{"scId": "b"}]}, False),
        (SubscriptionsSent(subscription_ids=["a"], sent_after=NOON), {"subscriptions": None}, False),
        (SubscriptionsSent(subscription_ids=["a"], sent_after=NOON), None, False),
    ],
)
def test_a_result_is_of_the_very_condition(condition: Any, result: Any, is_one: bool) -> None:
    assert condition.is_result(result) is is_one


FRESH: dict[str, Any] = {"ds_id": "ds1", "newer_than": NOON}
REFRESHED: dict[str, Any] = {"ds_id": "ds1", "noted_utime": NOON}


@pytest.mark.parametrize(
    ("condition", "look", "state"),
    [
        (DatasetDone(ds_id="ds1"), listed("FINISHED"), State.DONE),
        (DatasetDone(dataset="Sales"), listed("FINISHED"), State.DONE),
        (DatasetDone(dataset="Costs"), listed("FINISHED"), State.WORKING),
        (DatasetDone(ds_id="ds2"), listed("FINISHED"), State.WORKING),
        (DatasetDone(ds_id="ds1"), listed("?"), State.WORKING),
        (DatasetDone(ds_id="ds1", unknown_state="fail"), listed("?"), State.UNKNOWN),
        (DatasetDone(ds_id="ds1", unknown_state="fail"), listed("RUNNING"), State.WORKING),
        (DatasetFresh(**FRESH), listed("FINISHED", NOON), State.DONE),
        (DatasetFresh(**FRESH), listed("FAILED", NOON), State.FAILED),
        (DatasetFresh(**FRESH), listed("FAILED", BEFORE), State.WORKING),
        (DatasetFresh(**FRESH), listed("FINISHED"), State.WORKING),
        (DatasetRefreshed(**REFRESHED), listed("FINISHED", AFTER), State.DONE),
        (DatasetRefreshed(**REFRESHED), listed("FINISHED", NOON), State.WORKING),
        (DatasetRefreshed(**REFRESHED), listed("FAILED", NOON), State.FAILED),
        (DatasetRefreshed(**REFRESHED, noted_status="FAILED"), listed("FAILED", NOON), State.WORKING),
        (DatasetRefreshed(**REFRESHED, noted_status="FAILED"), listed("FAILED", AFTER), State.FAILED),
        (DatasetRefreshed(ds_id="ds1", noted_utime=None), listed("FINISHED", NOON), State.DONE),
        # The platform's clock was far ahead, and has been set back since.
        (DatasetRefreshed(ds_id="ds1", noted_utime=FAR_AHEAD), listed("FINISHED", NOON), State.DONE),
        (DatasetRefreshed(ds_id="ds1", noted_utime=FAR_AHEAD), listed("FINISHED", FAR_AHEAD), State.WORKING),
        (DatasetRefreshed(ds_id="ds1", noted_utime=None), listed("FINISHED"), State.WORKING),
    ],
)
def test_what_a_dataset_says(condition: Any, look: Lookup[Dataset], state: State) -> None:
    verdict = condition.judge(look)
    assert verdict.state is state
    assert (verdict.result or {}).get("dsId") == ("ds1" if state is State.DONE else None)


@pytest.mark.parametrize(
    ("seconds_ahead", "utime", "state"),
    [
        (600, "2026-01-31T12:09:59+00:00", State.WORKING),
        (600, "2026-01-31T12:10:00+00:00", State.DONE),
        (-600, "2026-01-31T11:49:59+00:00", State.WORKING),
        (-600, "2026-01-31T11:50:00+00:00", State.DONE),
    ],
)
def test_a_moment_is_one_of_our_clock(seconds_ahead: int, utime: str, state: State) -> None:
    look, sent = listed("FINISHED", utime), plans(sc1=(utime, "SUCCESS", True))
    look.clock_ahead = sent.clock_ahead = timedelta(seconds=seconds_ahead)
    fresh = DatasetFresh(**FRESH).judge(look)
    assert fresh.state is state
    assert SubscriptionsSent(subscription_ids=["sc1"], sent_after=NOON).judge(sent).state is state
    assert f"by its clock, which is 600 s {'ahead of' if seconds_ahead > 0 else 'behind'} ours" in fresh.seen


@pytest.mark.parametrize("utime", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_the_ends_of_the_calendar(utime: str) -> None:
    look = listed("FINISHED", utime)
    for look.clock_ahead in (timedelta(hours=1), timedelta(hours=-1)):
        done = DatasetFresh(**FRESH).judge(look).state is State.DONE
        assert done == utime.startswith("9")
        assert DatasetFresh(ds_id="ds1", newer_than=utime).judge(look).state in (State.DONE, State.WORKING)


def test_what_is_seen_says_when_the_last_update_was() -> None:
    assert DatasetFresh(**FRESH).judge(listed("FINISHED")).seen == "dataset ds1 is 'FINISHED', last updated never"
    assert "last updated 2026-01-31 12:00" in DatasetRefreshed(**REFRESHED).judge(listed("FINISHED", NOON)).seen
    assert DatasetDone(dataset="Costs").judge(listed("FINISHED")).seen == "dataset 'Costs' is not in the list"


@pytest.mark.parametrize(
    ("status", "result", "state"),
    [
        ("FINISHED", None, State.DONE),
        ("已提交", "FINISHED", State.DONE),
        ("已提交", "FAILED", State.FAILED),
        ("FINISHED", {"error": "no table"}, State.FAILED),
        ("FAILED", "FINISHED", State.FAILED),
        ("FINISHED", "?", State.UNKNOWN),
        ("FINISHED", " ", State.DONE),
        ("FINISHED", "RUNNING", State.WORKING),
        (None, None, State.UNKNOWN),
    ],
)
def test_what_a_task_says(status: str | None, result: Any, state: State) -> None:
    given: dict[str, Any] = {"ds_id": "ds1", "probe": "task", "platform_task_id": "t1"}
    look = worked_on(status, result)
    verdict = DatasetDone(**given, unknown_state="fail").judge(look)

    assert verdict.state is state

    said = result["error"] if isinstance(result, dict) else result
    assert verdict.seen == f"task t1 is {status!r}, its result {said!r}"

    done = {"dsId": "ds1", "taskId": "t1", "status": status, "result": result}
    assert verdict.result == (done if state is State.DONE else None)

    patient = DatasetDone(**given).judge(look)
    assert patient.state is (State.WORKING if state is State.UNKNOWN else state)


@pytest.mark.parametrize(
    ("last", "state"),
    [
        ((NOON, "SUCCESS", True), State.DONE),
        ((BEFORE, "SUCCESS", True), State.WORKING),
        ((BEFORE, "FAILED", True), State.WORKING),
        ((None, None, True), State.WORKING),
        ((NOON, "FAILED", True), State.FAILED),
        ((NOON, "SUCCESS", False), State.FAILED),
        ((NOON, "?", True), State.UNKNOWN),
    ],
)
def test_what_a_plan_says_beside_one_that_was_sent(last: tuple[Any, Any, bool], state: State) -> None:
    given: dict[str, Any] = {"subscription_ids": ["a", "b"], "sent_after": NOON}
    look = plans(a=(AFTER, "SUCCESS", True), b=last)
    verdict = SubscriptionsSent(**given, unknown_state="fail").judge(look)

    assert verdict.state is state
    assert ("subscription b (Daily)" in verdict.seen) is (state is not State.DONE)

    sent = [plan["scId"] for plan in (verdict.result or {}).get("subscriptions", [])]
    assert sent == (["a", "b"] if state is State.DONE else [])

    patient = SubscriptionsSent(**given).judge(look)
    assert patient.state is (State.WORKING if state is State.UNKNOWN else state)


def test_a_plan_that_is_missing_will_never_be_sent() -> None:
    verdict = SubscriptionsSent(subscription_ids=["a"], sent_after=NOON).judge(plans())
    assert (verdict.state, verdict.seen) == (State.FAILED, "subscription a does not exist")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (SubscriptionsSent(subscription_ids=[], sent_after=NOON), "is empty"),
        (SubscriptionsSent(subscription_ids="ab", sent_after=NOON), "must be a list of ids"),
        (SubscriptionsSent(subscription_ids=["a"], sent_after="12:00"), "sent_after is '12:00'"),
        (DatasetDone(), "ds_id"),
        (DatasetDone(ds_id="ds1", dataset="Sales"), "ds_id"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(condition: Any, message: str) -> None:
    look: Any = (
        plans(a=(NOON, "SUCCESS", True)) if isinstance(condition, SubscriptionsSent) else listed("FINISHED")
    )
    with pytest.raises(AnaplatRequestError, match=message):
        condition.judge(look)
