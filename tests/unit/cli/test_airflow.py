"""The command line with Airflow: its connections, and ``airflow anaplat …`` where a release takes it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from airflow.providers_manager import ProvidersManager
from conftest import TEXTS
from support.commands import TOKEN, Anaplat, assert_no_secret, in_a_process
from support.running import AIRFLOW, migrate

from airflow_provider_anaplat.cli.commands import COMMANDS, Group
from airflow_provider_anaplat.simulator import Simulator

TAKES_COMMANDS = hasattr(ProvidersManager, "cli_command_functions")
takes_commands = pytest.mark.skipif(not TAKES_COMMANDS, reason="this release takes no commands from providers")


def test_a_connection_of_airflow_can_be_named(
    simulator: Simulator, anaplat: Anaplat, connect: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    monkeypatch.delenv("ANAPLAT_URL")
    monkeypatch.delenv("ANAPLAT_TOKEN")
    connect(simulator, extra={"refresh_path": "/public-api/elsewhere/{dsId}"})

    assert anaplat("datasets", "--conn-id", "anaplat_default", "--json").json[0]["name"] == "texts"
    assert anaplat("refresh", "texts", "--conn-id", "anaplat_default").code == 3  # which has its extras

    connect(simulator, password="another")
    assert anaplat("datasets", "--conn-id", "anaplat_default").code == 4


def test_a_connection_that_airflow_does_not_have_is_said(anaplat: Anaplat) -> None:
    ended = anaplat("datasets", "--conn-id", "nowhere")
    assert (ended.code, "no usable connection 'nowhere'" in ended.err) == (2, True)


def test_a_connection_in_airflows_database_can_be_named(
    simulator: Simulator, environment: None, tmp_path: Path
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    migrate(tmp_path)
    home = {"AIRFLOW_HOME": str(tmp_path)}
    with closing(sqlite3.connect(tmp_path / "airflow.db")) as database, database:
        database.execute(
            "INSERT INTO connection (conn_id, conn_type, host, password, is_encrypted, is_extra_encrypted)"
            " VALUES ('anaplat_default', 'anaplat', ?, ?, FALSE, FALSE)", [simulator.url, TOKEN],
        )  # fmt: skip
    ended = in_a_process(["datasets", "--conn-id", "anaplat_default", "--json"], home)

    assert (ended.code, ended.json[0]["name"]) == (0, "texts")

    if not TAKES_COMMANDS:
        return
    ended = in_a_process(["anaplat", "head", "texts", "--json"], home, script=AIRFLOW)

    assert (ended.code, ended.json["dsId"]) == (0, "ds1")


@takes_commands
def test_airflow_has_every_command(environment: None) -> None:
    from airflow.cli.cli_parser import get_parser

    parser = get_parser()
    for command in COMMANDS:
        for one in command.commands if isinstance(command, Group) else [command]:
            words = ["anaplat", *([command.name] if isinstance(command, Group) else []), one.name]
            given = [argument for argument in one.arguments if not argument.flags[0].startswith("-")]
            parsed = parser.parse_args(
                [*words, *("word" for argument in given if "nargs" not in argument.options)]
            )
            assert parsed.func
            assert getattr(parsed, "conn_id", "anaplat_default") == "anaplat_default"


@takes_commands
def test_airflow_runs_the_same_command(
    simulator: Simulator,
    environment: None,
    connect: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from airflow.cli.cli_parser import get_parser

    def run(*words: str) -> int:
        arguments = get_parser().parse_args(["anaplat", *words])
        try:
            arguments.func(arguments)
        except SystemExit as end:
            return int(str(end.code))
        return 0

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "client")
    simulator.platform.add_dataset("texts", TEXTS)
    connect(simulator)
    assert run("head", "texts", "--json") == 0
    assert json.loads(capsys.readouterr().out)["dsId"] == "ds1"
    assert run("show", "nothing") == 3
    assert "No dataset has the id or the name 'nothing'" in capsys.readouterr().err
    monkeypatch.setenv("ANAPLAT_TOKEN", "another")
    assert run("pages", "--url", simulator.url) == 4
    assert_no_secret(capsys.readouterr().err)
