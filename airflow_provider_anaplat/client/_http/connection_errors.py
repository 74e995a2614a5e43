"""From an exception of requests to the layer that failed, and whether the request had left."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
from urllib3 import exceptions as urllib3_errors

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client._http.adapter import AnswerTooSlowError, NotSentError
from airflow_provider_anaplat.client._http.redaction import shortened, without_half_characters, without_userinfo
from airflow_provider_anaplat.client.operations import Operation

_request = requests.exceptions
# What the first of these kinds among an exception and its causes means: type, layer, text. The type may promise
# that nothing was sent; all else may come after the platform acted, unless the adapter says that nothing had left.
_FAILURES: tuple[tuple[tuple[type[BaseException], ...], type[errors.AnaplatError], str, str], ...] = (
    (
        (AnswerTooSlowError,), errors.AnaplatTimeoutError, "HTTP",
        "{host}, or a proxy before it, began to answer and did not end in time; what was read is given up. "
        "Look for what slows the platform or the network down, ask for less at a time (a smaller page_size), or "
        "raise the connection's extra `read_timeout`.",
    ),
    (
        (urllib3_errors.NameResolutionError,), errors.AnaplatUnreachableError, "DNS",
        "the host name in {host} is not known. Check the connection's host.",
    ),
    (
        (ssl.SSLCertVerificationError,), errors.AnaplatUnreachableError, "TLS",
        "the certificate of {host} is not trusted. If it is for another name, correct the connection's host; if a "
        "private authority signed it, give the CA bundle's path in the extra `verify`.",
    ),
    (
        (_request.ChunkedEncodingError, _request.ContentDecodingError), errors.AnaplatTruncatedAnswerError, "HTTP",
        "{host} broke off in the middle of its answer.",
    ),
    (
        (ssl.SSLEOFError, ssl.SSLZeroReturnError), errors.AnaplatConnectionError, "TCP",
        "{host} broke the connection before it answered. It may want a client certificate (the connection's extra "
        "`cert`).",
    ),
    (
        (_request.SSLError,), errors.AnaplatConnectionError, "TLS",
        "no secure connection to {host}. Check scheme and port, and the files of the connection's extras `verify` "
        "and `cert`; the platform may speak plain http there, or want a client certificate.",
    ),
    (
        (_request.ConnectTimeout,), errors.AnaplatConnectTimeoutError, "TCP",
        "{host} did not accept a connection in time. Check host, port, proxy and firewall.",
    ),
    (
        (_request.ReadTimeout, urllib3_errors.ReadTimeoutError), errors.AnaplatTimeoutError, "HTTP",
        "{host} did not answer in time. The connection's extra `read_timeout` (seconds) "
        "says how long is waited.",
    ),
    (
        (urllib3_errors.NewConnectionError, ConnectionRefusedError), errors.AnaplatUnreachableError, "TCP",
        "no connection to {host}. Check host and port, and that it is up.",
    ),
    (
        (_request.ConnectionError,), errors.AnaplatConnectionError, "TCP",
        "{host} broke the connection before it answered.",
    ),
    (
        (_request.InvalidURL, _request.InvalidSchema, _request.MissingSchema), errors.AnaplatRequestError, "HTTP",
        "the request could not be made. Check the connection's fields.",
    ),
    (
        (NotSentError,), errors.AnaplatRequestError, "HTTP",
        "the request could not be made. Check the connection's fields, and the files that its extras name.",
    ),
)  # fmt: skip
_IF_NOTHING_LEFT: dict[type[errors.AnaplatError], type[errors.AnaplatError]] = {
    errors.AnaplatTimeoutError: errors.AnaplatConnectTimeoutError,
    errors.AnaplatConnectionError: errors.AnaplatUnreachableError,
}

_NEVER_SENT = (errors.AnaplatUnreachableError, errors.AnaplatRequestError)
_LONGEST_DETAIL = 300  # characters
_PROXY = (
    "the proxy on the way to {host} cannot be used. Check the address, user and password in the connection's "
    "extra `proxies`, or in the environment's."
)


def was_never_sent(error: errors.AnaplatError) -> bool:
    """Tell whether the request provably did not reach the platform."""
    return isinstance(error, _NEVER_SENT)


def connection_error(
    operation: str, base_url: str, error: requests.RequestException, secrets: Iterable[str]
) -> errors.AnaplatError:
    """Translate what requests raised into the exception that says what to do."""
    error_type, layer, what = _classify(error, urlsplit(base_url).netloc)
    if isinstance(error, NotSentError):
        error_type = _IF_NOTHING_LEFT.get(error_type, error_type)
    nothing_was_sent = " Nothing was sent." if issubclass(error_type, _NEVER_SENT) else ""
    detail = without_userinfo(shortened(_detail(error), secrets, _LONGEST_DETAIL))
    translated = error_type(
        without_half_characters(f"{operation}: {what}{nothing_was_sent} [{detail}]"), operation=operation
    )
    if isinstance(translated, errors.AnaplatConnectionError):
        translated.layer = layer
    return translated


def _classify(error: requests.RequestException, host: str) -> tuple[type[errors.AnaplatError], str, str]:
    causes = list(_chain(error))
    if any(isinstance(cause, urllib3_errors.ProxyError) for cause in causes):
        # urllib3 says so too of a proxy that breaks the connection after it has taken the request.
        return errors.AnaplatConnectionError, "TCP", _PROXY.format(host=host)
    for kinds, meaning, layer, text in _FAILURES:
        if any(isinstance(cause, kinds) for cause in causes):
            return meaning, layer, text.format(host=host)
    return errors.AnaplatInvalidAnswerError, "HTTP", f"the answer of {host} breaks the rules of HTTP."


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and all that it wraps, by whichever of the ways requests and urllib3 wrap.

    ``__context__`` is not followed: it leads to whatever the caller was handling when it sent the request.
    """
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [*current.args, getattr(current, "reason", None), current.__cause__]


def _detail(error: BaseException) -> str:
    """Return what the lower layers say."""
    for cause in _chain(error):
        if isinstance(cause, AnswerTooSlowError):
            return str(cause)
        if isinstance(cause, UnicodeEncodeError):  # whose text holds a character, which may be a password's
            return f"{cause.encoding}: {cause.reason}"
    if isinstance(error, NotSentError):
        error = error.args[0]
    inner = error.args[0] if error.args else None
    reason = getattr(inner, "reason", inner)
    return str(reason if isinstance(reason, BaseException) else error)


def outcome_unknown(operation: Operation[Any], error: errors.AnaplatError) -> errors.AnaplatError:
    """Return the error of a write that left, whose answer is the error that is given."""
    return errors.AnaplatOutcomeUnknownError(
        f"{operation.name}: the request was sent, but it is not known whether the platform carried it "
        f"out. It was not sent again. Look on the platform before you repeat it. What happened: {error}",
        operation=operation.name,
        status=error.status,
        code=error.code,
        platform_message=error.platform_message,
        excerpt=error.excerpt,
        retry_after=error.retry_after,
    )
