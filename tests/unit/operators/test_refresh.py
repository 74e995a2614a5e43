"""Refreshing: in the worker and deferred, asked for once whatever happens."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import TEXTS, numbers

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow.releases import AirflowFailException, AirflowTaskTimeout, TaskDeferred
from airflow_provider_anaplat.operators.datasets import AnaplatCreateDatasetOperator
from airflow_provider_anaplat.operators.refresh import AnaplatRefreshDatasetOperator
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.platform import StoredDataset

Connect = Callable[..., None]
Run = Callable[..., Any]


class Store(dict[str, Any]):
    """What a task sees of its state on Airflow 3.3."""

    def set(self, key: str, value: Any) -> None:
        self[key] = json.loads(json.dumps(value))

    def delete(self, key: str) -> None:
        self.pop(key, None)


def operator(**arguments: Any) -> AnaplatRefreshDatasetOperator:
    given: dict[str, Any] = {"task_id": "refresh", "ds_id": "ds1", "poll_interval": 0.05, "timeout": 30}
    return AnaplatRefreshDatasetOperator(**{**given, **arguments})


def in_the_worker(task: Callable[..., Any] = operator, context: Any = None, **arguments: Any) -> Any:
    return task(**arguments, deferrable=False).execute(context if context is not None else {})


def deferred(task: Callable[..., Any] = operator, context: Any = None, **arguments: Any) -> Any:
    """Defer, carry trigger and event through JSON, and resume on a new instance."""
    context = context if context is not None else {}
    try:
        return task(**arguments, deferrable=True).execute(context)
    except TaskDeferred as deferral:
        path, kwargs = json.loads(json.dumps(deferral.trigger.serialize()))
    module, _, name = path.rpartition(".")
    trigger = getattr(importlib.import_module(module), name)(**kwargs)

    async def first_event() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    event = json.loads(json.dumps(asyncio.run(first_event())))
    return task(**arguments, deferrable=True).execute_complete(context, event)


@pytest.fixture(params=[in_the_worker, deferred])
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(autouse=True)
def dataset(connect: Connect, simulator: Simulator) -> StoredDataset:
    connect(simulator, extra={"max_retries": 0})
    dataset = simulator.platform.add_dataset("sales", TEXTS)
    dataset.utime -= timedelta(minutes=1)  # or a refresh would wait for the next second
    return dataset


def asked(simulator: Simulator) -> int:
    return len(simulator.requests("refresh_dataset"))


def test_it_ends_when_the_update_has(run: Run, simulator: Simulator, dataset: StoredDataset) -> None:
    before = dataset.fields()["utime"]
    simulator.platform.refresh_statuses = ("FINISHED", "处理中", "FINISHED")  # the platform is slow to begin
    found = run()
    assert found["status"] == "FINISHED"
    assert found["utime"] == dataset.fields()["utime"] > before
    assert asked(simulator) == 1


def test_a_failed_update_fails_the_task_for_good(run: Run, simulator: Simulator) -> None:
    simulator.platform.refresh_statuses = ("处理中", "FAILED")
    store = Store()
    with pytest.raises(AirflowFailException, match="'FAILED'"):
        run(context={"task_state_store": store})
    assert store == {}


def test_an_old_failure_is_no_failure(run: Run, simulator: Simulator, dataset: StoredDataset) -> None:
    dataset.statuses = ["FAILED"]
    simulator.platform.refresh_statuses = ("FAILED", "处理中", "FINISHED")
    assert run()["status"] == "FINISHED"


def test_it_ends_at_the_time_out(run: Run, simulator: Simulator) -> None:
    simulator.platform.refresh_statuses = ("处理中",)
    with pytest.raises(AirflowTaskTimeout):
        run(timeout=0.3)


def test_or_at_airflows_if_that_is_earlier(run: Run, simulator: Simulator) -> None:
    simulator.platform.refresh_statuses = ("处理中",)
    ti = SimpleNamespace(
        start_date=datetime.now(UTC) - timedelta(minutes=59, seconds=59.7), try_number=1, xcom_push=print
    )
    with pytest.raises(AirflowTaskTimeout):
        run(execution_timeout=timedelta(hours=1), context={"ti": ti})


def test_without_waiting_it_ends_once_the_refresh_is_accepted(
    simulator: Simulator, dataset: StoredDataset
) -> None:
    shown = dataset.fields()
    assert in_the_worker(wait_for_completion=False)["utime"] == shown["utime"]
    assert asked(simulator) == 1


def test_and_a_cleared_task_asks_again(simulator: Simulator) -> None:
    store = Store()
    in_the_worker(wait_for_completion=False, context={"task_state_store": store})
    simulator.platform.datasets["ds1"].statuses = ["FINISHED"]
    in_the_worker(wait_for_completion=False, context={"task_state_store": store})
    assert asked(simulator) == 2


def test_an_update_that_runs_is_followed(run: Run, simulator: Simulator, dataset: StoredDataset) -> None:
    dataset.statuses = ["RUNNING", "RUNNING", "FINISHED"]  # begun before, and `utime` set when it began
    assert run()["status"] == "FINISHED"
    assert asked(simulator) == 0


def test_or_fails_the_task(run: Run, simulator: Simulator, dataset: StoredDataset) -> None:
    dataset.statuses = ["RUNNING"]
    with pytest.raises(AirflowFailException, match="is already running"):
        run(if_running="fail")
    assert asked(simulator) == 0


def test_or_is_disregarded(run: Run, simulator: Simulator, dataset: StoredDataset) -> None:
    dataset.statuses = ["RUNNING"]
    assert run(if_running="request")["status"] == "FINISHED"
    assert asked(simulator) == 1


def test_a_lost_answer_is_resolved_by_looking(run: Run, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset(), after_act=True)
    assert run()["status"] == "FINISHED"
    assert asked(simulator) == 1


def test_a_lost_request_is_not_sent_again(run: Run, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset())
    store = Store()
    with pytest.raises(AirflowFailException, match="not known whether the refresh of dataset ds1 was accepted"):
        run(context={"task_state_store": store})
    assert asked(simulator) == 1
    assert store == {}


def test_nor_where_the_list_is_down_too(run: Run, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset(), after_act=True)
    simulator.inject("list_datasets", replies.http_status(503), times=None, when=lambda _: asked(simulator) > 0)
    with pytest.raises(AirflowFailException, match="503"):
        run()
    assert asked(simulator) == 1


def test_after_a_refusal_a_task_that_is_cleared_asks_again(run: Run, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.refusal("busy", code=1012))
    store = Store()
    with pytest.raises(AirflowFailException, match="busy"):
        run(context={"task_state_store": store})
    assert run(context={"task_state_store": store})["status"] == "FINISHED"
    assert asked(simulator) == 2


def test_a_retry_waits_for_what_the_first_attempt_asked_for(run: Run, simulator: Simulator) -> None:
    simulator.platform.refresh_statuses = ("处理中",) * 30 + ("FINISHED",)
    store = Store()

    with pytest.raises(AirflowTaskTimeout):
        run(context={"task_state_store": store}, timeout=0.2)
    assert run(context={"task_state_store": store})["status"] == "FINISHED"
    assert asked(simulator) == 1
    assert store == {}


def test_before_3_3_a_retry_takes_an_update_since_the_run_began_for_its_own(
    run: Run, simulator: Simulator, dataset: StoredDataset
) -> None:
    began = dataset.utime - timedelta(minutes=1)
    context = {
        "ti": SimpleNamespace(start_date=began, try_number=2, xcom_push=print),
        "dag_run": SimpleNamespace(start_date=began),
    }

    assert run(context=context)["status"] == "FINISHED"
    assert asked(simulator) == 0

    context["dag_run"] = SimpleNamespace(start_date=dataset.utime + timedelta(minutes=1))
    run(context=context)

    assert asked(simulator) == 1


def test_a_dataset_that_is_not_there_is_not_refreshed(simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match="ds7"):
        in_the_worker(ds_id="ds7")
    assert asked(simulator) == 0


def test_where_and_how_come_from_the_arguments(simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match="404"):
        in_the_worker(path="/public-api/elsewhere/{dsId}", method="PUT", token_in="header")
    assert asked(simulator) == 0


def test_or_from_the_connection(simulator: Simulator, connect: Connect) -> None:
    connect(simulator, extra={"max_retries": 0, "refresh_path": "/public-api/elsewhere/{dsId}"})
    with pytest.raises(AirflowFailException, match="404"):
        in_the_worker()
    connect(simulator, extra={"refresh_auth_in": "nowhere"})
    with pytest.raises(AirflowFailException, match="nowhere"):
        in_the_worker()


@pytest.mark.parametrize("event", [None, {}, {"outcome": "done"}, {"outcome": "done", "carried": {}}])
def test_an_event_that_is_not_understood_fails_the_task(event: dict[str, Any] | None) -> None:
    with pytest.raises(AirflowFailException, match="not understood"):
        operator().execute_complete({}, event)


def create(**arguments: Any) -> AnaplatCreateDatasetOperator:
    return AnaplatCreateDatasetOperator(
        task_id="create", account_id="a", name="new", table_query={"table": "numbers"}, poll_interval=0.05,
        wait_for_completion=True, **arguments,
    )  # fmt: skip


@pytest.mark.parametrize("note", [None, "", {}, [], False, {"dataset": {"dsId": "ds1"}}])
def test_a_damaged_note_ends_the_task_for_good_and_nothing_is_sent(simulator: Simulator, note: Any) -> None:
    store = Store(anaplat_refresh=note, anaplat_dataset=note)
    for task in (operator, create):
        with pytest.raises(AirflowFailException, match=r"task state store \(key 'anaplat_\w+'\) cannot be"):
            in_the_worker(task, context={"task_state_store": store})

    assert simulator.ledger == []


def test_a_creation_can_be_waited_for_too(run: Run, simulator: Simulator) -> None:
    simulator.platform.tables["numbers"] = numbers(3)
    found = run(create)

    assert (found["taskId"], found["dsId"], found["status"], found["rowCount"]) == (
        "task-ds2",
        "ds2",
        "FINISHED",
        3,
    )
    assert len(simulator.requests("create_dataset")) == 1


def test_and_fails_for_good_where_it_does(run: Run, simulator: Simulator) -> None:
    with pytest.raises(AirflowFailException, match="dataset ds2 is 'FAILED'"):
        run(create)


def test_the_task_tells_of_an_update_that_fails_without_a_trace(run: Run, simulator: Simulator) -> None:
    simulator.platform.tasks["refresh-ds1"] = [
        {"taskId": "refresh-ds1", "status": "RUNNING"},
        {"taskId": "refresh-ds1", "status": "FAILED", "result": {"error": "source is gone"}},
    ]
    simulator.platform.refresh_statuses = ("FINISHED", "FINISHED") * 100

    with pytest.raises(AirflowFailException, match="source is gone"):
        run(probe="task")
    assert asked(simulator) == 1


def test_the_task_tells_of_success(run: Run, simulator: Simulator, dataset: StoredDataset) -> None:
    simulator.platform.tasks["refresh-ds1"] = [{"taskId": "refresh-ds1", "status": "FINISHED"}]
    found = run(probe="task")
    assert (found["dsId"], found["taskId"]) == ("ds1", "refresh-ds1")
    assert found["utime"] == dataset.fields()["utime"]


def test_a_task_may_be_a_number(run: Run, simulator: Simulator) -> None:
    number = b'{"result": "ok", "response": {"taskId": 12345678901}}'
    simulator.inject("refresh_dataset", replies.Fault(lambda _: replies.Reply(200, number), True))
    simulator.platform.tasks["12345678901"] = [
        {"taskId": 12345678901, "status": "RUNNING"},
        {"taskId": 12345678901, "status": "FINISHED"},
    ]
    assert run(probe="task")["taskId"] == "12345678901"
    assert len(simulator.requests("get_task")) == 2


def test_without_a_task_the_list_is_looked_at(run: Run, simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset(), after_act=True)
    found = run(probe="task")
    assert (found["status"], found["taskId"]) == ("FINISHED", None)
    assert simulator.requests("get_task") == []


@pytest.mark.parametrize("wait", [True, False])
def test_an_accepted_update_that_failed_at_once_fails_the_task(run: Run, simulator: Simulator, wait: bool) -> None:
    failed = b'{"result": "ok", "response": {"taskId": "t", "status": "FAILED", "result": {"error": "no table"}}}'
    simulator.inject("refresh_dataset", replies.content(failed))
    with pytest.raises(AirflowFailException, match=r"dataset ds1 and reports that it failed: .*'no table'"):
        run(wait_for_completion=wait)


def test_an_empty_id_of_a_task_is_none(run: Run, simulator: Simulator) -> None:
    empty = b'{"result": "ok", "response": {"taskId": ""}}'
    simulator.inject("refresh_dataset", replies.Fault(lambda _: replies.Reply(200, empty), True))
    assert run(probe="task")["taskId"] is None


def test_a_retry_sends_again_where_the_user_says_so(simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset())
    store = Store()
    with pytest.raises(errors.AnaplatNotSeenError, match="retry of this task asks again"):
        in_the_worker(in_doubt="resend", context={"task_state_store": store})
    assert in_the_worker(in_doubt="resend", context={"task_state_store": store})["status"] == "FINISHED"
    assert asked(simulator) == 2


def test_a_body_and_an_id_are_templates() -> None:
    assert {"ds_id", "body"} <= set(AnaplatRefreshDatasetOperator.template_fields)
