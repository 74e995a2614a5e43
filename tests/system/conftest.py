from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest
from support.backends import backends
from support.deployment import skip_where_impossible
from support.production import Production, production
from support.running import RELEASE

# Why a test cannot pass before Airflow 3.3; 3.2 passes all others.
NEEDS_AIRFLOW_3_3 = {
    "test_what_dead_workers_were_doing_is_done_once": "how many users a dead attempt created is in the task state"
    " store, which is new in Airflow 3.3",
    "test_no_table_holds_a_secret": "Airflow before 3.3 writes the values of variables to its audit log",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process run all tests that share a deployment, which takes a minute of processor time to start."""
    for item in items:
        shares = isinstance(item, pytest.Function) and "running" in item.fixturenames
        item.add_marker(pytest.mark.xdist_group("running" if shares else item.path.stem))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail where CI would skip."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("ANAPLAT_TESTS_SKIP_NONE"):
        report.outcome = "failed"
        report.longrepr = f"must not be skipped here: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def _skip_before_3_3(request: pytest.FixtureRequest) -> None:
    if RELEASE < (3, 3) and request.node.name in NEEDS_AIRFLOW_3_3:
        pytest.skip(NEEDS_AIRFLOW_3_3[request.node.name])


@pytest.fixture(scope="session")
def servers() -> Iterator[None]:
    """Start the PostgreSQL and the Redis of all deployments."""
    skip_where_impossible()
    with backends():
        yield


@pytest.fixture(scope="session")
def running(servers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    if RELEASE < (3, 1):
        pytest.skip("nobody has tried these tests on an Airflow before 3.1")
    with production(tmp_path_factory.mktemp("production")) as found:
        yield found
