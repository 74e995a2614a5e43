from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import databases
from support.databases import DATABASES, DRIVERS, Database, database, set_connection

from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator

Load = Callable[..., dict[str, Any]]


def _opened(driver: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    with database(driver, folder) as found:
        set_connection(monkeypatch, found)
        yield found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a driver or a server that is missing be one line of the summary, however many tests ask for it."""
    report = yield
    if report.when == "setup" and report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (str(databases.__file__), 0, report.longrepr[2])
    return report


@pytest.fixture
def hook_params() -> dict[str, Any]:
    """Arguments of the database's hook, which the fixture of a database may add to."""
    return {}


@pytest.fixture(params=DATABASES)
def db(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    yield from _opened(request.param, tmp_path, monkeypatch)


@pytest.fixture(params=DRIVERS)
def each(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook_params: dict[str, Any]
) -> Iterator[Database]:
    for found in _opened(request.param, tmp_path, monkeypatch):
        hook_params.update(found.hook_params)
        yield found


@pytest.fixture
def postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    yield from _opened("postgres", tmp_path, monkeypatch)


@pytest.fixture
def mysql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    yield from _opened("mysql-connector", tmp_path, monkeypatch)


@pytest.fixture
def sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    yield from _opened("sqlite", tmp_path, monkeypatch)


@pytest.fixture
def load(connect: Callable[..., None], simulator: Simulator, hook_params: dict[str, Any]) -> Load:
    """Run the operator; ``run`` is the DAG run that it belongs to, None for none."""
    connect(simulator)

    def load(run: str | None = None, **arguments: Any) -> dict[str, Any]:
        context: Any = {}
        if run is not None:
            context = {"ti": SimpleNamespace(dag_id="dag", run_id=run, task_id="load", map_index=-1)}
        arguments = {
            "ds_id": "ds1", "sql_conn_id": "database", "table": "sales", "hook_params": hook_params, **arguments,
        }  # fmt: skip
        # What Airflow 2 wraps it in fails in any thread but the one that imported Airflow.
        execute = inspect.unwrap(AnaplatToSqlOperator.execute)
        return execute(AnaplatToSqlOperator(task_id="load", **arguments), context)

    return load
