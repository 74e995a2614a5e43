"""Users that were checked, all of them, before the first is sent."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from airflow_provider_anaplat.client.models import NewUser
from airflow_provider_anaplat.errors import AnaplatInvalidUsersError, AnaplatSourceChangedError
from airflow_provider_anaplat.users.sources import BadRow, UserSource
from airflow_provider_anaplat.users.wording import SHOWN


class CheckedUsers:
    """The users of a source: read once to be checked, and once more to be sent.

    In between, a hash of each user is kept, so that nobody is sent who was not checked.

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

        :raises AnaplatSourceChangedError: at a user who was not checked, and where one that was is not there
        """
        waiting = set(self._checked)
        for number, fields in self._source.rows():
            try:
                user = None if isinstance(fields, BadRow) else NewUser.model_validate(fields)
                waiting.remove(_hash(user))
            except (ValidationError, KeyError):
                user = None
            if user is None:
                place = self._source.prefix.format(number).rstrip("., ")
                raise self._changed(f"{place} was not there when the users were checked")
            yield user
        if waiting:
            raise self._changed(f"{len(waiting):,} of the users that were checked are not there any more")

    def _check(self) -> None:
        first_place: dict[str, int] = {}
        total = 0
        for number, fields in self._source.rows():
            total += 1
            if isinstance(fields, BadRow):
                self._complain(number, "", fields.problem)
                continue
            try:
                user = NewUser.model_validate(fields)
            except ValidationError as error:
                for problem in error.errors(include_input=False, include_url=False):
                    self._complain(number, ".".join(map(str, problem["loc"])), problem["msg"])
                continue
            if (first := first_place.setdefault(user.login_id, number)) != number:
                same = self._source.prefix.format(first).rstrip("., ")
                self._complain(number, "loginId", f"the same as that of {same}")
            self._checked.add(_hash(user))
        self._raise_problems(total)

    def _complain(self, number: int, field: str, problem: str) -> None:
        self._problem_count += 1
        if len(self._problems) < SHOWN:
            place = self._source.prefix.format(number)
            self._problems.append(f"{place}{field}: {problem}" if field else f"{place.rstrip('., ')}: {problem}")

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


def _hash(user: NewUser | None) -> int:
    return hash(user.model_dump_json()) if user else 0
