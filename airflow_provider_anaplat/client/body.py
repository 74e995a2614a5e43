"""The body of an answer, read within bounds of size and time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import requests

from airflow_provider_anaplat.client import errors

MEGABYTE = 1 << 20
# Bytes at a time where the length is not known beforehand, as of what is compressed: little enough that a piece of
# it cannot fill the memory.
_PIECE = 1 << 18
# Each byte begins the read time-out anew. An answer of which a byte drips now and then would never end.
_LONGEST_ANSWER = 10  # times the read time-out


def read_body(response: requests.Response, operation: str, max_answer_mb: int, read_timeout: float) -> bytes:
    """Return the whole body, decompressed, and give the connection back.

    :param response: an answer of which no more than the headers was read
    :param operation: name of the operation that was answered
    :param max_answer_mb: megabytes (1,048,576 bytes each) at most
    :param read_timeout: seconds for the next bytes; the whole body has ten times as long
    :raises AnaplatAnswerTooLargeError: the body is larger, compressed or not
    :raises AnaplatTimeoutError: the body does not end in time
    :raises requests.RequestException: the connection fails
    """
    length = response.raw.length_remaining
    compressed = "Content-Encoding" in response.headers
    with closing(response), _time_limit(response, operation, _LONGEST_ANSWER * read_timeout):
        if length is not None and length > max_answer_mb * MEGABYTE:
            raise _too_large(operation, response, max_answer_mb)
        if length is not None and not compressed:
            # In one piece: smaller ones cost a copy of the body, and make the threads of an export wait for each
            # other at every one of them.
            return b"".join(response.iter_content(chunk_size=None))
        pieces, size = [], 0
        for piece in response.iter_content(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > max_answer_mb * MEGABYTE:
                raise _too_large(operation, response, max_answer_mb)
        return b"".join(pieces)


@contextmanager
def _time_limit(response: requests.Response, operation: str, seconds: float) -> Iterator[None]:
    over = threading.Event()

    def end() -> None:
        over.set()
        with suppress(RuntimeError, ValueError, OSError):  # the body ended at this very moment
            response.raw.shutdown()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except requests.RequestException:
        if not over.is_set():
            raise
    finally:
        timer.cancel()
    if over.is_set():  # also where the body seems whole, since one of unknown length ends with the connection
        error = errors.AnaplatTimeoutError(
            f"{operation}: the answer began and did not end within {seconds:g} s, {_LONGEST_ANSWER} times the "
            "connection's extra `read_timeout`; what was read of it is given up. Look for what slows the platform "
            "or the network down, ask for less at a time (a smaller page_size), or raise `read_timeout`.",
            operation=operation,
        )
        error.layer = "HTTP"
        raise error from None


def _too_large(operation: str, response: requests.Response, max_answer_mb: int) -> errors.AnaplatError:
    return errors.AnaplatAnswerTooLargeError(
        f"{operation}: the answer is larger than {max_answer_mb:,} MB; the rest of it was not read. Ask for less "
        "at a time (a smaller page_size), or raise the connection's extra `max_answer_mb`, if the worker has "
        "several times as much memory.",
        operation=operation,
        status=response.status_code,
    )
