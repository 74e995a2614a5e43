"""How the tests of the command line run a command."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.commands import TOKEN, Anaplat, Ended, assert_no_secret

from airflow_provider_anaplat.cli.main import main
from airflow_provider_anaplat.simulator import Simulator


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """A platform whose token is like nothing else that a command says."""
    with Simulator(token=TOKEN) as simulator:
        yield simulator


@pytest.fixture
def environment(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ANAPLAT_") and "TESTS" not in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ANAPLAT_URL", simulator.url)
    monkeypatch.setenv("ANAPLAT_TOKEN", TOKEN)
    monkeypatch.setenv("ANAPLAT_EXTRA", '{"max_retries": 0, "read_timeout": 60}')


@pytest.fixture
def anaplat(environment: None, capsys: pytest.CaptureFixture[str]) -> Anaplat:
    """Run a command in this process; no output of any may hold the token."""

    def run(*words: object) -> Ended:
        try:
            code = main([str(word) for word in words])
        except SystemExit as exit_:
            code = int(str(exit_.code))
        ended = Ended(code, *capsys.readouterr())
        assert_no_secret(ended.out + ended.err)
        return ended

    return run
