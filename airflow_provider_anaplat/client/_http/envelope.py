"""From an HTTP answer to the payload of its envelope, or to the exception that says why there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client._http.redaction import (
    LONGEST_WORDS,
    excerpt,
    shortened,
    without_half_characters,
)

T = TypeVar("T")

DISPLACED = 1017  # the token's user has signed in elsewhere since

# The platform's own codes say more than the HTTP status, which is often a plain 500 (or 200). Each of them, but
# for that of its own failure, proves that the platform did not carry out a write.
_ERROR_BY_CODE: dict[int, type[errors.AnaplatRefusedError]] = {
    1002: errors.AnaplatNotFoundError,
    1004: errors.AnaplatPermissionError,
    1012: errors.AnaplatRefusedError,
    DISPLACED: errors.AnaplatAuthenticationError,
    1018: errors.AnaplatAuthenticationError,
    2002: errors.AnaplatRefusedError,
    14001: errors.AnaplatRefusedError,
    40002: errors.AnaplatServerError,
}
_ERROR_BY_STATUS: dict[int, type[errors.AnaplatRefusedError]] = {
    401: errors.AnaplatAuthenticationError,
    403: errors.AnaplatPermissionError,
    404: errors.AnaplatNotFoundError,
    408: errors.AnaplatServerError,
    429: errors.AnaplatRateLimitedError,
}
# What proves the same without a code: whoever answers so looked no further than at the request's head or size.
_REFUSING_STATUS = frozenset({301, 302, 307, 308, 401, 403, 404, 405, 407, 411, 413, 414, 415, 429, 431})
_WHAT_TO_DO: dict[type[errors.AnaplatRefusedError], str] = {
    errors.AnaplatAuthenticationError: "Check the token in the connection's password field; it may be wrong or "
    "expired. If rows and columns alone are refused, the platform wants a user's token there: put the user's "
    "loginId into the connection's login field.",
    errors.AnaplatPermissionError: "Ask the platform's administrator to grant this to the token's user.",
    errors.AnaplatNotFoundError: "Check the id, and the host and path prefix of the connection.",
    errors.AnaplatRateLimitedError: "Send fewer requests at a time, or poll less often.",
    errors.AnaplatServerError: "Look at the platform's own log for this moment.",
    errors.AnaplatRefusedError: "Correct the request as the platform's message says.",
}
_ASK_THE_PROXY = (
    "A proxy wants a user and a password: check the connection's extra `proxies`, or the environment's."
)


_LONGEST_ERROR = 4_000
_LONGEST_HOST = 255
_SHORT = 1 << 16  # bytes; the answer to a write has less
_DEEPEST = 100  # levels; pydantic writes 255, and Python's own functions follow some 300
# Bytes that Python takes for what begins with, or follows on, a character of JSON.
_MEMORY = {b"{": 192, b"[": 88, b'"': 30, b",": 32}


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer, with what is needed to describe it without a secret.

    :param operation: name of the operation that was answered
    :param status: HTTP status code
    :param body: the whole body
    :param secrets: values that no message may show
    :param location: the ``Location`` header of a redirect
    :param retry_after: seconds from the ``Retry-After`` header
    :param most_memory: bytes that its body may take as Python's objects
    :param shown: whether a message may show the start of its body
    """

    operation: str
    status: int
    body: bytes
    secrets: tuple[str, ...] = field(default=(), repr=False)
    location: str | None = None
    retry_after: float | None = None
    most_memory: int | None = None
    shown: bool = True

    def parsed(self, load: Callable[[bytes], Any] | None = None) -> Any:
        """Return what the body holds.

        :param load: parses the body; by default, a short one must have no key of an object twice
        :raises AnaplatAnswerTooLargeError: its objects would take too much memory, however small it is itself
        :raises ValueError: it is no JSON
        :raises RecursionError: it is nested too deeply
        """
        if self.most_memory is not None and (memory := memory_of(self.body)) > self.most_memory:
            raise self.error(
                errors.AnaplatAnswerTooLargeError,
                f"what the answer holds would take some {memory >> 20:,} MB of memory, which is too much. Ask for "
                "less at a time (a smaller page_size), or raise the connection's extra `max_answer_mb`, if the "
                "worker has several times as much memory.",
            )
        if load is not None:
            return load(self.body)
        return json.loads(self.body, object_pairs_hook=each_once if len(self.body) < _SHORT else None)

    def error(
        self,
        error_type: type[errors.AnaplatError],
        what: str,
        *,
        code: int | None = None,
        platform_message: str | None = None,
    ) -> errors.AnaplatError:
        """Return an exception that carries this answer's status, code and a redacted excerpt."""
        shown = excerpt(self.body, self.secrets) if self.shown else None
        tail = f" The answer begins: {shown}" if shown and platform_message is None else ""
        return error_type(
            # What is wrong may quote the answer, and an answer may repeat what the request held.
            without_half_characters(shortened(f"{self.operation}: {what}{tail}", self.secrets, _LONGEST_ERROR)),
            operation=self.operation,
            status=self.status,
            code=code,
            platform_message=None if platform_message is None else without_half_characters(platform_message),
            excerpt=shown,
            retry_after=self.retry_after,
        )


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; if it has a key twice, nobody knows which one counts.

    :raises ValueError: it has
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def memory_of(body: bytes) -> int:
    """Return about how many bytes a JSON text takes as Python's objects; rather too many than too few."""
    if b"\xf0" in body or re.search(rb"\\u[dD][89abAB]", body):  # one such character makes each of a text as wide
        width = 4
    else:
        width = 1 if body.isascii() and b"\\u" not in body else 2
    return width * len(body) + sum(body.count(character) * size for character, size in _MEMORY.items())


def read_answer(answer: Answer, read: Callable[[Answer], T]) -> T:
    """Return what a reader makes of an answer.

    :raises AnaplatInvalidAnswerError: Python gives up in the middle, which would say nothing of a write that left
    :raises AnaplatError: the reader raises it
    """
    try:
        return read(answer)
    except (RecursionError, MemoryError):
        raise answer.error(
            errors.AnaplatInvalidAnswerError, "the answer is nested too deep, or too large, to be read."
        ) from None


def check_depth(answer: Answer, payload: Any) -> None:
    """See that whoever keeps a payload can follow it to its end.

    :raises AnaplatInvalidAnswerError: it is nested too deep
    """
    level = [payload] if isinstance(payload, dict | list) else []
    for _ in range(_DEEPEST):
        items = (item for part in level for item in (part.values() if isinstance(part, dict) else part))
        level = [item for item in items if isinstance(item, dict | list)]
    if level:
        raise answer.error(
            errors.AnaplatInvalidAnswerError,
            f"what the answer holds is nested more than {_DEEPEST} levels deep, which nobody could keep.",
        )


def read_payload(answer: Answer, load: Callable[[Answer], Any] = Answer.parsed) -> Any:
    """Return the ``response`` of a success envelope.

    :param answer: the HTTP answer
    :param load: reads the answer into its envelope; the row export brings its own
    :raises AnaplatError: of the type that fits, if the answer is anything but a success
    """
    if 300 <= answer.status < 400:
        _raise_redirect(answer)
    if 200 < answer.status < 300:
        raise answer.error(
            errors.AnaplatInvalidAnswerError, f"HTTP {answer.status}, but the platform promises 200."
        )
    try:
        envelope = load(answer)
    except (ValueError, RecursionError):
        if answer.status != 200:
            _raise_refusal(answer, {})
        _raise_not_json(answer)
    if not isinstance(envelope, dict):
        if answer.status != 200:
            _raise_refusal(answer, {})
        raise answer.error(
            errors.AnaplatInvalidAnswerError, "the answer is JSON, but not the platform's envelope."
        )
    result = envelope.get("result")
    if answer.status == 200 and result == "ok":
        return envelope.get("response")
    # Whatever a proxy or another release calls its result, its HTTP status says that it is none of success.
    if result == "fail" or (result != "ok" and answer.status != 200) or (result is None and _is_flat(envelope)):
        _raise_refusal(answer, envelope)
    if result is None:
        raise answer.error(
            errors.AnaplatInvalidAnswerError,
            "the answer has no `result`; is this host, with this path prefix, the platform?",
        )
    raise answer.error(
        errors.AnaplatInvalidAnswerError,
        f"HTTP {answer.status}, and a `result` that is neither ok (with HTTP 200) nor fail.",
    )


def is_known_refusal(error: errors.AnaplatError) -> bool:
    """Tell whether the platform, or what is before it, said for certain that a write was not carried out.

    Nothing but what the two tables hold says so; a failure without a known reason says nothing of what happened
    before it.
    """
    if error.code in _ERROR_BY_CODE:
        return _ERROR_BY_CODE[error.code] is not errors.AnaplatServerError
    refused = isinstance(error, errors.AnaplatRefusedError | errors.AnaplatRedirectError)
    return refused and error.status in _REFUSING_STATUS


def has_known_reason(error: errors.AnaplatError) -> bool:
    """Tell whether an error has a reason of the platform's own, which nothing that stands before it would give."""
    return error.code in _ERROR_BY_CODE


def is_token_refused(error: errors.AnaplatError) -> bool:
    """Tell whether an answer says that the token is refused, and another one may be taken.

    HTTP 403 can mean that as well as a lack of rights; if it comes with a code that is known, the code counts.
    """
    if isinstance(error, errors.AnaplatPermissionError):
        return error.code not in _ERROR_BY_CODE
    return isinstance(error, errors.AnaplatAuthenticationError)


def _is_flat(envelope: dict[str, Any]) -> bool:
    """Tell whether this is one of the platform's error shapes that have no ``result``."""
    code = _code_of(envelope.get("status"))
    return "error_code" in envelope or code in _ERROR_BY_CODE or (code is not None and "message" in envelope)


def _raise_redirect(answer: Answer) -> NoReturn:
    try:
        target = urlsplit(answer.location or "").netloc.rpartition("@")[2]
    except ValueError:
        target = "what is no address"
    host = shortened(target, answer.secrets, _LONGEST_HOST) or "another path of the same host"
    raise answer.error(
        errors.AnaplatRedirectError,
        f"HTTP {answer.status} redirects to {host}. Redirects are never followed, since they would take "
        "the token along. If that address is right, put it (scheme, host, port, path prefix) into the "
        "connection.",
    )


def _raise_not_json(answer: Answer) -> NoReturn:
    body = answer.body.strip()
    if not body:
        raise answer.error(errors.AnaplatTruncatedAnswerError, "the answer is empty.")
    if body.startswith((b"{", b"[")):
        raise answer.error(errors.AnaplatTruncatedAnswerError, "the answer is cut off, or is not valid JSON.")
    raise answer.error(
        errors.AnaplatInvalidAnswerError,
        "the answer is not JSON. Check the connection's host, port and path prefix; a proxy or a login "
        "page may have answered instead of the platform.",
    )


def _raise_refusal(answer: Answer, envelope: dict[str, Any]) -> NoReturn:
    code, message = _code_and_message(envelope)
    error_type = _ERROR_BY_CODE.get(code or 0) or _ERROR_BY_STATUS.get(answer.status)
    if error_type is None:
        error_type = errors.AnaplatServerError if answer.status >= 500 else errors.AnaplatRefusedError
    if message is not None:
        message = shortened(message, answer.secrets, LONGEST_WORDS)
    of_code = "" if code is None else f" (code {code})"
    said = f" {sentence(f'The platform says: {message}' + of_code)}" if message else ""
    if envelope.get("response"):
        code = None  # what comes with a result does not prove that nothing was carried out
    proxy = answer.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
    raise answer.error(
        error_type,
        f"refused with HTTP {answer.status}.{said} {_ASK_THE_PROXY if proxy else _WHAT_TO_DO[error_type]}",
        code=code,
        platform_message=message,
    )


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends already."""
    return text if text.endswith((".", "。", "!")) else f"{text}."


def _code_and_message(envelope: dict[str, Any]) -> tuple[int | None, str | None]:
    """Read the platform's error shapes: nested under ``error``, or flat in one of two ways."""
    nested = envelope.get("error")
    if isinstance(nested, dict):
        code, message = nested.get("status"), nested.get("message")
    elif "error_code" in envelope:
        code, message = envelope["error_code"], envelope.get("error_message") or nested
    else:
        code, message = envelope.get("status"), envelope.get("message") or nested
    if message and not isinstance(message, str):
        message = json.dumps(message, ensure_ascii=False)
    return _code_of(code), (message or None)


def _code_of(code: Any) -> int | None:
    if isinstance(code, str) and code.isascii() and code.isdecimal() and len(code) < 10:
        return int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) else None
