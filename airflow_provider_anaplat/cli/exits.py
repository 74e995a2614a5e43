"""The exit codes, as a table: the first row whose errors fit counts."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_anaplat import errors

__all__ = [
    "EXITS",
    "INTERRUPTED",
    "Exit",
    "exit_code",
]

INTERRUPTED = 130
_UNEXPECTED = 1


@dataclass(frozen=True, slots=True)
class Exit:
    """A way to end.

    :param code: the exit code
    :param meaning: what it tells a script
    :param kinds: the errors that end like this
    """

    code: int
    meaning: str
    kinds: tuple[type[BaseException], ...] = ()


EXITS = (
    Exit(0, "Done."),
    Exit(_UNEXPECTED, "Something that nobody foresaw; please report it."),
    Exit(
        5,
        "A write was sent, and it is not known whether it was carried out: look on the platform first.",
        (
            errors.AnaplatOutcomeUnknownError,
            errors.AnaplatNotSeenError,
            errors.AnaplatUsersInDoubtError,
            errors.AnaplatUnrepeatableError,
            errors.AnaplatUnsettledError,
        ),
    ),
    Exit(
        2, "The command, the connection or an option cannot work; nothing was sent.", (errors.AnaplatRequestError,)
    ),
    Exit(
        3,
        "The platform does not know the dataset, or several have its name.",
        (errors.AnaplatNotFoundError, errors.AnaplatDatasetExistsError),
    ),
    Exit(
        4,
        "The token is not good, or may not do this.",
        (errors.AnaplatAuthenticationError, errors.AnaplatPermissionError),
    ),
    Exit(
        6,
        "It did not work now and may later: no connection, a time-out, too many requests, an error of the server, "
        "or a dataset that was updated while it was read.",
        (*errors.PASSING_ERRORS, errors.AnaplatDatasetChangedError),
    ),
    Exit(
        7,
        "A file cannot be read or written.",
        (errors.AnaplatOutputError, errors.AnaplatSourceError, errors.AnaplatEarlierReportError),
    ),
    Exit(
        8,
        "The platform refuses, an answer or a file holds what it must not, or an update has failed: the same "
        "would happen again.",
        (errors.AnaplatError,),
    ),
    Exit(INTERRUPTED, "Interrupted by Ctrl-C.", (KeyboardInterrupt,)),
)


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    return next((row.code for row in EXITS if row.kinds and isinstance(error, row.kinds)), _UNEXPECTED)
