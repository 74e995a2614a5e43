from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.operators.datasets import AnaplatCreateDatasetOperator
from airflow_provider_anaplat.simulator import Simulator, replies

Connect = Callable[..., None]


def create(**arguments: Any) -> Any:
    given: dict[str, Any] = {
        "task_id": "create",
        "account_id": "warehouse",
        "name": "sales",
        "table_query": {"query_type": "table", "table": "sales"},
    }
    return AnaplatCreateDatasetOperator(**{**given, **arguments}).execute({})


def test_the_task_is_returned_under_the_platforms_names(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    assert create() == {"taskId": "task-ds1", "dsId": "ds1", "status": "已提交", "result": "处理中"}


def test_a_task_may_be_a_number(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    answer = b'{"result": "ok", "response": {"dsId": "d", "taskId": 12345678901, "status": "x"}}'
    simulator.inject("create_dataset", replies.content(answer))
    assert create(wait_for_completion=False)["taskId"] == "12345678901"


def test_every_argument_has_its_field(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    create(
        parent_dir_id="dir",
        cron={"cron_type": "DAILY", "value": "0"},
        real_time_update={"enabled": True, "interval": 600, "disable_cache": False},
        primary_key_columns=["id"],
        incremental_update={"enabled": True, "query": "select 1"},
        extra_fields={"type": "Platform-Index", "nested": {"a": None}},
        source_type="OTHER",
    )
    (request,) = simulator.requests("create_dataset")

    assert request.body == {
        "token": simulator.token,
        "acId": "warehouse",
        "name": "sales",
        "tableQuery": {"queryType": "table", "table": "sales"},
        "sourceType": "OTHER",
        "parentDirId": "dir",
        "cron": {"cronType": "DAILY", "value": "0"},
        "realTimeUpdateSetting": {"enabled": True, "interval": 600, "disableCache": False},
        "primaryKeyColumns": ["id"],
        "platformIndexIncrementalUpdateSetting": {"enabled": True, "query": "select 1"},
        "type": "Platform-Index",
        "nested": {"a": None},
    }


def test_what_is_not_given_is_not_sent(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    create()

    assert set(simulator.requests("create_dataset")[0].body) == {
        "token",
        "acId",
        "name",
        "tableQuery",
        "sourceType",
    }


def test_extra_fields_win(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    create(extra_fields={"sourceType": "OTHER", "acId": "other", "token": "not this"})
    body = simulator.requests("create_dataset")[0].body
    assert (body["sourceType"], body["acId"], body["token"]) == ("OTHER", "other", simulator.token)
    assert not {"source_type", "ac_id"} & set(body)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"name": ""}, "name"),
        ({"account_id": None}, "ac_id"),
        ({"table_query": "select 1"}, "table_query"),
        ({"primary_key_columns": "id"}, "primary_key_columns"),
    ],
)
def test_an_unusable_description_is_named_and_not_sent(
    connect: Connect, simulator: Simulator, arguments: dict[str, Any], problem: str
) -> None:
    connect(simulator)
    with pytest.raises(AirflowFailException, match=problem):
        create(**arguments)
    assert simulator.ledger == []


@pytest.mark.parametrize(
    "answer",
    [
        b'{"result": "ok", "response": {"dsId": "d", "status": "FAILED", "result": null}}',
        b'{"result": "ok", "response": {"dsId": "d", "status": "x", "result": "FAILED"}}',
        b'{"result": "ok", "response": {"dsId": "d", "status": "x", "result": {"error": "no table"}}}',
    ],
)
def test_an_accepted_creation_that_failed_at_once_fails_the_task(
    connect: Connect, simulator: Simulator, answer: bytes
) -> None:
    connect(simulator)
    simulator.inject("create_dataset", replies.content(answer))
    with pytest.raises(AirflowFailException, match="reports that it failed"):
        create()


@pytest.mark.parametrize(
    ("status", "result", "failed"),
    [("失败", None, True), ("已提交", " 失败 ", True), ("FAILED", None, True), ("已提交", "处理中", False)],
)
def test_it_fails_in_the_words_that_the_task_names_and_in_those_that_are_known(
    connect: Connect, simulator: Simulator, status: str, result: str | None, failed: bool
) -> None:
    connect(simulator)
    response = {"result": "ok", "response": {"dsId": "d", "status": status, "result": result}}
    simulator.inject("create_dataset", replies.content(json.dumps(response).encode()))
    with pytest.raises(AirflowFailException, match="reports that it failed") if failed else nullcontext():
        create(failure_states=["失败"], wait_for_completion=False)


def test_what_was_created_without_an_answer_is_adopted(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    simulator.inject("create_dataset", replies.reset(), after_act=True, times=None)
    assert create()["dsId"] == "ds1"
    assert len(simulator.requests("create_dataset")) == 1
