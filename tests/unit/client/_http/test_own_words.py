"""The platform's own words, wherever they go: no secret that they repeat, and no more than anybody reads."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from support.servers import read_request, serving

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import CreateDatasetRequest, NewUser, TableQuery
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.waiting.conditions import DatasetDone

LONG = "word " * 100_000
REQUEST = CreateDatasetRequest(ac_id="a", name="n", table_query=TableQuery(table="t"))


def answer(response: Any) -> replies.Fault:
    return replies.content(json.dumps({"result": "ok", "response": response}).encode())


@pytest.fixture
def client(simulator: Simulator) -> AnaplatClient:
    return AnaplatClient(
        simulator.url, "the-t0ken-of-an-application", user_token="a-t0ken/that-is~long", max_retries=0
    )


# operation · what asks for it · its answer, around a word
WORDS: dict[str, tuple[Callable[[AnaplatClient], Any], Callable[[str], Any]]] = {
    "list_datasets": (
        lambda client: client.list_datasets(),
        lambda word: [{"dsId": word, "name": word, "status": word, "config": {word: [word]}}],
    ),
    "find_datasets": (
        lambda client: [client.find_datasets(()).matching(lambda _: True), client.find_datasets(()).get("ds1")],
        lambda word: [{"dsId": word, "name": word}, {"dsId": "ds1", "name": word, "status": word}],
    ),
    "get_columns": (
        lambda client: client.get_columns("ds1"),
        lambda word: [{"name": word, "fdType": word, "annotation": word}],
    ),
    "create_dataset": (
        lambda client: client.create_dataset(REQUEST),
        lambda word: {"dsId": "ds1", "status": word, "result": word},
    ),
    "list_authorized_datasets": (
        lambda client: client.list_authorized_datasets("u1"),
        lambda word: [{"id": word, "name": word, "sources": [{"name": word}]}],
    ),
    "list_pages": (lambda client: client.list_pages(), lambda word: [{"pgId": word, "name": word}]),
    "create_users": (lambda client: client.create_users([NewUser(login_id="a")]), lambda word: f"1 {word}"),
    "get_subscriptions": (
        lambda client: client.get_subscriptions(["s1"]),
        lambda word: [{"scId": word, "name": word}],
    ),
    "find_subscriptions": (
        lambda client: client.find_subscriptions(["s1"]).get("s1"),
        lambda word: [{"scId": "s1", "name": word, "lastSendStatus": word}],
    ),
    "get_users": (lambda client: client.find_users(["a"]), lambda word: {"userExist": [word]}),
    "get_task": (
        lambda client: client.find_task(["t1"]).get("t1"),
        lambda word: {"taskId": "t1", "status": word, "result": {"error": word}},
    ),
    "list_cards": (
        lambda client: client.list_cards("p1"),
        lambda word: {"cards": [{"cdId": "cd1", "name": word, "cdType": word}]},
    ),
}
OPERATION = {"find_datasets": "list_datasets", "find_subscriptions": "get_subscriptions"}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("secret", ["the-t0ken-of-an-application", "a-t0ken/that-is~long"])
def test_no_record_repeats_a_secret(client: AnaplatClient, simulator: Simulator, name: str, secret: str) -> None:
    ask, around = WORDS[name]
    simulator.inject(OPERATION.get(name, name), answer(around(f"<{secret}>")), times=None)
    shown = repr(ask(client))
    assert secret not in shown
    assert "<***>" in shown


@pytest.mark.parametrize("name", WORDS)
def test_what_repeats_none_is_as_it_came(client: AnaplatClient, simulator: Simulator, name: str) -> None:
    ask, around = WORDS[name]
    simulator.inject(OPERATION.get(name, name), answer(around("50% of a\\b &amp; c")), times=None)
    assert repr("50% of a\\b &amp; c")[1:-1] in repr(ask(client))


def test_rows_are_the_users_own(client: AnaplatClient, simulator: Simulator) -> None:
    row = ["the-t0ken-of-an-application"]
    columns = [{"name": "a", "fdType": "STRING"}]
    simulator.inject("read_rows", answer({"dsId": "ds1", "columns": columns, "preview": [row]}))
    assert client.read_rows("ds1").preview == [row]


def test_what_is_short_is_left_in_data(simulator: Simulator) -> None:
    simulator.inject("create_users", answer("1 sales"))
    simulator.inject("list_datasets", answer([{"dsId": "sales"}]))
    with closing(AnaplatClient(simulator.url, "sales")) as client:
        assert client.list_datasets()[0].ds_id == "sales"
        assert client.create_users([NewUser(login_id="a")]).message == "1 ***"


def test_a_body_of_another_encoding_hides_nothing(client: AnaplatClient, simulator: Simulator) -> None:
    body = json.dumps({"result": "ok", "response": [{"pgId": "the-t0ken-of-an-application"}]})
    simulator.inject("list_pages", replies.content(body.encode("utf-16")))
    assert client.list_pages()[0].pg_id == "***"


@pytest.mark.parametrize("result", [LONG, {"error": LONG}, {"more": LONG}, {"error": [LONG] * 3}, {LONG: LONG}])
def test_what_is_said_of_a_task_is_bounded(client: AnaplatClient, simulator: Simulator, result: Any) -> None:
    said = answer({"dsId": "ds1", "taskId": "t1", "status": LONG, "result": result})
    simulator.inject("get_task", said)
    simulator.inject("create_dataset", said)
    task, created = client.find_task(["t1"]).get("t1"), client.create_dataset(REQUEST)
    assert task is not None
    assert bool(task.error) is (isinstance(result, dict) and "error" in result)
    for told in (task, created):
        assert len(json.dumps([told.status, told.result])) < 5_000
        assert type(told.result) is type(result)


def test_what_a_wait_sees_is_bounded(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.inject("list_datasets", answer([{"dsId": "ds1", "name": LONG, "status": LONG}]))
    simulator.inject("list_datasets", answer([{"dsId": "ds1", "name": LONG, "status": "FINISHED"}]))
    condition = DatasetDone(ds_id="ds1")
    assert len(condition.judge(client.find_datasets(["ds1"])).seen) < 1_000
    assert len(json.dumps(condition.judge(client.find_datasets(["ds1"])).result)) < 3_000


def test_what_the_platform_says_of_users_is_bounded(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.inject("create_users", answer(f"1 {LONG}"))
    created = client.create_users([NewUser(login_id="a")])
    assert (created.count, len(created.message)) == (1, 2_001)


@pytest.mark.parametrize(
    "fault",
    [
        replies.redirect(f"https://{'a' * 60_000}.example/"),
        replies.refusal(LONG, code=1012),
        answer([{LONG: 1}]),
        answer({LONG: LONG}),
        answer([{"dsId": {LONG: 1}}]),
        answer([{"dsId": "a", "rowCount": {LONG: 1}}]),
        replies.content(LONG.encode()),
        replies.http_status(400, body=LONG.encode()),
    ],
)
def test_an_error_is_bounded(client: AnaplatClient, simulator: Simulator, fault: replies.Fault) -> None:
    simulator.inject("list_datasets", fault)
    with pytest.raises(errors.AnaplatError) as raised:
        client.list_datasets()
    assert len(str(raised.value)) < 5_000
    assert len(json.dumps(vars(raised.value))) < 5_000


@pytest.mark.parametrize(
    "line", [b"the-t0ken-of-an-application " * 2_000, b"HTTP/1.1 the-t0ken-of-an-application"]
)
def test_a_status_line_that_is_no_http_is_masked_and_bounded(line: bytes) -> None:
    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(line + b"\r\n\r\n")

    with serving(handle) as port, pytest.raises(errors.AnaplatError) as raised:
        AnaplatClient(f"http://127.0.0.1:{port}", "the-t0ken-of-an-application", max_retries=0).list_datasets()
    assert "t0ken" not in str(raised.value)
    assert len(str(raised.value)) < 1_000


def test_a_name_that_several_have_is_bounded(client: AnaplatClient, simulator: Simulator) -> None:
    listed = [{"dsId": f"{number}{LONG}", "name": "n", "parentDirId": LONG} for number in range(3)]
    simulator.inject("list_datasets", answer(listed))
    with pytest.raises(errors.AnaplatDatasetExistsError) as raised:
        client.find_dataset("n")
    assert len(str(raised.value)) < 3_000
