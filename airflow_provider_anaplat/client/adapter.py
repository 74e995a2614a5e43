"""The adapter of the session: an answer has to end in time, from its status line to its last byte."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.client import HTTPResponse
from time import monotonic
from typing import Any, cast

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_auth_from_url, prepend_scheme_if_needed
from urllib3 import HTTPConnectionPool

_LONGEST_ANSWER = 10  # times the read time-out


class AnswerTooSlowError(TimeoutError):
    """An answer did not end in time, though none of its bytes was late."""


class TimedAdapter(HTTPAdapter):
    """Sends requests as requests does, and gives up answers that last too long.

    Each byte begins the read time-out anew: an answer of which one drips now and then would never end, be it in
    the headers, in the body, or in what a proxy says of a tunnel.

    :param read_timeout: seconds for the next bytes; a whole answer has ten times as long, and eleven
        times where the last bytes are late
    """

    def __init__(self, read_timeout: float, **arguments: Any) -> None:
        self._response_class = partial(_TimedResponse, _LONGEST_ANSWER * read_timeout)
        super().__init__(**arguments)

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        """Return the connections to where a request goes, through a proxy or not; they time their answers."""
        pool = cast(HTTPConnectionPool, super().get_connection_with_tls_context(*args, **kwargs))
        if not hasattr(pool.ConnectionCls, "timed"):
            timed = {"timed": True, "response_class": staticmethod(self._response_class)}
            pool.ConnectionCls = type(pool.ConnectionCls.__name__, (pool.ConnectionCls,), timed)
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
        # Where one of these is not quoted, urllib3 takes what is before it for a port.
        yield re.split("[/?#]", written)[0]
        with suppress(ValueError):  # no address, or nothing that a header can hold: it is not used either
            address = prepend_scheme_if_needed(proxy, "http")  # type: ignore[no-untyped-call]  # as its stub is
            yield get_auth_from_url(address)[1]
            yield self.proxy_headers(address).get("Proxy-Authorization", "").removeprefix("Basic ")


class _TimedResponse(HTTPResponse):
    def __init__(self, seconds: float, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), seconds))


class _Timed(io.RawIOBase):
    """What a socket receives, for so many seconds from now on."""

    def __init__(self, received: io.RawIOBase, seconds: float) -> None:
        self._received = received
        self._seconds = seconds
        self._end = monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if monotonic() > self._end:
            raise AnswerTooSlowError(
                f"the answer did not end within {self._seconds:g} s, {_LONGEST_ANSWER} times `read_timeout`"
            )
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()
