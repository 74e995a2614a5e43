"""One HTTP session to the platform: time-outs, retries, no redirects, no secret in any message."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from json import dumps
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
import tenacity
from requests.adapters import HTTPAdapter

from airflow_provider_anaplat.client import errors
from airflow_provider_anaplat.client.connection_errors import connection_error, was_never_sent
from airflow_provider_anaplat.client.envelope import Answer, is_known_refusal
from airflow_provider_anaplat.client.metrics import (
    REQUESTS,
    RETRIES,
    RETRY_AFTER,
    Metric,
    Observer,
    observe,
    outcome_of,
)
from airflow_provider_anaplat.client.operations import TOKEN_HEADER, Operation
from airflow_provider_anaplat.client.redaction import secrets_in, without_token_in_address

log = logging.getLogger(__name__)
# It writes the address of every request at level DEBUG.
logging.getLogger("urllib3.connectionpool").addFilter(without_token_in_address)

T = TypeVar("T")

_FIRST_WAIT = 0.5  # seconds; doubled at each further attempt, and a random part of it waited
_LONGEST_WAIT = 30.0
_LONGEST_RETRY_AFTER = 120.0  # a platform that asks for more is asked again after this
_POOL_SIZE = 64  # connections kept open; more than any export uses at a time
_RETRIED_STATUS = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach the platform; what each means is said at :class:`AnaplatClient`."""

    base_url: str
    token: str = field(repr=False)
    user_token: str | None = field(default=None, repr=False)
    connect_timeout: float = 10
    read_timeout: float = 300
    max_retries: int = 4
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    proxies: Mapping[str, str] | None = field(default=None, repr=False)
    task_status: Mapping[str, Any] | None = None
    observer: Observer | None = field(default=None, repr=False, compare=False)


class Transport:
    """Sends requests and hands their answers to a reader, repeating what may be repeated.

    Safe to use from several threads.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closed = threading.Event()
        # How much the platform's clock is ahead of ours at the least; below 0 where it is behind.
        self.least_clock_difference = timedelta(0)
        self._session = requests.Session()
        # Without an auth of its own, requests would look for credentials in ~/.netrc and send them.
        self._session.auth = _no_auth
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = HTTPAdapter(pool_maxsize=_POOL_SIZE, max_retries=0)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)
        proxies = (settings.proxies or {}).values()
        self._secrets = (
            settings.token,
            settings.user_token or "",
            *(urlsplit(proxy).password or "" for proxy in proxies),
        )

    def send(
        self,
        operation: Operation[Any],
        path: str,
        read: Callable[[Answer], T],
        *,
        json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        secrets: Sequence[str] | None = None,
    ) -> T:
        """Send a request and return what ``read`` makes of the answer.

        :param operation: its row of the operation table
        :param path: the path with the ids filled in
        :param read: turns an answer into a result, or raises; it runs inside the retry, so that an answer
            that was cut off is asked for again
        :param json: the body, without the token
        :param params: query parameters
        :param secrets: what no message may show, beside the connection's own; by default, what the request holds
            under the keys of secrets
        :raises AnaplatOutcomeUnknownError: a write left, and what became of it is not known
        :raises AnaplatError: everything else
        """
        attempts = self._settings.max_retries + 1
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(attempts),
            wait=_wait,
            retry=tenacity.retry_if_exception(
                lambda error: not self._closed.is_set() and _may_repeat(operation, error)
            ),
            before_sleep=lambda state: self._note_retry(operation, state, attempts),
            sleep=self._pause,
            reraise=True,
        )
        try:
            result: T = retrying(self._counted, operation, path, read, json, params, secrets)
        except errors.AnaplatError as error:
            if operation.repeatable or was_never_sent(error) or is_known_refusal(error):
                raise
            raise _outcome_unknown(operation, error) from None
        return result

    def _note_retry(self, operation: Operation[Any], state: tenacity.RetryCallState, attempts: int) -> None:
        _log_retry(operation, state, attempts)
        self._observe(RETRIES, 1, operation)

    def _counted(
        self,
        operation: Operation[Any],
        path: str,
        read: Callable[[Answer], T],
        json: Mapping[str, Any] | None,
        params: Mapping[str, Any] | None,
        secrets: Sequence[str] | None,
    ) -> T:
        """Send the request once, and count how it went."""
        try:
            result = self._exchange(operation, path, read, json, params, secrets)
        except errors.AnaplatRequestError:  # nothing was sent
            raise
        except errors.AnaplatError as error:
            self._observe(REQUESTS, 1, operation, outcome=outcome_of(error))
            if error.retry_after is not None:
                self._observe(RETRY_AFTER, error.retry_after, operation)
            raise
        self._observe(REQUESTS, 1, operation, outcome="ok")
        return result

    def _observe(self, metric: Metric, value: float, operation: Operation[Any], **tags: str) -> None:
        name = "call" if "/" in operation.name else operation.name  # a path can hold anything
        observe(self._settings.observer, metric, value, operation=name, **tags)

    def _note_clock(self, date: str | None) -> None:
        try:
            # The platform wrote the header at this moment of ours or before.
            self.least_clock_difference = parsedate_to_datetime(date or "").astimezone(UTC) - datetime.now(UTC)
        except (ValueError, OverflowError):
            return

    def _pause(self, seconds: float) -> None:
        self._closed.wait(seconds)

    def close(self) -> None:
        """Close all connections, and wake and end what waits for its next attempt."""
        self._closed.set()
        self._session.close()

    def _exchange(
        self,
        operation: Operation[Any],
        path: str,
        read: Callable[[Answer], T],
        json: Mapping[str, Any] | None,
        params: Mapping[str, Any] | None,
        secrets: Sequence[str] | None,
    ) -> T:
        settings = self._settings
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        body = dict(json or {})
        if secrets is None:
            secrets = (*secrets_in(body), *secrets_in(dict(params or {})))
        secrets = (*self._secrets, *secrets)
        if operation.token_in == "header":
            headers[TOKEN_HEADER] = settings.user_token or settings.token
        elif operation.token_in == "query":
            params = {**(params or {}), "token": settings.token}
        else:
            body["token"] = settings.token
        # A GET with a body is refused by some proxies.
        content = _json_bytes(operation, body) if body or operation.method != "GET" else None
        try:
            response = self._session.request(
                operation.method,
                settings.base_url + path,
                params=params,
                data=content,
                headers=headers,
                timeout=(settings.connect_timeout, settings.read_timeout),
                allow_redirects=False,
                verify=settings.verify,
                cert=settings.cert,
                proxies=dict(settings.proxies or {}),
                stream=True,
            )
            # In one piece where its length is known: requests' own pieces of 10 KiB cost a copy of the body, and
            # make the threads of an export wait for each other at every one of them.
            body_bytes = b"".join(response.iter_content(chunk_size=None))
            self._note_clock(response.headers.get("Date"))
        except requests.RequestException as error:
            # Not "from error": what lower layers say may hold an address with a password, or query parameters.
            raise connection_error(operation.name, settings.base_url, error, secrets) from None
        except ValueError:  # a Location that is no address, which requests reads though it need not follow
            raise errors.AnaplatInvalidAnswerError(
                f"{operation.name}: the answer's headers cannot be read.", operation=operation.name
            ) from None
        return read(
            Answer(
                operation=operation.name,
                status=response.status_code,
                body=body_bytes,
                secrets=secrets,
                location=response.headers.get("Location"),
                retry_after=_seconds(response.headers.get("Retry-After")),
            )
        )


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _may_repeat(operation: Operation[Any], error: BaseException) -> bool:
    if not isinstance(error, errors.AnaplatError) or isinstance(error, errors.AnaplatRequestError):
        return False
    if isinstance(error, errors.AnaplatConnectionError) and error.layer == "TLS":
        return False
    if was_never_sent(error):
        return True
    if not operation.repeatable:
        return False
    if isinstance(error, errors.AnaplatConnectionError | errors.AnaplatTruncatedAnswerError):
        return True
    return error.status in _RETRIED_STATUS


def _wait(state: tenacity.RetryCallState) -> float:
    backoff = tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT)(state)
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, errors.AnaplatError) else None
    return backoff if asked is None else asked + min(backoff, 1)


def _log_retry(operation: Operation[Any], state: tenacity.RetryCallState, attempts: int) -> None:
    log.warning(
        "%s (attempt %d of %d; next one in %.1f s)",
        state.outcome.exception() if state.outcome else operation.name,
        state.attempt_number,
        attempts,
        state.next_action.sleep if state.next_action else 0,
    )


def _seconds(retry_after: str | None) -> float | None:
    """Read ``Retry-After``, given in seconds or as an HTTP date, up to a maximum; what is neither says nothing."""
    if retry_after is None:
        return None
    try:
        if re.fullmatch(r"\s*[0-9]+\s*", retry_after):
            seconds = float(retry_after)
        else:
            seconds = (parsedate_to_datetime(retry_after).astimezone(UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER)


def _json_bytes(operation: Operation[Any], body: Mapping[str, Any]) -> bytes:
    try:
        return dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError):
        raise errors.AnaplatRequestError(
            f"{operation.name}: the request holds a value that JSON cannot; nothing was sent.",
            operation=operation.name,
        ) from None


def _outcome_unknown(operation: Operation[Any], error: errors.AnaplatError) -> errors.AnaplatError:
    return errors.AnaplatOutcomeUnknownError(
        f"{operation.name}: the request left, and whether the platform carried it out is not known. "
        f"It was not sent again. Look on the platform before you repeat it. What happened: {error}",
        operation=operation.name,
        status=error.status,
        code=error.code,
        platform_message=error.platform_message,
        excerpt=error.excerpt,
        retry_after=error.retry_after,
    )
