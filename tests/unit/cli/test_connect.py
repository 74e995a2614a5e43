"""Which platform a command talks to, with which token, and what it says where that cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import TEXTS
from support.commands import TOKEN, Anaplat

from airflow_provider_anaplat.cli.exits import EXITS, exit_code
from airflow_provider_anaplat.errors import AnaplatError
from airflow_provider_anaplat.simulator import Simulator, replies
from airflow_provider_anaplat.simulator.platform import DEFAULT_LOGIN


def test_a_token_comes_from_the_environment_or_a_file(
    simulator: Simulator, anaplat: Anaplat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")

    assert anaplat("datasets").code == 0

    monkeypatch.setenv("ANAPLAT_TOKEN", "another")
    assert anaplat("datasets").code == 4
    assert anaplat("datasets", "--token-file", file).code == 0

    monkeypatch.delenv("ANAPLAT_TOKEN")
    monkeypatch.setenv("ANAPLAT_TOKEN_FILE", str(file))

    assert anaplat("datasets").code == 0

    monkeypatch.delenv("ANAPLAT_URL")
    assert anaplat("datasets", "--url", simulator.url).code == 0

    file.write_text(TOKEN, "utf-8-sig")  # as Windows writes it
    assert anaplat("datasets", "--url", simulator.url).code == 0


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"ANAPLAT_URL": ""}, "set ANAPLAT_URL"),
        ({"ANAPLAT_TOKEN": ""}, "set ANAPLAT_TOKEN"),
        ({"ANAPLAT_TOKEN": "", "ANAPLAT_TOKEN_FILE": "/nowhere"}, "/nowhere"),
        ({"ANAPLAT_TOKEN": "", "ANAPLAT_TOKEN_FILE": "/dev/null"}, "holds no token"),
        ({"ANAPLAT_URL": f"ftp://{TOKEN}@example.com"}, "neither http nor https"),
        ({"ANAPLAT_URL": f"https://user:{TOKEN}@example.com"}, "host is no address"),
        ({"ANAPLAT_EXTRA": f'["{TOKEN}"]'}, "ANAPLAT_EXTRA must be"),
        ({"ANAPLAT_EXTRA": TOKEN}, "ANAPLAT_EXTRA must be"),
        ({"ANAPLAT_EXTRA": "[" * 50_000}, "ANAPLAT_EXTRA must be"),
        ({"ANAPLAT_EXTRA": f'{{"read_timeout": "{TOKEN}"}}'}, "'read_timeout' is unusable"),
    ],
)
def test_what_cannot_work_is_said_and_nothing_is_sent(
    simulator: Simulator, anaplat: Anaplat, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ended = anaplat("datasets")
    assert (ended.code, ended.out, simulator.ledger) == (2, "", [])
    assert said in ended.err


def test_a_token_is_never_an_argument(anaplat: Anaplat) -> None:
    assert anaplat("datasets", "--token", "anything").code == 2
    assert "--token " not in anaplat("datasets", "--help").out


def test_a_user_can_be_signed_in(anaplat: Anaplat, monkeypatch: pytest.MonkeyPatch) -> None:
    with Simulator(token=TOKEN, deployment="user-token") as simulator:
        simulator.platform.add_dataset("texts", TEXTS)
        monkeypatch.setenv("ANAPLAT_URL", simulator.url)
        assert anaplat("head", "texts").code == 4
        monkeypatch.setenv("ANAPLAT_LOGIN", DEFAULT_LOGIN)
        assert anaplat("head", "texts").code == 0


def test_the_test_names_the_layer_that_is_not_good(
    simulator: Simulator, anaplat: Anaplat, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    good = anaplat("test")

    assert (good.code, good.out.startswith("The platform answers")) == (0, True)
    assert anaplat("test", "--json").json["ok"] is True

    simulator.inject("get_columns", replies.refusal(f"not {TOKEN}", code=1018, status=403))
    bad = anaplat("test", "--json")

    assert (bad.code, bad.json["ok"]) == (4, False)
    assert bad.json["message"].startswith("Token in the header: ")

    simulator.inject("list_datasets", replies.content(b"<html>", "text/html"))
    assert anaplat("test").code == 8

    monkeypatch.setenv("ANAPLAT_URL", "http://127.0.0.1:9")
    nobody = anaplat("test")

    assert (nobody.code, nobody.out.startswith("TCP: ")) == (6, True)


def test_call_prints_the_response_and_masks_what_is_secret(simulator: Simulator, anaplat: Anaplat) -> None:
    simulator.platform.subscriptions["s1"] = {"scId": "s1", "token": "x", "name": f"of {TOKEN}"}
    path = "/public-api/schedule/fetch-by-ids"
    ended = anaplat("call", path, "--body", '{"scIds": ["s1"]}', "--repeatable")
    assert (ended.code, ended.json) == (0, [{"scId": "s1", "token": "***", "name": "of ***"}])


def test_call_takes_a_body_from_a_file_and_queries(simulator: Simulator, anaplat: Anaplat, tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text('{"scIds": []}')

    assert anaplat("call", "/public-api/schedule/fetch-by-ids", "--body", f"@{file}").json == []

    anaplat("call", "/public-api/page/list", "--query", "a=b=c", "--query", "d=")
    assert simulator.requests("list_pages")[0].query == "a=b%3Dc&d="

    simulator.platform.add_dataset("texts", TEXTS)
    columns = anaplat("call", "/public-api/data-source/ds1/columns", "--token-in", "header").json

    assert [column["name"] for column in columns] == ["id", "text"]


@pytest.mark.parametrize(
    "words",
    [
        ["/public-api/page/list", "--body", "{"],
        ["/public-api/page/list", "--body", "@/nowhere"],
        ["/public-api/page/list", "--query", "a"],
        ["/elsewhere"],
        ["/public-api/../elsewhere"],
    ],
)
def test_a_call_that_cannot_work_sends_nothing(simulator: Simulator, anaplat: Anaplat, words: list[str]) -> None:
    assert (anaplat("call", *words).code, simulator.ledger) == (2, [])


def test_a_call_whose_answer_is_lost_is_not_sent_again(simulator: Simulator, anaplat: Anaplat) -> None:
    simulator.inject("list_pages", replies.reset())
    assert anaplat("call", "/public-api/page/list").code == 5
    assert len(simulator.requests("list_pages")) == 1


def test_every_error_has_one_exit_code_and_every_code_a_meaning() -> None:
    def all_kinds(kind: type[Exception]) -> list[type[Exception]]:
        return [kind, *(below for child in kind.__subclasses__() for below in all_kinds(child))]

    codes = {row.code for row in EXITS}
    assert len(codes) == len(EXITS)
    assert all(row.meaning.endswith(".") for row in EXITS)
    found = {exit_code(kind("x")) for kind in all_kinds(AnaplatError)}
    assert found <= codes - {0, 1}
    assert exit_code(KeyError()) == 1
