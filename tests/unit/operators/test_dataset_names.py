"""Datasets by their names: in every operator and sensor that takes one, and in the watcher."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import LONG, TEXTS, numbers

from airflow_provider_anaplat._airflow.releases import AirflowFailException, TaskDeferred
from airflow_provider_anaplat.client import AnaplatClient
from airflow_provider_anaplat.errors import (
    AnaplatDatasetExistsError,
    AnaplatInvalidAnswerError,
    AnaplatNotFoundError,
    AnaplatRequestError,
)
from airflow_provider_anaplat.operators.datasets import AnaplatSchemaCheckOperator
from airflow_provider_anaplat.operators.listing import AnaplatListDatasetsOperator
from airflow_provider_anaplat.operators.partitioned import _CommitOperator, _PartOperator, _PlanOperator
from airflow_provider_anaplat.operators.refresh import AnaplatRefreshDatasetOperator
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetFreshnessSensor, AnaplatDatasetTaskSensor
from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.transfers.anaplat_to_sql import AnaplatToSqlOperator
from airflow_provider_anaplat.triggers import datasets as trigger_module
from airflow_provider_anaplat.triggers.datasets import AnaplatDatasetUpdatedTrigger
from airflow_provider_anaplat.triggers.poller import Watch

LONG_AGO = "2000-01-01T00:00:00+00:00"
CONTEXT: Any = {"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="group.task", map_index=-1, start_date=None,
                                      xcom_push=lambda **_: None)}  # fmt: skip
TAKING: dict[Any, dict[str, Any]] = {
    AnaplatExportRowsOperator: {"output_path": "{folder}/out.csv"},
    AnaplatToSqlOperator: {"sql_conn_id": "database", "table": "t"},
    AnaplatSchemaCheckOperator: {"columns": {"n": None, "half": None}},
    AnaplatRefreshDatasetOperator: {"deferrable": False, "poll_interval": 0.05},
    _PlanOperator: {"output_path": "{folder}/parts", "file_format": "csv", "partitions": 2},
    AnaplatDatasetTaskSensor: {"poke_interval": 0.05},
    AnaplatDatasetFreshnessSensor: {"newer_than": LONG_AGO, "poke_interval": 0.05},
}
OPERATORS = [kind for kind in TAKING if not kind.__name__.endswith("Sensor")]
Run = Callable[..., Any]


@pytest.fixture
def run(
    simulator: Simulator, connect: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    connect(simulator, extra={"max_retries": 0})
    database = {"conn_type": "sqlite", "host": str(tmp_path / "db.sqlite")}
    monkeypatch.setenv("AIRFLOW_CONN_DATABASE", json.dumps(database))

    def run(kind: Any, **arguments: Any) -> Any:
        given = {
            name: value.replace("{folder}", str(tmp_path)) if isinstance(value, str) else value
            for name, value in TAKING.get(kind, {}).items()
        }
        return kind(**{"task_id": "t", **given, **arguments}).execute(CONTEXT)

    return run


def fill(simulator: Simulator) -> str:
    """Add a dataset that is meant among others, and return its id."""
    simulator.platform.add_dataset("costs", TEXTS)
    meant = simulator.platform.add_dataset("sales", numbers(10), parent_dir_id="dir1")
    simulator.platform.add_dataset("sales", TEXTS, parent_dir_id="dir2")
    return meant.ds_id


@pytest.mark.parametrize("kind", TAKING)
def test_a_name_is_looked_for_with_one_request(run: Run, simulator: Simulator, kind: Any) -> None:
    ds_id = fill(simulator)
    result = run(kind, dataset="dir1/sales")
    if kind is not _PlanOperator:  # whose result are lines for the parts
        assert result["dsId"] == ds_id
    listed = len(simulator.requests("list_datasets"))
    run(kind, ds_id=ds_id)
    by_id = len(simulator.requests("list_datasets")) - listed
    is_sensor = kind not in OPERATORS  # whose poll is the request

    assert listed == by_id + (0 if is_sensor else 1)


@pytest.mark.parametrize("kind", TAKING)
@pytest.mark.parametrize("given", [{}, {"ds_id": "ds1", "dataset": "sales"}, {"ds_id": "", "dataset": ""}])
def test_exactly_one_of_id_and_name_is_given(run: Run, simulator: Simulator, kind: Any, given: Any) -> None:
    fill(simulator)
    with pytest.raises(AirflowFailException, match=r"ds_id is .* and dataset is .*: give one of the two"):
        run(kind, **given)
    assert simulator.ledger == []


@pytest.mark.parametrize("kind", OPERATORS)
def test_several_of_the_name_are_named_and_nothing_is_done(run: Run, simulator: Simulator, kind: Any) -> None:
    fill(simulator)
    with pytest.raises(AirflowFailException, match=r"2 datasets .*'sales'.* ds2 .*dir1.* ds3 .*dir2"):
        run(kind, dataset="sales")
    assert {request.operation for request in simulator.ledger} == {"list_datasets"}


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_name_that_nobody_has(run: Run, simulator: Simulator, kind: Any) -> None:
    fill(simulator)
    with pytest.raises(AirflowFailException, match="No dataset is named 'dir3/sales'"):
        run(kind, dataset="dir3/sales")
    assert {request.operation for request in simulator.ledger} == {"list_datasets"}


def test_a_name_with_a_slash_in_it(client: AnaplatClient, simulator: Simulator) -> None:
    slashed = simulator.platform.add_dataset("north/south", TEXTS)
    assert client.find_dataset("north/south").ds_id == slashed.ds_id
    assert client.find_dataset("root/north/south").ds_id == slashed.ds_id

    within = simulator.platform.add_dataset("south", TEXTS, parent_dir_id="north")
    with pytest.raises(AnaplatDatasetExistsError, match=f"{slashed.ds_id} .*{within.ds_id} "):
        client.find_dataset("north/south")
    with pytest.raises(AnaplatNotFoundError):
        client.find_dataset("")


def test_a_malformed_record_of_another_name_does_not_matter(client: AnaplatClient, simulator: Simulator) -> None:
    simulator.platform.add_dataset("sales", TEXTS)
    simulator.platform.add_dataset("odd", TEXTS).row_count = -1
    odd = simulator.platform.datasets["ds2"]
    odd.fields = lambda: {"dsId": "ds2", "name": "odd", "status": "FINISHED", "rowCount": -1}  # type: ignore[method-assign]

    assert client.find_dataset("sales").ds_id == "ds1"
    with pytest.raises(AnaplatInvalidAnswerError, match="rowCount"):
        client.find_dataset("odd")


def test_the_parts_of_an_export_are_those_of_the_dataset_that_was_planned(
    run: Run, simulator: Simulator, tmp_path: Path
) -> None:
    ds_id = fill(simulator)
    given = {
        "output_path": str(tmp_path / "parts"),
        "file_format": "csv",
        "dataset": "dir1/sales",
        "partitions": 2,
    }
    parts = run(_PlanOperator, **given, page_size=5)
    simulator.platform.datasets[ds_id].name = "renamed"
    for part in parts:
        run(_PartOperator, **given, page_size=5, partition=part)
    result = run(_CommitOperator, **given)

    assert (result["dsId"], result["rows"], result["parts"]) == (ds_id, 10, 2)
    assert len(simulator.requests("list_datasets")) == 1


def in_a_worker(**arguments: Any) -> Any:
    return AnaplatDatasetTaskSensor(task_id="t", poke_interval=0.05, timeout=LONG, **arguments).execute({})


def in_a_triggerer(**arguments: Any) -> Any:
    """Defer, carry trigger and event through JSON, and resume on a new instance."""
    arguments = {"task_id": "t", "poke_interval": 0.05, "timeout": LONG, "deferrable": True, **arguments}
    with pytest.raises(TaskDeferred) as raised:
        AnaplatDatasetTaskSensor(**arguments).execute({})
    path, kwargs = json.loads(json.dumps(raised.value.trigger.serialize()))
    module, _, name = path.rpartition(".")

    async def first_event() -> Any:
        async for event in getattr(importlib.import_module(module), name)(**kwargs).run():
            return event.payload
        return None

    event = json.loads(json.dumps(asyncio.run(first_event())))
    return AnaplatDatasetTaskSensor(**arguments).resume_execution(raised.value.method_name, {"event": event}, {})


@pytest.mark.parametrize("wait", [in_a_worker, in_a_triggerer])
def test_a_sensor_looks_for_the_name_at_each_poll(
    wait: Run, simulator: Simulator, connect: Callable[..., None]
) -> None:
    connect(simulator, extra={"max_retries": 0})
    simulator.platform.add_dataset("old", TEXTS, ["FINISHED"])
    simulator.platform.add_dataset("sales", TEXTS, [None, "处理中", None])  # it comes, and goes
    simulator.platform.add_dataset("sales", TEXTS, [None, None, None, None, "处理中", "FINISHED"])
    assert wait(dataset="root/sales")["dsId"] == "ds3"
    assert len(simulator.requests("list_datasets")) == 6


@pytest.mark.parametrize("wait", [in_a_worker, in_a_triggerer])
def test_several_of_the_name_end_every_way_of_waiting(
    wait: Run, simulator: Simulator, connect: Callable[..., None]
) -> None:
    connect(simulator, extra={"max_retries": 0})
    fill(simulator)
    with pytest.raises((AirflowFailException, AnaplatDatasetExistsError), match=r"ds2 .*ds3 "):
        wait(dataset="sales")


def test_who_waits_by_name_and_who_by_id_share_one_request(
    simulator: Simulator, connect: Callable[..., None]
) -> None:
    connect(simulator)
    fill(simulator)
    name, by_id = "airflow_provider_anaplat.triggers.datasets.AnaplatDatasetTaskTrigger", "ds1"
    kind = getattr(trigger_module, name.rpartition(".")[2])
    common: dict[str, Any] = {"anaplat_conn_id": "anaplat_default", "poll_interval": 60, "max_poll_failures": 1}

    async def first_event(**given: Any) -> Any:
        async for event in kind(**common, **given).run():
            return event.payload["result"]["dsId"]
        return None

    async def both() -> Any:
        with Watch("anaplat_default", "find_datasets", [], 60):  # keeps the poller between the two
            return [await first_event(ds_id=by_id), await first_event(dataset="dir1/sales")]

    assert asyncio.run(both()) == ["ds1", "ds2"]
    assert len(simulator.requests("list_datasets")) == 1


def test_a_watcher_takes_a_name(
    simulator: Simulator, connect: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(simulator)
    monkeypatch.setattr(trigger_module, "_EVENT_IS_KEPT", 0.0)
    ds_id = fill(simulator)
    path, kwargs = AnaplatDatasetUpdatedTrigger(dataset="dir1/sales", poll_interval=0.03).serialize()
    trigger = AnaplatDatasetUpdatedTrigger(**json.loads(json.dumps(kwargs)))

    async def first_event() -> Any:
        async def refresh() -> None:
            while len(simulator.requests("list_datasets")) < 2:
                await asyncio.sleep(0.01)
            simulator.platform.refresh(ds_id)

        refreshing = asyncio.create_task(refresh())
        async for event in trigger.run():
            await refreshing
            return event.payload
        return None

    assert asyncio.run(asyncio.wait_for(first_event(), LONG))["dsId"] == ds_id
    assert path.endswith("AnaplatDatasetUpdatedTrigger")


@pytest.mark.parametrize("given", [{}, {"ds_id": "ds1", "dataset": "sales"}])
def test_a_watcher_wants_exactly_one(given: Any) -> None:
    with pytest.raises(AnaplatRequestError, match="give one of the two"):
        AnaplatDatasetUpdatedTrigger(**given)


def test_datasets_are_listed_by_name_folder_state_and_age(run: Run, simulator: Simulator) -> None:
    for name, folder, status, days in (
        ("sales north", "dir1", "FINISHED", 0),
        ("sales south", "dir2", "FINISHED", 3),
        ("sales west", "dir1", "处理中", 3),
        ("costs", "dir1", "FINISHED", 3),
    ):
        dataset = simulator.platform.add_dataset(name, TEXTS, [status], folder)
        dataset.utime -= timedelta(days=days)
    yesterday = (dataset.utime + timedelta(days=2)).isoformat()

    def listed(**arguments: Any) -> Any:
        return run(AnaplatListDatasetsOperator, **arguments)

    assert listed() == ["ds1", "ds2", "ds3", "ds4"]
    assert listed(name_pattern="sales *") == ["ds1", "ds2", "ds3"]
    assert listed(name_pattern="Sales *") == []
    assert listed(folder="dir1") == ["ds1", "ds3", "ds4"]
    assert listed(states=["finished"]) == ["ds1", "ds2", "ds4"]
    assert listed(newer_than=yesterday) == ["ds1"]
    assert listed(older_than=yesterday) == ["ds2", "ds3", "ds4"]
    assert listed(name_pattern="sales *", folder="dir1", states=["FINISHED"], newer_than=yesterday) == ["ds1"]
    assert len(simulator.requests("list_datasets")) == 8


def test_a_list_that_repeats_the_token_shows_it_nowhere(
    run: Run, simulator: Simulator, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO")
    simulator.platform.add_dataset(f"sales {simulator.token}", TEXTS, ["FINISHED"], f"dir-{simulator.token}")
    simulator.platform.datasets[simulator.token] = simulator.platform.datasets.pop("ds1")
    simulator.platform.datasets[simulator.token].ds_id = simulator.token
    assert run(AnaplatListDatasetsOperator) == ["***"]
    logged = caplog.text + capfd.readouterr().out  # the one or the other, by the release of Airflow
    assert "'sales ***' in directory dir-***" in logged
    assert simulator.token not in logged


@pytest.mark.parametrize(
    "mistake", [{"states": "FINISHED"}, {"newer_than": "yesterday"}, {"older_than": "7 days"}]
)
def test_a_filter_that_cannot_work_is_told(run: Run, simulator: Simulator, mistake: Any) -> None:
    with pytest.raises(AirflowFailException, match=next(iter(mistake))):
        run(AnaplatListDatasetsOperator, **mistake)
    assert simulator.ledger == []
