"""Nobody is sent twice, whatever happens to a request, and nobody is lost without a word."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG

from airflow_provider_anaplat import errors
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import (
    AnaplatSourceChangedError,
    AnaplatUnrepeatableError,
    AnaplatUnsettledError,
    AnaplatUserCountError,
    AnaplatUsersInDoubtError,
    AnaplatUsersRejectedError,
)
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.replies import Fault
from airflow_provider_anaplat.state import FolderStateStore
from airflow_provider_anaplat.users.ledger import UserLedger
from airflow_provider_anaplat.users.provision import Provisioning, Rules
from airflow_provider_anaplat.users.sources import ListSource, Row


def people(count: int) -> list[dict[str, Any]]:
    return [{"loginId": f"user{i}", "password": f"s3cret-{i}"} for i in range(count)]


class Attempts:
    """Attempts of one task: they share a folder, or nothing where there is none."""

    def __init__(self, simulator: Simulator, folder: Path | None) -> None:
        self.platform = simulator
        self.folder = folder

    def __call__(self, users: list[dict[str, Any]] | Any = None, **rules: Any) -> dict[str, Any]:
        client = AnaplatClient(self.platform.url, self.platform.token, max_retries=0, read_timeout=LONG)
        ledger = UserLedger(FolderStateStore(self.folder) if self.folder else None)
        source: Any = ListSource(people(6) if users is None else users) if not hasattr(users, "rows") else users
        return Provisioning(client, ledger, Rules(**{"batch_size": 2, **rules})).run(source)

    @property
    def sent(self) -> list[list[str]]:
        return [
            [user["loginId"] for user in request.body["users"]]
            for request in self.platform.requests("create_users")
        ]


@pytest.fixture
def attempt(simulator: Simulator, tmp_path: Path) -> Attempts:
    return Attempts(simulator, tmp_path)


@pytest.fixture
def forgetful(simulator: Simulator) -> Attempts:
    return Attempts(simulator, None)


def of_batch(number: int) -> Any:
    return lambda body: body["users"][0]["loginId"] == f"user{2 * number - 2}"


NO_ANSWER = [
    pytest.param(replies.reset(), id="reset"),
    pytest.param(replies.cut(), id="cut off"),
    pytest.param(replies.http_status(500), id="HTTP 500"),
    pytest.param(replies.http_status(504), id="HTTP 504"),
    pytest.param(replies.refusal("internal", code=5001, status=500), id="a failure without a known reason"),
    pytest.param(replies.content(b"<html>login</html>", "text/html"), id="HTML"),
]


@pytest.mark.parametrize("fault", NO_ANSWER)
@pytest.mark.parametrize("after_act", [True, False])
def test_an_unanswered_batch_is_named_and_not_sent_again(
    attempt: Attempts, fault: Fault, after_act: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    simulator = attempt.platform
    simulator.inject("create_users", fault, after_act=after_act, when=of_batch(2))
    created = after_act or fault.needs_answer

    for _ in range(3):
        with pytest.raises(AnaplatUsersInDoubtError, match="2 users are in doubt: user2, user3") as raised:
            attempt()
        assert "in_doubt='created'" in str(raised.value)
        assert "s3cret" not in str(raised.value)
    assert attempt.sent == [["user0", "user1"], ["user2", "user3"]]

    result = attempt(in_doubt="created" if created else "not_created")
    assert f"Of 2 users in doubt, {2 if created else 0} are created" in caplog.messages
    assert f"{4 if created else 2} users were created by earlier attempts" in caplog.messages
    assert (result["created"], result["batches"]) == (6, 3)
    assert sorted(simulator.platform.users) == [f"user{i}" for i in range(6)]
    assert len(attempt.sent) == (3 if created else 4)


@pytest.mark.parametrize("said", ["created", "not_created"])
def test_what_was_said_once_of_a_batch_in_doubt_is_remembered(attempt: Attempts, said: str) -> None:
    attempt.platform.inject("create_users", replies.reset(), after_act=said == "created", when=of_batch(2))
    with pytest.raises(AnaplatUsersInDoubtError):
        attempt()
    assert attempt(in_doubt=said)["created"] == 6

    sent = attempt.sent
    assert attempt()["created"] == 6
    assert attempt.sent == sent


@pytest.mark.parametrize(("note", "why"), [(None, "it is missing"), ("[]", "it is no note of a batch of users")])
def test_a_note_that_cannot_be_used_is_named_with_why(
    attempt: Attempts, tmp_path: Path, note: str | None, why: str
) -> None:
    attempt()
    path = tmp_path / "anaplat_users_000002.json"
    path.unlink() if note is None else path.write_text(note)
    with pytest.raises(errors.AnaplatDamagedStateError, match=why):
        attempt()
    assert len(attempt.sent) == 3


def test_an_unanswered_batch_is_sent_again_where_the_user_says_so(attempt: Attempts) -> None:
    attempt.platform.inject("create_users", replies.reset(), when=of_batch(2))
    with pytest.raises(AnaplatUnsettledError, match="a retry of this task sends its 2 users again: user2, user3"):
        attempt(in_doubt="resend")
    assert attempt(in_doubt="resend")["created"] == 6
    assert attempt.sent == [["user0", "user1"], ["user2", "user3"], ["user2", "user3"], ["user4", "user5"]]


@pytest.mark.parametrize("fault", NO_ANSWER)
def test_where_the_platform_can_be_asked_an_unanswered_batch_is_no_end(attempt: Attempts, fault: Fault) -> None:
    attempt.platform.inject("create_users", fault, after_act=True, when=of_batch(2))
    assert attempt(existing_users="skip")["created"] == 6
    assert len(attempt.sent) == 3


@pytest.mark.parametrize("lasting", [True, False])
def test_a_batch_that_was_not_carried_out_is_sent_by_the_next_attempt(
    simulator: Simulator, tmp_path: Path, lasting: bool
) -> None:
    attempt = Attempts(simulator, tmp_path if lasting else None)
    simulator.inject("create_users", replies.http_status(500), when=of_batch(2))

    with pytest.raises(AnaplatUnsettledError, match="2 of its 2 users do not exist, or not yet: user2, user3"):
        attempt(existing_users="skip")

    result = attempt(existing_users="skip")
    assert attempt.sent == [["user0", "user1"], ["user2", "user3"], ["user2", "user3"], ["user4", "user5"]]
    # Without a store, those of the first attempt were there already.
    assert (result["created"], result["skipped"]) == ((6, 0) if lasting else (4, 2))


def test_a_batch_of_which_half_was_created(attempt: Attempts) -> None:
    simulator = attempt.platform
    simulator.inject("create_users", replies.http_status(500), when=of_batch(2))

    with pytest.raises(AnaplatUnsettledError):
        attempt(existing_users="skip")

    simulator.platform.users["user3"] = {}
    assert attempt(existing_users="skip")["created"] == 6
    assert attempt.sent[2:] == [["user2", "user4"], ["user5"]]


def test_a_doubt_comes_before_anything_else(attempt: Attempts) -> None:
    attempt.platform.inject("create_users", replies.reset(), after_act=True)
    with pytest.raises(AnaplatUsersInDoubtError):
        attempt()
    with pytest.raises(AnaplatUsersInDoubtError, match="user0, user1"):
        attempt([{"nothing": "valid"}])


@pytest.mark.parametrize("existing_users", ["error", "skip"])
def test_a_retry_goes_on_where_it_stopped(attempt: Attempts, existing_users: str) -> None:
    attempt.platform.inject("create_users", replies.http_status(429), when=of_batch(3))
    with pytest.raises(errors.AnaplatRateLimitedError):
        attempt(existing_users=existing_users)

    result = attempt(existing_users=existing_users)
    assert attempt.sent == [["user0", "user1"], ["user2", "user3"], ["user4", "user5"], ["user4", "user5"]]
    assert (result["created"], result["skipped"], result["batches"]) == (6, 0, 3)
    assert result["loginIds"]["created"] == [f"user{i}" for i in range(6)]


class SlowSource(ListSource):
    """Users whose check takes so long that something else happens meanwhile."""

    def __init__(self, users: list[dict[str, Any]], happens: Callable[[], object]) -> None:
        super().__init__(users)
        self.happens: list[Callable[[], object]] = [happens]

    def rows(self) -> Iterator[Row]:
        for happens in self.happens:
            self.happens = []
            happens()
        return super().rows()


@pytest.mark.parametrize("ends", [True, False])
def test_of_two_attempts_at_once_one_stops(attempt: Attempts, simulator: Simulator, ends: bool) -> None:
    """As where a worker was given up too early, or the same command is run twice."""
    if not ends:
        simulator.inject("create_users", replies.reset(), when=of_batch(2))

    def other() -> None:
        with contextlib.suppress(AnaplatUsersInDoubtError):
            attempt()

    with pytest.raises(AnaplatUnsettledError, match=r"Batch 1 .* another attempt"):
        attempt(SlowSource(people(6), other))
    sent = [["user0", "user1"], ["user2", "user3"], ["user4", "user5"]]
    assert attempt.sent == (sent if ends else sent[:2])

    if ends:
        assert attempt()["created"] == 6
        assert attempt.sent == sent


def test_a_task_that_is_cleared_after_success_creates_nobody(attempt: Attempts) -> None:
    first = attempt()
    assert attempt() == first
    assert len(attempt.sent) == 3


def test_a_retry_knows_users_by_name_and_not_by_place(attempt: Attempts) -> None:
    attempt.platform.inject("create_users", replies.http_status(429), when=of_batch(2))
    with pytest.raises(errors.AnaplatRateLimitedError):
        attempt()
    attempt([{"loginId": "new"}, *reversed(people(4))])
    assert attempt.sent[2:] == [["new", "user3"], ["user2"]]


def test_progress_holds_no_password_and_does_not_grow(attempt: Attempts, tmp_path: Path) -> None:
    attempt(people(100), batch_size=10)
    files = list(tmp_path.iterdir())
    assert len(files) == 11  # one for each batch, and the number of the last
    assert all("s3cret" not in file.read_text() for file in files)
    assert max(file.stat().st_size for file in files) < 250


def test_existing_users_are_skipped(attempt: Attempts) -> None:
    attempt.platform.platform.users |= {"user1": {}, "user2": {}, "user5": {}}
    result = attempt(existing_users="skip")
    assert (result["created"], result["skipped"], result["batches"]) == (3, 3, 2)
    assert result["loginIds"]["skipped"] == ["user1", "user2", "user5"]
    assert attempt.sent == [["user0", "user3"], ["user4"]]


def existing(*login_ids: str) -> Fault:
    return replies.content(json.dumps({"result": "ok", "response": {"userExist": login_ids}}).encode())


def test_whoever_exists_in_another_spelling_exists(attempt: Attempts) -> None:
    attempt.platform.inject("get_users", existing("USER1"))
    result = attempt([{"loginId": "user0"}, {"loginId": "User1"}], existing_users="skip")
    assert result["loginIds"]["skipped"] == ["User1"]
    assert attempt.sent == [["user0"]]


def test_two_spellings_are_two_users_where_the_platform_tells_them_apart(attempt: Attempts) -> None:
    attempt.platform.inject("get_users", existing("user1"))
    attempt([{"loginId": "USER1"}, {"loginId": "user1"}], existing_users="skip")
    assert attempt.sent == [["USER1"]]


def test_a_batch_in_doubt_that_was_created_in_another_spelling_is_not_sent_again(attempt: Attempts) -> None:
    attempt.platform.inject("create_users", replies.reset(), after_act=True)
    attempt.platform.inject("get_users", existing())
    attempt.platform.inject("get_users", existing("USER0", "user1"))
    assert attempt(existing_users="skip")["created"] == 6
    assert len(attempt.sent) == 3


def test_an_answer_about_others_says_nothing_of_who_exists(attempt: Attempts) -> None:
    attempt.platform.inject("get_users", existing("someone"))
    with pytest.raises(errors.AnaplatInvalidAnswerError, match="did not ask for: someone"):
        attempt(existing_users="skip")
    assert attempt.sent == []


def test_the_extension_is_not_called_unless_it_is_asked_for(attempt: Attempts) -> None:
    attempt()
    assert {request.operation for request in attempt.platform.ledger} == {"create_users"}


def test_nothing_is_sent_where_everyone_exists(attempt: Attempts) -> None:
    attempt.platform.platform.users |= {f"user{i}": {} for i in range(6)}
    assert attempt(existing_users="skip")["skipped"] == 6
    assert attempt.sent == []


@pytest.mark.parametrize(("message", "reported"), [("1 users created", "1 as created"), ("done", "no number")])
def test_another_count_leaves_the_batch_in_doubt(attempt: Attempts, message: str, reported: str) -> None:
    answer = replies.content(f'{{"result": "ok", "response": "{message}"}}'.encode())
    attempt.platform.inject("create_users", answer, when=of_batch(2), after_act=True)

    with pytest.raises(
        AnaplatUserCountError, match=f"2 users were sent, and the platform reports {reported}.*user2, user3"
    ):
        attempt()
    with pytest.raises(AnaplatUsersInDoubtError, match="user2, user3"):
        attempt()
    assert attempt(existing_users="skip")["created"] == 6
    assert len(attempt.sent) == 3


def test_a_rejected_batch_stops_the_run(attempt: Attempts) -> None:
    attempt.platform.platform.users["user3"] = {}
    with pytest.raises(
        AnaplatUsersRejectedError, match=r"2 users \(user2, user3\).*user3 already exists.*The 2 users"
    ):
        attempt()

    del attempt.platform.platform.users["user3"]
    assert attempt()["created"] == 6
    assert attempt.sent == [["user0", "user1"], ["user2", "user3"], ["user2", "user3"], ["user4", "user5"]]


@pytest.mark.parametrize("offenders", [[], [0], [7], [3, 4], list(range(8)), [1, 8]])
def test_offenders_are_isolated(attempt: Attempts, offenders: list[int], caplog: pytest.LogCaptureFixture) -> None:
    simulator = attempt.platform
    simulator.platform.users |= {f"user{i}": {} for i in offenders}
    names = [f"user{i}" for i in offenders]
    with caplog.at_level(logging.WARNING):
        result = attempt(people(9), batch_size=8, isolate_rejected=True, on_rejected="report")

    assert result["loginIds"]["rejected"] == names
    assert (result["created"], result["rejected"]) == (9 - len(offenders), len(offenders))
    assert len(simulator.platform.users) == 9

    created = [login_id for login_ids in attempt.sent for login_id in login_ids if login_id not in names]
    assert set(created) == {f"user{i}" for i in range(9)} - set(names)
    for name in names:
        assert f"User {name} is rejected: create_users: refused with HTTP 500. The platform says" in caplog.text


def test_offenders_fail_the_task_in_the_end(attempt: Attempts) -> None:
    attempt.platform.platform.users["user3"] = {}
    with pytest.raises(
        AnaplatUsersRejectedError, match=r"1 users were rejected.*: user3. The other 5 are created"
    ):
        attempt(isolate_rejected=True)
    assert len(attempt.platform.platform.users) == 6


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (replies.http_status(429), errors.AnaplatRateLimitedError),
        (replies.refusal("expired", code=1018), errors.AnaplatAuthenticationError),
        (replies.refusal("no right", code=1004), errors.AnaplatPermissionError),
        (replies.http_status(404), errors.AnaplatNotFoundError),
    ],
)
def test_what_is_not_about_the_users_isolates_nobody(
    attempt: Attempts, fault: Fault, error: type[Exception]
) -> None:
    attempt.platform.inject("create_users", fault)
    with pytest.raises(error):
        attempt(isolate_rejected=True)
    assert len(attempt.sent) == 1
    assert attempt()["created"] == 6


def test_without_memory_what_is_created_is_not_sent_again(forgetful: Attempts) -> None:
    forgetful.platform.inject("create_users", replies.http_status(429), when=of_batch(3))
    with pytest.raises(
        AnaplatUnrepeatableError, match=r"4 users are created.*Created: user0, user1, user2, user3"
    ):
        forgetful()


class BrokenSource(ListSource):
    """Users of a database that ends the connection at the second reading."""

    readings = 0

    def rows(self) -> Iterator[Row]:
        self.readings += 1
        for number, fields in super().rows():
            if self.readings == 2 and number == 4:
                raise ConnectionAbortedError("the server closed the connection")
            yield number, fields


def test_without_memory_a_source_that_breaks_sends_nobody_again(forgetful: Attempts) -> None:
    with pytest.raises(AnaplatUnrepeatableError, match=r"closed the connection.* 4 users are created"):
        forgetful(BrokenSource(people(6)))


def test_without_memory_a_first_batch_may_be_repeated(forgetful: Attempts) -> None:
    forgetful.platform.inject("create_users", replies.http_status(429))
    with pytest.raises(errors.AnaplatRateLimitedError):
        forgetful()


def test_without_memory_a_doubt_says_what_to_do(forgetful: Attempts) -> None:
    forgetful.platform.inject("create_users", replies.reset(), after_act=True)
    with pytest.raises(
        AnaplatUsersInDoubtError, match="out of the input, or set existing_users='skip', and clear"
    ):
        forgetful()


class Wavering:
    """A source that gives someone else at each reading."""

    prefix = "row {}, "

    def __init__(self) -> None:
        self._readings = 0

    def __str__(self) -> str:
        return "the query"

    def rows(self) -> Any:
        self._readings += 1
        rows: list[Row] = [(i, {"loginId": f"user{i}"}) for i in range(4)]
        yield from rows
        yield 4, {"loginId": f"reading {self._readings}"}


def test_a_source_that_changed_stops_before_the_stranger(attempt: Attempts) -> None:
    with pytest.raises(
        AnaplatSourceChangedError, match="the query changed while it was read: row 4 was not there"
    ):
        attempt(Wavering())
    assert attempt.sent == [["user0", "user1"], ["user2", "user3"]]


def test_long_lists_are_cut(attempt: Attempts) -> None:
    attempt.platform.inject("create_users", replies.reset(), after_act=True)
    with pytest.raises(AnaplatUsersInDoubtError, match=r"300 users are in doubt: .*, user199 and 100 more"):
        attempt(people(300), batch_size=300)
    result = attempt(people(300), in_doubt="created")
    assert (result["created"], len(result["loginIds"]["created"])) == (300, 200)
