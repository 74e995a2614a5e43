"""What was sent: written down before each request, and again after its answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from airflow_provider_anaplat.client._http.checks import is_same_address
from airflow_provider_anaplat.errors import AnaplatDamagedStateError, AnaplatUnsettledError
from airflow_provider_anaplat.state import StateStore, damaged, read_note

__all__ = [
    "UserLedger",
]

_KEY = "anaplat_users_{:06d}"
_LAST_KEY = "anaplat_users"  # holds the number of the last batch that was begun, so that none is missing unnoticed
_PLATFORM_KEY = "anaplat_users_platform"
_STATES = ("in doubt", "created", "refused")  # the next batch takes the place of one that was refused


class UserLedger:
    """The batches of users that were sent in this DAG run, by loginId, never with a password.

    Each batch is a value of its own in the store, so that what is written for it does not grow with their number.

    :param store: where it is kept from one attempt to the next; None keeps nothing
    :param platform: address of the platform; None if what the store holds can be of this one alone
    :raises AnaplatDamagedStateError: what was noted cannot be read, or is of another platform

    :ivar created: the loginIds that earlier attempts created, in their order
    :ivar batches: the number of batches that were created
    """

    def __init__(self, store: StateStore | None, platform: str | None = None) -> None:
        self._store = store
        self._platform = platform
        self.created: dict[str, None] = {}
        self.batches = 0
        self._in_doubt: dict[int, list[str]] = {}
        self._next = 1
        if store is not None:
            self._read_all(store)
            self._check_platform(store)

    @property
    def lasting(self) -> bool:
        """Whether a retry will know of it."""
        return self._store is not None

    @property
    def in_doubt(self) -> list[str]:
        """The loginIds of batches that may or may not have been created."""
        return [login_id for login_ids in self._in_doubt.values() for login_id in login_ids]

    def begin(self, login_ids: Sequence[str]) -> None:
        """Note that a batch is about to be sent.

        :raises AnaplatUnsettledError: another attempt has noted one of this number since this ledger was read
        """
        self._check_alone()
        if self._store is not None and self._platform is not None and self._next == 1:
            self._store.set(_PLATFORM_KEY, self._platform)
        self._write("in doubt", login_ids)
        if self._store is not None:
            self._store.set(_LAST_KEY, self._next)

    def created_now(self, login_ids: Sequence[str]) -> None:
        """Note that the batch that was begun is created."""
        self._write("created", login_ids)
        self.batches += 1
        self._next += 1

    def refused(self) -> None:
        """Note that nobody of the batch that was begun is created."""
        self._write("refused", ())

    def left_in_doubt(self, login_ids: Sequence[str]) -> None:
        """Note that it is not known what became of the batch that was begun."""
        self._in_doubt[self._next] = list(login_ids)
        self._next += 1

    def resolve(self, created: Collection[str]) -> list[str]:
        """Note which of the users in doubt were created, and return those; the others were not.

        :param created: their loginIds, and perhaps others
        """
        found: list[str] = []
        for number, login_ids in self._in_doubt.items():
            entry = [login_id for login_id in login_ids if login_id in created]
            if self._store is not None:
                self._store.set(_KEY.format(number), _entry("created", entry))
            self.batches += bool(entry)
            found += entry
        self._in_doubt.clear()
        self.created.update(dict.fromkeys(found))
        return found

    def _write(self, state: str, login_ids: Sequence[str]) -> None:
        if self._store is not None:
            self._store.set(_KEY.format(self._next), _entry(state, login_ids))

    def _read_all(self, store: StateStore) -> None:
        last = read_note(store, _LAST_KEY, "number", _number) or 0
        while (entry := self._read_batch(store)) is not None or self._next <= last:
            if entry is None:
                raise damaged(store, _KEY.format(self._next), "it is missing")
            if entry["state"] == "refused":
                return
            self._read(self._next, entry)
            self._next += 1

    def _check_platform(self, store: StateStore) -> None:
        """See that a connection that was corrected does not take users of the wrong platform for its own."""
        noted = read_note(store, _PLATFORM_KEY, "address of a platform", _text)
        if self._next == 1 or self._platform is None or noted is None:
            return
        if not is_same_address(noted, self._platform):
            raise AnaplatDamagedStateError(
                f"Earlier attempts of this run have sent users to {noted}, and the connection leads to "
                f"{self._platform} now. Nothing was sent. Trigger a new run to create the users there, with "
                "existing_users='skip' if both are one platform; or let the connection lead back, and clear the "
                "task."
            )

    def _check_alone(self) -> None:
        """See that no other attempt goes on as well: it would send the same users."""
        noted = None if self._store is None else self._read_batch(self._store)
        if noted is not None and noted["state"] != "refused":
            raise AnaplatUnsettledError(
                f"Batch {self._next} of the users was noted by another attempt, or another command, since this "
                "one began. This one stops, so that nobody is created twice. Wait until the other one has ended, "
                "then run it again: it goes on from there."
            )

    def _read_batch(self, store: StateStore) -> dict[str, Any] | None:
        return read_note(store, _KEY.format(self._next), "note of a batch of users", _batch)

    def _read(self, number: int, entry: Any) -> None:
        if entry["state"] == "in doubt":
            self._in_doubt[number] = entry["loginIds"]
        else:
            self.created.update(dict.fromkeys(entry["loginIds"]))
            self.batches += bool(entry["loginIds"])


def _entry(state: str, login_ids: Sequence[str]) -> dict[str, Any]:
    return {"state": state, "loginIds": list(login_ids)}


def _batch(note: Any) -> dict[str, Any]:
    state, login_ids = note["state"], note["loginIds"]
    whole = isinstance(login_ids, list) and all(isinstance(login_id, str) for login_id in login_ids)
    if state not in _STATES or not whole:
        raise ValueError("no note of a batch of users")
    return _entry(state, login_ids)


def _text(note: Any) -> str:
    if not isinstance(note, str):
        raise TypeError("no text")
    return note


def _number(note: Any) -> int:
    if type(note) is not int or note < 1:
        raise ValueError("no number of a batch")
    return note
