"""Users in a terminal: all problems of a file, and a creation that asks first and goes on where it stopped."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from support.commands import Anaplat

from airflow_provider_anaplat.simulator import Simulator, replies

PASSWORD = "s3cret-of-a-user"


def listed(path: Path, count: int) -> Path:
    lines = ["loginId,name,password", *(f"user{number},User {number},{PASSWORD}" for number in range(count))]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return listed(tmp_path / "users.csv", 5)


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Let a person at a terminal type a text."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(text))


def test_check_names_all_problems_and_sends_nothing(
    simulator: Simulator, anaplat: Anaplat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANAPLAT_URL")  # it needs no platform
    file = tmp_path / "users.csv"
    file.write_text("loginId,enabled,password\n" + f",true,{PASSWORD}\n" * 300 + f"a,perhaps,{PASSWORD}\n")
    ended = anaplat("users", "check", file)

    assert (ended.code, len(ended.out.splitlines())) == (8, 301)
    assert "line 302, enabled" in ended.out
    assert "301 problems in 301 users" in ended.err
    assert PASSWORD not in ended.out + ended.err

    as_json = anaplat("users", "check", file, "--json")
    assert (as_json.code, len(as_json.json["problems"]), as_json.json["users"]) == (8, 301, 301)
    assert simulator.ledger == []


def test_a_file_without_a_problem_is_fit(anaplat: Anaplat, file: Path) -> None:
    ended = anaplat("users", "check", file)
    assert (ended.code, ended.out) == (0, "")
    assert "5 users" in ended.err
    assert anaplat("users", "check", file, "--json").json == {"users": 5, "problems": []}


@pytest.mark.parametrize(("name", "code"), [("nowhere.csv", 7), ("users.xlsx", 8)])
def test_what_is_no_file_of_users_is_said(anaplat: Anaplat, tmp_path: Path, name: str, code: int) -> None:
    assert anaplat("users", "check", tmp_path / name).code == code


def test_create_asks_first(
    simulator: Simulator, anaplat: Anaplat, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, "n\n")
    refused = anaplat("users", "create", file)

    assert (refused.code, simulator.requests("create_users")) == (2, [])
    assert f"Create 5 users of {file} on {simulator.url}? [y/N]" in refused.err

    answer(monkeypatch, "y\n")
    agreed = anaplat("users", "create", file)

    assert (agreed.code, len(simulator.platform.users)) == (0, 5)
    assert agreed.out.startswith("5 created, 0 skipped, 0 rejected")


def test_where_nobody_can_be_asked_it_takes_a_yes(simulator: Simulator, anaplat: Anaplat, file: Path) -> None:
    ended = anaplat("users", "create", file)
    assert (ended.code, "--yes" in ended.err, simulator.ledger) == (2, True, [])
    assert anaplat("users", "create", file, "--yes", "--json").json["created"] == 5


def test_a_file_with_a_problem_sends_nobody(simulator: Simulator, anaplat: Anaplat, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(json.dumps({"loginId": ""}))
    assert (anaplat("users", "create", file, "--yes").code, simulator.ledger) == (8, [])


def test_a_repetition_goes_on_where_it_stopped(simulator: Simulator, anaplat: Anaplat, file: Path) -> None:
    simulator.inject(
        "create_users", replies.http_status(503), when=lambda body: body["users"][0]["loginId"] == "user4"
    )
    stopped = anaplat("users", "create", file, "--yes", "--batch-size", 2)

    assert stopped.code == 5
    assert (len(simulator.platform.users), "--in-doubt" in stopped.err) == (4, True)

    again = anaplat("users", "create", file, "--yes", "--batch-size", 2)
    assert again.code == 5  # what became of the last one, a person must say

    done = anaplat("users", "create", file, "--yes", "--batch-size", 2, "--in-doubt", "not_created", "--json")
    assert (done.code, done.json["created"], len(simulator.platform.users)) == (0, 5, 5)

    sent = [user["loginId"] for request in simulator.requests("create_users") for user in request.body["users"]]
    assert sent == ["user0", "user1", "user2", "user3", "user4", "user4"]
    assert PASSWORD not in "".join(path.read_text() for path in file.parent.rglob("*.json"))


@pytest.mark.parametrize("where", ["beside the file", "of its own"])
def test_the_progress_of_a_url_is_there_and_not_in_the_present_folder(
    simulator: Simulator, anaplat: Anaplat, file: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    progress = [] if where == "beside the file" else ["--progress", f"file://{file.parent}/progress"]
    for name in ("here", "there"):
        (file.parent / name).mkdir()
        monkeypatch.chdir(file.parent / name)
        ended = anaplat("users", "create", f"file://{file}", "--yes", "--json", *progress)
        assert ended.code == 0, ended.err
        assert ended.json["created"] == 5
        assert list((file.parent / name).iterdir()) == []

    assert len(simulator.requests("create_users")) == 1


def test_another_platform_has_a_progress_of_its_own(
    simulator: Simulator, anaplat: Anaplat, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert anaplat("users", "create", file, "--yes").code == 0
    with Simulator(token=simulator.token) as other:
        assert anaplat("users", "create", file, "--yes", "--url", other.url).code == 0
        assert len(other.platform.users) == 5
    assert len(simulator.requests("create_users")) == 1


def test_passwords_that_the_platform_repeats_are_masked(
    simulator: Simulator, anaplat: Anaplat, file: Path
) -> None:
    simulator.inject("create_users", replies.refusal(f"weak password {PASSWORD}", code=1012))
    ended = anaplat("users", "create", file, "--yes")
    assert (ended.code, PASSWORD in ended.err) == (8, False)
    assert "weak password ***" in ended.err
