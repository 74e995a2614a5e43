"""A real scheduler and a real triggerer, with the connection in Airflow's database: what ``dag.test()`` hides."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest
from conftest import TEXTS
from support.running import AIRFLOW_2, RunningAirflow, WarmAirflow
from support.scheduled import DAG_FILE, ScheduledAirflow, until
from support.statsd import StatsD

from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.triggers.base import CAN_BEGIN_IN_TRIGGERER


@pytest.fixture
def airflow(warm_airflow: WarmAirflow, simulator: Simulator) -> Iterator[ScheduledAirflow]:
    airflow = ScheduledAirflow(warm_airflow)
    shutil.copy(DAG_FILE, warm_airflow.dags)
    airflow.command(
        "connections", "add", "anaplat_default", "--conn-type", "anaplat", "--conn-host", simulator.url,
        "--conn-password", simulator.token, "--conn-extra", '{"max_retries": 0}',
    )  # fmt: skip
    try:
        yield airflow
    finally:
        airflow.stop()


def test_waits_and_watchers_outlive_their_triggerer(airflow: ScheduledAirflow, simulator: Simulator) -> None:
    datasets = [simulator.platform.add_dataset(f"dataset {number}", TEXTS, ["处理中"]) for number in range(1, 6)]
    simulator.platform.add_dataset("watched", TEXTS)
    airflow.begin("triggerer_waits")
    airflow.command("dags", "trigger", "triggerer_waits")

    waiting = {("begins_there", -1), ("defers", 0), ("defers", 1), ("defers", 2), ("fails", -1)}
    until(lambda: all(airflow.states().get(key) == "deferred" for key in waiting), airflow)
    until(lambda: airflow.states()["no_connection", -1] == "failed", airflow)
    if CAN_BEGIN_IN_TRIGGERER:
        assert airflow.query("select pid from task_instance where task_id = 'begins_there'") == [(None,)]
    before, since = len(simulator.requests("list_datasets")), time.monotonic()
    until(lambda: len(simulator.requests("list_datasets")) >= before + 5, airflow)
    assert len(simulator.requests("list_datasets")) - before <= time.monotonic() - since + 1

    airflow.kill("triggerer")
    asked = len(simulator.requests("list_datasets"))
    simulator.platform.refresh("ds6")
    for dataset in datasets:
        dataset.statuses = ["FINISHED"]
    datasets[4].statuses = ["FAILED"]
    airflow.start("triggerer")

    until(lambda: set(airflow.states().values()) <= {"success", "failed"}, airflow)
    assert len(simulator.requests("list_datasets")) > asked
    assert {key for key, state in airflow.states().items() if state == "failed"} == {
        ("fails", -1),
        ("no_connection", -1),
    }
    if not AIRFLOW_2:
        _the_watcher_missed_nothing(airflow, simulator)
    assert all(simulator.token not in str(row) for row in airflow.query("select * from trigger"))
    logs = [path for path in airflow.home.rglob("*.log") if simulator.token in path.read_text(errors="replace")]
    assert logs == []


def _the_watcher_missed_nothing(airflow: ScheduledAirflow, simulator: Simulator) -> None:
    remembers = bool(airflow.query("select 1 from sqlite_master where name = 'asset_state_store'"))
    missed = 1 if remembers else 0
    until(lambda: airflow.runs_of_the_watched() == missed, airflow)
    simulator.platform.refresh("ds6")
    until(lambda: airflow.runs_of_the_watched() == missed + 1, airflow)


class ColdAirflow(ScheduledAirflow):
    """Its components import Airflow anew: the first metric decides where all go, and a warm one has sent some."""

    _begin = RunningAirflow._begin  # type: ignore[assignment]  # a process of its own in place of a fork


def test_a_triggerer_is_measured(simulator: Simulator, warm_airflow: WarmAirflow, statsd: StatsD) -> None:
    for number in range(1, 6):
        simulator.platform.add_dataset(f"dataset {number}", TEXTS, ["处理中"])
    airflow = ColdAirflow(warm_airflow)
    shutil.copy(DAG_FILE, warm_airflow.dags)
    airflow.environment |= statsd.environment()
    airflow.command(
        "connections", "add", "anaplat_default", "--conn-type", "anaplat", "--conn-host", simulator.url,
        "--conn-password", simulator.token,
    )  # fmt: skip
    try:
        airflow.begin("triggerer_waits")
        airflow.command("dags", "trigger", "triggerer_waits")
        everybody = {"5|g", "6|g"}  # all five, and on Airflow 3 the watcher
        for name, expected in (
            ("poll_waiters.anaplat_default.find_datasets", everybody),
            ("polls.anaplat_default.find_datasets", {"1|c"}),
            ("requests.anaplat_default.list_datasets.ok", {"1|c"}),
        ):
            until(lambda name=name, expected=expected: not expected.isdisjoint(statsd.values(name)), airflow)
    finally:
        airflow.stop()
