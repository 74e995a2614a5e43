"""Signing in for a user token: when it is renewed, how often, and what nobody sees of it."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG, TEXTS

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http.envelope import Answer
from airflow_provider_anaplat.client.sign_in import SignIn, UserToken, read_user_token
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.platform import DEFAULT_LOGIN
from airflow_provider_anaplat.simulator.replies import Fault, Reply

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def anaplat_deployment() -> str:
    return "user-token"


@pytest.fixture
def ds_id(simulator: Simulator) -> str:
    return simulator.platform.add_dataset("texts", TEXTS).ds_id


class Shared:
    """What several processes share, in one; it remembers all that was kept."""

    def __init__(self) -> None:
        self.kept: dict[str, Mapping[str, Any]] = {}
        self.history: list[Mapping[str, Any]] = []

    def get(self, key: str) -> Mapping[str, Any] | None:
        return self.kept.get(key)

    def set(self, key: str, kept: Mapping[str, Any]) -> None:
        self.kept[key] = kept
        self.history.append(kept)


Signed = Callable[..., AnaplatClient]


@pytest.fixture
def signed(simulator: Simulator) -> Signed:
    """Make a client whose user signs in, as if it were in a process of its own."""

    def signed(**arguments: Any) -> AnaplatClient:
        from airflow_provider_anaplat.client._http import user_tokens

        user_tokens._held.clear()
        arguments.setdefault("login", DEFAULT_LOGIN)
        return AnaplatClient(simulator.url, simulator.token, **{"max_retries": 0, **arguments})

    return signed


def header_of(simulator: Simulator, operation: str = "get_columns") -> list[str]:
    return [request.headers["x-auth-token"] for request in simulator.requests(operation)]


def test_only_what_goes_into_the_header_signs_in(signed: Signed, simulator: Simulator, ds_id: str) -> None:
    client = signed()
    client.list_datasets()
    assert simulator.requests("sign_in") == []

    client.get_columns(ds_id)
    client.read_rows(ds_id)

    (sign_in,) = simulator.requests("sign_in")
    assert sign_in.body == {"token": simulator.token, "loginId": DEFAULT_LOGIN}
    (issued,) = simulator.platform.sign_ins.issued
    assert header_of(simulator) == header_of(simulator, "read_rows") == [issued.value]
    assert simulator.requests("list_datasets")[0].body == {"token": simulator.token}


def test_without_a_login_nobody_signs_in(simulator: Simulator, ds_id: str) -> None:
    with pytest.raises(
        errors.AnaplatAuthenticationError, match="put the user's loginId into the connection's login"
    ):
        AnaplatClient(simulator.url, simulator.token).get_columns(ds_id)
    assert simulator.requests("sign_in") == []


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(hours=5), timedelta(days=-40)])
def test_a_token_is_renewed_before_it_ends_by_the_platforms_clock(
    signed: Signed, simulator: Simulator, ds_id: str, ahead: timedelta
) -> None:
    simulator.platform.clock_ahead = ahead
    client = signed()
    client.get_columns(ds_id)
    simulator.platform.clock_ahead = ahead + timedelta(days=13, hours=23)
    client.list_datasets()  # says what the time is
    client.get_columns(ds_id)
    assert len(simulator.requests("sign_in")) == 1

    simulator.platform.clock_ahead = ahead + timedelta(days=13, hours=23, minutes=58)
    client.list_datasets()
    client.get_columns(ds_id)

    first, second = (token.value for token in simulator.platform.sign_ins.issued)
    assert header_of(simulator) == [first, first, second]  # none was refused


REFUSALS: dict[str, Fault] = {
    "HTTP 401": replies.http_status(401),
    "HTTP 401 as a page": Fault(lambda _: Reply(401, b"<html>Login</html>", {"content-type": "text/html"})),
    "HTTP 403 without a reason": replies.http_status(403),
    "no token": replies.refusal("no token provided", code=1018, status=403),
    "displaced": replies.refusal("logged in on another device", code=1017),
    "displaced, with HTTP 401": replies.refusal("logged in on another device", code=1017, status=401),
    "expired, on HTTP 200": replies.refusal("token invalid", code=1018),
    "displaced, flat": replies.flat_refusal("logged in on another device", code=1017),
    "displaced, flatter": replies.content(b'{"status":1017,"message":"logged in on another device"}'),
    "expired, with HTTP 500": replies.refusal("token invalid", code=1018, status=500),
    "expired, its code a text": replies.content(
        b'{"result":"fail","response":null,"error":{"status":"1018","message":"token invalid","detail":{}}}'
    ),
    "expired, flat": replies.flat_refusal("token expired", code=1018),
    "expired, flat, with HTTP 403": replies.flat_refusal("token expired", code=1018, status=403),
    "expired, flatter": replies.content(b'{"status":1018,"message":"Not Login or token expired"}'),
    "expired, flatter, with HTTP 401": Fault(
        lambda _: Reply(401, b'{"status":1018,"message":"Not Login or token expired"}')
    ),
    "expired, without a message": replies.content(b'{"status":1018}'),
    "HTTP 401 with a result of its own": Fault(lambda _: Reply(401, b'{"result":"error","msg":"unauthorized"}')),
}


@pytest.mark.parametrize("shape", REFUSALS)
def test_each_refusal_of_the_token_is_answered_by_one_sign_in_and_one_repetition(
    signed: Signed, simulator: Simulator, ds_id: str, shape: str
) -> None:
    client = signed()
    client.get_columns(ds_id)
    simulator.inject("get_columns", REFUSALS[shape])

    assert len(client.get_columns(ds_id)) == 2

    first, second = (token.value for token in simulator.platform.sign_ins.issued)
    assert header_of(simulator) == [first, first, second]


@pytest.mark.parametrize("shape", [shape for shape in REFUSALS if "displaced" not in shape])
def test_a_platform_that_refuses_every_token_is_asked_twice_and_then_left_alone(
    signed: Signed, simulator: Simulator, ds_id: str, shape: str
) -> None:
    simulator.inject("get_columns", REFUSALS[shape], times=None)
    client = signed()

    for _ in range(3):
        with pytest.raises(errors.AnaplatRefusedError, match="a new one is refused as well"):
            client.get_columns(ds_id)

    assert len(simulator.requests("sign_in")) == 2
    assert len(simulator.requests("get_columns")) == 2 + 1 + 1


def test_and_so_does_a_process_that_comes_later(signed: Signed, simulator: Simulator, ds_id: str) -> None:
    simulator.inject("get_columns", replies.http_status(403), times=None)
    store = Shared()
    for _ in range(5):
        with pytest.raises(errors.AnaplatPermissionError):
            signed(token_store=store).get_columns(ds_id)
    assert len(simulator.requests("sign_in")) == 2


def test_until_its_own_clock_says_ten_minutes_later(signed: Signed, simulator: Simulator, ds_id: str) -> None:
    simulator.inject("get_columns", replies.http_status(403), times=2)
    client = signed()
    with pytest.raises(errors.AnaplatPermissionError):
        client.get_columns(ds_id)

    simulator.platform.clock_ahead = timedelta(minutes=11)
    client.list_datasets()  # says what the time is
    simulator.inject("get_columns", replies.http_status(403))

    assert len(client.get_columns(ds_id)) == 2
    assert len(simulator.requests("sign_in")) == 3


@pytest.mark.parametrize("shares", [False, True])
def test_a_token_that_is_displaced_every_time_ends_in_an_error(
    signed: Signed, simulator: Simulator, ds_id: str, shares: bool
) -> None:
    simulator.inject("get_columns", REFUSALS["displaced"], times=None)
    with pytest.raises(errors.AnaplatAuthenticationError, match="whether somebody else signs in as it"):
        signed(token_store=Shared() if shares else None).get_columns(ds_id)
    assert len(simulator.requests("get_columns")) == len(simulator.requests("sign_in")) == (3 if shares else 2)


def test_the_token_of_another_machine_is_taken_that_displaced_ours(
    signed: Signed, simulator: Simulator, ds_id: str
) -> None:
    store = Shared()
    client = signed(token_store=store)
    client.get_columns(ds_id)
    (key,) = store.kept

    def look(key: str) -> Mapping[str, Any] | None:
        looks.append(key)
        if len(looks) == 2:  # the other machine's answer has come late
            value = simulator.platform.sign_ins.issued[-1].value
            store.set(key, UserToken(value).to_json())
        return store.kept.get(key)

    looks: list[str] = []
    store.get = look  # type: ignore[method-assign]  # another machine writes between two looks
    simulator.platform.sign_ins.sign_in(DEFAULT_LOGIN)
    assert len(client.get_columns(ds_id)) == 2
    assert len(simulator.requests("sign_in")) == 1
    assert looks == [key, key]


def test_a_token_of_another_machine_that_has_ended_too_is_followed_by_a_sign_in(
    signed: Signed, simulator: Simulator, ds_id: str
) -> None:
    store = Shared()
    client = signed(token_store=store)
    client.get_columns(ds_id)
    (key,) = store.kept
    of_another = simulator.platform.sign_ins.sign_in(DEFAULT_LOGIN)["token"]
    store.set(key, UserToken(of_another).to_json())
    simulator.platform.sign_ins.expire()

    assert len(client.get_columns(ds_id)) == 2

    first, second, third = (token.value for token in simulator.platform.sign_ins.issued)
    assert header_of(simulator) == [first, first, second, third]


@pytest.mark.parametrize("code", [1002, 1004, 1012])
def test_a_refusal_with_another_reason_signs_nobody_in(
    signed: Signed, simulator: Simulator, ds_id: str, code: int
) -> None:
    client = signed()
    simulator.inject("get_columns", replies.refusal("no", code=code, status=403))
    with pytest.raises(errors.AnaplatRefusedError):
        client.get_columns(ds_id)
    assert len(simulator.requests("sign_in")) == len(simulator.requests("get_columns")) == 1


def test_a_write_is_repeated_where_the_token_was_refused_and_not_where_its_answer_was_lost(
    signed: Signed, simulator: Simulator, ds_id: str
) -> None:
    path = f"/public-api/data-source/{ds_id}/data"
    client = signed()
    simulator.inject("read_rows", REFUSALS["displaced"])
    client.call(path, json={"limit": 1}, token_in="header", repeatable=False)
    assert len(simulator.requests("read_rows")) == 2

    simulator.inject("read_rows", replies.http_status(500))
    with pytest.raises(errors.AnaplatOutcomeUnknownError):
        client.call(path, json={"limit": 1}, token_in="header", repeatable=False)
    assert len(simulator.requests("read_rows")) == 3


def test_a_write_that_never_left_for_want_of_a_token_is_not_in_doubt(
    signed: Signed, simulator: Simulator, ds_id: str
) -> None:
    simulator.inject("sign_in", replies.http_status(500))
    with pytest.raises(errors.AnaplatServerError, match="sign_in"):
        signed().call(f"/public-api/data-source/{ds_id}/data", token_in="header", repeatable=False)
    assert simulator.requests("read_rows") == []


@pytest.mark.parametrize("fault", [replies.cut(0.5), replies.http_status(503), replies.reset()])
def test_a_sign_in_that_fails_in_passing_is_sent_again(
    signed: Signed, simulator: Simulator, ds_id: str, fault: Fault
) -> None:
    simulator.inject("sign_in", fault)
    assert len(signed(max_retries=1).get_columns(ds_id)) == 2
    assert len(simulator.requests("sign_in")) == 2


def test_many_threads_and_clients_sign_in_once(signed: Signed, simulator: Simulator, ds_id: str) -> None:
    released = threading.Event()
    simulator.inject("sign_in", replies.hold(released))
    clients = [signed()] + [
        AnaplatClient(simulator.url, simulator.token, login=DEFAULT_LOGIN, max_retries=0) for _ in range(3)
    ]
    with ThreadPoolExecutor(16) as pool:
        columns = [pool.submit(clients[number % 4].get_columns, ds_id) for number in range(16)]
        while not simulator.requests("sign_in"):
            pass
        released.set()
        assert [len(answer.result()) for answer in columns] == [2] * 16

        simulator.platform.sign_ins.expire()
        columns = [pool.submit(clients[number % 4].get_columns, ds_id) for number in range(16)]
        assert [len(answer.result()) for answer in columns] == [2] * 16
    assert len(simulator.requests("sign_in")) == 2


def test_who_has_another_password_signs_in_for_itself(signed: Signed, simulator: Simulator, ds_id: str) -> None:
    body = {"token": "{token}", "loginId": "{login}", "password": "{password}"}
    for password in ("one", "other"):
        AnaplatClient(
            simulator.url, simulator.token, login=DEFAULT_LOGIN, user_password=password, sign_in_body=body
        ).get_columns(ds_id)
    assert [request.body["password"] for request in simulator.requests("sign_in")] == ["one", "other"]


def test_a_token_that_another_process_has_shared_is_taken(
    signed: Signed, simulator: Simulator, ds_id: str
) -> None:
    store = Shared()
    for _ in range(3):
        signed(token_store=store).get_columns(ds_id)
    assert len(simulator.requests("sign_in")) == 1

    simulator.platform.sign_ins.expire()
    one = signed(token_store=store)
    one.get_columns(ds_id)
    signed(token_store=store).get_columns(ds_id)
    assert len(simulator.requests("sign_in")) == 2


@pytest.mark.parametrize("kept", [{}, {"token": 5}, {"token": "a b"}, {"token": "x", "renew_at": "soon"}, ["x"]])
def test_what_is_shared_and_is_no_token_is_as_if_nothing_were(
    signed: Signed, simulator: Simulator, ds_id: str, kept: Any
) -> None:
    store = Shared()
    key = SignIn(DEFAULT_LOGIN).digest(simulator.url, simulator.token)
    store.kept[key] = kept
    assert len(signed(token_store=store).get_columns(ds_id)) == 2
    assert set(store.kept) == {key}


def test_the_shared_token_is_taken_though_our_clock_says_that_it_has_ended(
    signed: Signed, simulator: Simulator, ds_id: str
) -> None:
    simulator.platform.clock_ahead = timedelta(days=-30)
    store = Shared()
    for _ in range(3):
        signed(token_store=store).get_columns(ds_id)
    assert len(simulator.requests("sign_in")) == 1


def test_a_closed_client_waits_for_nobody(signed: Signed, simulator: Simulator, ds_id: str) -> None:
    store = Shared()
    client = signed(token_store=store)
    entered, release = threading.Event(), threading.Event()

    def slow(key: str) -> None:
        entered.set()
        release.wait(60)

    store.get = slow  # type: ignore[method-assign]  # a store that does not answer
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.get_columns, ds_id)
        entered.wait(60)
        from airflow_provider_anaplat.client._http import user_tokens

        user_tokens._held.clear()  # as in another process, which finds the lock taken
        other = AnaplatClient(simulator.url, simulator.token, login=DEFAULT_LOGIN, token_store=Shared())
        second = pool.submit(other.get_columns, ds_id)
        other.close()
        with pytest.raises(errors.AnaplatClosedError, match="waited to sign in"):
            second.result(60)
        release.set()
        assert len(first.result(60)) == 2


def test_a_process_that_hangs_in_its_sign_in_holds_nobody_up_for_long(
    signed: Signed, simulator: Simulator, ds_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    digest = SignIn(DEFAULT_LOGIN).digest(simulator.url, simulator.token)
    path = Path(tempfile.gettempdir(), f"anaplat-{os.getuid()}-{digest}.lock")
    with path.open("w") as hanging, ThreadPoolExecutor(1) as pool:
        flock(hanging, LOCK_EX)  # as if by another process
        client = signed(token_store=Shared(), connect_timeout=0.1, read_timeout=10)
        asked = pool.submit(client.get_columns, ds_id)
        try:
            assert len(asked.result(LONG)) == 2
        finally:
            client.close()
    assert str(path) in caplog.text
    path.unlink()


@pytest.mark.parametrize(
    ("fault", "kind", "says"),
    [
        (replies.refusal("no such user", code=1002), errors.AnaplatSignInError, "connection's login field"),
        (replies.http_status(404), errors.AnaplatSignInError, "`sign_in_path`"),
        (replies.refusal("no", code=1018, status=403), errors.AnaplatSignInError, "does not take the application"),
        (replies.http_status(401), errors.AnaplatSignInError, "does not take the application token"),
        (replies.refusal("no", code=1004), errors.AnaplatSignInError, "may not sign this user in"),
        (replies.refusal("bad", code=1012), errors.AnaplatSignInError, "`sign_in_body`"),
        (replies.content(b'{"result":"ok","response":{}}'), errors.AnaplatSignInError, "holds no `token`"),
        (replies.content(b'{"result":"ok","response":"x"}'), errors.AnaplatSignInError, "holds no `token`"),
        (replies.content(b'{"result":"ok","response":{"token":"a b"}}'), errors.AnaplatSignInError, "no `token`"),
        (
            replies.content(b'{"result":"ok","response":{"token":"\\ud800"}}'),
            errors.AnaplatSignInError,
            "no `token`",
        ),
        (replies.content(b"<html>"), errors.AnaplatInvalidAnswerError, "sign_in"),
        (replies.refusal("later", code=5001, status=500), errors.AnaplatServerError, "`sign_in_path`"),
        (replies.http_status(429), errors.AnaplatRateLimitedError, "fewer tasks"),
        (replies.redirect("https://elsewhere/"), errors.AnaplatRedirectError, "elsewhere"),
        (replies.reset(), errors.AnaplatConnectionError, "sign_in"),
    ],
)
def test_a_sign_in_that_fails_says_what_to_do(
    signed: Signed, simulator: Simulator, ds_id: str, fault: Fault, kind: type[Exception], says: str
) -> None:
    simulator.inject("sign_in", fault, times=None)
    with pytest.raises(kind, match=says) as raised:
        signed().get_columns(ds_id)
    assert type(raised.value) is kind or kind is errors.AnaplatConnectionError
    assert raised.value.operation == "sign_in"  # type: ignore[attr-defined]
    assert simulator.requests("get_columns") == []


LEAKS = [
    b'{"result":"ok","response":{"taken":"TOKEN-S3CR+T"}}',
    b'["TOKEN-S3CR+T"]',
    b"TOKEN-S3CR+T",
    b'{"result":"maybe","response":{"token":"TOKEN-S3CR+T"}}',
    b'{"result":"ok","response":{"token":"TOKEN-S3CR+T with a blank"}}',
    b'{"result":"fail","response":{"token":"TOKEN-S3CR+T"},"error":{"status":1012,"message":"is TOKEN-S3CR+T"}}',
    b'{"token":"TOKEN-S3CR+T"}',
]


@pytest.mark.parametrize("body", LEAKS)
@pytest.mark.parametrize("status", [200, 201, 400, 500])
def test_nothing_of_the_answer_to_a_sign_in_is_shown(
    signed: Signed, simulator: Simulator, ds_id: str, body: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    simulator.inject("sign_in", Fault(lambda _: Reply(status, body)), times=None)
    with pytest.raises(errors.AnaplatError) as raised:
        signed().get_columns(ds_id)
    assert "S3CR" not in f"{raised.value!r} {vars(raised.value)} {caplog.text}"


@pytest.fixture
def echo() -> Callable[[str], Fault]:
    """Make a fault that repeats a text, in several escapings."""

    def echo(text: str) -> Fault:
        escaped = "".join(f"\\u{ord(letter):04x}" for letter in text)
        said = {"message": f"{text} {text.replace('.', '%2E')}", "status": 1012}
        body = json.dumps({"result": "fail", "error": said}).replace('"status"', f'"again": "{escaped}", "status"')
        return Fault(lambda _: Reply(500, body.encode()))

    return echo


def test_a_user_token_that_the_platform_repeats_is_masked(
    signed: Signed,
    simulator: Simulator,
    ds_id: str,
    echo: Callable[[str], Fault],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    client = signed()
    client.get_columns(ds_id)
    simulator.platform.sign_ins.expire()
    client.get_columns(ds_id)
    for issued in simulator.platform.sign_ins.issued:
        simulator.inject("get_columns", echo(issued.value))
        with pytest.raises(errors.AnaplatRefusedError) as raised:
            client.get_columns(ds_id)
        shown = f"{raised.value!r} {vars(raised.value)} {caplog.text} {client!r} {vars(client)}"
        assert issued.value not in shown
        assert issued.value.replace(".", "%2E") not in shown
        assert issued.value[-20:] not in shown


def test_the_users_password_is_masked_in_both_its_forms(
    signed: Signed, simulator: Simulator, ds_id: str, echo: Callable[[str], Fault]
) -> None:
    password = "pässword+/1"
    coded = b64encode(password.encode()).decode()
    body = {"domain": "acme", "loginId": "{login}", "password": "{password_base64}", "token": "{token}"}
    client = signed(user_password=password, sign_in_body=body)
    client.get_columns(ds_id)

    assert simulator.requests("sign_in")[0].body == {
        "domain": "acme", "loginId": DEFAULT_LOGIN, "password": coded, "token": simulator.token,
    }  # fmt: skip

    simulator.inject("get_columns", echo(f"{coded} {password}"))
    with pytest.raises(errors.AnaplatRefusedError) as raised:
        client.get_columns(ds_id)

    shown = f"{raised.value!r} {vars(raised.value)} {client!r} {client._transport._settings!r}"
    assert password not in shown
    assert coded not in shown


def jwt(**claims: Any) -> str:
    return f"h.{b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.s"


@pytest.mark.parametrize(
    ("token", "expire_at", "life"),
    [
        ("t", "2026-03-01 13:00:00.000", timedelta(hours=1)),
        ("t", "2026-03-01 13:00:00+0000", timedelta(hours=1)),
        ("t", "2026-03-01 21:00:00+0800", timedelta(hours=1)),
        (
            "t",
            "2026-03-15 12:00:00.000",
            timedelta(days=14) - timedelta(hours=14),
        ),  # the earliest that it can mean
        ("t", int((NOW + timedelta(hours=1)).timestamp() * 1000), timedelta(hours=1)),
        ("t", int((NOW + timedelta(hours=1)).timestamp()), timedelta(hours=1)),
        ("t", int((NOW - timedelta(hours=1)).timestamp()), None),
        ("t", 10**400, None),
        (jwt(exp=10**400), None, None),
        (f"h.{b64encode(b'[' * 100_000).decode()}.s", None, None),
        (jwt(exp=int((NOW + timedelta(hours=2)).timestamp())), "2026-03-01 13:00:00", timedelta(hours=2)),
        (jwt(exp=1), "2026-03-01 13:00:00", timedelta(hours=1)),
        (jwt(exp="soon"), "soon", None),
        ("a.b.c", None, None),
        ("t", "2026-02-01 00:00:00", None),  # past: whatever it means, not the token's end
        ("t", ["x"], None),
        ("t", True, None),
    ],
)
def test_the_end_of_a_token_is_read_in_any_shape(token: str, expire_at: Any, life: timedelta | None) -> None:
    body = json.dumps({"result": "ok", "response": {"token": token, "expireAt": expire_at}}).encode()
    read = read_user_token(Answer("sign_in", 200, body), NOW.timestamp())

    assert read.value == token

    if life is None:
        assert read.renew_at is None
    else:
        margin = min(300, life.total_seconds() / 10) + 1
        assert read.renew_at == pytest.approx(NOW.timestamp() + life.total_seconds() - margin, abs=1)


def test_a_token_is_the_same_after_it_was_kept() -> None:
    for token in (UserToken("a"), UserToken("b", 5.5, 7)):
        assert UserToken.from_json(json.loads(json.dumps(token.to_json()))) == token
    assert "secret" not in repr(UserToken("secret"))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"login": "ada", "user_token": "u"}, "both a login and a user_token"),
        ({"user_password": "s3cret"}, "user_password do nothing without a login"),
        ({"sign_in_path": "/public-api/other"}, "sign_in_path do nothing without a login"),
        ({"login": "ada", "user_password": "s3cret"}, "neither {password} nor {password_base64} stands in it"),
        (
            {"login": "ada", "sign_in_body": {"loginId": "{login}", "password": "{password}"}},
            "user_password is empty",
        ),
        ({"login": "ada", "sign_in_body": {"loginId": "{login}", "password": "s3cret"}}, "holds a secret itself"),
        ({"login": "ada", "sign_in_body": {"token": "{token}"}}, r"holds no \{login\}"),
        ({"login": "ada", "sign_in_body": {"loginId": "{login}", "x": "{domain}"}}, r"holds \{domain\}"),
        ({"login": "ada", "sign_in_path": "/other"}, "sign_in_path: The path '/other' is refused"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(errors.AnaplatSettingsError, match=says) as raised:
        AnaplatClient("https://bi.example.com", "t", **given)
    assert "s3cret" not in str(raised.value)
