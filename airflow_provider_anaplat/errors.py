"""What can go wrong between a task and the platform, as one tree of exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AnaplatError(Exception):
    """Anything that went wrong in talking to the platform.

    :param message: what happened, on what, and what to do next
    :param operation: name of the operation, as in the operation table
    :param status: HTTP status code of the answer, if there was one
    :param code: the platform's own error code, if it gave one
    :param platform_message: the platform's own words, with secrets removed
    :param excerpt: the start of the answer's body, with secrets removed
    :param retry_after: seconds that the platform asked to wait before the next request
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str | None = None,
        status: int | None = None,
        code: int | None = None,
        platform_message: str | None = None,
        excerpt: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.operation = operation
        self.status = status
        self.code = code
        self.platform_message = platform_message
        self.excerpt = excerpt
        self.retry_after = retry_after


class AnaplatRequestError(AnaplatError, ValueError):
    """The request is unusable; nothing was sent."""


class AnaplatSettingsError(AnaplatRequestError):
    """The connection to the platform is set up in a way that cannot work; nothing was sent."""


class AnaplatClosedError(AnaplatRequestError):
    """The client was closed before the request had its turn; nothing was sent."""


class AnaplatConnectionError(AnaplatError):
    """No answer came: the connection could not be made, or broke.

    :ivar layer: the layer that failed: ``DNS``, ``TCP``, ``TLS`` or ``HTTP``
    """

    layer: str = "TCP"


class AnaplatTimeoutError(AnaplatConnectionError):
    """The platform did not answer within the connect or read time-out."""


class AnaplatUnreachableError(AnaplatConnectionError):
    """The connection was not made, so the platform cannot have seen the request."""


class AnaplatConnectTimeoutError(AnaplatUnreachableError, AnaplatTimeoutError):
    """The connection was not made in time, so the platform cannot have seen the request."""


class AnaplatInvalidAnswerError(AnaplatError):
    """The answer is not what the contract promises: not JSON, or of another shape."""


class AnaplatTruncatedAnswerError(AnaplatInvalidAnswerError):
    """The answer ended before it was complete."""


class AnaplatRedirectError(AnaplatError):
    """The platform's address answers with a redirect, which is never followed."""


class AnaplatOutcomeUnknownError(AnaplatError):
    """A write was sent and its answer was lost: it may have been carried out or not."""


class NeedsAPersonError(AnaplatError):
    """The same would happen again: a person must look, or correct something, before a repetition makes sense."""


class AnaplatAnswerTooLargeError(AnaplatInvalidAnswerError, NeedsAPersonError):
    """The answer is larger than the connection allows; it was not read to its end."""


class AnaplatRefusedError(AnaplatError):
    """The platform answered that it did not carry out the request."""


class AnaplatAuthenticationError(AnaplatRefusedError):
    """The token is missing, wrong or expired."""


class AnaplatPermissionError(AnaplatRefusedError):
    """The token is known, and may not do this."""


class AnaplatNotFoundError(AnaplatRefusedError):
    """The platform does not know this resource or path."""


class AnaplatRateLimitedError(AnaplatRefusedError):
    """The platform asks for fewer requests."""


class AnaplatServerError(AnaplatRefusedError):
    """The platform failed while carrying out the request."""


def to_json(error: Exception) -> dict[str, Any]:
    """Return an exception as plain JSON, for the event of a trigger."""
    details = vars(error) if isinstance(error, AnaplatError) else {}
    return {"type": type(error).__name__, "message": str(error), "details": details}


def from_json(described: Mapping[str, Any]) -> AnaplatError:
    """Return the exception that :func:`to_json` described; one of another kind becomes an AnaplatError."""
    kind = globals().get(described["type"])
    if not (isinstance(kind, type) and issubclass(kind, AnaplatError)):
        return AnaplatError(f"{described['type']}: {described['message']}")
    error = kind(described["message"])
    vars(error).update(described["details"])
    return error


# What may be gone at the next attempt, for those who poll.
PASSING_ERRORS = (
    AnaplatConnectionError,
    AnaplatTruncatedAnswerError,
    AnaplatRateLimitedError,
    AnaplatServerError,
)
