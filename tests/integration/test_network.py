"""What lies between a worker and the platform: TLS, proxies, IPv6; real ones, on loopback."""

from __future__ import annotations

import base64
import json
import re
import socket
import socketserver
import ssl
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
import trustme
from support.servers import read_request, relay, serving

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import NewUser
from airflow_provider_anaplat.hooks.anaplat import AnaplatHook
from airflow_provider_anaplat.simulator import Simulator

PASSWORD = "pr%40xy-s3cret"  # as it stands in an address; "%40" is "@"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


def port_of(simulator: Simulator) -> int:
    return urlsplit(simulator.url).port or 0


@pytest.fixture
def behind_tls(simulator: Simulator, authority: trustme.CA) -> Iterator[str]:
    """The platform's address behind a server whose certificate a private authority signed."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    with serving(lambda connection: relay(connection, port_of(simulator)), tls=context) as port:
        yield f"https://127.0.0.1:{port}"


def test_the_bundle_of_a_private_authority_opens_its_platform(
    simulator: Simulator, behind_tls: str, bundle: str, connect: Callable[..., None]
) -> None:
    connect(host=behind_tls, password=simulator.token, extra={"verify": bundle})
    works, message = AnaplatHook().test_connection()
    assert works
    assert message.startswith("The platform answers, and the token is good for 0 datasets.")


@pytest.mark.parametrize("trusted", ["no private authority", "another one"])
def test_a_certificate_of_an_unknown_authority_is_named_and_nothing_is_sent(
    simulator: Simulator, behind_tls: str, trusted: str, connect: Callable[..., None], tmp_path: Path
) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    verify: Any = True if trusted == "no private authority" else str(tmp_path / "other.pem")
    connect(host=behind_tls, password=simulator.token, extra={"verify": verify})
    good, message = AnaplatHook().test_connection()

    assert not good
    assert message.startswith("TLS: list_datasets: the certificate of 127.0.0.1:")
    assert "`verify`" in message
    assert simulator.ledger == []


def test_a_certificate_of_another_host_is_named(simulator: Simulator, authority: trustme.CA, bundle: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("elsewhere.example.com").configure_cert(context)
    with serving(lambda connection: relay(connection, port_of(simulator)), tls=context) as port:
        client = AnaplatClient(f"https://127.0.0.1:{port}", simulator.token, verify=bundle)
        with pytest.raises(
            errors.AnaplatUnreachableError, match=r"for another name.*IP address mismatch"
        ) as raised:
            client.list_datasets()

    assert raised.value.layer == "TLS"


@pytest.fixture
def asks_for_a_certificate(simulator: Simulator, authority: trustme.CA) -> Iterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(lambda connection: relay(connection, port_of(simulator)), tls=context) as port:
        yield f"https://127.0.0.1:{port}"


@pytest.mark.parametrize("files", ["one file", "two files"])
def test_a_client_certificate_is_shown(
    simulator: Simulator,
    asks_for_a_certificate: str,
    authority: trustme.CA,
    bundle: str,
    files: str,
    connect: Callable[..., None],
    tmp_path: Path,
) -> None:
    own = authority.issue_cert("worker@example.com")
    both, certificate, key = (tmp_path / name for name in ("both.pem", "cert.pem", "key.pem"))
    own.private_key_and_cert_chain_pem.write_to_path(both)
    own.cert_chain_pems[0].write_to_path(certificate)
    own.private_key_pem.write_to_path(key)
    cert: Any = str(both) if files == "one file" else [str(certificate), str(key)]
    connect(host=asks_for_a_certificate, password=simulator.token, extra={"verify": bundle, "cert": cert})

    assert AnaplatHook().test_connection()[0]


def test_without_the_client_certificate_the_layer_is_named(
    simulator: Simulator, asks_for_a_certificate: str, bundle: str
) -> None:
    client = AnaplatClient(asks_for_a_certificate, simulator.token, verify=bundle, max_retries=0)
    with pytest.raises(errors.AnaplatConnectionError) as raised:
        client.list_datasets()
    assert raised.value.layer == "TLS"
    assert "`cert`" in str(raised.value)
    assert simulator.ledger == []


class Proxy:
    """A forward proxy that wants a password: addresses for http, tunnels for https."""

    def __init__(self, port: int) -> None:
        self.port = port  # of whatever is asked for
        self.lines: list[str] = []

    def __call__(self, connection: socket.socket) -> None:
        request = read_request(connection)
        line, _, rest = request.partition(b"\r\n")
        self.lines.append(line.decode())
        wanted = base64.b64encode(f"user:{PASSWORD.replace('%40', '@')}".encode())
        if b"Proxy-Authorization: Basic " + wanted not in rest:
            # As talkative as some are, in the page and in the reason.
            shown = _credentials(rest)
            page = b"No access for " + shown + b", you sent " + rest
            connection.sendall(
                b"HTTP/1.1 407 No access for %b\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
                % (shown, len(page), page)
            )
        elif line.startswith(b"CONNECT"):
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            relay(connection, self.port)
        else:
            method, address, version = line.split(b" ")
            path = b"/" + address.split(b"/", 3)[3]
            relay(connection, self.port, b" ".join((method, path, version)) + b"\r\n" + rest)


def _credentials(head: bytes) -> bytes:
    sent = re.search(rb"(?i)proxy-authorization: basic (\S+)", head)
    if sent is None:
        return b"nothing"
    password = base64.b64decode(sent[1]).partition(b":")[2]
    return b" ".join(
        [sent[1], password, quote(password, safe="").encode(), json.dumps(password.decode()).encode()]
    )


def test_a_proxy_takes_requests_to_http(simulator: Simulator, connect: Callable[..., None]) -> None:
    with serving(proxy := Proxy(port_of(simulator))) as port:
        proxies = {"http": f"http://user:{PASSWORD}@127.0.0.1:{port}"}
        connect(host="http://bi.example.com", password=simulator.token, extra={"proxies": proxies})
        assert AnaplatHook().test_connection()[0]
    assert proxy.lines == ["POST http://bi.example.com/public-api/data-source/list HTTP/1.1"]
    assert "proxy-authorization" in simulator.ledger[0].headers  # the proxy of this test hands everything on


def test_a_proxy_tunnels_https(
    simulator: Simulator, behind_tls: str, bundle: str, connect: Callable[..., None]
) -> None:
    with serving(proxy := Proxy(urlsplit(behind_tls).port or 0)) as port:
        proxies = {"https": f"http://user:{PASSWORD}@127.0.0.1:{port}"}
        extra = {"proxies": json.dumps(proxies), "verify": bundle}
        connect(host=behind_tls.replace("127.0.0.1", "localhost"), password=simulator.token, extra=extra)
        assert AnaplatHook().test_connection()[0]

    assert [line.split()[0] for line in proxy.lines] == ["CONNECT"]
    assert "proxy-authorization" not in simulator.ledger[0].headers


@pytest.mark.parametrize("source", ["extra", "environment"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("fault", ["the password is wrong", "nobody listens", "the address is broken"])
def test_what_a_proxy_refuses_shows_no_password(
    scheme: str,
    fault: str,
    source: str,
    caplog: pytest.LogCaptureFixture,
    connect: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("DEBUG")
    password = f"wrong-{PASSWORD}" + ("/of-old" if fault == "the address is broken" else "")
    with serving(Proxy(0)) as port:
        if fault == "nobody listens":
            with socket.create_server(("127.0.0.1", 0)) as listener:
                port = listener.getsockname()[1]
        address = f"http://user:{password}@127.0.0.1:{port}"
        if source == "environment":
            monkeypatch.setenv(f"{scheme}_proxy", address)
        extra = {"max_retries": 1} | ({"proxies": {scheme: address}} if source == "extra" else {})
        connect(host=f"{scheme}://bi.example.com", password="the-token", extra=extra)
        good, message = AnaplatHook().test_connection()
        with pytest.raises(errors.AnaplatError) as raised:
            AnaplatHook().get_conn().list_datasets()

    assert not good

    shown = message + caplog.text + "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))
    assert "prox" in shown.lower() or fault == "the address is broken"

    encoded = base64.b64encode(f"user:{unquote(password)}".encode()).decode()
    assert not [secret for secret in ("s3cret", "of-old", "the-token", encoded) if secret in shown]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("fields", [{"host": "[::1]", "schema": "http"}, {"host": "http://[::1]:{port}/"}])
def test_the_platform_answers_on_ipv6(
    simulator: Simulator, fields: dict[str, str], connect: Callable[..., None]
) -> None:
    with serving(lambda connection: relay(connection, port_of(simulator)), host="::1") as port:
        named = {name: value.format(port=port) for name, value in fields.items()}
        connect(**named, port=None if "port" in fields["host"] else port, password=simulator.token)
        assert AnaplatHook().test_connection()[0]


DRIPPING = {
    "a body over TLS": b"Content-Length: 1000000\r\n\r\n",
    "a header over TLS": b"X: ",
    "a header of a proxy": b"X: ",
    "a body of a proxy": b"\r\n",
    "a proxy's answer to who asks for a tunnel": b"X: ",
}


@pytest.fixture(scope="module")
def ends(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> dict[str, BaseException | None]:
    """How each ended: all at the same time, because each of them takes fifteen seconds."""
    bundle = tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(tls)

    def ask(name: str) -> None:
        over_tls = "TLS" in name
        with serving(lambda connection: drip(connection, DRIPPING[name]), tls=tls if over_tls else None) as port:
            scheme = "https" if "tunnel" in name else "http"
            way = {"verify": str(bundle)} if over_tls else {"proxies": {scheme: f"http://127.0.0.1:{port}"}}
            url = f"https://127.0.0.1:{port}" if over_tls else f"{scheme}://bi.example.com"
            AnaplatClient(url, "token", read_timeout=1.5, max_retries=0, max_answer_mb=1, **way).list_datasets()

    with ThreadPoolExecutor(len(DRIPPING)) as threads:
        asked = {name: threads.submit(ask, name) for name in DRIPPING}
    return {name: future.exception() for name, future in asked.items()}


@pytest.mark.parametrize("name", DRIPPING)
def test_an_answer_that_drips_over_tls_or_from_a_proxy_ends(
    ends: dict[str, BaseException | None], name: str
) -> None:
    """As any other."""
    assert isinstance(ends[name], errors.AnaplatTimeoutError)
    assert "did not end within 15 s" in str(ends[name])


def drip(connection: socket.socket, begin: bytes) -> None:
    """Answer with this beginning, and then byte for byte until whoever asked goes."""
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + begin)
    connection.settimeout(0.05)
    while True:
        connection.sendall(b" ")
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            continue


def test_a_proxy_that_takes_a_write_and_breaks_off_is_not_given_it_again() -> None:
    taken = []

    class Breaking(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            taken.append(self.rfile.readline())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Breaking) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{proxy.server_address[1]}"
        client = AnaplatClient("http://platform.invalid", "token", proxies={"http": address}, max_retries=2)
        with pytest.raises(errors.AnaplatOutcomeUnknownError, match="proxy"):
            client.create_users([NewUser(login_id="ada", name="Ada", password="of-ada")])
        proxy.shutdown()
    assert len(taken) == 1
