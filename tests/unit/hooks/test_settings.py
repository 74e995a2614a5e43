"""Connection fields to client arguments."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_anaplat.errors import AnaplatSettingsError
from airflow_provider_anaplat.hooks.settings import client_arguments, option_value


def arguments(**fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"host": "bi.example.com", "schema": None, "port": None, "password": "t", "extra": {}}
    return client_arguments(**{**given, **fields})


@pytest.mark.parametrize(
    ("fields", "base_url"),
    [
        ({}, "https://bi.example.com"),
        ({"host": "http://bi.example.com"}, "http://bi.example.com"),
        ({"host": "bi.example.com:8443"}, "https://bi.example.com:8443"),
        ({"host": "https://bi.example.com/prefix/"}, "https://bi.example.com/prefix"),
        ({"host": "bi.example.com/prefix", "port": 8443}, "https://bi.example.com:8443/prefix"),
        ({"port": 8443}, "https://bi.example.com:8443"),
        ({"port": "8443"}, "https://bi.example.com:8443"),
        ({"port": 0}, "https://bi.example.com"),
        ({"port": ""}, "https://bi.example.com"),
        ({"schema": "http", "port": 80}, "http://bi.example.com:80"),
        ({"host": "http://bi.example.com:81", "schema": "https", "port": 82}, "http://bi.example.com:81"),
        ({"host": " bi.example.com "}, "https://bi.example.com"),
        ({"host": "[::1]", "port": 80, "schema": "http"}, "http://[::1]:80"),
    ],
)
def test_addresses(fields: dict[str, Any], base_url: str) -> None:
    assert arguments(**fields)["base_url"] == base_url


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("connect_timeout", "5", 5.0),
        ("read_timeout", 60, 60.0),
        ("max_retries", "0", 0),
        ("max_connections", "8", 8),
        ("max_answer_mb", 2048, 2048),
        ("verify", "false", False),
        ("verify", "True", True),
        ("verify", False, False),
        ("verify", "/etc/ca.pem", "/etc/ca.pem"),
        ("cert", "/etc/client.pem", "/etc/client.pem"),
        ("cert", '["/etc/client.pem", "/etc/key.pem"]', ("/etc/client.pem", "/etc/key.pem")),
        ("cert", ["/etc/client.pem", "/etc/key.pem"], ("/etc/client.pem", "/etc/key.pem")),
        ("proxies", '{"https": "http://proxy:3128"}', {"https": "http://proxy:3128"}),
        ("proxies", {"https": "http://proxy:3128"}, {"https": "http://proxy:3128"}),
        ("user_token", " u ", "u"),
    ],
)
def test_extras_are_converted(key: str, given: Any, expected: Any) -> None:
    assert arguments(extra={key: given})[key] == expected


@pytest.mark.parametrize("empty", ["", " ", None])
def test_an_empty_extra_is_as_if_not_given(empty: Any) -> None:
    assert set(arguments(extra=dict.fromkeys(("verify", "max_retries", "cert"), empty))) == {"base_url", "token"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connect_timeout", "soon"),
        ("connect_timeout", 0),
        ("connect_timeout", "nan"),
        ("read_timeout", True),
        ("max_retries", -1),
        ("max_retries", "1.5"),
        ("max_connections", 0),
        ("max_connections", "few"),
        ("max_answer_mb", 0.5),
        ("verify", 3),
        ("cert", ["a", "b", "c"]),
        ("cert", "[broken"),
        ("proxies", "http://proxy"),
        ("proxies", ["x"]),
        ("user_token", 5),
        pytest.param("proxies", "[" * 100_000, id="nested too deeply"),
    ],
)
def test_an_unusable_extra_is_named(key: str, value: Any) -> None:
    with pytest.raises(AnaplatSettingsError, match=f"extra '{key}' is unusable: it must be"):
        arguments(extra={key: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"password": None}, "password field"),
        ({"password": "  "}, "password field"),
        ({"host": None}, "host field"),
        ({"host": "ftp://x"}, "neither http nor https"),
        ({"host": "http://x:notaport"}, "no address"),
        ({"schema": "ftp"}, "neither http nor https"),
    ],
)
def test_what_is_missing_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(AnaplatSettingsError, match=message):
        arguments(**fields)


@pytest.mark.parametrize("extra", [[], None, 7, True])
def test_extras_that_are_no_object_are_named(extra: Any) -> None:
    with pytest.raises(AnaplatSettingsError, match="extra is no object"):
        arguments(extra=extra)
    with pytest.raises(AnaplatSettingsError, match="extra is no object"):
        option_value("page_url", extra)


def test_an_unknown_extra_is_a_warning_without_its_value(caplog: pytest.LogCaptureFixture) -> None:
    assert set(arguments(extra={"X-Auth-Token": "secret"})) == {"base_url", "token"}
    assert "'X-Auth-Token' is not known" in caplog.text
    assert "secret" not in caplog.text
