"""Create users in batches so that nobody is sent twice."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NoReturn, TypeVar
from unicodedata import normalize

from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.client.client import PasswordEncoding
from airflow_provider_anaplat.client.models import NewUser
from airflow_provider_anaplat.errors import (
    AnaplatError,
    AnaplatInvalidAnswerError,
    AnaplatOutcomeUnknownError,
    AnaplatRefusedError,
    AnaplatRequestError,
    AnaplatUnrepeatableError,
    AnaplatUnsettledError,
    AnaplatUserCountError,
    AnaplatUsersInDoubtError,
    AnaplatUsersRejectedError,
)
from airflow_provider_anaplat.users.checks import CheckedUsers
from airflow_provider_anaplat.users.ledger import UserLedger
from airflow_provider_anaplat.users.progress import UserProgress
from airflow_provider_anaplat.users.sources import UserSource
from airflow_provider_anaplat.users.wording import SHOWN, shown_of

__all__ = [
    "InDoubt",
    "OnExisting",
    "OnRejected",
    "Provisioning",
    "Rules",
    "Tally",
]

log = logging.getLogger(__name__)

T = TypeVar("T")
OnExisting = Literal["error", "skip"]
InDoubt = Literal["fail", "resend", "created", "not_created"]
OnRejected = Literal["fail", "report"]


@dataclass(frozen=True, slots=True)
class Rules:
    """How users are created; what each means is said at ``AnaplatCreateUsersOperator``."""

    batch_size: int = 200
    user_property_type: int | None = None
    existing_users: OnExisting = "error"
    isolate_rejected: bool = False
    on_rejected: OnRejected = "fail"
    in_doubt: InDoubt = "fail"
    password_encoding: PasswordEncoding = "plain"

    def __post_init__(self) -> None:
        if type(self.batch_size) is not int or self.batch_size < 1:
            raise AnaplatRequestError(
                f"batch_size is {self.batch_size!r}; it must be at least 1, and a whole number. Nothing was sent."
            )


@dataclass
class Tally:
    """A number of users, and the loginIds of the first of them."""

    count: int = 0
    login_ids: list[str] = field(default_factory=list)

    def add(self, login_ids: Sequence[str]) -> None:
        """Count users."""
        self.count += len(login_ids)
        self.login_ids += login_ids[: SHOWN - len(self.login_ids)]


class Provisioning:
    """One run over all users.

    :param client: the platform
    :param ledger: what earlier attempts sent
    :param rules: how to create users

    :ivar created: users that this DAG run created, in all its attempts
    :ivar skipped: users that were there already
    :ivar rejected: users that the platform refused
    """

    def __init__(self, client: AnaplatClient, ledger: UserLedger, rules: Rules) -> None:
        self._client = client
        self._ledger = ledger
        self._rules = rules
        self.created = Tally()
        self.skipped = Tally()
        self.rejected = Tally()

    def run(self, source: UserSource) -> dict[str, Any]:
        """Create the users of a source and return the summary.

        :raises AnaplatProvisioningError: not all were created, for a reason that its type tells
        :raises AnaplatError: the platform does not answer, or refuses for a reason that is not a user's
        """
        self._resolve_doubts()
        users = CheckedUsers(source)
        log.info("%s users of %s passed the checks", f"{users.count:,}", source)
        self.created.add(list(self._ledger.created))
        if self.created.count:
            log.info("%s users were created by earlier attempts", f"{self.created.count:,}")
        try:
            for batch in _batches(self._missing(self._counted(users)), self._rules.batch_size):
                self._create(batch)
        except Exception as error:  # of a database's driver, too
            log.error("Stopped; %s users are created so far", f"{self.created.count:,}")
            self._fail_if_unrepeatable(error)
            raise
        if self.rejected.count and self._rules.on_rejected == "fail":
            raise AnaplatUsersRejectedError(
                f"{self.rejected.count:,} users were rejected, for the reasons in the log above: "
                f"{shown_of(self.rejected.login_ids, self.rejected.count)}. The other {self.created.count:,} are "
                "created. Correct the rejected ones and run the task again."
            )
        return self._summary()

    def _summary(self) -> dict[str, Any]:
        return {
            "created": self.created.count,
            "skipped": self.skipped.count,
            "rejected": self.rejected.count,
            "batches": self._ledger.batches,
            "loginIds": {
                "created": self.created.login_ids,
                "skipped": self.skipped.login_ids,
                "rejected": self.rejected.login_ids,
            },
        }

    def _resolve_doubts(self) -> None:
        """Settle what became of the users about whom an earlier attempt got no answer."""
        in_doubt = self._ledger.in_doubt
        if not in_doubt:
            return
        if self._rules.in_doubt in ("not_created", "resend"):
            found: Iterable[str] = ()
        elif self._rules.in_doubt == "created":
            found = in_doubt
        elif self._rules.existing_users == "skip":
            found = self._existing(in_doubt)
        else:
            raise self._doubt(in_doubt, "An earlier attempt sent users and did not learn what became of them.")
        created = self._ledger.resolve(set(found))
        log.info("Of %d users in doubt, %d are created", len(in_doubt), len(created))

    def _counted(self, users: CheckedUsers) -> Iterator[NewUser]:
        progress = UserProgress(users.count)
        for batch in _batches(users, self._rules.batch_size):
            yield from batch
            progress.add(len(batch))

    def _missing(self, users: Iterable[NewUser]) -> Iterator[NewUser]:
        """Leave out those whom this DAG run created already and, if asked to, those who are on the platform."""
        waiting = (user for user in users if user.login_id not in self._ledger.created)
        if self._rules.existing_users == "error":
            yield from waiting
            return
        for batch in _batches(waiting, self._rules.batch_size):
            existing = set(self._existing([user.login_id for user in batch]))
            self.skipped.add([user.login_id for user in batch if user.login_id in existing])
            yield from (user for user in batch if user.login_id not in existing)

    def _existing(self, login_ids: Sequence[str]) -> list[str]:
        size = self._rules.batch_size
        starts = range(0, len(login_ids), size)
        parts = [login_ids[start : start + size] for start in starts]
        return [login_id for part in parts for login_id in _as_asked(part, self._client.find_users(part))]

    def _create(self, batch: Sequence[NewUser]) -> None:
        """Create a batch; if it is refused, stop, or halve it until the offenders are known."""
        waiting = [batch]
        while waiting:
            part = waiting.pop()
            refusal = self._send(part)
            if refusal is None:
                continue
            if not self._rules.isolate_rejected:
                raise AnaplatUsersRejectedError(
                    f"The platform rejected a batch of {len(part)} users ({shown_of(_ids(part))}): {refusal} "
                    f"The {self.created.count:,} users of the batches before it are created."
                ) from refusal
            if len(part) == 1:
                self.rejected.add(_ids(part))
                log.warning("User %s is rejected: %s", part[0].login_id, refusal)
                continue
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]

    def _send(self, batch: Sequence[NewUser]) -> AnaplatRefusedError | None:
        """Send a batch once and return the platform's refusal of its users, if it refused."""
        login_ids, rules = _ids(batch), self._rules
        self._ledger.begin(login_ids)
        try:
            answer = self._client.create_users(
                batch, user_property_type=rules.user_property_type, password_encoding=rules.password_encoding
            )
        except AnaplatOutcomeUnknownError as error:
            self._look_after(login_ids, error)
            return None
        except AnaplatError as error:
            self._ledger.refused()
            if type(error) is AnaplatRefusedError:  # the others are about the token or the load, not the users
                return error
            raise
        if answer.count != len(batch):
            self._fail_on_count(login_ids, answer.count, answer.message)
        self._ledger.created_now(login_ids)
        self.created.add(login_ids)
        return None

    def _look_after(self, login_ids: Sequence[str], error: AnaplatOutcomeUnknownError) -> None:
        """Go on if the platform shows all users of a batch whose answer was lost; else fail."""
        self._ledger.left_in_doubt(login_ids)
        if self._rules.existing_users == "error":
            if self._rules.in_doubt != "resend":
                raise self._doubt(login_ids, str(error)) from error
            raise AnaplatUnsettledError(
                f"{error} in_doubt is 'resend': a retry of this task sends its {len(login_ids)} users again: "
                f"{shown_of(login_ids)}."
            ) from error
        log.warning("%s Asking the platform which of the %d users exist.", error, len(login_ids))
        existing = set(self._existing(login_ids))
        if missing := [login_id for login_id in login_ids if login_id not in existing]:
            raise AnaplatUnsettledError(
                f"{error} {len(missing)} of its {len(login_ids)} users do not exist, or not yet: "
                f"{shown_of(missing)}. A retry asks again, and sends those that are missing then."
            ) from error
        self._ledger.resolve(existing)
        self.created.add(login_ids)

    def _fail_on_count(self, login_ids: Sequence[str], count: int | None, message: str) -> NoReturn:
        self._ledger.left_in_doubt(login_ids)
        reported = "no number" if count is None else f"{count} as created"
        what = f"{len(login_ids)} users were sent, and the platform reports {reported} ({message!r})."
        raise self._doubt(login_ids, what, AnaplatUserCountError)

    def _doubt(
        self, login_ids: Sequence[str], what: str, kind: type[AnaplatUsersInDoubtError] = AnaplatUsersInDoubtError
    ) -> AnaplatUsersInDoubtError:
        if self._ledger.lasting:
            advice = (
                "If they exist, set in_doubt='created'; if none does, in_doubt='not_created'; or let "
                "existing_users='skip' ask the platform. Then clear the task: it goes on from there."
            )
        else:
            advice = (
                "Take those that exist, and the users before them, out of the input, or set "
                "existing_users='skip', and clear the task. With progress_path, it would know where to go on."
            )
        return kind(
            f"{what} {len(login_ids):,} users are in doubt: {shown_of(login_ids)}. Look on the platform which of "
            f"them exist. {advice}"
        )

    def _fail_if_unrepeatable(self, error: Exception) -> None:
        """Keep a retry from sending users again that nothing remembers."""
        repeats_nobody = self._ledger.lasting or self._rules.existing_users == "skip" or not self.created.count
        if repeats_nobody or isinstance(error, AnaplatUsersInDoubtError | AnaplatUsersRejectedError):
            return
        raise AnaplatUnrepeatableError(
            f"{error} {self.created.count:,} users are created, and a retry would send them again: take them "
            "out of the input, or set existing_users='skip', and clear the task. With progress_path, a retry "
            f"would go on from there. Created: {shown_of(self.created.login_ids, self.created.count)}"
        ) from error


def _as_asked(asked: Sequence[str], found: Sequence[str]) -> list[str]:
    """Return those of the loginIds asked for that were found: the platform may spell them as it has them.

    :raises AnaplatInvalidAnswerError: others were found, so that the answer says nothing of these
    """
    exact = set(found)
    folded = {_folded(login_id): login_id for login_id in exact.difference(asked)}
    existing = [login_id for login_id in asked if login_id in exact or _folded(login_id) in folded]
    if strangers := folded.keys() - map(_folded, asked):
        raise AnaplatInvalidAnswerError(
            f"The platform was asked which of {len(asked)} users exist, and names users that this task did not "
            f"ask for: {shown_of([folded[one] for one in sorted(strangers)])}. Who exists is not known."
        )
    return existing


def _folded(login_id: str) -> str:
    return normalize("NFC", login_id).casefold()


def _ids(users: Iterable[NewUser]) -> list[str]:
    return [user.login_id for user in users]


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
