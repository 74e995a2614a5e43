"""The adapter of the session: each request gets its own answer, and an answer has to end in time."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, parse_headers
from socket import socket
from threading import local
from time import monotonic
from typing import Any, cast

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_auth_from_url, prepend_scheme_if_needed
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import HTTPError

from airflow_provider_anaplat.client._http.large_pages import LARGE, in_large_pages

_LONGEST_ANSWER = 10  # times the read time-out
_MOST_INTERIM_ANSWERS = 16
_SWITCHING_PROTOCOLS = 101
_LONGEST_LINE = 16_384  # bytes; of those between chunks, which hold a number, or a header that nobody reads


_here = local()  # has_left: whether anything of this thread's request has left


class NotSentError(requests.RequestException):
    """What went wrong, its first argument, did so before anything of the request left."""


class AnswerTooSlowError(TimeoutError):
    """An answer did not end in time, though none of its bytes was late."""


class TimedAdapter(HTTPAdapter):
    """Sends requests as requests does, and gives up answers that last too long.

    Each byte begins the read time-out anew: an answer that drips a byte now and then would never end, be it in
    the headers, in the body, or in what a proxy says of a tunnel.

    :param read_timeout: seconds for the next bytes; a whole answer has ten times as long, and eleven
        times if the last bytes are late
    """

    def __init__(self, read_timeout: float, **arguments: Any) -> None:
        self._seconds = _LONGEST_ANSWER * read_timeout
        super().__init__(**arguments)

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request.

        :raises NotSentError: it failed before that: a file of certificates, a host name, a proxy, a handshake, …
        """
        _here.has_left = False
        try:
            return super().send(*args, **kwargs)
        except (OSError, ValueError, OverflowError, HTTPError, HTTPException) as error:
            if _here.has_left:
                raise
            raise NotSentError(error) from error

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        """Return the connections to where a request goes, through a proxy or not; they watch their answers."""
        pool = cast(HTTPConnectionPool, super().get_connection_with_tls_context(*args, **kwargs))
        kind = pool.ConnectionCls  # asked for once, as another thread may set it meanwhile
        if not issubclass(kind, _Watching):
            pool.ConnectionCls = type(kind.__name__, (_Watching, kind), {"seconds": self._seconds})
        return pool

    def build_response(self, req: Any, resp: Any) -> requests.Response:
        """Return the answer without its Content-Type, which nobody needs: older requests fail at what some say."""
        resp.headers.pop("Content-Type", None)
        return super().build_response(req, resp)

    def secrets_of(self, proxy: str) -> Iterator[str]:
        """Yield the password in a proxy's address in every form that an error or the proxy itself may show."""
        userinfo, at, _ = proxy.rpartition("@")
        if not at:
            return
        written = userinfo.split("//", 1)[-1].partition(":")[2]
        yield written
        # If one of these is not quoted, urllib3 takes what is before it for a port.
        yield re.split("[/?#]", written)[0]
        with suppress(ValueError):  # no address, or nothing that a header can hold: it is not used either
            address = prepend_scheme_if_needed(proxy, "http")  # type: ignore[no-untyped-call]  # as its stub is
            yield get_auth_from_url(address)[1]
            yield self.proxy_headers(address).get("Proxy-Authorization", "").removeprefix("Basic ")


class _Watching:
    """A connection that knows of what goes and comes over it.

    :cvar seconds: that an answer may take
    """

    seconds: float
    sock: socket | None

    def endheaders(self, *args: Any, **kwargs: Any) -> None:
        """Send the request, of which nothing leaves before; what a proxy is told of a tunnel goes another way."""
        connection = cast(HTTPConnection, super())  # which this class is mixed into
        if self.sock is None:
            connection.connect()
        _here.has_left = True
        connection.endheaders(*args, **kwargs)

    def response_class(self, *args: Any, **kwargs: Any) -> HTTPResponse:
        """Return what reads an answer."""
        return _WatchedResponse(self, *args, **kwargs)


class _WatchedResponse(HTTPResponse):
    """An answer that ends in time, and that is the answer to the request.

    Python takes an interim answer other than 100 for the answer. The one that follows, and any bytes beyond a
    body, would be read as the answer to the next request: a connection on which there was more than one plain
    answer is not used again.
    """

    def __init__(self, connection: Any, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._connection = connection
        self._socket = sock
        self._received = _Timed(self.fp.detach(), connection.seconds)
        self.fp = _Lines(self._received)
        self._interim_answers = 0

    def begin(self) -> None:
        """Read the status line and the headers of the answer.

        :raises HTTPException: it cannot be told where its body ends
        """
        super().begin()
        said = ",".join(self.headers.get_all("Content-Length", [])).split(",")
        lengths = {length.strip() for length in said}
        if len(lengths) > 1:
            raise HTTPException("the answer has several lengths")
        if self.length is None and not self.chunked and re.fullmatch("[0-9]{1,18}", length := lengths.pop()):
            self.length = int(length)  # which Python does not know if one line says it twice, as urllib3 does
        framed_twice = "Content-Length" in self.headers and "Transfer-Encoding" in self.headers
        if self._interim_answers or framed_twice or self.headers.defects:
            self.will_close = True
        # What is no header, urllib3 would write into the log, secrets that the platform repeats included.
        self.headers.defects.clear()
        self.headers.set_payload("")

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]  # as its stub leaves it out
            if not 100 <= status < 200:
                return version, status, reason
            self._interim_answers += 1
            if status == _SWITCHING_PROTOCOLS or self._interim_answers > _MOST_INTERIM_ANSWERS:
                raise HTTPException(f"HTTP {status} is no answer")
            parse_headers(self.fp)

    def _close_conn(self) -> None:
        self._received.end()
        is_over = self.fp.closed or not (self.fp.peek() or _pending(self._socket))
        super()._close_conn()  # type: ignore[misc]  # as its stub leaves it out
        if self.headers is not None and not is_over:  # a proxy's answer to CONNECT has none, and the rest is TLS
            self._connection.close()


class _Lines(io.BufferedReader):
    """What was received, without an endless line: urllib3 before 2.8 has no limit for those between chunks.

    A chunk that says to have -1 bytes would be all that comes, in one piece.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            raise ValueError("nothing is read to its end at once")
        return super().read(size)

    def readline(self, size: int | None = -1, /) -> bytes:
        if size is not None and size >= 0:
            return super().readline(size)
        line = super().readline(_LONGEST_LINE)
        if len(line) == _LONGEST_LINE:
            raise HTTPException(f"a line has {_LONGEST_LINE:,} bytes or more")
        return line


def _pending(sock: Any) -> int:
    """Return how many bytes of a socket were decrypted and not read."""
    pending = getattr(getattr(sock, "sslobj", sock), "pending", None)
    return pending() if pending else 0


class _Timed(io.RawIOBase):
    """What a socket receives, for a number of seconds from now on."""

    def __init__(self, received: io.RawIOBase, seconds: float) -> None:
        self._received = received
        self._seconds = seconds
        self._end = monotonic() + seconds
        self._ended = False
        self._is_large = False

    def end(self) -> None:
        """Receive nothing more."""
        self._ended = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._ended:
            return 0
        if monotonic() > self._end:
            raise AnswerTooSlowError(
                f"the answer did not end within {self._seconds:g} s, {_LONGEST_ANSWER} times `read_timeout`"
            )
        if len(buffer) >= LARGE and not self._is_large:
            self._is_large = True
            in_large_pages(buffer)
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()
