"""What the Test button says: green where every layer is good, and which one is not where one isn't."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from conftest import TEXTS

from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.platform import DEFAULT_LOGIN
from airflow_provider_anaplat.simulator.replies import Fault

Connect = Callable[..., None]


FLAT = b'{"status":1018,"message":"Not Login or token expired"}'


@pytest.fixture
def user_platform() -> Simulator:
    return Simulator(deployment="user-token")


def test_all_layers_are_tried_and_named(connect: Connect, simulator: Simulator) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    connect(simulator, port=0)

    assert AnaplatHook().test_connection() == (
        True,
        "The platform answers, and the token is good for 1 dataset. Its clock and the one here agree. The token "
        "in the header is good: the columns of dataset ds1 can be read.",
    )
    assert [request.operation for request in simulator.ledger] == ["list_datasets", "get_columns"]


def test_without_a_dataset_it_says_that_the_header_was_not_tried(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    ok, message = AnaplatHook().test_connection()
    assert ok
    assert "token in the header could not be tried" in message


def test_a_user_is_signed_in_anew_at_each_press(connect: Connect, user_platform: Simulator) -> None:
    with user_platform as platform:
        platform.platform.add_dataset("texts", TEXTS)
        connect(platform, login=DEFAULT_LOGIN)
        for _ in range(2):
            ok, message = AnaplatHook().test_connection()
            assert ok
            assert f"Signing in as {DEFAULT_LOGIN!r} brings a user token." in message
        assert len(platform.requests("sign_in")) == 2
        assert all(issued.value not in message for issued in platform.platform.sign_ins.issued)


@pytest.mark.parametrize(
    ("operation", "fault", "layer", "says"),
    [
        ("list_datasets", replies.refusal("no", code=1018), "Token in the body", "password field"),
        ("list_datasets", replies.content(b"<html>"), "Envelope", "list_datasets"),
        ("sign_in", replies.refusal("no user", code=1002), "Sign-in", "login field"),
        ("sign_in", replies.refusal("no", code=1018), "Sign-in", "application token"),
        ("sign_in", replies.content(b'{"result":"ok","response":{}}'), "Sign-in", "no `token`"),
        ("sign_in", replies.http_status(404), "Sign-in", "`sign_in_path`"),
        ("sign_in", replies.content(b'{"result":"ok","response":"odd"}'), "Sign-in", "no `token`"),
        ("sign_in", replies.content(b'{"result":"ok","response":{"token":["odd"]}}'), "Sign-in", "no `token`"),
        ("sign_in", replies.content(b'["odd"]'), "Sign-in, Envelope", "envelope"),
        ("sign_in", replies.content(b'{"token":"flat"}'), "Sign-in, Envelope", "no `result`"),
        ("sign_in", replies.content(b"<html>"), "Sign-in, Envelope", "sign_in"),
        ("sign_in", replies.reset(), "Sign-in, TCP", "sign_in"),
        ("sign_in", replies.http_status(500), "Sign-in, HTTP", "sign_in_path"),
        ("get_columns", replies.http_status(401), "Token in the header", "a new one is refused as well"),
        ("get_columns", replies.http_status(403), "Token in the header", "a new one is refused as well"),
        ("get_columns", replies.refusal("elsewhere", code=1017), "Token in the header", "somebody else signs in"),
        ("get_columns", replies.content(FLAT), "Token in the header", "a new one is refused as well"),
        ("get_columns", replies.refusal("no", code=1004), "Rights", "dataset that was tried (ds1)"),
        ("get_columns", replies.refusal("gone", code=1002), "Rights", "dataset that was tried (ds1)"),
        ("get_columns", replies.http_status(404), "HTTP", "path prefix"),
        ("get_columns", replies.http_status(500), "HTTP", "get_columns"),
    ],
)
def test_it_is_red_for_each_layer_and_says_what_is_good(
    connect: Connect, user_platform: Simulator, operation: str, fault: Fault, layer: str, says: str
) -> None:
    with user_platform as platform:
        platform.platform.add_dataset("texts", TEXTS)
        connect(platform, login=DEFAULT_LOGIN, extra={"max_retries": 0})
        assert AnaplatHook().test_connection()[0]  # a token from before must not hide what is broken now
        platform.inject(operation, fault, times=None)

        ok, message = AnaplatHook().test_connection()

    assert (ok, message.partition(":")[0]) == (False, layer)
    assert says in message
    assert ("What is good:" in message) == (operation != "list_datasets")
    assert ("brings a user token" in message) == (operation == "get_columns")


def test_a_platform_that_wants_a_user_token_is_red_without_a_login(
    connect: Connect, user_platform: Simulator
) -> None:
    with user_platform as platform:
        platform.platform.add_dataset("texts", TEXTS)
        connect(platform)
        ok, message = AnaplatHook().test_connection()
    assert (ok, message.partition(":")[0]) == (False, "Token in the header")
    assert "put the user's loginId into the connection's login field" in message


def test_a_dataset_that_the_user_may_not_see_is_passed_over(connect: Connect, simulator: Simulator) -> None:
    for name in ("one", "two"):
        simulator.platform.add_dataset(name, TEXTS)
    connect(simulator)
    simulator.inject("get_columns", replies.refusal("no", code=1004))
    ok, message = AnaplatHook().test_connection()

    assert ok
    assert "dataset ds2" in message


@pytest.mark.parametrize(
    ("ahead", "says"), [(timedelta(hours=1), "3,6.. s ahead of"), (-timedelta(hours=1), "3,6.. s behind")]
)
def test_it_says_how_far_the_clocks_are_apart(
    connect: Connect, simulator: Simulator, ahead: timedelta, says: str
) -> None:
    simulator.platform.clock_ahead = ahead
    connect(simulator)
    ok, message = AnaplatHook().test_connection()

    assert ok
    assert pytest.approx(3600, abs=30) == int(
        message.partition("Its clock is ")[2].partition(" s ")[0].replace(",", "")
    )
    assert says.rpartition(" s ")[2] in message
