"""The body of an answer, read and unpacked within bounds of size.

It is unpacked here, and not by urllib3, whose releases differ in what they unpack and in how much of it at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from io import BytesIO

import requests

from airflow_provider_anaplat import errors

MEGABYTE = 1 << 20
# Bytes at a time if the length is not known beforehand, as with what is compressed: little enough that a piece of
# it cannot fill the memory.
_PIECE = 1 << 18
_PACKED = 1 << 12
ACCEPTED_ENCODINGS = "gzip, deflate"
_GZIP = ("gzip", "x-gzip")
_UNPACKED = (*_GZIP, "deflate")
_MOST_TIMES = 4  # that an answer is packed, one within another; each time takes a level of Python's stack
_REFUSED = ("br", "compress", "dcb", "dcz", "x-compress", "zstd")


def read_body(response: requests.Response, operation: str, most: int) -> bytes:
    """Return the whole body, decompressed, and give the connection back.

    :param response: an answer whose headers alone have been read
    :param operation: name of the operation that was answered
    :param most: bytes at most
    :raises AnaplatAnswerTooLargeError: the body is larger, compressed or not
    :raises AnaplatInvalidAnswerError: the body is compressed in a way that was not asked for, or too often
    :raises requests.RequestException: the connection fails
    """
    length = response.raw.length_remaining
    said = response.headers.get("Content-Encoding", "").lower().split(",")
    encodings = [encoding.strip() for encoding in said if encoding.strip()]
    with closing(response):
        if refused := sorted(set(encodings).intersection(_REFUSED)):
            raise _not_asked_for(operation, response, ", ".join(refused))
        if (times := sum(encoding in _UNPACKED for encoding in encodings)) > _MOST_TIMES:
            raise _not_asked_for(operation, response, f"gzip or deflate {times:,} times over")
        if length is not None and length > most:
            raise _too_large(operation, response, most, length)
        # Without its name, urllib3 unpacks nothing; requests has noted it already.
        response.raw.headers.pop("Content-Encoding", None)
        if length is not None and not encodings:
            # In one piece: smaller ones cost a copy of the body, and make the threads of an export wait for each
            # other at every one of them.
            return b"".join(response.iter_content(chunk_size=None))
        error = _too_large(operation, response, most)
        pieces = _bounded(response.iter_content(_PIECE), most, error)
        for encoding in reversed(encodings):
            if encoding in _UNPACKED:  # some servers write there what belongs to Content-Type
                pieces = _bounded(_unpacked(pieces, encoding), most, error)
        # To join pieces of two bytes, which a server may send, takes thirty times their memory.
        body = BytesIO()
        body.writelines(pieces)
        return body.getvalue()


def _bounded(pieces: Iterable[bytes], most: int, error: errors.AnaplatError) -> Iterator[bytes]:
    """Hand pieces on, and raise the error at the first byte too many."""
    left = most
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            raise error
        yield piece


def _unpacked(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Unpack pieces into pieces; no bytes at all stay none.

    :raises requests.exceptions.ContentDecodingError: they are of another encoding, or their end is missing, or
        more comes after it
    """
    cut = _cut(pieces)
    packed = next(cut, b"")
    unpacker = zlib.decompressobj(_window(encoding, packed))
    complete = not packed
    try:
        while packed:
            yield unpacker.decompress(packed, _PIECE)
            complete = unpacker.eof
            packed = unpacker.unconsumed_tail or unpacker.unused_data or next(cut, b"")
            if complete and packed:
                if encoding not in _GZIP:
                    raise zlib.error("more comes after its end")
                unpacker = zlib.decompressobj(_window(encoding, packed))  # one member after another
        yield unpacker.flush()
    except zlib.error as error:
        raise requests.exceptions.ContentDecodingError(f"it is no {encoding}: {error}") from None
    if not (complete or unpacker.eof):
        raise requests.exceptions.ContentDecodingError(f"the {encoding} has no end")


def _cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut pieces so small that zlib, which copies what follows a member, has little to copy.

    The first is two bytes at least, if there are that many.
    """
    kept = b""
    for piece in pieces:
        kept += piece
        if len(kept) > 1:
            yield from (kept[start : start + _PACKED] for start in range(0, len(kept), _PACKED))
            kept = b""
    if kept:
        yield kept


def _window(encoding: str, begin: bytes) -> int:
    """Return what zlib has to be told; some servers leave out the header of deflate, as its name suggests."""
    if encoding in _GZIP:
        return zlib.MAX_WBITS | 16
    has_header = begin[:1] and begin[0] & 0xF == zlib.DEFLATED and int.from_bytes(begin[:2]) % 31 == 0
    return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS


def _not_asked_for(operation: str, response: requests.Response, encoding: str) -> errors.AnaplatError:
    return errors.AnaplatInvalidAnswerError(
        f"{operation}: the answer is compressed as {encoding}, which was not requested "
        f"({ACCEPTED_ENCODINGS} was), so it is not decompressed. Find out which server or proxy on the way "
        "compresses it.",
        operation=operation,
        status=response.status_code,
    )


def _too_large(
    operation: str, response: requests.Response, most: int, size: int | None = None
) -> errors.AnaplatError:
    return errors.AnaplatAnswerTooLargeError(
        f"{operation}: the answer is larger than {most // MEGABYTE:,} MB; the rest of it was not read. Ask for "
        "less at a time (a smaller page_size), or raise the connection's extra `max_answer_mb`, if the worker has "
        "several times as much memory.",
        size=size,
        operation=operation,
        status=response.status_code,
    )
