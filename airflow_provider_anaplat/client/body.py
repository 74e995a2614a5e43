"""The body of an answer, read within bounds of size."""

from __future__ import annotations

from contextlib import closing

import requests
from urllib3 import HTTPResponse

from airflow_provider_anaplat.client import errors

MEGABYTE = 1 << 20
# Bytes at a time where the length is not known beforehand, as of what is compressed: little enough that a piece of
# it cannot fill the memory.
_PIECE = 1 << 18
ACCEPTED_ENCODINGS = "gzip, deflate"
# urllib3 unpacks what it can, asked for or not, and some of it (brotli before 1.2) without a bound.
_REFUSED_ENCODINGS = {*HTTPResponse.CONTENT_DECODERS, "br", "zstd"} - {"gzip", "x-gzip", "deflate"}


def read_body(response: requests.Response, operation: str, max_answer_mb: int) -> bytes:
    """Return the whole body, decompressed, and give the connection back.

    :param response: an answer of which no more than the headers was read
    :param operation: name of the operation that was answered
    :param max_answer_mb: megabytes (1,048,576 bytes each) at most
    :raises AnaplatAnswerTooLargeError: the body is larger, compressed or not
    :raises AnaplatInvalidAnswerError: the body is compressed in a way that was not asked for
    :raises requests.RequestException: the connection fails
    """
    length = response.raw.length_remaining
    encodings = [encoding.strip() for encoding in response.headers.get("Content-Encoding", "").lower().split(",")]
    with closing(response):
        if refused := _REFUSED_ENCODINGS.intersection(encodings):
            raise _not_asked_for(operation, response, ", ".join(sorted(refused)))
        if length is not None and length > max_answer_mb * MEGABYTE:
            raise _too_large(operation, response, max_answer_mb)
        if length is not None and encodings == [""]:
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


def _not_asked_for(operation: str, response: requests.Response, encoding: str) -> errors.AnaplatError:
    return errors.AnaplatInvalidAnswerError(
        f"{operation}: the answer is compressed as {encoding}, which is not unpacked and was not asked for "
        f"({ACCEPTED_ENCODINGS} was). Look which server or proxy on the way compresses it.",
        operation=operation,
        status=response.status_code,
    )


def _too_large(operation: str, response: requests.Response, max_answer_mb: int) -> errors.AnaplatError:
    return errors.AnaplatAnswerTooLargeError(
        f"{operation}: the answer is larger than {max_answer_mb:,} MB; the rest of it was not read. Ask for less "
        "at a time (a smaller page_size), or raise the connection's extra `max_answer_mb`, if the worker has "
        "several times as much memory.",
        operation=operation,
        status=response.status_code,
    )
