"""Each request gets its own answer: what else comes over a connection is never taken for one."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from threading import Barrier

import pytest
import requests
from support.servers import read_request, serving
from urllib3 import HTTPConnectionPool

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client._http.adapter import TimedAdapter
from airflow_provider_anaplat.client.models import NewUser

OK = b'{"result": "ok", "response": "%d users created"}'


def plain(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def chunked(body: bytes, *, headers: bytes = b"") -> bytes:
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return b"HTTP/1.1 200 OK\r\n%bTransfer-Encoding: chunked\r\n\r\n%b" % (headers, framed)


Wrap = Callable[[bytes], bytes]
INTERIM = b"HTTP/1.1 %d Wait\r\nLink: </style>\r\n\r\n"
NOT_OURS = plain(OK % 99)
UNEXPECTED: dict[str, Wrap] = {
    "HTTP 100": lambda body: INTERIM % 100 + plain(body),
    "HTTP 102": lambda body: INTERIM % 102 + plain(body),
    "HTTP 103": lambda body: INTERIM % 103 + plain(body),
    "HTTP 199": lambda body: INTERIM % 199 + plain(body),
    "several": lambda body: INTERIM % 102 * 5 + INTERIM % 103 + chunked(body),
    "another answer": lambda body: plain(body) + NOT_OURS,
    "another answer after chunks": lambda body: chunked(body) + NOT_OURS,
    "another answer after none": lambda body: INTERIM % 103 + plain(body) + NOT_OURS,
    "one byte": lambda body: plain(body) + b"\n",
    "framed twice": lambda body: chunked(body, headers=b"Content-Length: %d\r\n" % (len(body) + 4)),
    "a header without a colon": lambda body: plain(body).replace(b"\r\n\r\n", b"\r\nt0ken\r\n\r\n", 1),
}  # fmt: skip


@contextmanager
def numbering(wrap: Wrap) -> Iterator[tuple[str, list[int]]]:
    """Answer each request with its number, and yield the address and the connection that each came over."""
    connections, numbers, seen = count(1), count(1), list[int]()

    def handle(connection: socket.socket) -> None:
        own = next(connections)
        while True:
            read_request(connection)
            seen.append(own)
            connection.sendall(wrap(OK % next(numbers)))

    with serving(handle) as port:
        yield f"http://127.0.0.1:{port}", seen


def created(client: AnaplatClient) -> str:
    return client.create_users([NewUser(login_id="a")]).message


@pytest.mark.parametrize("wrap", UNEXPECTED.values(), ids=UNEXPECTED)
def test_each_request_gets_its_own_answer_over_a_connection_of_its_own(wrap: Wrap) -> None:
    with numbering(wrap) as (url, connections), closing(AnaplatClient(url, "t0ken")) as client:
        answers = [created(client) for _ in range(3)]
    assert answers == [f"{number} users created" for number in (1, 2, 3)]
    assert connections == [1, 2, 3]


@pytest.mark.parametrize("wrap", [plain, chunked])
def test_a_connection_on_which_all_was_plain_is_used_again(wrap: Wrap) -> None:
    with numbering(wrap) as (url, connections), closing(AnaplatClient(url, "t0ken")) as client:
        for _ in range(3):
            created(client)
    assert connections == [1, 1, 1]


@pytest.mark.parametrize(
    "answer",
    [
        INTERIM % 101 + NOT_OURS,
        INTERIM % 102,  # and then nothing
        INTERIM % 103 * 1000 + NOT_OURS,
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: %d\r\n\r\n%b" % (len(OK), OK),
    ],
)
def test_what_is_no_answer_leaves_the_outcome_of_a_write_unknown(answer: bytes) -> None:
    requests = []

    def handle(connection: socket.socket) -> None:
        requests.append(read_request(connection))
        connection.sendall(answer)

    with serving(handle) as port, pytest.raises(errors.AnaplatOutcomeUnknownError):
        created(AnaplatClient(f"http://127.0.0.1:{port}", "t0ken"))
    assert len(requests) == 1


def test_what_is_no_header_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        numbering(UNEXPECTED["a header without a colon"]) as (url, _),
        closing(AnaplatClient(url, "t0ken")) as client,
    ):
        created(client)

    assert "POST" in caplog.text  # urllib3 does write
    assert "t0ken" not in caplog.text


def test_the_first_requests_of_several_threads_share_their_connections() -> None:
    switch_interval = sys.getswitchinterval()
    request = requests.Request("GET", "http://127.0.0.1").prepare()
    all_ready = Barrier(8)

    def pool_of(adapter: TimedAdapter) -> HTTPConnectionPool:
        all_ready.wait()
        return adapter.get_connection_with_tls_context(request, verify=True)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for adapter in [TimedAdapter(read_timeout=1) for _ in range(1_000)]:
                assert len(set(threads.map(pool_of, [adapter] * 8))) == 1
    finally:
        sys.setswitchinterval(switch_interval)
