"""What fails before a request leaves: nothing was sent, so that no outcome of a write is unknown."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.servers import read_request, serving

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import NewUser

LONG_LABEL = "a" * 64
NO_HEADER = "p\u20acssw\u00f6rd"


@pytest.fixture
def received() -> list[bytes]:
    """What a server was sent."""
    return []


@pytest.fixture
def port(received: list[bytes]) -> Iterator[int]:
    """The port of a server that hangs up after the first bytes."""
    with serving(lambda connection: received.append(connection.recv(65_536))) as port:
        yield port


def create(client: AnaplatClient) -> errors.AnaplatError:
    """Send a write, and return how it fails."""
    with closing(client), pytest.raises(errors.AnaplatError) as raised:
        client.create_users([NewUser(login_id="a")])
    return raised.value


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        (f"http://{LONG_LABEL}.invalid", {}),
        ("http://a..invalid", {}),
        ("http://\u00e9..invalid", {}),
        ("http://platform.invalid", {"proxies": {"http": f"http://{LONG_LABEL}.invalid:1"}}),
        ("http://platform.invalid", {"proxies": {"http": "http://\ud800.invalid:1"}}),
        ("http://platform.invalid", {"proxies": {"http": "http://127.0.0.1:99999"}}),
        ("http://platform.invalid", {"proxies": {"http": f"http://user:{NO_HEADER}@127.0.0.1:1"}}),
        ("http://platform.invalid", {"proxies": {"http": "ftp://127.0.0.1:1"}}),
    ],
)
def test_an_address_that_cannot_be_reached_is_named(url: str, settings: dict[str, Any]) -> None:
    error = create(AnaplatClient(url, "t0ken", **settings))
    assert type(error) is errors.AnaplatRequestError
    assert "Check the connection's fields" in str(error)
    assert "Nothing was sent" in str(error)
    assert not set("\u20ac\u00f6\ud800").intersection(str(error))


@pytest.mark.parametrize("method", ["PO ST", "POST\r\nX-Y: z", "\u00e9", "\ud800"])
def test_a_method_that_no_request_can_have_is_not_sent(port: int, received: list[bytes], method: str) -> None:
    with (
        closing(AnaplatClient(f"http://127.0.0.1:{port}", "t0ken")) as client,
        pytest.raises(errors.AnaplatRequestError, match=r"(?i)nothing was sent"),
    ):
        client.call("/public-api/x", method=method)
    assert not any(received)


@pytest.mark.parametrize("name", ["verify", "cert"])
def test_a_file_that_has_gone_is_named(tmp_path: Path, name: str) -> None:
    file = tmp_path / "file.pem"
    file.touch()
    client = AnaplatClient("https://127.0.0.1:1", "t0ken", **{name: str(file)})  # type: ignore[arg-type]
    file.unlink()
    error = create(client)
    assert type(error) is errors.AnaplatRequestError
    assert str(file) in str(error)
    assert "Nothing was sent" in str(error)


def test_a_bundle_of_the_environment_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/no/such/bundle.pem")
    error = create(AnaplatClient("https://127.0.0.1:1", "t0ken"))
    assert type(error) is errors.AnaplatRequestError
    assert "/no/such/bundle.pem" in str(error)


@pytest.mark.parametrize("name", ["verify", "cert"])
@pytest.mark.parametrize(
    "content", ["", "garbage", "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n"]
)
def test_a_file_without_certificates_is_spoken_of(
    port: int, received: list[bytes], tmp_path: Path, name: str, content: str
) -> None:
    file = tmp_path / "file.pem"
    file.write_text(content)
    client = AnaplatClient(f"https://127.0.0.1:{port}", "t0ken", **{name: str(file)})  # type: ignore[arg-type]
    error = create(client)
    assert type(error) is errors.AnaplatUnreachableError
    assert "`verify` and `cert`" in str(error)
    assert "Nothing was sent" in str(error)
    assert b"users" not in b"".join(received)


def hang_up(connection: socket.socket) -> None:
    connection.recv(65_536)


def refuse(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")


def answer_plainly(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def say_nothing(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass


@pytest.mark.parametrize("through_proxy", [False, True])
@pytest.mark.parametrize("handle", [hang_up, refuse, answer_plainly, say_nothing])
def test_what_breaks_off_before_the_request_has_not_seen_it(
    handle: Callable[[socket.socket], None], through_proxy: bool
) -> None:
    """In the middle of a handshake, or of what a proxy is asked for."""
    with serving(handle) as port:
        here = f"127.0.0.1:{port}"
        settings: dict[str, Any] = {"proxies": {"https": f"http://{here}"}} if through_proxy else {}
        url = "https://platform.invalid" if through_proxy else f"https://{here}"
        error = create(AnaplatClient(url, "t0ken", max_retries=0, read_timeout=1, connect_timeout=1, **settings))
    assert isinstance(error, errors.AnaplatUnreachableError)
    assert "Nothing was sent" in str(error)


def test_a_write_that_a_handshake_was_in_the_way_of_is_tried_again() -> None:
    tries = []

    def handle(connection: socket.socket) -> None:
        tries.append(connection.recv(65_536))

    with serving(handle) as port:
        create(AnaplatClient(f"https://127.0.0.1:{port}", "t0ken", max_retries=1))
    assert len(tries) == 2
