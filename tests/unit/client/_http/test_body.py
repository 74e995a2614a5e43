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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice, repeat
from typing import Any

import pytest
import zstandard
from conftest import LONG
from support.servers import read_request, serving

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.models import NewUser

MEGABYTE = 1 << 20
DATASETS = json.dumps({"result": "ok", "response": []}).encode()
ZEROS = bytes(64 * MEGABYTE)
BOMB = gzip.compress(ZEROS) * 160  # 10 GB in 10 MB, as gzip allows: one member after another


def deflated() -> bytes:
    """Return what unpacks to 1.3 GB: what was packed after a full flush can be repeated."""
    packer = zlib.compressobj()
    first, again = (packer.compress(ZEROS) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + again * 19


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def answer(pieces: Iterable[bytes], *headers: str, status: str = "200 OK") -> Callable[[socket.socket], None]:
    """Answer one request with these headers and the pieces of the body one after another."""
    head = "\r\n".join([f"HTTP/1.1 {status}", "Connection: close", *headers, "", ""]).encode()

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head)
        for piece in pieces:
            connection.sendall(piece)

    return handle


def list_datasets(handle: Callable[[socket.socket], None], **settings: Any) -> list[Any]:
    settings = {"max_retries": 0, "max_answer_mb": 4, **settings}
    with serving(handle) as port:
        return list(AnaplatClient(f"http://127.0.0.1:{port}", "the-token", **settings).list_datasets())


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
    assert isinstance(raised.value, errors.AnaplatNeedsAPersonError)
    assert raised.value.status == 200


def test_a_length_beyond_the_limit_is_refused_before_the_body_comes() -> None:
    never = threading.Event()

    def handle(connection: socket.socket) -> None:
        answer([], f"Content-Length: {5 * MEGABYTE}")(connection)
        never.wait(LONG)

    with pytest.raises(errors.AnaplatAnswerTooLargeError):
        list_datasets(handle, read_timeout=LONG)
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


@pytest.mark.parametrize("item", ["{}", "[[]]", '{"dsId":"d"}', '"ab"', '"\\ud83d\\ude00"'])
@pytest.mark.parametrize("ask", ["list_datasets", "find_datasets"])
def test_a_small_answer_that_means_much_ends_early_in_little_memory(item: str, ask: str) -> None:
    many = item + ("," + item) * (24 * MEGABYTE // len(item))
    body = gzip.compress(f'{{"result":"ok","response":[{many}]}}'.encode(), 1)
    handle = answer([body], f"Content-Length: {len(body)}", "Content-Encoding: gzip")
    with serving(handle) as port:
        client = AnaplatClient(f"http://127.0.0.1:{port}", "t", max_retries=0)
        tracemalloc.start()
        try:
            with suppress(errors.AnaplatInvalidAnswerError):
                client.list_datasets() if ask == "list_datasets" else client.find_datasets(["d"])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak < 500 * MEGABYTE


@pytest.mark.parametrize("encoding", ["zstd", "br", "gzip, ZSTD"])
def test_what_is_packed_in_a_way_that_was_not_asked_for_is_not_unpacked(encoding: str) -> None:
    """A bomb of zstd; urllib3 unpacks it, asked for or not, where it finds a codec."""
    body = zstandard.compress(ZEROS) * 160
    asked = []

    def handle(connection: socket.socket) -> None:
        asked.append(read_request(connection))
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\r\n".encode() + body)

    with pytest.raises(
        errors.AnaplatInvalidAnswerError, match=r"(zstd|br), which was not requested .* not decompressed"
    ) as raised:
        list_datasets(handle)
    assert raised.value.status == 200
    assert b"\r\nAccept-Encoding: gzip, deflate\r\n" in asked[0]


def test_what_is_packed_too_often_is_not_unpacked() -> None:
    """Each time takes a level of the stack, which has an end."""
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="gzip or deflate 10,000 times over"):
        list_datasets(answer([DATASETS], f"Content-Encoding: {','.join(['gzip'] * 10_000)}"))


def test_an_encoding_that_nobody_knows_is_passed_over() -> None:
    """Some servers write there what belongs to Content-Type."""
    assert list_datasets(answer([DATASETS], "Content-Encoding: utf-8")) == []


@pytest.mark.parametrize("content_type", ["a/b; charset", "text/html; charset=x-nothing", ";", "é"])
def test_what_an_answer_says_of_its_type_does_not_matter(content_type: str) -> None:
    assert list_datasets(answer([DATASETS], f"Content-Type: {content_type}")) == []


@pytest.mark.parametrize("status", ["200 OK", "302 Found"])
def test_an_endless_answer_ends(status: str) -> None:
    endless = islice(repeat(bytes(65_536)), 1024)  # 64 MB, so that the test ends where the answer does not
    with pytest.raises(errors.AnaplatAnswerTooLargeError):
        list_datasets(answer(endless, "Location: http://elsewhere.example/", status=status))
    assert next(endless, None) is not None  # of which the most was neither read nor sent


def test_a_write_whose_answer_is_too_large_may_have_been_carried_out() -> None:
    body, headers = PACKINGS["plain"](PADDED + b" ")
    with serving(answer([body], *headers)) as port:
        client = AnaplatClient(f"http://127.0.0.1:{port}", "t", max_answer_mb=4)
        with pytest.raises(errors.AnaplatOutcomeUnknownError, match="larger than 4 MB"):
            client.create_users([NewUser(login_id="a", name="A")])


DRIPPING = {
    "a body of known length": b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
    "a body to the end of the connection": b"HTTP/1.1 200 OK\r\n\r\n",
    "a header": b"HTTP/1.1 200 OK\r\nX: ",
    "the status line": b"HTTP/1.1 200 O",
}


def dripping(begin: bytes, taken: list[bytes]) -> Callable[[socket.socket], None]:
    def handle(connection: socket.socket) -> None:
        taken.append(read_request(connection))
        connection.sendall(begin)
        pause = threading.Event()
        while not pause.wait(0.05):  # until the client has gone
            connection.sendall(b"x")

    return handle


@pytest.fixture(scope="module")
def ends() -> dict[str, BaseException | None]:
    """How each ended: all at the same time, because each of them takes fifteen seconds."""
    with ThreadPoolExecutor(len(DRIPPING)) as threads:
        asked = {
            name: threads.submit(list_datasets, dripping(begin, []), read_timeout=1.5)
            for name, begin in DRIPPING.items()
        }
    return {name: future.exception() for name, future in asked.items()}


@pytest.mark.parametrize("name", DRIPPING)
def test_an_answer_that_drips_ends(ends: dict[str, BaseException | None], name: str) -> None:
    """Each byte is in time for the read time-out, and the last of them would come in days."""
    error = ends[name]
    assert isinstance(error, errors.AnaplatTimeoutError)
    assert re.search(r"did not end within 15 s.*read_timeout", str(error))
    assert error.layer == "HTTP"


def test_a_write_whose_answer_drips_may_have_been_carried_out_and_is_sent_once() -> None:
    taken: list[bytes] = []
    with serving(dripping(DRIPPING["a header"], taken)) as port:
        client = AnaplatClient(f"http://127.0.0.1:{port}", "the-token", read_timeout=1.5, max_retries=2)
        with pytest.raises(errors.AnaplatOutcomeUnknownError, match="did not end within 15 s"):
            client.create_users([NewUser(login_id="a", name="A")])
    assert len(taken) == 1


def test_an_answer_of_another_encoding_than_it_says_is_cut_off() -> None:
    with pytest.raises(errors.AnaplatTruncatedAnswerError):
        list_datasets(answer([DATASETS], f"Content-Length: {len(DATASETS)}", "Content-Encoding: gzip"))


PACKED = gzip.compress(DATASETS)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        pytest.param(PACKED[:-9], "gzip", id="without its end"),
        pytest.param(PACKED[:-1], "gzip", id="without the last byte"),
        pytest.param(PACKED[:1], "gzip", id="one byte"),
        pytest.param(PACKED + b"more", "gzip", id="more after its end"),
        pytest.param(zlib.compress(DATASETS)[:-5], "deflate", id="deflate without its end"),
        pytest.param(zlib.compress(DATASETS) + b"more", "deflate", id="more after the end of deflate"),
        pytest.param(zlib.compress(DATASETS) + zlib.compress(b" "), "deflate", id="deflate twice"),
        pytest.param(PACKED[:-8] + bytes(8), "gzip", id="with another checksum"),
    ],
)
@pytest.mark.parametrize("length", [True, False])
def test_a_packed_answer_that_is_not_whole_is_cut_off(body: bytes, encoding: str, length: bool) -> None:
    headers = [f"Content-Encoding: {encoding}", *([f"Content-Length: {len(body)}"] if length else [])]
    with pytest.raises(errors.AnaplatTruncatedAnswerError, match=encoding):
        list_datasets(answer([body], *headers))


@pytest.mark.parametrize(
    ("pieces", "encoding"),
    [
        ([PACKED[:1], PACKED[1:]], "gzip"),
        ([bytes([byte]) for byte in PACKED], "x-gzip"),
        ([gzip.compress(DATASETS[:9]), gzip.compress(b""), gzip.compress(DATASETS[9:])], "gzip"),
        ([zlib.compress(DATASETS)[2:-4]], "deflate"),  # without a header, as some servers have it
        ([bytes([byte]) for byte in zlib.compress(DATASETS)], "deflate"),
    ],
)
def test_a_packed_answer_may_come_in_any_pieces(pieces: list[bytes], encoding: str) -> None:
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    headers = [f"Content-Encoding: {encoding}", "Transfer-Encoding: chunked"]
    assert list_datasets(answer([*chunks, b"0\r\n\r\n"], *headers)) == []


def test_a_packed_answer_of_no_bytes_is_an_empty_one() -> None:
    with pytest.raises(errors.AnaplatTruncatedAnswerError, match="the answer is empty"):
        list_datasets(answer([], "Content-Encoding: gzip", "Content-Length: 0"))


def test_what_is_packed_and_unpacks_to_nothing_ends_too() -> None:
    nothing = islice(repeat(gzip.compress(b"") * 3000), 1024)  # 60 MB, so that the test ends in any case
    with pytest.raises(errors.AnaplatAnswerTooLargeError):
        list_datasets(answer(nothing, "Content-Encoding: gzip"))
    assert next(nothing, None) is not None


@pytest.mark.parametrize(
    ("length", "error"),
    [
        (b"-2", errors.AnaplatInvalidAnswerError),
        (b"-10000000000000000", errors.AnaplatInvalidAnswerError),
        (b"10000000000000000", errors.AnaplatTruncatedAnswerError),
    ],
)
def test_a_piece_of_an_impossible_length_is_no_answer(length: bytes, error: type[errors.AnaplatError]) -> None:
    with pytest.raises(error):
        list_datasets(answer([length + b"\r\n"], "Transfer-Encoding: chunked"))


def test_a_piece_of_minus_one_byte_is_not_all_that_comes() -> None:
    endless = islice(repeat(b"1" * 65_536), 1024)
    tracemalloc.start()
    try:
        with pytest.raises(errors.AnaplatInvalidAnswerError):
            list_datasets(answer(chain([b"-1\r\n"], endless), "Transfer-Encoding: chunked"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MEGABYTE


def test_a_length_that_one_line_says_twice_is_that_length() -> None:
    said = f"Content-Length: {len(DATASETS)}, {len(DATASETS)}"
    endless = islice(repeat(b" " * 65_536), 1024)
    assert list_datasets(answer(chain([DATASETS], endless), said)) == []
    assert next(endless, None) is not None
    with pytest.raises(errors.AnaplatError):
        list_datasets(answer([DATASETS], f"{said}, 5"))


ENDLESS_LINES = {
    "the length of a chunk": b"",
    "its extension": b"5;",
    "a trailer": chunked(DATASETS).removesuffix(b"\r\n") + b"X: ",
}


@pytest.mark.parametrize("begin", ENDLESS_LINES.values(), ids=ENDLESS_LINES)
def test_an_endless_line_between_chunks_ends_early_in_little_memory(begin: bytes) -> None:
    """On the oldest urllib3 as well, which has no limit of its own."""
    endless = islice(repeat(b"1" * 65_536), 1024)
    tracemalloc.start()
    try:
        with pytest.raises(errors.AnaplatTruncatedAnswerError):
            list_datasets(answer(chain([begin], endless), "Transfer-Encoding: chunked"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert next(endless, None) is not None  # of which the most was neither read nor sent
    assert peak < 8 * MEGABYTE


def test_an_answer_in_many_small_chunks_takes_little_memory() -> None:
    count = 100_000
    pieces = [b"2\r\n  \r\n" * count, chunked(DATASETS)]
    tracemalloc.start()
    try:
        assert list_datasets(answer(pieces, "Transfer-Encoding: chunked")) == []
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * MEGABYTE


@pytest.mark.parametrize("setting", ["max_answer_mb", "max_connections"])
def test_a_limit_of_nothing_is_refused(setting: str) -> None:
    unusable: dict[str, Any] = {setting: 0}
    with pytest.raises(errors.AnaplatSettingsError, match="at least 1"):
        AnaplatClient("http://127.0.0.1", "t", **unusable)
