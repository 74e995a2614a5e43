from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_anaplat.client.errors import AnaplatRefusedError
from airflow_provider_anaplat.operators.users import AnaplatCreateUsersOperator
from airflow_provider_anaplat.simulator import Simulator, replies

Connect = Callable[..., None]


def create(users: Any, **arguments: Any) -> Any:
    return AnaplatCreateUsersOperator(task_id="users", users=users, **arguments).execute({})


def people(count: int) -> list[dict[str, Any]]:
    return [{"loginId": f"user{i}", "name": f"User {i}", "password": f"pass-{i}"} for i in range(count)]


def test_users_are_created_in_batches(connect: Connect, platform: Simulator) -> None:
    connect(platform)
    assert create(people(450), user_property_type="1") == {"created": 450, "batches": 3}
    sent = [len(request.body["users"]) for request in platform.requests("create_users")]
    assert sent == [200, 200, 50]
    assert platform.requests("create_users")[0].body["userPropertyType"] == 1
    assert len(platform.platform.users) == 450


def test_every_field_of_the_contract(connect: Connect, platform: Simulator) -> None:
    connect(platform)
    user = {
        "name": "Ada",
        "loginId": "ada",
        "password": "p",
        "role": "participant",
        "email": "ada@example.com",
        "mobile": "1",
        "enabled": False,
        "userGroupIds": ["g"],
        "userDefinedProperties": {"chat": "ada"},
    }
    create([user])
    assert platform.platform.users["ada"] == user


def test_snake_case_is_understood(connect: Connect, platform: Simulator) -> None:
    connect(platform)
    create([{"login_id": "ada", "user_group_ids": ["g"]}])
    assert platform.platform.users["ada"] == {"loginId": "ada", "userGroupIds": ["g"]}


def test_no_users_are_no_request(connect: Connect, platform: Simulator) -> None:
    connect(platform)
    assert create([]) == {"created": 0, "batches": 0}
    assert platform.ledger == []


def test_every_problem_is_listed_and_nothing_is_sent(connect: Connect, platform: Simulator) -> None:
    connect(platform)
    users = [
        {"loginId": "a", "password": "hunter2"},
        {"loginId": " ", "password": "hunter2"},
        {"name": "no login", "password": "hunter2"},
        {"loginId": "a"},
        {"loginId": "b", "nickname": "hunter2"},
        {"loginId": "c", "password": ["hunter2"]},
        {"loginId": "d", "enabled": "yes"},
        "hunter2",
    ]
    with pytest.raises(AirflowFailException) as raised:
        create(users)
    message = str(raised.value)
    for problem in (
        "7 problems in 8 users; none was sent",
        "users[1].loginId",
        "users[2].loginId: Field required",
        "users[3].loginId: the same as that of users[0]",
        "users[4].nickname",
        "users[5].password",
        "users[6].enabled",
        "users[7]",
    ):
        assert problem in message
    assert "hunter2" not in message
    assert platform.ledger == []


@pytest.mark.parametrize("batch_size", [0, -1])
def test_an_impossible_batch_size_is_an_error(connect: Connect, platform: Simulator, batch_size: int) -> None:
    connect(platform)
    with pytest.raises(AirflowFailException, match="batch_size"):
        create(people(2), batch_size=batch_size)


@pytest.mark.parametrize("users", ['[{"loginId": "a"}]', {"loginId": "a"}, 7, None])
def test_what_is_no_list_is_an_error(connect: Connect, platform: Simulator, users: Any) -> None:
    connect(platform)
    with pytest.raises(AirflowFailException, match="where a list of dictionaries is due"):
        create(users)


@pytest.mark.parametrize(("message", "reported"), [("1 users created", "1 as created"), ("done", "no number")])
def test_another_number_than_was_sent_is_an_error(
    connect: Connect, platform: Simulator, message: str, reported: str
) -> None:
    connect(platform)
    platform.inject("create_users", replies.content(f'{{"result": "ok", "response": "{message}"}}'.encode()))
    with pytest.raises(AirflowFailException, match=f"2 users were sent, and the platform reports {reported}"):
        create(people(2))


def test_a_refused_batch_stops_and_says_what_is_created(
    connect: Connect,
    platform: Simulator,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    connect(platform)
    platform.platform.users["user3"] = {}
    with pytest.raises(AnaplatRefusedError, match="user3 already exists"):
        create(people(6), batch_size=2)
    assert sorted(platform.platform.users) == ["user0", "user1", "user3"]
    logged = caplog.text + capsys.readouterr().out  # Airflow 2 logs through logging, Airflow 3 to the console
    assert "Batch 2 of 3 failed (loginId user2 to user3); the 2 users of the batches before it" in logged
    assert "pass-" not in logged


def test_a_lost_answer_is_not_followed_by_a_second_request(connect: Connect, platform: Simulator) -> None:
    connect(platform)
    platform.inject("create_users", replies.cut(), after_act=True)
    with pytest.raises(AirflowFailException, match="not known"):
        create(people(2))
    assert len(platform.requests("create_users")) == 1
