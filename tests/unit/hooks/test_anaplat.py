"""The hook, with a connection from the environment and the platform behind a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from airflow_provider_anaplat.errors import AnaplatSettingsError
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.simulator import Simulator, replies

Connect = Callable[..., None]


def test_the_client_is_the_same_at_each_call(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    hook = AnaplatHook()
    assert hook.get_conn() is hook.get_conn()
    assert hook.get_conn().list_datasets() == []


def test_a_connection_as_a_uri(monkeypatch: pytest.MonkeyPatch, simulator: Simulator) -> None:
    port = simulator.url.rpartition(":")[2]
    uri = f"anaplat://:{simulator.token}@127.0.0.1:{port}/http?max_retries=1&verify=false"
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", uri)
    client = AnaplatHook("other").get_conn()

    assert client.base_url == simulator.url
    assert client._transport._settings.max_retries == 1
    assert client._transport._settings.verify is False
    assert client.list_datasets() == []


def test_unknown_extras_never_become_headers(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"X-Custom": "value", "headers": {"X-Other": "value"}})
    AnaplatHook().get_conn().list_datasets()
    assert not {"x-custom", "x-other", "headers"} & set(simulator.ledger[0].headers)


def test_a_trigger_gets_the_same_client(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"read_timeout": "7", "user_token": "u"})
    sync = AnaplatHook().get_conn()
    deferred = asyncio.run(AnaplatHook.get_async_conn("anaplat_default"))
    assert deferred._transport._settings == sync._transport._settings


@pytest.mark.parametrize(
    ("fields", "layer"),
    [
        ({"host": "", "password": "t"}, "Address"),
        ({"host": "http://x", "password": ""}, "Address"),
        ({"host": "http://no-such-host.invalid", "password": "t"}, "DNS"),
        ({"host": "http://127.0.0.1:1", "password": "t"}, "TCP"),
        ({"host": "https://{address}", "password": "t"}, "TLS"),
        ({"host": "http://{address}", "password": "not-the-token"}, "Token in the body"),
        ({"host": "http://{address}/prefix", "password": "t"}, "HTTP"),
    ],
)
def test_the_test_button_names_the_layer_that_failed(
    connect: Connect, simulator: Simulator, fields: dict[str, str], layer: str
) -> None:
    address = simulator.url.removeprefix("http://")
    fields = {key: value.format(address=address) for key, value in fields.items()}
    connect(**fields, extra={"max_retries": 0})
    ok, message = AnaplatHook().test_connection()

    assert not ok
    assert message.startswith(f"{layer}: ")
    assert "not-the-token" not in message


@pytest.mark.parametrize(
    ("fault", "layer"),
    [
        (replies.content(b"<html>", "text/html"), "Envelope"),
        (replies.http_status(500), "HTTP"),
        (replies.redirect("https://elsewhere/"), "HTTP"),
        (replies.refusal("no", code=1004), "Token in the body"),
    ],
)
def test_and_the_layers_above_the_network(
    connect: Connect, simulator: Simulator, fault: replies.Fault, layer: str
) -> None:
    connect(simulator)
    simulator.inject("list_datasets", fault, times=None)
    ok, message = AnaplatHook().test_connection()
    assert (ok, message.partition(":")[0]) == (False, layer)


def test_a_connection_without_a_token_says_which_field_to_fill(connect: Connect) -> None:
    connect(host="https://bi.example.com")
    with pytest.raises(AnaplatSettingsError, match="password field"):
        AnaplatHook().get_conn()
