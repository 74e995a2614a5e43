from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from airflow.serialization.helpers import serialize_template_field

from airflow_provider_anaplat._airflow.releases import DAG, AirflowFailException
from airflow_provider_anaplat.operators.users import AnaplatCreateUsersOperator
from airflow_provider_anaplat.simulator import Simulator, replies

Connect = Callable[..., None]


def create(users: Any, **arguments: Any) -> Any:
    return AnaplatCreateUsersOperator(task_id="users", users=users, **arguments).execute({})


def people(count: int) -> list[dict[str, Any]]:
    return [{"loginId": f"user{i}", "name": f"User {i}", "password": f"pass-{i}"} for i in range(count)]


def test_users_are_created_in_batches(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    result = create(people(450), user_property_type="1")
    login_ids = result.pop("loginIds")

    assert result == {"created": 450, "skipped": 0, "rejected": 0, "batches": 3}
    assert login_ids == {"created": [f"user{i}" for i in range(200)], "skipped": [], "rejected": []}

    sent = [len(request.body["users"]) for request in simulator.requests("create_users")]
    assert sent == [200, 200, 50]
    assert simulator.requests("create_users")[0].body["userPropertyType"] == 1
    assert len(simulator.platform.users) == 450


def test_whoever_was_created_on_another_platform_is_not_counted_on_this_one(
    connect: Connect, simulator: Simulator, tmp_path: Path
) -> None:
    connect(simulator)
    create(people(2), progress_path=str(tmp_path))
    with Simulator(token=simulator.token) as other:
        connect(other)
        with pytest.raises(AirflowFailException, match=f"users to {simulator.url}, and the connection leads to"):
            create(people(2), progress_path=str(tmp_path))
        assert other.ledger == []


def test_every_field_of_the_contract(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
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

    assert simulator.platform.users["ada"] == user


def test_snake_case_is_understood(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    create([{"login_id": "ada", "user_group_ids": ["g"]}])
    assert simulator.platform.users["ada"] == {"loginId": "ada", "userGroupIds": ["g"]}


def test_no_users_are_no_request(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    assert (create([])["created"], create([])["batches"]) == (0, 0)
    assert simulator.ledger == []


def test_every_problem_is_listed_and_nothing_is_sent(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
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
        "7 problems in 8 users of the list; none was sent",
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
    assert simulator.ledger == []


@pytest.mark.parametrize("batch_size", [0, -1])
def test_an_impossible_batch_size_is_an_error(connect: Connect, simulator: Simulator, batch_size: int) -> None:
    connect(simulator)
    with pytest.raises(AirflowFailException, match="batch_size"):
        create(people(2), batch_size=batch_size)


@pytest.mark.parametrize("users", ['[{"loginId": "a"}]', {"loginId": "a"}, 7])
def test_what_is_no_list_is_an_error(connect: Connect, simulator: Simulator, users: Any) -> None:
    connect(simulator)
    with pytest.raises(AirflowFailException, match="it must be a list of dictionaries"):
        create(users)


@pytest.mark.parametrize(("message", "reported"), [("1 users created", "1 as created"), ("done", "no number")])
def test_another_number_than_was_sent_is_an_error(
    connect: Connect, simulator: Simulator, message: str, reported: str
) -> None:
    connect(simulator)
    simulator.inject("create_users", replies.content(f'{{"result": "ok", "response": "{message}"}}'.encode()))
    with pytest.raises(AirflowFailException, match=f"2 users were sent, and the platform reports {reported}"):
        create(people(2))


def test_a_refused_batch_stops_and_says_what_is_created(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    simulator.platform.users["user3"] = {}

    with pytest.raises(AirflowFailException) as raised:
        create(people(6), batch_size=2)
    assert sorted(simulator.platform.users) == ["user0", "user1", "user3"]

    message = str(raised.value)
    for part in (
        "rejected a batch of 2 users (user2, user3)",
        "user3 already exists",
        "The 2 users of the batches",
    ):
        assert part in message
    assert "pass-" not in message


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "given: none"),
        ({"users": [], "users_path": "u.csv"}, "given: users, users_path"),
        ({"users_sql": "select 1"}, "needs sql_conn_id"),
        ({"users": [], "existing_users": "ignore"}, "existing_users is 'ignore'; it must be one of error, skip"),
        ({"users": [], "in_doubt": "maybe"}, "in_doubt"),
        ({"users": [], "on_rejected": "skip"}, "on_rejected"),
        ({"users": [], "password_encoding": "rot13"}, "password_encoding"),
        ({"users_path": "/data/users.xlsx"}, "must end in .csv, .ndjson, .jsonl, .parquet"),
    ],
)
def test_what_cannot_work_is_named(
    connect: Connect, simulator: Simulator, arguments: dict[str, Any], problem: str
) -> None:
    connect(simulator)
    with pytest.raises(AirflowFailException, match=problem):
        AnaplatCreateUsersOperator(task_id="users", **arguments).execute({})
    assert simulator.ledger == []


def test_passwords_in_base64(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    create([{"loginId": "ada", "password": "geheim"}], password_encoding="base64")
    assert simulator.platform.users["ada"]["password"] == "Z2VoZWlt"


@pytest.mark.parametrize("echo", ["geheim", "Z2VoZWlt"])
def test_a_password_that_the_platform_repeats_is_not_shown(
    connect: Connect, simulator: Simulator, echo: str
) -> None:
    connect(simulator)
    simulator.inject("create_users", replies.refusal(f"the password {echo} is too short", code=1012))
    with pytest.raises(AirflowFailException, match=r"the password \*\*\* is too short") as raised:
        create([{"loginId": "ada", "password": "geheim"}], password_encoding="base64")
    assert echo not in str(raised.value)


@pytest.mark.parametrize("given", [people(100), "{{ people }}"])
def test_rendered_users_are_sent_and_not_shown(connect: Connect, simulator: Simulator, given: Any) -> None:
    """Airflow before 3.3 makes a text of a long field, and finds no password in it to hide."""
    connect(simulator)
    with DAG("dag", render_template_as_native_obj=True):
        operator = AnaplatCreateUsersOperator(task_id="users", users=given)
    operator.render_template_fields({"people": people(100)})  # type: ignore[typeddict-unknown-key]  # of this test

    assert str(operator.users) == serialize_template_field(operator.users, "users") == "100 users"
    with pytest.raises(TypeError):  # else Airflow would keep it as it is
        json.dumps(operator.users)
    assert operator.execute({})["created"] == 100
    assert simulator.platform.users["user99"]["password"] == "pass-99"


@pytest.mark.parametrize(
    ("given", "native", "kind"),
    [("{{ people }}", False, "str"), ("{{ people | tojson }}", False, "str"), ("{{ people[0] }}", True, "dict")],
)
def test_nor_is_shown_what_is_no_list_of_them(
    connect: Connect, simulator: Simulator, given: str, native: bool, kind: str
) -> None:
    """A template gives text unless the DAG says otherwise, and Airflow would keep that with its passwords."""
    connect(simulator)
    with DAG("dag", render_template_as_native_obj=native):
        operator = AnaplatCreateUsersOperator(task_id="users", users=given)  # type: ignore[arg-type]
    operator.render_template_fields({"people": people(2)})  # type: ignore[typeddict-unknown-key]  # of this test

    assert serialize_template_field(operator.users, "users") == f"a {kind}, which is no list"
    with pytest.raises(AirflowFailException, match=f"users is a {kind}; it must be a list"):
        operator.execute({})
    assert simulator.ledger == []


def test_users_of_a_database(connect: Connect, simulator: Simulator, monkeypatch: Any, tmp_path: Path) -> None:
    connect(simulator)
    monkeypatch.setenv("AIRFLOW_CONN_HR", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "hr.db")}))
    with closing(sqlite3.connect(tmp_path / "hr.db")) as database:
        database.execute("create table people (login_id integer, name text, enabled integer, groups text)")
        rows = [(i, f"100 % {i}", 1, "g1;g2" if i else None) for i in range(2_500)]
        database.executemany("insert into people values (?, ?, ?, ?)", rows)
        database.commit()
    sql = "select login_id, name, enabled, groups as user_group_ids from people where name like '100 %'"
    operator = AnaplatCreateUsersOperator(task_id="users", users_sql=sql, sql_conn_id="hr", batch_size=1_000)

    assert operator.execute({})["created"] == 2_500
    assert simulator.platform.users["0"] == {"loginId": "0", "name": "100 % 0", "enabled": True}
    assert simulator.platform.users["7"]["userGroupIds"] == ["g1", "g2"]


def test_a_lost_answer_is_not_followed_by_a_second_request(connect: Connect, simulator: Simulator) -> None:
    connect(simulator)
    simulator.inject("create_users", replies.cut(), after_act=True)
    with pytest.raises(AirflowFailException, match="2 users are in doubt: user0, user1"):
        create(people(2))
    assert len(simulator.requests("create_users")) == 1
