"""What can go wrong between a task and the platform, as one tree of exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "AnaplatAccessRefusedError",
    "AnaplatAccessReportError",
    "AnaplatAnswerTooLargeError",
    "AnaplatAuthenticationError",
    "AnaplatCellError",
    "AnaplatClosedError",
    "AnaplatConnectTimeoutError",
    "AnaplatConnectionError",
    "AnaplatDamagedStateError",
    "AnaplatDatasetChangedError",
    "AnaplatDatasetExistsError",
    "AnaplatEarlierReportError",
    "AnaplatError",
    "AnaplatExportError",
    "AnaplatInvalidAnswerError",
    "AnaplatInvalidUsersError",
    "AnaplatLoadError",
    "AnaplatNeedsAPersonError",
    "AnaplatNoEarlierReportError",
    "AnaplatNotFoundError",
    "AnaplatNotSeenError",
    "AnaplatOutcomeUnknownError",
    "AnaplatOutputError",
    "AnaplatPermissionError",
    "AnaplatProvisioningError",
    "AnaplatRateLimitedError",
    "AnaplatRedirectError",
    "AnaplatRefusedError",
    "AnaplatRequestError",
    "AnaplatRightsChangedError",
    "AnaplatRowCountError",
    "AnaplatSchemaChangedError",
    "AnaplatServerError",
    "AnaplatSettingsError",
    "AnaplatSignInError",
    "AnaplatSourceChangedError",
    "AnaplatSourceError",
    "AnaplatTimeoutError",
    "AnaplatTruncatedAnswerError",
    "AnaplatUnplannedError",
    "AnaplatUnreachableError",
    "AnaplatUnrepeatableError",
    "AnaplatUnsettledError",
    "AnaplatUserCountError",
    "AnaplatUsersInDoubtError",
    "AnaplatUsersRejectedError",
    "from_json",
    "to_json",
]


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


class AnaplatNotSeenError(AnaplatError):
    """A write was sent, its answer was lost, and the platform does not show it; a repetition may send it again."""


class AnaplatNeedsAPersonError(AnaplatError):
    """The same would happen again: a person must look, or correct something, before a repetition makes sense."""


class AnaplatAnswerTooLargeError(AnaplatInvalidAnswerError, AnaplatNeedsAPersonError):
    """The answer is larger than the connection allows; it was not read to its end.

    :ivar size: its bytes, if it said so
    """

    def __init__(self, message: str, *, size: int | None = None, **kwargs: Any) -> None:
        super().__init__(message, **kwargs)
        self.size = size


class AnaplatRefusedError(AnaplatError):
    """The platform answered that it did not carry out the request."""


class AnaplatAuthenticationError(AnaplatRefusedError):
    """The token is missing, wrong or expired."""


class AnaplatSignInError(AnaplatAuthenticationError):
    """The platform does not sign the connection's user in, or answers without a token."""


class AnaplatPermissionError(AnaplatRefusedError):
    """The token is known, and may not do this."""


class AnaplatNotFoundError(AnaplatRefusedError):
    """The platform does not know this resource or path."""


class AnaplatRateLimitedError(AnaplatRefusedError):
    """The platform asks for fewer requests."""


class AnaplatServerError(AnaplatRefusedError):
    """The platform failed while carrying out the request."""


class AnaplatExportError(AnaplatError):
    """The export cannot be finished; nothing was published."""


class AnaplatDatasetChangedError(AnaplatExportError):
    """The dataset was updated while its rows were being read."""


class AnaplatRowCountError(AnaplatExportError):
    """The platform gave fewer or more rows than it says the dataset has."""


class AnaplatCellError(AnaplatExportError):
    """A cell holds what its column's type cannot hold."""


class AnaplatUnplannedError(AnaplatExportError):
    """The plan of an export by several workers, or a part of it, is missing."""


class AnaplatOutputError(AnaplatExportError):
    """The file cannot be written."""


class AnaplatLoadError(AnaplatExportError):
    """The rows cannot be loaded into the table."""


class AnaplatDatasetExistsError(AnaplatNeedsAPersonError):
    """A dataset of this name exists in this directory, or several do when one is wanted."""


class AnaplatSchemaChangedError(AnaplatNeedsAPersonError):
    """The dataset's columns are not those that the user expects."""


class AnaplatProvisioningError(AnaplatError):
    """The users could not all be created."""


class AnaplatSourceError(AnaplatProvisioningError):
    """The users cannot be read from where they are."""


class AnaplatSourceChangedError(AnaplatProvisioningError):
    """The users that were checked are not those that came when they were to be sent."""


class AnaplatInvalidUsersError(AnaplatProvisioningError, AnaplatNeedsAPersonError):
    """Some users are not fit to be sent; none was sent."""


class AnaplatUsersInDoubtError(AnaplatProvisioningError, AnaplatNeedsAPersonError):
    """Users were sent, and whether the platform created them is not known."""


class AnaplatUserCountError(AnaplatUsersInDoubtError):
    """The platform reports another number of users than were sent."""


class AnaplatUnsettledError(AnaplatProvisioningError):
    """Users were sent, and the platform does not show all of them, or not yet; or another attempt is sending them.

    A repetition looks again.
    """


class AnaplatUsersRejectedError(AnaplatProvisioningError, AnaplatNeedsAPersonError):
    """The platform refused to create some users."""


class AnaplatUnrepeatableError(AnaplatProvisioningError, AnaplatNeedsAPersonError):
    """Some users are created, and a repetition would send them again, since nothing remembers them."""


class AnaplatAccessReportError(AnaplatError):
    """The rights of some users could not be read; a repetition may read them."""


class AnaplatAccessRefusedError(AnaplatAccessReportError, AnaplatNeedsAPersonError):
    """The platform refuses to tell the rights of some users."""


class AnaplatEarlierReportError(AnaplatError):
    """The earlier access report cannot be read; a repetition may read it."""


class AnaplatNoEarlierReportError(AnaplatEarlierReportError, AnaplatNeedsAPersonError):
    """The earlier access report is missing or damaged, or is no access report."""


class AnaplatRightsChangedError(AnaplatNeedsAPersonError):
    """Rights were gained or lost since the earlier access report."""


class AnaplatDamagedStateError(AnaplatNeedsAPersonError):
    """What an earlier attempt noted cannot be read, so nobody knows what it has sent."""


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
