"""Any operation of the platform, with the client's errors and secrecy."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from conftest import TEXTS

from airflow_provider_anaplat import errors
from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.operators.call import AnaplatCallOperator
from airflow_provider_anaplat.simulator import Simulator, replies

Connect = Callable[..., None]
REFRESH = "/public-api/data-source/ds1/refresh"


def call(path: str = REFRESH, **arguments: Any) -> Any:
    return AnaplatCallOperator(task_id="call", path=path, **arguments).execute({})


@pytest.fixture(autouse=True)
def dataset(connect: Connect, platform: Simulator) -> None:
    connect(platform, extra={"max_retries": 2})
    platform.platform.add_dataset("sales", TEXTS)


def test_the_response_is_returned_as_it_is(platform: Simulator) -> None:
    assert call(json={"force": True}) == {"taskId": "refresh-ds1"}
    (request,) = platform.requests("refresh_dataset")
    assert request.body == {"force": True, "token": platform.token}
    (column, *_) = call("/public-api/data-source/ds1/columns", token_in="header")
    assert column["name"] == "id"
    assert platform.requests("get_columns")[0].body == {}


def test_half_a_character_does_not_break_what_is_written_of_it(platform: Simulator) -> None:
    platform.inject("refresh_dataset", replies.content(b'{"result": "ok", "response": {"name": "a\\ud800"}}'))
    assert call() == {"name": "a?"}


def test_the_query_and_the_method(platform: Simulator) -> None:
    platform.platform.tasks["t1"] = [{"status": "FINISHED"}]
    status: dict[str, Any] = {
        "path": "/public-api/task/status",
        "method": "GET",
        "query": {"taskId": "t1"},
        "token_in": "query",
    }
    assert call(**status)["status"] == "FINISHED"


@pytest.mark.parametrize(
    "path",
    ["/admin/users", "public-api/x", "/public-api/../admin", "/public-api/%2e%2e/admin", "/public-api/x?y=1"],
)
def test_a_path_outside_is_refused(platform: Simulator, path: str) -> None:
    with pytest.raises(AirflowFailException, match="is refused"):
        call(path)
    assert platform.ledger == []


@pytest.mark.parametrize("arguments", [{"json": "{}"}, {"query": ["a"]}])
def test_what_is_no_object_is_refused(platform: Simulator, arguments: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match="must be an object"):
        call(**arguments)
    assert platform.ledger == []


def test_a_lost_answer_is_not_asked_for_again(platform: Simulator) -> None:
    platform.inject("refresh_dataset", replies.reset(), after_act=True)
    with pytest.raises(AirflowFailException, match="carried it out is not known"):
        call()
    assert len(platform.requests("refresh_dataset")) == 1


def test_unless_the_call_may_be_repeated(platform: Simulator) -> None:
    platform.inject("refresh_dataset", replies.reset(), after_act=True)
    assert call(repeatable=True) == {"taskId": "refresh-ds1"}
    assert len(platform.requests("refresh_dataset")) == 2


def test_a_failure_on_http_200_is_one(platform: Simulator) -> None:
    platform.inject("refresh_dataset", replies.refusal("disk full", code=2002))
    with pytest.raises(AirflowFailException, match="disk full"):
        call()


def test_a_failure_that_may_pass_is_retried_by_airflow(platform: Simulator) -> None:
    platform.inject("refresh_dataset", replies.http_status(429), times=None)
    with pytest.raises(errors.AnaplatRateLimitedError):
        call()


def test_no_secret_is_shown(platform: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    platform.inject("refresh_dataset", replies.refusal("hunter2 is wrong for simulator-token"))
    with pytest.raises(AirflowFailException) as raised:
        call(json={"user": {"password": "hunter2"}})
    assert "hunter2" not in str(raised.value) + caplog.text
    assert platform.token not in str(raised.value) + caplog.text


def test_no_secret_goes_to_xcom(platform: Simulator) -> None:
    answer = b'{"result":"ok","response":{"token":"s3cret","users":[{"password":"p4ss","name":"Ann"}],"n":null}}'
    platform.inject("refresh_dataset", replies.content(answer))
    assert call() == {"token": "***", "users": [{"password": "***", "name": "Ann"}], "n": None}


def test_a_list_needs_no_outputs_of_its_own() -> None:
    assert AnaplatCallOperator(task_id="call", path=REFRESH).multiple_outputs is False
