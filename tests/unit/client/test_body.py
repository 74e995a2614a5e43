"""Bodies of answers: whatever their size, packing and pace, memory and time are bounded."""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import pytest
from servers import read_request, serving

from airflow_provider_anaplat.client import AnaplatClient, errors
from airflow_provider_anaplat.client.models import NewUser

MEGABYTE = 1 << 20
DATASETS = json.dumps({"result": "ok", "response": []}).encode()
ZEROS = bytes(64 * MEGABYTE)
BOMB = gzip.compress(ZEROS) * 160  # 10 GB in 10 MB, as gzip allows: one member after another


def deflated() -> bytes:
    packer = zlib.compressobj()
    return b"".join(packer.compress(ZEROS) for _ in range(20)) + packer.flush()


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def answer(pieces: Iterable[bytes], *headers: str) -> Callable[[socket.socket], None]:
    """Answer one request with HTTP 200, these headers and the pieces of the body one after another."""
    head = "\r\n".join(["HTTP/1.1 200 OK", "Connection: close", *headers, "", ""]).encode()

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head)
        for piece in pieces:
            connection.sendall(piece)

    return handle


def list_datasets(handle: Callable[[socket.socket], None], **settings: Any) -> list[Any]:
    settings = {"max_retries": 0, "max_answer_mb": 4, **settings}
    with serving(handle) as port:
        return list(AnaplatClient(f"http://127.0.0.1:{port}", "t", **settings).list_datasets())


PADDED = DATASETS + b" " * (4 * MEGABYTE - len(DATASETS))

PACKINGS: dict[str, Callable[[bytes], tuple[bytes, list[str]]]] = {
    "plain": lambda body: (body, [f"Content-Length: {len(body)}"]),
    "to the end of the connection": lambda body: (body, []),
    "chunked": lambda body: (chunked(body), ["Transfer-Encoding: chunked"]),
    "gzip": lambda body: (
        gzip.compress(body),
        ["Content-Encoding: gzip", f"Content-Length: {len(gzip.compress(body))}"],
    ),
    "deflate": lambda body: (zlib.compress(body), ["Content-Encoding: deflate"]),
    "gzip in chunks": lambda body: (
        chunked(gzip.compress(body)),
        ["Content-Encoding: gzip", "Transfer-Encoding: chunked"],
    ),
    "gzip in deflate": lambda body: (zlib.compress(gzip.compress(body)), ["Content-Encoding: gzip, deflate"]),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_an_answer_up_to_the_limit_is_read_whole(packing: str) -> None:
    body, headers = PACKINGS[packing](PADDED)
    assert list_datasets(answer([body], *headers)) == []


@pytest.mark.parametrize("packing", PACKINGS)
def test_an_answer_beyond_the_limit_is_an_error_that_says_what_to_do(packing: str) -> None:
    body, headers = PACKINGS[packing](PADDED + b" ")
    with pytest.raises(errors.AnaplatAnswerTooLargeError, match=r"list_datasets: .* larger than 4 MB") as raised:
        list_datasets(answer([body], *headers))
    assert re.search("page_size.*max_answer_mb", str(raised.value))
    assert isinstance(raised.value, errors.NeedsAPersonError)
    assert raised.value.status == 200


def test_a_length_beyond_the_limit_is_refused_before_the_body_comes() -> None:
    never = threading.Event()

    def handle(connection: socket.socket) -> None:
        answer([], f"Content-Length: {5 * MEGABYTE}")(connection)
        never.wait(60)

    with pytest.raises(errors.AnaplatAnswerTooLargeError):
        list_datasets(handle, read_timeout=50)
    never.set()


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param((BOMB, "gzip"), id="gzip"),
        pytest.param((deflated(), "deflate"), id="deflate"),
        pytest.param((gzip.compress(BOMB), "gzip, gzip"), id="gzip in gzip"),
    ],
)
def test_a_bomb_ends_early_in_little_memory(bomb: tuple[bytes, str]) -> None:
    body, encoding = bomb
    tracemalloc.start()
    try:
        with pytest.raises(errors.AnaplatAnswerTooLargeError):
            list_datasets(answer([body], f"Content-Length: {len(body)}", f"Content-Encoding: {encoding}"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 * MEGABYTE


def test_an_endless_answer_ends() -> None:
    with pytest.raises(errors.AnaplatAnswerTooLargeError):
        list_datasets(answer(repeat(bytes(65_536))))


def test_a_write_whose_answer_is_too_large_may_have_been_carried_out() -> None:
    body, headers = PACKINGS["plain"](PADDED + b" ")
    with serving(answer([body], *headers)) as port:
        client = AnaplatClient(f"http://127.0.0.1:{port}", "t", max_answer_mb=4)
        with pytest.raises(errors.AnaplatOutcomeUnknownError, match="larger than 4 MB"):
            client.create_users([NewUser(login_id="a", name="A")])


@pytest.mark.parametrize("headers", [["Content-Length: 1000000"], []])
def test_an_answer_that_drips_ends(headers: list[str]) -> None:
    """Each byte is in time for the read time-out, and the last of them would come in days."""
    over = threading.Event()

    def drops() -> Iterable[bytes]:
        while not over.wait(0.05):
            yield b" "

    with pytest.raises(errors.AnaplatTimeoutError, match=r"did not end within 5 s.*read_timeout") as raised:
        list_datasets(answer(drops(), *headers), read_timeout=0.5)
    over.set()
    assert raised.value.layer == "HTTP"


def test_an_answer_of_another_encoding_than_it_says_is_cut_off() -> None:
    with pytest.raises(errors.AnaplatTruncatedAnswerError):
        list_datasets(answer([DATASETS], f"Content-Length: {len(DATASETS)}", "Content-Encoding: gzip"))


@pytest.mark.parametrize("setting", ["max_answer_mb", "max_connections"])
def test_a_limit_of_nothing_is_refused(setting: str) -> None:
    with pytest.raises(errors.AnaplatSettingsError, match="at least 1"):
        AnaplatClient("http://127.0.0.1", "t", **{setting: 0})
