"""Users that were checked, all of them, before the first is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from unicodedata import normalize

from pydantic import ValidationError

from airflow_provider_anaplat.client._http.redaction import without_half_characters
from airflow_provider_anaplat.client.models import NewUser
from airflow_provider_anaplat.errors import AnaplatInvalidUsersError, AnaplatSourceChangedError
from airflow_provider_anaplat.users.sources import BadRow, Row, UserSource
from airflow_provider_anaplat.users.wording import SHOWN

__all__ = [
    "CheckedUsers",
    "examined",
]

# What a spreadsheet or a query leaves behind: the platform may trim it, or have another user of the same look.
_STRAY = re.compile(r"\A[\s\ufeff\u200b-\u200f\u2060]|[\s\ufeff\u200b-\u200f\u2060]\Z|[\x00-\x1f\x7f-\x9f]")


class CheckedUsers:
    """The users of a source: read once to be checked, and once more to be sent.

    In between, a hash of each user is kept, so that no user is sent who was not checked.

    :param source: where they are listed
    :raises AnaplatInvalidUsersError: naming the problems of all users; nothing was sent
    """

    def __init__(self, source: UserSource) -> None:
        self._source = source
        self._problems: list[str] = []
        self._problem_count = 0
        # Hashes are of this process alone, and as good as random to anyone else.
        self._checked: set[int] = set()
        self._check()
        self.count = len(self._checked)

    def __iter__(self) -> Iterator[NewUser]:
        """Read the users again; they may come in another order.

        :raises AnaplatSourceChangedError: at a user who was not checked, and if one who was checked is missing
        """
        waiting = set(self._checked)
        for number, fields in self._rows_again():
            try:
                user = None if isinstance(fields, BadRow) else NewUser.model_validate(fields)
                waiting.remove(_hash(user))
            except (ValueError, KeyError):  # also of half a character, which has no hash
                user = None
            if user is None:
                place = self._source.prefix.format(number).rstrip("., ")
                raise self._changed(f"{place} was not there when the users were checked")
            yield user
        if waiting:
            raise self._changed(f"{len(waiting):,} of the users that were checked are not there any more")

    def _rows_again(self) -> Iterator[Row]:
        try:
            yield from self._source.rows()
        except AnaplatInvalidUsersError as error:  # it says that none was sent, which is not known here
            raise self._changed("it is no list of users any more") from error

    def _check(self) -> None:
        total = 0
        for user, problems in examined(self._source):
            total += 1
            self._problem_count += len(problems)
            self._problems += problems[: SHOWN - len(self._problems)]
            if user is not None:
                self._checked.add(_hash(user))
        self._raise_problems(total)

    def _raise_problems(self, total: int) -> None:
        if not self._problem_count:
            return
        rest = self._problem_count - len(self._problems)
        lines = [*self._problems, f"and {rest:,} more"] if rest else self._problems
        raise AnaplatInvalidUsersError(
            f"{self._problem_count:,} problems in {total:,} users of {self._source}; none was sent.\n"
            + "\n".join(lines)
        )

    def _changed(self, what: str) -> AnaplatSourceChangedError:
        return AnaplatSourceChangedError(
            f"{self._source} changed while it was read: {what}. What is confirmed so far is created; a retry "
            "checks all users anew and goes on from there."
        )


def examined(source: UserSource) -> Iterator[tuple[NewUser | None, list[str]]]:
    """Yield each user of a source, None if it is not fit to be sent, and what is wrong with it.

    :param source: where they are listed
    :raises AnaplatInvalidUsersError: what is there is no list of users
    :raises AnaplatSourceError: it cannot be read
    """
    first_place: dict[str, int] = {}
    for number, fields in source.rows():
        place = source.prefix.format(number)
        if isinstance(fields, BadRow):
            yield None, [_problem(place, "", fields.problem)]
            continue
        try:
            user = NewUser.model_validate(fields)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False)
            yield None, [_problem(place, ".".join(map(str, one["loc"])), one["msg"]) for one in found]
            continue
        if halves := _fields_with_halves(user):
            yield None, [_problem(place, name, "half of a character (an unpaired surrogate)") for name in halves]
            continue
        problem = _problem_of_id(user.login_id)
        # The same letter can be one character, or a letter and an accent.
        if (first := first_place.setdefault(normalize("NFC", user.login_id), number)) != number:
            problem = f"the same as that of {source.prefix.format(first).rstrip('., ')}"
        yield user, [_problem(place, "loginId", problem)] if problem else []


def _problem_of_id(login_id: str) -> str:
    stray = _STRAY.search(login_id)
    return f"the character U+{ord(stray[0]):04X}, a space or invisible, where none belongs" if stray else ""


def _fields_with_halves(user: NewUser) -> list[str]:
    """Return the fields that hold an unpaired surrogate, which JSON can escape and no text can hold."""
    try:
        user.model_dump_json()
        "".join(user.user_defined_properties or ()).encode()  # which it lets pass as keys
    except ValueError:
        return [name for name, value in user.model_dump(by_alias=True).items() if _has_half(value)]
    return []


def _has_half(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_half(item) for pair in value.items() for item in pair)
    if isinstance(value, list):
        return any(map(_has_half, value))
    return isinstance(value, str) and without_half_characters(value) != value


def _problem(place: str, field: str, problem: str) -> str:
    # A field that no user has may be called anything.
    return without_half_characters(f"{place}{field}: {problem}" if field else f"{place.rstrip('., ')}: {problem}")


def _hash(user: NewUser | None) -> int:
    return hash(user.model_dump_json()) if user else 0
