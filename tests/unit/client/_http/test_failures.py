"""Each fault of the platform and of the network: which exception, how many requests, no secret."""

from __future__ import annotations

import json
import pickle
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import requests
import requests_mock as requests_mock_module
from conftest import LONG

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http import transport
from airflow_provider_anaplat.client._http.retries import seconds_of
from airflow_provider_anaplat.client.metrics import RETRIES
from airflow_provider_anaplat.client.models import CreateDatasetRequest, NewUser, TableQuery
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.replies import Fault, Reply

REQUEST = CreateDatasetRequest(ac_id="account", name="new", table_query=TableQuery(table="t"))

# fault · what a read raises · what a write raises
FAULTS: dict[str, tuple[Fault, type[errors.AnaplatError], type[errors.AnaplatError]]] = {
    "empty": (
        replies.content(b""),
        errors.AnaplatTruncatedAnswerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "html": (
        replies.content(b"<html><body>Log in</body></html>", "text/html"),
        errors.AnaplatInvalidAnswerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "no envelope": (
        replies.content(b"[1, 2]"),
        errors.AnaplatInvalidAnswerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "no result": (
        replies.content(b'{"status": "UP"}'),
        errors.AnaplatInvalidAnswerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "another shape": (
        replies.content(b'{"result": "ok", "response": 7}'),
        errors.AnaplatInvalidAnswerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "cut JSON": (
        replies.content(b'{"result": "ok", "respo'),
        errors.AnaplatTruncatedAnswerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "cut connection": (
        replies.cut(),
        errors.AnaplatTruncatedAnswerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "reset": (replies.reset(), errors.AnaplatConnectionError, errors.AnaplatOutcomeUnknownError),
    "too slow": (replies.slow(LONG), errors.AnaplatTimeoutError, errors.AnaplatOutcomeUnknownError),
    "fail on 200": (
        replies.refusal("same name", code=1012),
        errors.AnaplatRefusedError,
        errors.AnaplatRefusedError,
    ),
    "fail on 500, known": (
        replies.refusal("same name", code=1012, status=500),
        errors.AnaplatRefusedError,
        errors.AnaplatRefusedError,
    ),
    "fail on 500, generic": (
        replies.refusal("it broke", status=500),
        errors.AnaplatServerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "bare 500": (
        replies.http_status(500),
        errors.AnaplatServerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "bare 503": (
        replies.http_status(503, body=b"<html>"),
        errors.AnaplatServerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "429": (
        replies.http_status(429),
        errors.AnaplatRateLimitedError,
        errors.AnaplatRateLimitedError,
    ),
    "401": (
        replies.http_status(401),
        errors.AnaplatAuthenticationError,
        errors.AnaplatAuthenticationError,
    ),
    "403": (replies.http_status(403), errors.AnaplatPermissionError, errors.AnaplatPermissionError),
    "404": (replies.http_status(404), errors.AnaplatNotFoundError, errors.AnaplatNotFoundError),
    "flat shape": (
        replies.flat_refusal("not there", code=1002),
        errors.AnaplatNotFoundError,
        errors.AnaplatNotFoundError,
    ),
    "flat shape without a message": (
        replies.content(b'{"status":1002}'),
        errors.AnaplatNotFoundError,
        errors.AnaplatNotFoundError,
    ),
    "HTTP 500 with a result of its own": (
        Fault(lambda _: Reply(500, b'{"result":"error"}')),
        errors.AnaplatServerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "HTTP 400 with success": (
        Fault(lambda _: Reply(400, b'{"result":"ok","response":[]}')),
        errors.AnaplatInvalidAnswerError,
        errors.AnaplatOutcomeUnknownError,
    ),
    "expired token": (
        replies.refusal("token", code=1018),
        errors.AnaplatAuthenticationError,
        errors.AnaplatAuthenticationError,
    ),
    "no right": (
        replies.refusal("no", code=1004, status=500),
        errors.AnaplatPermissionError,
        errors.AnaplatPermissionError,
    ),
    "redirect": (
        replies.redirect("http://elsewhere.example/login?next=x"),
        errors.AnaplatRedirectError,
        errors.AnaplatRedirectError,
    ),
    "see other": (
        replies.redirect("/public-api/result", 303),
        errors.AnaplatRedirectError,
        errors.AnaplatOutcomeUnknownError,
    ),
}
# None of the others has to be in time.
PATIENCE = {name: 0.2 if name == "too slow" else LONG for name in FAULTS}
REPEATED = {"empty", "cut JSON", "cut connection", "reset", "bare 503", "429"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_read_ends_in_the_exception_that_fits(simulator: Simulator, fault: str) -> None:
    spoil, expected, _ = FAULTS[fault]
    simulator.inject("list_datasets", spoil, times=None)
    client = AnaplatClient(simulator.url, simulator.token, max_retries=0, read_timeout=PATIENCE[fault])

    with pytest.raises(errors.AnaplatError) as raised:
        client.list_datasets()
    assert type(raised.value) is expected
    assert raised.value.operation == "list_datasets"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_is_sent_once_whatever_happens(simulator: Simulator, fault: str) -> None:
    spoil, _, expected = FAULTS[fault]
    simulator.inject("create_dataset", spoil, times=None)
    client = AnaplatClient(simulator.url, simulator.token, max_retries=4, read_timeout=PATIENCE[fault])

    with pytest.raises(errors.AnaplatError) as raised:
        client.create_dataset(REQUEST)
    assert type(raised.value) is expected
    assert len(simulator.requests("create_dataset")) == 1


@pytest.mark.parametrize("fault", sorted(REPEATED))
def test_a_read_is_repeated_where_that_can_help(client: AnaplatClient, simulator: Simulator, fault: str) -> None:
    simulator.inject("list_datasets", FAULTS[fault][0], times=2)
    assert client.list_datasets() == []
    assert len(simulator.requests("list_datasets")) == 3


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - REPEATED - {"too slow"}))
def test_a_read_is_not_repeated_where_that_cannot_help(
    client: AnaplatClient, simulator: Simulator, fault: str
) -> None:
    simulator.inject("list_datasets", FAULTS[fault][0], times=1)
    with pytest.raises(errors.AnaplatError):
        client.list_datasets()
    assert len(simulator.requests("list_datasets")) == 1


def test_retries_end(simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(502), times=None)
    with pytest.raises(errors.AnaplatServerError):
        AnaplatClient(simulator.url, simulator.token, max_retries=2).list_datasets()
    assert len(simulator.requests("list_datasets")) == 3


def test_a_lost_answer_after_the_act_is_an_unknown_outcome(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.inject("create_users", replies.reset(), after_act=True)
    with pytest.raises(errors.AnaplatOutcomeUnknownError, match="not known"):
        client.create_users([NewUser(login_id="ada")])
    assert list(simulator.platform.users) == ["ada"]


def test_a_write_is_repeated_where_no_connection_was_made() -> None:
    with socket.create_server(("127.0.0.1", 0)) as placeholder:
        port = placeholder.getsockname()[1]
    client = AnaplatClient(f"http://127.0.0.1:{port}", "simulator-token", max_retries=30)
    answers: list[Any] = []
    writer = threading.Thread(target=lambda: answers.append(client.create_users([NewUser(login_id="a")])))

    with pytest.raises(errors.AnaplatUnreachableError):
        AnaplatClient(client.base_url, "t", max_retries=0).create_users([NewUser(login_id="a")])

    writer.start()
    with Simulator(port=port) as simulator:
        writer.join(LONG)

    assert [answer.count for answer in answers] == [1]
    assert len(simulator.requests("create_users")) == 1


def test_a_write_that_waits_for_its_next_attempt_is_not_sent_when_its_client_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "wait_before", lambda _: LONG)
    with socket.create_server(("127.0.0.1", 0)) as placeholder:
        port = placeholder.getsockname()[1]
    waits = threading.Event()
    client = AnaplatClient(
        f"http://127.0.0.1:{port}", "simulator-token",
        observer=lambda metric, *_: waits.set() if metric is RETRIES else None,
    )  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.create_users, [NewUser(login_id="a")])
        assert waits.wait(LONG)
        with Simulator(port=port) as simulator:
            client.close()
            with pytest.raises(errors.AnaplatClosedError, match="not sent again"):
                waiting.result(LONG)
    assert simulator.ledger == []


def test_retry_after_decides_when_the_next_attempt_is(
    client: AnaplatClient, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.inject("list_datasets", replies.http_status(429, retry_after="1"), times=1)
    client.list_datasets()
    announced = re.search(r"next one in (\d+\.\d) s", caplog.text)
    assert announced is not None
    assert 1 <= float(announced[1]) <= 2


def test_retry_after_is_read_as_seconds_or_as_a_date() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True)
    assert seconds_of("17") == 17
    assert seconds_of(in_a_minute) == pytest.approx(60, abs=5)
    assert seconds_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert seconds_of("86400") == seconds_of("Fri, 31 Dec 2199 23:59:59 GMT") == 120
    assert seconds_of("soon") is None
    assert seconds_of("²") is None
    assert seconds_of("Fri, 31 Dec 9999 23:59:59 -1200") is None
    assert seconds_of(None) is None


# The three forms of HTTP; the last one is in UTC, too.
DATES = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"]


@pytest.fixture
def in_shanghai(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("form", DATES)
@pytest.mark.usefixtures("in_shanghai")
def test_a_date_is_the_same_moment_wherever_it_is_read(
    client: AnaplatClient, simulator: Simulator, form: str
) -> None:
    assert seconds_of(f"{datetime.now(UTC) + timedelta(minutes=1):{form}}") == pytest.approx(60, abs=5)

    date = f"{datetime.now(UTC):{form}}"
    answer = Reply(200, b'{"result": "ok", "response": []}', {"content-type": "application/json", "date": date})
    simulator.inject("list_pages", Fault(lambda _: answer))
    client.list_pages()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert abs(client.earliest_platform_time(moment) - moment) < timedelta(seconds=10)


def test_an_error_carries_retry_after(simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.http_status(503, retry_after="9"))
    with pytest.raises(errors.AnaplatServerError) as raised:
        AnaplatClient(simulator.url, simulator.token, max_retries=0).list_datasets()
    assert raised.value.retry_after == 9
    assert raised.value.status == 503


def test_a_redirect_is_not_followed(client: AnaplatClient, simulator: Simulator) -> None:
    with Simulator() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            simulator.inject("list_datasets", replies.redirect(f"{elsewhere.url}/public-api/x", status))
            with pytest.raises(errors.AnaplatRedirectError, match=elsewhere.url.removeprefix("http://")):
                client.list_datasets()
    assert elsewhere.ledger == []


def test_the_platforms_code_and_message_are_kept(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.inject("list_datasets", replies.refusal("没有权限", code=1004))
    with pytest.raises(errors.AnaplatPermissionError) as raised:
        client.list_datasets()
    error = raised.value
    assert (error.status, error.code, error.platform_message) == (200, 1004, "没有权限")
    assert "The platform says: 没有权限 (code 1004). " in str(error)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"error_code": 1004, "error_message": "no"}, "no"),
        ({"error_code": 1004, "error_message": "no", "error": "Forbidden"}, "no"),
        ({"error_code": 1004, "error": "Forbidden"}, "Forbidden"),
        ({"error_code": 1004, "error_message": ""}, None),
        ({"status": 1004, "message": "no"}, "no"),
        ({"status": 1004, "message": "no", "error": "Forbidden"}, "no"),
        ({"status": 1004, "error": "Forbidden"}, "Forbidden"),
        ({"status": "1004", "message": ["no"]}, '["no"]'),
    ],
)
def test_the_flat_shapes_are_read_too(
    client: AnaplatClient, simulator: Simulator, answer: dict[str, Any], message: str | None
) -> None:
    simulator.inject("list_datasets", replies.content(json.dumps(answer).encode()))
    with pytest.raises(errors.AnaplatPermissionError) as raised:
        client.list_datasets()
    assert (raised.value.code, raised.value.platform_message) == (1004, message)


@pytest.mark.parametrize(
    "fault",
    [
        lambda echo: replies.content(f"<html>{echo}</html>".encode(), "text/html"),
        lambda echo: replies.refusal(f"bad {echo}", code=1012),
        lambda echo: replies.http_status(500, body=echo.encode()),
        lambda echo: replies.content(f'{{"result": "ok", "response": {{"{echo}": 1}}}}'.encode()),
    ],
)
def test_no_message_shows_a_secret_that_the_platform_echoes(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, fault: Callable[[str], Fault]
) -> None:
    password = 'pass"wörd'
    simulator.inject("create_users", fault(f"{simulator.token} {password}"), times=None)
    client = AnaplatClient(simulator.url, simulator.token, max_retries=1)

    with pytest.raises(errors.AnaplatError) as raised:
        client.create_users([NewUser(login_id="ada", password=password)])

    shown = str(raised.value) + str(raised.value.excerpt) + str(raised.value.platform_message) + caplog.text
    assert simulator.token not in shown
    assert password not in shown
    assert "***" in shown


def test_no_log_line_of_a_retry_shows_the_token(
    client: AnaplatClient, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    simulator.inject("list_datasets", replies.http_status(503, body=simulator.token.encode()))
    client.list_datasets()
    assert "attempt 1 of 5" in caplog.text
    assert simulator.token not in caplog.text


@pytest.mark.parametrize(
    ("base_url", "layer"),
    [
        ("http://no-such-host.invalid", "DNS"),
        ("http://127.0.0.1:1", "TCP"),
        ("https://127.0.0.1:{port}", "TLS"),
    ],
)
def test_the_layer_that_failed_is_named(simulator: Simulator, base_url: str, layer: str) -> None:
    port = simulator.url.rpartition(":")[2]
    with pytest.raises(errors.AnaplatConnectionError) as raised:
        AnaplatClient(base_url.format(port=port), "t", max_retries=0).list_datasets()
    assert raised.value.layer == layer


def test_what_was_compressed_badly_is_truncated(requests_mock: requests_mock_module.Mocker) -> None:
    requests_mock.post(
        "http://platform/public-api/data-source/list",
        exc=requests.exceptions.ContentDecodingError("bad gzip"),
    )
    with pytest.raises(errors.AnaplatTruncatedAnswerError):
        AnaplatClient("http://platform", "t", max_retries=0).list_datasets()


def test_exceptions_can_be_pickled() -> None:
    error = errors.AnaplatServerError("it broke", operation="list_datasets", status=503, retry_after=2.0)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))
