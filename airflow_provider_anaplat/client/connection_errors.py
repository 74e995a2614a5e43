"""From an exception of requests to the layer that failed, and whether the request had left."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import requests
from urllib3 import exceptions as urllib3_errors

from airflow_provider_anaplat.client import errors
from airflow_provider_anaplat.client.redaction import redact, without_userinfo

# What requests raises before it sends anything; all else may come after the platform acted.
_UNUSABLE = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.exceptions.InvalidProxyURL,
)


def was_never_sent(error: errors.AnaplatError) -> bool:
    """Tell whether the request provably did not reach the platform."""
    return isinstance(error, errors.AnaplatUnreachableError | errors.AnaplatRequestError)


def connection_error(
    operation: str, base_url: str, error: requests.RequestException, secrets: Iterable[str]
) -> errors.AnaplatError:
    """Translate what requests raised into the exception that says what to do."""
    host = urlsplit(base_url).netloc
    error_type, layer, what = _classify(error, host)
    detail = " ".join(without_userinfo(redact(str(_innermost(error)), secrets)).split())
    translated = error_type(f"{operation}: {what} [{detail}]", operation=operation)
    if isinstance(translated, errors.AnaplatConnectionError):
        translated.layer = layer
    return translated


def _classify(error: requests.RequestException, host: str) -> tuple[type[errors.AnaplatError], str, str]:
    causes = list(_chain(error))
    if _any(causes, urllib3_errors.NameResolutionError):
        return (
            errors.AnaplatUnreachableError,
            "DNS",
            f"the host name in {host} is not known. Check the connection's host.",
        )
    if _any(causes, ssl.SSLCertVerificationError):
        return (
            errors.AnaplatUnreachableError,
            "TLS",
            (
                f"the certificate of {host} is not trusted. Give the CA bundle's path in the connection's "
                "extra `verify`."
            ),
        )
    cut_off = _any(causes, ssl.SSLEOFError) or _any(causes, ssl.SSLZeroReturnError)
    if isinstance(error, requests.exceptions.SSLError) and not cut_off:
        return (
            errors.AnaplatConnectionError,
            "TLS",
            (f"no secure connection to {host}. Check scheme and port; the platform may speak plain http there."),
        )
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return (
            errors.AnaplatConnectTimeoutError,
            "TCP",
            (f"{host} did not accept a connection in time. Check host, port, proxy and firewall."),
        )
    if isinstance(error, requests.exceptions.ReadTimeout) or _any(causes, urllib3_errors.ReadTimeoutError):
        return (
            errors.AnaplatTimeoutError,
            "HTTP",
            (
                f"{host} accepted the request and did not answer in time. The connection's extra "
                "`read_timeout` (seconds) says how long is waited."
            ),
        )
    if _any(causes, urllib3_errors.NewConnectionError) or _any(causes, ConnectionRefusedError):
        return (
            errors.AnaplatUnreachableError,
            "TCP",
            f"no connection to {host}. Check host and port, and that it is up.",
        )
    if isinstance(error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError):
        return errors.AnaplatTruncatedAnswerError, "HTTP", f"{host} broke off in the middle of its answer."
    if isinstance(error, requests.exceptions.ConnectionError):
        return errors.AnaplatConnectionError, "TCP", f"{host} broke the connection before it answered."
    if isinstance(error, _UNUSABLE):
        return errors.AnaplatRequestError, "HTTP", "the request could not be made. Check the connection's fields."
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


def _any(causes: list[BaseException], kind: type[BaseException]) -> bool:
    return any(isinstance(cause, kind) for cause in causes)


def _innermost(error: requests.RequestException) -> BaseException:
    inner = error.args[0] if error.args else None
    reason = getattr(inner, "reason", inner)
    return reason if isinstance(reason, BaseException) else error
