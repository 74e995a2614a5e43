from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

# Airflow reads these when it is first imported, so they are set before any test module is. Pytest runs this file
# once, and the first test module that imports something of it may run it once more.
# Each process of pytest-xdist has a home of its own.
MADE_HERE = "ANAPLAT_TESTS_HOME" not in os.environ
TESTS_HOME = Path(os.environ.get("ANAPLAT_TESTS_HOME") or tempfile.mkdtemp(prefix="anaplat-tests-"))
AIRFLOW_HOME = TESTS_HOME / os.environ.get("PYTEST_XDIST_WORKER", "")
os.environ.update(
    ANAPLAT_TESTS_HOME=str(TESTS_HOME),
    AIRFLOW_HOME=str(AIRFLOW_HOME),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__DAGS_FOLDER=str(AIRFLOW_HOME / "dags"),
)
# Of what the tests start, `make coverage` measures what asks for it: a process takes longer and more memory then,
# and those that Airflow forks would write into one file.
if "PYTEST_XDIST_WORKER" in os.environ and "COVERAGE_PROCESS_CONFIG" in os.environ:
    os.environ["ANAPLAT_TESTS_COVERAGE"] = os.environ.pop("COVERAGE_PROCESS_CONFIG")
MEASURED = {"COVERAGE_PROCESS_CONFIG": os.environ.get("ANAPLAT_TESTS_COVERAGE", "")}
for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)

from support.statsd import StatsD  # noqa: E402

from airflow_provider_anaplat.client import AnaplatClient  # noqa: E402
from airflow_provider_anaplat.simulator import Simulator, Table  # noqa: E402

if TYPE_CHECKING:
    from support.running import WarmAirflow

# What takes as long to start as a file's tests do, by the files that share it: one process runs them all.
SHARED = {
    "integration": ("dags", "documented_dags", "killed", "lineage"),  # a warm Airflow
    "system": (  # a deployment
        "connection_cap", "deferred_tasks", "examples", "killed_components", "partitioned", "secrets",
    ),
}  # fmt: skip
TOGETHER = {f"tests/{folder}/test_{name}.py": folder for folder, names in SHARED.items() for name in names}

LONG = 1200.0  # seconds; far more than anything that is waited for takes, also on a busy machine

# A slow machine is no failure. For a night: python -m pytest --hypothesis-profile=thorough tests/unit
settings.register_profile("unhurried", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=4000)
settings.load_profile("unhurried")

pytest_plugins = ["airflow_provider_anaplat.simulator.pytest_plugin"]

TEXTS = Table.of_rows(
    [("id", "INT"), ("text", "STRING")],
    [["1", None], ["2", ""], ["3", "null"], ["4", 'quo"te, back\\slash\nand 😀 中']],
)


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Let no test fail for a finalizer that the garbage collector runs where a test has used up the stack."""
    report = sys.unraisablehook

    def unless_out_of_stack(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, RecursionError):
            report(unraisable)

    sys.unraisablehook = unless_out_of_stack


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process of pytest-xdist run all files that share something."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return TOGETHER.get(file, file)

    return Scheduling(config, log)


def pytest_unconfigure() -> None:
    """Remove what the tests shared, once all of their processes have ended."""
    if MADE_HERE:
        shutil.rmtree(TESTS_HOME, ignore_errors=True)


def numbers(count: int) -> Table:
    """A table of this many rows, whose column ``n`` counts them from 0."""
    return Table.of_rows([("n", "LONG"), ("half", "DOUBLE")], [[str(i), str(i / 2)] for i in range(count)])


@pytest.fixture
def simulator(anaplat_simulator: Simulator) -> Simulator:
    return anaplat_simulator


@pytest.fixture
def client(simulator: Simulator) -> AnaplatClient:
    return AnaplatClient(simulator.url, simulator.token)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set the connection ``anaplat_default``, as a user's unit test would."""

    def connect(simulator: Simulator | None = None, **fields: object) -> None:
        connection: dict[str, object] = {"conn_type": "anaplat"}
        if simulator is not None:
            connection |= {"host": simulator.url, "password": simulator.token}
        monkeypatch.setenv("AIRFLOW_CONN_ANAPLAT_DEFAULT", json.dumps(connection | fields))

    return connect


@pytest.fixture(scope="session")
def warm_airflow() -> Iterator[WarmAirflow]:
    """An Airflow that is imported once; whoever uses it lets it begin anew."""
    from support.running import WarmAirflow  # not for tests that need no Airflow

    with WarmAirflow(AIRFLOW_HOME / "warm") as airflow:
        yield airflow


@pytest.fixture
def statsd() -> Iterator[StatsD]:
    pytest.importorskip("statsd", reason="Airflow writes to StatsD with this library")
    server = StatsD()
    yield server
    server.socket.close()
