"""What can go wrong between a list of users and the platform."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from airflow_provider_anaplat.errors import AnaplatError, NeedsAPersonError

LISTED = 200  # of a longer list of problems or loginIds, so many are shown, and the number of all


class ProvisioningError(AnaplatError):
    """The users could not all be created."""


class SourceError(ProvisioningError):
    """The users cannot be read from where they are."""


class SourceChangedError(ProvisioningError):
    """The users that were checked are not those that came when they were to be sent."""


class InvalidUsersError(ProvisioningError, NeedsAPersonError):
    """Some users are not fit to be sent; none was sent."""


class UsersInDoubtError(ProvisioningError, NeedsAPersonError):
    """Users were sent, and whether the platform created them is not known."""


class UnsettledError(ProvisioningError):
    """Users were sent, and the platform does not show all of them, or not yet; a repetition asks again."""


class UserCountError(UsersInDoubtError):
    """The platform reports another number of users than were sent."""


class UsersRejectedError(ProvisioningError, NeedsAPersonError):
    """The platform refused to create some users."""


class UnrepeatableError(ProvisioningError, NeedsAPersonError):
    """Some users are created, and a repetition would send them again, since nothing remembers them."""


def listed(login_ids: Sequence[str] | Iterable[str], total: int | None = None) -> str:
    """Return loginIds for a person to read, the first 200 of them.

    :param total: how many there are, where not all are given
    """
    shown = list(islice(login_ids, LISTED))
    total = total if total is not None else len(login_ids) if isinstance(login_ids, Sequence) else len(shown)
    rest = f" and {total - len(shown):,} more" if total > len(shown) else ""
    return ", ".join(shown) + rest
