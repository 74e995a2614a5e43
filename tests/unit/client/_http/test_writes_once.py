"""A write leaves once, also where the answer, or the caller, is stranger than a fault of the simulator."""

from __future__ import annotations

import json
import math
import socket
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.servers import read_request, serving

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http.redaction import without_secrets
from airflow_provider_anaplat.client.models import CreateDatasetRequest, NewUser, TableQuery
from airflow_provider_anaplat.errors import AnaplatUsersInDoubtError
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.state import FolderStateStore
from airflow_provider_anaplat.users.ledger import UserLedger
from airflow_provider_anaplat.users.provision import Provisioning, Rules
from airflow_provider_anaplat.users.sources import ListSource

OK = b'{"result": "ok", "response": "1 users created"}'


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers every request with these bytes, and what it was sent."""
    received: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        received.append(read_request(connection))
        connection.sendall(answer)

    with serving(handle) as port:
        yield f"http://127.0.0.1:{port}", received


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 12\r\n\r\n" + OK,
        b"HTTP/1.1 302 Found\r\nLocation: http://[x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://\xff\xfe/\r\nContent-Length: 0\r\n\r\n",
        b"not HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"res",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"[" * 200_000,
        b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n" % len(OK) + OK,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    ],
)  # fmt: skip
def test_a_strange_answer_leaves_the_outcome_unknown(answer: bytes) -> None:
    with answering(answer) as (url, received), pytest.raises(errors.AnaplatError) as raised:
        AnaplatClient(url, "t0ken", read_timeout=5).create_users([NewUser(login_id="a")])
    assert isinstance(raised.value, errors.AnaplatOutcomeUnknownError | errors.AnaplatRedirectError)
    assert len(received) == 1


NESTED = [99, 150, 300, 600, 900, 990, 1_100, 100_000]


def nested(depth: int) -> bytes:
    body = json.dumps({"result": "ok", "response": {"dsId": "d", "taskId": "t", "result": {"deep": []}}})
    return http(200, body.replace("[]", "[" * depth + "]" * depth))


@pytest.mark.parametrize("depth", NESTED)
@pytest.mark.parametrize("write", ["create_dataset", "refresh_dataset", "call"])
def test_an_answer_that_is_nested_deep_can_be_kept_or_leaves_the_outcome_unknown(write: str, depth: int) -> None:
    request = CreateDatasetRequest(ac_id="a", name="n", table_query=TableQuery(table="t"))
    with (
        answering(nested(depth)) as (url, received),
        closing(AnaplatClient(url, "t0ken")) as client,
        suppress(errors.AnaplatOutcomeUnknownError),
    ):
        if write == "create_dataset":
            client.create_dataset(request).model_dump(mode="json")
        elif write == "refresh_dataset":
            client.refresh_dataset("d")
        else:
            without_secrets(client.call("/public-api/x"))
    assert len(received) == 1


@pytest.mark.parametrize("depth", NESTED)
def test_a_read_of_what_is_nested_deep_is_an_answer_that_cannot_be_read(depth: int) -> None:
    with (
        answering(nested(depth)) as (url, _),
        closing(AnaplatClient(url, "t0ken", max_retries=0)) as client,
        pytest.raises(errors.AnaplatInvalidAnswerError),
    ):
        client.call("/public-api/x", repeatable=True)


def test_what_is_nested_as_deep_as_any_platform_has_it_is_read() -> None:
    with answering(nested(60)) as (url, _), closing(AnaplatClient(url, "t0ken")) as client:
        assert client.call("/public-api/x")["dsId"] == "d"


def http(status: int, body: bytes | str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    return b"HTTP/1.1 %d Whatever\r\nContent-Length: %d\r\n\r\n%b" % (status, len(content), content)


NO_WORDS: list[Any] = [True, False, 0, 1, [], {}, None]
UNCLEAR = [
    *(http(200, json.dumps({"result": word})) for word in ("OK", "ok ", "success", "处理中", "partial", "")),
    *(http(200, json.dumps({"result": word})) for word in NO_WORDS),
    http(200, '{"result": "fail"}'),
    http(200, '{"result": "fail", "error": {"message": "no"}}'),
    http(200, '{"result": "fail", "error": {"status": 5001, "message": "no"}}'),
    http(200, '{"result": "fail", "error": {"status": true, "message": "no"}}'),
    http(200, '{"result": "fail", "error": {"status": 40002, "message": "cancelled"}}'),
    http(200, '{"error_code": 0}'),
    http(200, '{"error_code": 77, "error_message": "no"}'),
    http(200, '{"status": 500, "message": "no"}'),
    http(200, '{"taskId": "t", "dsId": "d", "status": "处理中", "result": null}'),
    http(200, '[{"result": "fail"}]'),
    http(200, '{"result": "ok", "response": "1 users created", "result": "fail", "error": {"status": 1012}}'),
    http(200, '{"result": "fail", "error": {"status": 40002, "status": 1012}}'),
    http(200, '{"result": "fail", "error": {"status": 1012}, "response": "1 users created"}'),
    http(200, '{"error_code": 1012, "response": "1 users created"}'),
    *(http(status, "<html>no</html>") for status in (400, 402, 406, 409, 410, 418, 422, 451, 499, 500, 599, 999)),
    *(http(status, '{"result": "fail", "error": {"status": 77}}') for status in (400, 409, 500)),
    *(http(status, '{"result": "ok", "response": "1 users created"}') for status in (201, 206, 401, 404, 500)),
    *(http(status, "") for status in (202, 205, 300, 303, 304, 305, 399)),
]
REFUSED = [
    *(http(status, '{"result": "fail", "error": {"status": 1012}}') for status in (200, 400, 500)),
    http(200, '{"result": "fail", "error": {"status": "1004", "message": "no"}}'),
    http(200, '{"result": "fail", "error": {"status": 1012}, "response": null}'),
    http(200, '{"error_code": 2002, "error_message": "no"}'),
    *(http(status, '{"status": 1018, "message": "Not Login"}') for status in (200, 401)),
    *(http(status, "<html>no</html>") for status in (401, 403, 404, 405, 413, 429)),
    b"HTTP/1.1 308 Elsewhere\r\nLocation: https://elsewhere.example/\r\nContent-Length: 0\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("isolate", [True, False])
@pytest.mark.parametrize("answer", UNCLEAR)
def test_what_is_no_clear_answer_is_sent_once_and_remembered(answer: bytes, isolate: bool, tmp_path: Path) -> None:
    users = ListSource([{"loginId": login_id, "password": "p"} for login_id in "abcd"])
    with answering(answer) as (url, received), closing(AnaplatClient(url, "t0ken")) as client:
        for _ in range(2):  # the second time as a task that was cleared
            with pytest.raises(AnaplatUsersInDoubtError):
                Provisioning(client, UserLedger(FolderStateStore(tmp_path)), Rules(isolate_rejected=isolate)).run(
                    users
                )

    assert len(received) == 1


@pytest.mark.parametrize("answer", UNCLEAR)
def test_no_dataset_is_made_again_after_no_clear_answer(answer: bytes) -> None:
    request = CreateDatasetRequest(ac_id="a", name="n", table_query=TableQuery(table="t"))
    with answering(answer) as (url, received), pytest.raises(errors.AnaplatOutcomeUnknownError):
        AnaplatClient(url, "t0ken").create_dataset(request)
    assert len(received) == 1


@pytest.mark.parametrize("answer", REFUSED)
def test_a_clear_refusal_is_no_unknown_outcome(answer: bytes) -> None:
    refused = (errors.AnaplatRefusedError, errors.AnaplatRedirectError)
    with answering(answer) as (url, received), pytest.raises(refused):
        AnaplatClient(url, "t0ken").create_users([NewUser(login_id="a")])
    assert len(received) == 1


def test_what_the_caller_was_handling_does_not_matter(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.inject("create_users", replies.reset(), after_act=True)
    nowhere = AnaplatClient("http://127.0.0.1:1", "t", max_retries=0)
    try:
        nowhere.create_users([NewUser(login_id="a")])
    except errors.AnaplatUnreachableError:
        with pytest.raises(errors.AnaplatOutcomeUnknownError):
            client.create_users([NewUser(login_id="a")])

    assert len(simulator.requests("create_users")) == 1


@pytest.mark.parametrize("value", [math.nan, date(2024, 1, 1), b"bytes", {1, 2}])
def test_what_json_cannot_hold_is_not_sent(client: AnaplatClient, simulator: Simulator, value: Any) -> None:
    with pytest.raises(errors.AnaplatRequestError, match="JSON"):
        client.call("/public-api/page/list", json={"value": value})
    assert simulator.ledger == []


SECRETS = ("t0ken-s3cret", 'pass"wörd', "pr0xy-pass")


@pytest.mark.parametrize(
    "echo",
    [
        '{"result": "ok", "response": {"echo": ["t0ken-s3cret", "pass\\"wörd"]}}',
        '{"result": "ok", "response": "nobody; pass\\"wörd is bad"}',
        '{"result": "fail", "error": {"status": 1012, "message": "t0ken-s3cret pass\\"wörd"}}',
        '<html>t0ken-s3cret pass"wörd</html>',
        '{"result": "fail", "error": {"status": 1012, "message": {"m": "bad pass\\"wörd"}}}',
        '{"result": "fail", "error": {"message": "body: {\\"password\\": \\"pass\\\\\\"wörd\\"}"}}',
        " " * 3993 + "t0ken-s3cret",
    ],
)
def test_no_traceback_shows_a_secret(simulator: Simulator, echo: str) -> None:
    simulator.inject("create_users", replies.content(echo.encode()))
    simulator.token = SECRETS[0]
    client = AnaplatClient(simulator.url, SECRETS[0])
    try:
        shown = repr(client.create_users([NewUser(login_id="a", password=SECRETS[1])]))
    except errors.AnaplatError as error:
        shown = traceback.format_exc() + repr(vars(error))

    for secret in (*SECRETS, SECRETS[1].replace('"', '\\"'), "p\\u00f6", "wörd", "t0ken-"):
        assert secret not in shown


@pytest.mark.parametrize(
    "written", ["a%2Fb+c%22d", "a/b%20c%22d", "a%2Fb%20c%22d", "a%2fb%20c%22d", "a%2fb+c%22d"]
)
def test_a_password_is_masked_as_it_stands_in_addresses(simulator: Simulator, written: str) -> None:
    simulator.inject("create_users", replies.refusal(f"{written} is bad", code=1012))
    with pytest.raises(errors.AnaplatError, match=r"\*\*\* is bad"):
        AnaplatClient(simulator.url, simulator.token).create_users([NewUser(login_id="a", password='a/b c"d')])


def test_no_traceback_shows_a_parameter_or_a_proxys_password(simulator: Simulator) -> None:
    client = AnaplatClient(
        simulator.url, "t", max_retries=0, proxies={"http": f"http://user:{SECRETS[2]}@127.0.0.1:1"}
    )

    with pytest.raises(errors.AnaplatError):
        client.list_datasets()

    try:
        client.call("/public-api/x", params={"token": SECRETS[0]})
    except errors.AnaplatError:
        shown = traceback.format_exc()

    assert SECRETS[0] not in shown
    assert SECRETS[2] not in shown


@pytest.mark.parametrize(
    "settings",
    [{"verify": "/no/such/ca.pem"}, {"cert": "/no/such/cert.pem"}, {"cert": (__file__, "/no/such/key.pem")}],
)
def test_a_file_that_is_missing_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(errors.AnaplatSettingsError, match="there is no file /no/such"):
        AnaplatClient("https://bi.example.com", "t", **settings)


@pytest.mark.parametrize("length", [40, 4000])
@pytest.mark.parametrize("name", ["verify", "cert"])
def test_a_key_in_place_of_its_path_is_not_shown(name: str, length: int) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQ' * length}\n-----END PRIVATE KEY-----\n"
    for given in (key, (__file__, key)) if name == "cert" else (key,):
        with pytest.raises(errors.AnaplatSettingsError, match=f"{name} holds .*must be the path") as raised:
            AnaplatClient("https://bi.example.com", "t", **{name: given})  # type: ignore[arg-type]  # either name
        assert "MIIEvQ" not in str(raised.value)


def test_a_name_that_no_file_can_have_is_none() -> None:
    with pytest.raises(errors.AnaplatSettingsError, match="there is no file x"):
        AnaplatClient("https://bi.example.com", "t", verify="x" * 4000)


@pytest.mark.parametrize("form", ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"])
@pytest.mark.parametrize("files", ["one file", "two files"])
def test_a_key_whose_password_openssl_would_ask_for_is_named(tmp_path: Path, form: str, files: str) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_text("-----BEGIN CERTIFICATE-----\n")
    key.write_text(f"-----BEGIN CERTIFICATE-----\n{form}\n")
    cert: Any = str(key) if files == "one file" else (str(certificate), str(key))
    with pytest.raises(errors.AnaplatSettingsError, match=r"key\.pem is encrypted"):
        AnaplatClient("https://bi.example.com", "t", cert=cert)


def test_a_proxy_that_is_no_address_is_named() -> None:
    with pytest.raises(errors.AnaplatSettingsError, match="given for https is no address") as raised:
        AnaplatClient("https://bi.example.com", "t", proxies={"https": "http://user:p[ass@proxy"})
    assert "p[ass" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_file_that_is_there_is_taken() -> None:
    AnaplatClient("https://bi.example.com", "t", cert=(__file__, str(Path(__file__))))


def test_an_odd_moment_is_an_invalid_answer(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.subscriptions["s"] = {"scId": "s", "lastSendTime": 10**20}
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="lastSendTime"):
        client.get_subscriptions(["s"])


def test_an_empty_moment_is_none(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.pages = [{"pgId": "p", "ctime": ""}]
    assert client.list_pages()[0].ctime is None
