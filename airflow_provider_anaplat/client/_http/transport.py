"""One HTTP session to the platform: time-outs, retries, no redirects, no secret in any message."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar, cast

import requests
import tenacity

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client._http.adapter import TimedAdapter
from airflow_provider_anaplat.client._http.body import ACCEPTED_ENCODINGS, MEGABYTE, read_body
from airflow_provider_anaplat.client._http.checks import check_method
from airflow_provider_anaplat.client._http.connection_errors import (
    connection_error,
    outcome_unknown,
    was_never_sent,
)
from airflow_provider_anaplat.client._http.envelope import Answer, is_known_refusal, read_answer
from airflow_provider_anaplat.client._http.outgoing import json_bytes
from airflow_provider_anaplat.client._http.redaction import secrets_in, without_token_in_address
from airflow_provider_anaplat.client._http.retries import (
    log_retry,
    may_repeat,
    moment_of,
    seconds_of,
    wait_before,
)
from airflow_provider_anaplat.client._http.settings import Settings
from airflow_provider_anaplat.client._http.slots import shared_slots
from airflow_provider_anaplat.client._http.user_tokens import UserTokens
from airflow_provider_anaplat.client.metrics import (
    REQUESTS,
    RETRIES,
    RETRY_AFTER,
    Metric,
    observe,
    outcome_of,
)
from airflow_provider_anaplat.client.operations import (
    APPLICATION_TOKEN_HEADER,
    SIGN_IN,
    TOKEN_HEADER,
    Operation,
)
from airflow_provider_anaplat.client.sign_in import (
    SignIn,
    UserToken,
    read_user_token,
    sign_in_error,
    sign_in_of,
)

# They write addresses; a filter of a logger does not see what those below it log.
for _module in ("connection", "connectionpool", "poolmanager", "response", "util.retry"):
    logging.getLogger(f"urllib3.{_module}").addFilter(without_token_in_address)

T = TypeVar("T")

_NO_CLOCK = timedelta(days=365)  # nor is any clock so wrong; what a proxy writes in its place may be
_POOL_SIZE = 64  # connections kept open; more than any export uses at a time


@dataclass(frozen=True, slots=True)
class _Request:
    """A request as it is sent.

    :param secrets: what no message may show
    :param most: bytes of the answer at most
    """

    operation: Operation[Any]
    path: str
    params: Mapping[str, Any] | None = field(repr=False)
    content: bytes | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    most: int


class _Session(requests.Session):
    """A session that does not read where a redirect leads.

    Requests would look there even when told not to follow, and read the whole body first, without a limit.
    """

    def get_redirect_target(self, resp: requests.Response) -> None:
        """Say that there is none."""


class Transport:
    """Sends requests and hands their answers to a reader, repeating what may be repeated.

    Safe to use from several threads.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._closed = threading.Event()
        self._slots = shared_slots(
            settings.max_connections, (settings.base_url, settings.token, settings.user_token)
        )
        # How much the platform's clock is ahead of ours at the least; below 0 if it is behind.
        self.least_clock_difference = timedelta(0)
        self._most_clock_difference = timedelta(0)
        self._session = _Session()
        # Without an auth of its own, requests would look for credentials in ~/.netrc and send them.
        self._session.auth = lambda request: request
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = TimedAdapter(settings.read_timeout, pool_maxsize=_POOL_SIZE, max_retries=0)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)
        of_proxies = (secret for proxy in self._proxies() for secret in adapter.secrets_of(proxy))
        self._sign_in = sign_in_of(
            settings.login,
            settings.user_token,
            settings.user_password,
            settings.sign_in_path,
            settings.sign_in_body,
        )
        of_user = self._sign_in.secrets if self._sign_in else ()
        self._secrets = (settings.token, settings.user_token or "", *of_user, *of_proxies)
        self._user_tokens = self._shared_tokens()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of the connection nothing may show, the user tokens that sign-ins have brought among it."""
        return (*self._secrets, *(self._user_tokens.known if self._user_tokens else ()))

    def send(
        self,
        operation: Operation[Any],
        path: str,
        read: Callable[[Answer], T],
        *,
        json: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        secrets: Sequence[str] | None = None,
        most: int | None = None,
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
        :param most: bytes of the answer at most, if that is less than the connection allows
        :raises AnaplatOutcomeUnknownError: a write left, and what became of it is not known
        :raises AnaplatError: everything else
        """

        def attempt(user_token: str | None = None) -> T:
            request = self._request(operation, path, json, params, secrets, user_token, most)
            result: T = self._retrying(operation)(self._counted, request, read)
            return result

        try:
            if operation.token_in == "header" and self._user_tokens is not None:
                return self._user_tokens.send(attempt, repeatable=operation.repeatable)
            return attempt()
        except errors.AnaplatError as error:
            of_sign_in = error.operation == SIGN_IN.name
            if operation.repeatable or of_sign_in or was_never_sent(error) or is_known_refusal(error):
                raise
            raise outcome_unknown(operation, error) from None

    def sign_in(self) -> None:
        """Sign in, whatever user token there is; the new one is shared.

        :raises AnaplatError: the platform does not sign the user in, or there is no login
        """
        if self._user_tokens is None:
            raise errors.AnaplatSettingsError("There is no user to sign in: the connection's login is empty.")
        self._user_tokens.sign_in()

    def close(self) -> None:
        """Close all connections, and wake and end what waits for its next attempt or for its turn."""
        self._closed.set()
        self._slots.wake()
        self._session.close()

    def _proxies(self) -> Iterable[str]:
        """Return the proxies that a request may go through: the connection's, and those of the environment."""
        own = dict(self._settings.proxies or {})
        merged = self._session.merge_environment_settings(self._settings.base_url, own, None, None, None)
        return [str(proxy) for proxy in merged["proxies"].values()]

    def _request(
        self,
        operation: Operation[Any],
        path: str,
        json: Mapping[str, Any] | None,
        params: Mapping[str, Any] | None,
        secrets: Sequence[str] | None,
        user_token: str | None = None,
        most: int | None = None,
    ) -> _Request:
        settings = self._settings
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": ACCEPTED_ENCODINGS,
            "Content-Type": "application/json",
        }
        body = dict(json or {})
        if operation.token_in == "header":
            headers[TOKEN_HEADER] = user_token or settings.user_token or settings.token
        elif operation.token_in == "token_header":
            headers[APPLICATION_TOKEN_HEADER] = settings.token
        elif operation.token_in == "query":
            params = {**(params or {}), "token": settings.token}
        elif operation.token_in == "body":
            body["token"] = settings.token
        # A GET with a body is refused by some proxies.
        content = json_bytes(operation, body) if body or operation.method != "GET" else None
        if secrets is None:  # of what JSON can hold, which has an end
            secrets = (*secrets_in(body), *secrets_in(params or {}))
        allowed = settings.max_answer_mb * MEGABYTE
        return _Request(
            operation,
            path,
            params,
            content,
            headers,
            secrets=(*self.secrets, *secrets),
            most=min(most or allowed, allowed),
        )

    def _shared_tokens(self) -> UserTokens | None:
        if self._sign_in is None:
            return None
        settings = self._settings
        digest = self._sign_in.digest(settings.base_url, settings.token)
        patience = settings.connect_timeout + settings.read_timeout
        return UserTokens(digest, self._signed_in, settings.token_store, self._wait, patience)

    def _signed_in(self) -> UserToken:
        """Ask for a user token."""
        how = cast(SignIn, self._sign_in)
        operation = replace(SIGN_IN, path=how.path, token_in=None)
        request = self._request(operation, how.path, how.request(self._settings.token), None, None)

        def read(answer: Answer) -> UserToken:
            return read_user_token(answer, time.time() + self.least_clock_difference.total_seconds())

        try:
            token: UserToken = self._retrying(operation)(self._counted, request, read)
        except errors.AnaplatError as error:
            raise sign_in_error(error, how.login) from None
        return token

    def _retrying(self, operation: Operation[Any]) -> tenacity.Retrying:
        attempts = self._settings.max_retries + 1

        def note_retry(state: tenacity.RetryCallState) -> None:
            log_retry(operation, state, attempts)
            self._observe(RETRIES, 1, operation)

        return tenacity.Retrying(
            stop=tenacity.stop_after_attempt(attempts),
            wait=wait_before,
            retry=tenacity.retry_if_exception(
                lambda error: not self._closed.is_set() and may_repeat(operation, error)
            ),
            before_sleep=note_retry,
            sleep=self._pause,
            reraise=True,
        )

    def _pause(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise errors.AnaplatClosedError(
                "The client was closed while a request waited for its next attempt; it was not sent again."
            )

    def _wait(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise errors.AnaplatClosedError(
                "The client was closed while it waited to sign in; the request was not sent."
            )

    def _counted(self, request: _Request, read: Callable[[Answer], T]) -> T:
        """Send the request once, and count how it went."""
        operation = request.operation
        try:
            result = read_answer(self._answer(request), read)
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

    def _answer(self, request: _Request) -> Answer:
        with self._slots.one(self._closed.is_set):
            asked_at = datetime.now(UTC)
            response, body = self._exchange(request)
        self._note_clock(response.headers.get("Date"), asked_at)
        return Answer(
            operation=request.operation.name,
            status=response.status_code,
            body=body,
            secrets=request.secrets,
            location=response.headers.get("Location"),
            retry_after=seconds_of(response.headers.get("Retry-After")),
            most_memory=2 * MEGABYTE * self._settings.max_answer_mb,
            shown=not request.operation.secret,
        )

    def _exchange(self, request: _Request) -> tuple[requests.Response, bytes]:
        settings, name = self._settings, request.operation.name
        try:
            response = self._send_once(request)
            return response, read_body(response, name, request.most)
        except errors.AnaplatError:
            raise
        except requests.RequestException as error:
            # Not "from error": what lower layers say may hold an address with a password, or query parameters.
            raise connection_error(name, settings.base_url, error, request.secrets) from None
        except (ValueError, OverflowError):  # of Python, which reads a piece's length and then that many bytes
            raise errors.AnaplatInvalidAnswerError(
                f"{name}: the answer is no valid HTTP.", operation=name
            ) from None

    def _prepared(self, request: _Request) -> requests.PreparedRequest:
        name, method = request.operation.name, request.operation.method
        check_method(name, method)
        try:
            return self._session.prepare_request(
                requests.Request(
                    method,
                    self._settings.base_url + request.path,
                    params=request.params,
                    data=request.content,
                    headers=request.headers,
                )
            )
        except requests.RequestException:
            raise
        except ValueError:  # such as an unpaired surrogate, which no address can hold
            raise errors.AnaplatRequestError(
                f"{name}: the request holds what no request can; nothing was sent.", operation=name
            ) from None

    def _send_once(self, request: _Request) -> requests.Response:
        settings = self._settings
        prepared = self._prepared(request)
        environment = self._session.merge_environment_settings(
            prepared.url, dict(settings.proxies or {}), True, settings.verify, settings.cert
        )
        timeout = (settings.connect_timeout, settings.read_timeout)
        return self._session.send(prepared, timeout=timeout, allow_redirects=False, **environment)

    @property
    def clock_difference(self) -> timedelta:
        """How much the platform's clock is ahead of ours; of what fits its last answer, the nearest to none."""
        return max(self.least_clock_difference, min(self._most_clock_difference, timedelta(0)))

    def _note_clock(self, date: str | None, asked_at: datetime) -> None:
        try:
            shown = moment_of(date or "")
        except (ValueError, OverflowError):
            return
        # The platform wrote the header, in whole seconds, between the request and this moment of ours.
        least = shown - datetime.now(UTC)
        if abs(least) > _NO_CLOCK:
            return
        self.least_clock_difference = least
        self._most_clock_difference = shown - asked_at + timedelta(seconds=1)
        if self._user_tokens is not None:
            self._user_tokens.note_clock(self.least_clock_difference.total_seconds())
