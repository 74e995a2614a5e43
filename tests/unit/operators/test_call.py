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
def dataset(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"max_retries": 2})
    simulator.platform.add_dataset("sales", TEXTS)


def test_the_response_is_returned_as_it_is(simulator: Simulator) -> None:
    assert call(json={"force": True}) == {"taskId": "refresh-ds1"}
    (request,) = simulator.requests("refresh_dataset")
    assert request.body == {"force": True, "token": simulator.token}
    (column, *_) = call("/public-api/data-source/ds1/columns", token_in="header")
    assert column["name"] == "id"
    assert simulator.requests("get_columns")[0].body == {}


def test_half_a_character_does_not_break_what_is_written_of_it(simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.content(b'{"result": "ok", "response": {"name": "a\\ud800"}}'))
    assert call() == {"name": "a?"}


def test_the_query_and_the_method(simulator: Simulator) -> None:
    simulator.platform.tasks["t1"] = [{"status": "FINISHED"}]
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
def test_a_path_outside_is_refused(simulator: Simulator, path: str) -> None:
    with pytest.raises(AirflowFailException, match="is refused"):
        call(path)
    assert simulator.ledger == []


@pytest.mark.parametrize("arguments", [{"json": "{}"}, {"query": ["a"]}])
def test_what_is_no_object_is_refused(simulator: Simulator, arguments: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match="must be a mapping"):
        call(**arguments)
    assert simulator.ledger == []


def test_a_lost_answer_is_not_asked_for_again(simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset(), after_act=True)
    with pytest.raises(AirflowFailException, match="not known whether the platform carried it out"):
        call()
    assert len(simulator.requests("refresh_dataset")) == 1


def test_unless_the_call_may_be_repeated(simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.reset(), after_act=True)
    assert call(repeatable=True) == {"taskId": "refresh-ds1"}
    assert len(simulator.requests("refresh_dataset")) == 2


def test_a_failure_on_http_200_is_one(simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.refusal("disk full", code=2002))
    with pytest.raises(AirflowFailException, match="disk full"):
        call()


def test_a_failure_that_may_pass_is_retried_by_airflow(simulator: Simulator) -> None:
    simulator.inject("refresh_dataset", replies.http_status(429), times=None)
    with pytest.raises(errors.AnaplatRateLimitedError):
        call()


def test_no_secret_is_shown(simulator: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    simulator.inject("refresh_dataset", replies.refusal("hunter2 is wrong for simulator-token"))
    with pytest.raises(AirflowFailException) as raised:
        call(json={"user": {"password": "hunter2"}})
    assert "hunter2" not in str(raised.value) + caplog.text
    assert simulator.token not in str(raised.value) + caplog.text


def test_no_secret_goes_to_xcom(simulator: Simulator) -> None:
    answer = b'{"result":"ok","response":{"token":"s3cret","users":[{"password":"p4ss","name":"Ann"}],"n":null}}'
    simulator.inject("refresh_dataset", replies.content(answer))
    assert call() == {"token": "***", "users": [{"password": "***", "name": "Ann"}], "n": None}


def test_a_list_needs_no_outputs_of_its_own() -> None:
    assert AnaplatCallOperator(task_id="call", path=REFRESH).multiple_outputs is False
