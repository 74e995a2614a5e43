"""Links of tasks: from the instance, from an XCom, by the connection's templates."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import numbers

from airflow_provider_anaplat._airflow.releases import AirflowFailException
from airflow_provider_anaplat.links import AnaplatDatasetLink, AnaplatLink, AnaplatPageLink
from airflow_provider_anaplat.operators.datasets import AnaplatCreateDatasetOperator
from airflow_provider_anaplat.operators.refresh import AnaplatRefreshDatasetOperator
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetFreshnessSensor, AnaplatDatasetTaskSensor
from airflow_provider_anaplat.sensors.subscriptions import AnaplatSubscriptionSensor
from airflow_provider_anaplat.simulator import Simulator

Connect = Callable[..., None]


class Task:
    """A task instance that takes XComs."""

    def __init__(self) -> None:
        self.xcoms: dict[str, Any] = {}
        self.start_date = None
        self.map_index = -1
        self.try_number = 1

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[key] = value


def of(operator: Any, link: Any = None) -> str:
    key: Any = SimpleNamespace()
    return str((link or AnaplatDatasetLink()).get_link(operator, ti_key=key))


def details(simulator: Simulator, dir_id: str, ds_id: str) -> str:
    return f"{simulator.url}/data-center/data-sets/{dir_id}/{ds_id}/details/overview"


@pytest.fixture
def dataset(connect: Connect, simulator: Simulator) -> str:
    connect(simulator)
    dataset = simulator.platform.add_dataset("numbers", numbers(3))
    dataset.parent_dir_id = "d 1"
    return dataset.ds_id


@pytest.mark.parametrize(
    "sensor", [AnaplatDatasetTaskSensor, lambda **a: AnaplatDatasetFreshnessSensor(newer_than="2020-01-01", **a)]
)
def test_sensors_link_to_their_dataset(sensor: Any, dataset: str, simulator: Simulator) -> None:
    waiting, task = sensor(task_id="wait", ds_id=dataset), Task()
    waiting.execute({"ti": task})
    assert of(waiting) == details(simulator, "d%201", dataset)
    assert task.xcoms == {"anaplat_dataset_url": of(waiting)}


def test_a_sensor_that_comes_back_links_again(dataset: str, simulator: Simulator) -> None:
    resumed = AnaplatDatasetTaskSensor(task_id="wait", ds_id=dataset, deferrable=True)
    result = {"dsId": dataset, "parentDirId": "x"}
    resumed.execute_complete({}, {"outcome": "done", "result": result})
    assert of(resumed) == details(simulator, "x", dataset)


def test_a_task_that_fails_has_its_link(connect: Connect, simulator: Simulator, tmp_path: Path) -> None:
    connect(simulator, extra={"max_retries": 0})
    export = AnaplatExportRowsOperator(task_id="e", ds_id="gone", output_path=str(tmp_path / "x.csv"))
    with pytest.raises(AirflowFailException, match="1002"):
        export.execute({})
    assert of(export) == details(simulator, "root", "gone")


def test_operators_link_to_their_dataset(dataset: str, simulator: Simulator, tmp_path: Path) -> None:
    simulator.platform.tables["t"] = numbers(1)
    export = AnaplatExportRowsOperator(task_id="e", ds_id=dataset, output_path=str(tmp_path / "x.csv"))
    create = AnaplatCreateDatasetOperator(
        task_id="c", account_id="a", name="new", table_query={"table": "t"}, parent_dir_id="dir"
    )
    refresh = AnaplatRefreshDatasetOperator(task_id="r", ds_id=dataset, wait_for_completion=False)
    created = create.execute({})
    export.execute({})
    refresh.execute({})

    assert of(export) == of(refresh) == details(simulator, "d%201", dataset)
    assert of(create) == details(simulator, "dir", created["dsId"])


def test_the_connections_templates(connect: Connect, simulator: Simulator) -> None:
    connect(simulator, extra={"dataset_url": "https://web.example.com/?ds={dsId}"})
    simulator.platform.add_dataset("numbers", numbers(3))
    sensor = AnaplatDatasetTaskSensor(task_id="wait", ds_id="ds1")
    sensor.execute({})
    assert of(sensor) == "https://web.example.com/?ds=ds1"


@pytest.mark.parametrize(
    "userinfo",
    ["ann:hunter2hunter2@", "hunter2@", "ann:hunter2@x@", "ann:hunter2\\@", ":hunter2@", "{dsId}:hunter2@"],
)
@pytest.mark.parametrize("link", [AnaplatDatasetLink(), AnaplatPageLink()], ids=lambda link: str(link.name))
def test_a_password_in_a_template_is_in_no_link(
    connect: Connect, simulator: Simulator, link: AnaplatLink, userinfo: str
) -> None:
    name = "dsId" if link.template == "dataset_url" else "pgId"
    userinfo = userinfo.replace("dsId", name)
    connect(simulator, extra={link.template: f"https://{userinfo}web.example.com:8443/@a/?id={{{name}}}"})
    operator = SimpleNamespace(anaplat_conn_id="anaplat_default", log=logging.getLogger("links"))
    task = Task()
    context: Any = {"ti": task}

    link.note(operator, context, {name: "a@b"})

    assert of(operator, link) == "https://web.example.com:8443/@a/?id=a%40b"
    assert task.xcoms == {link.xcom_key: of(operator, link)}


@pytest.mark.parametrize("userinfo", ["ann:hunter2/x@", "ann:hunter2#@", "ann:hunter2?@"])
def test_what_may_be_a_password_in_another_place_is_no_link(
    connect: Connect, simulator: Simulator, userinfo: str, caplog: pytest.LogCaptureFixture
) -> None:
    connect(simulator, extra={"dataset_url": f"https://{userinfo}web.example.com/{{dsId}}"})
    operator = SimpleNamespace(anaplat_conn_id="anaplat_default", log=logging.getLogger("links"))

    AnaplatDatasetLink().note(operator, {}, {"dsId": "ds1"})

    assert not hasattr(operator, "anaplat_links")
    assert "The connection's extra 'dataset_url' is unusable: it must have a host" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_link_that_cannot_be_is_said_and_fails_nothing(
    connect: Connect, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    connect(host=simulator.url, password="")
    operator = SimpleNamespace(anaplat_conn_id="anaplat_default", log=logging.getLogger("links"))
    AnaplatDatasetLink().note(operator, {}, {"dsId": "ds1", "dirId": "root"})
    assert "has no link 'Dataset'" in caplog.text


@pytest.mark.parametrize(("sc_type", "linked"), [("PAGE", True), ("CARD", False)])
def test_a_subscription_links_to_its_page(
    connect: Connect, simulator: Simulator, sc_type: str, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(simulator)
    monkeypatch.setattr("airflow_provider_anaplat.links.XCom", SimpleNamespace(get_value=lambda **_: None))
    simulator.platform.subscriptions["s"] = {
        "scId": "s", "scType": sc_type, "resourceId": "pg1", "enabled": True,
        "lastSendTime": 1_900_000_000_000, "lastSendStatus": "SUCCESS",
    }  # fmt: skip
    sensor = AnaplatSubscriptionSensor(task_id="sent", subscription_ids=["s"], sent_after="2026-01-01")
    sensor.execute({})

    assert of(sensor, AnaplatPageLink()) == (f"{simulator.url}/page/pg1" if linked else "")


def test_an_instance_that_knows_nothing_reads_the_xcom(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def get_value(**arguments: Any) -> str:
        asked.append(arguments)
        return "https://noted"

    monkeypatch.setattr("airflow_provider_anaplat.links.XCom", SimpleNamespace(get_value=get_value))
    key = SimpleNamespace(map_index=3)
    operator = AnaplatDatasetTaskSensor(task_id="wait", ds_id="ds1")
    assert AnaplatDatasetLink().get_link(operator, ti_key=key) == "https://noted"  # type: ignore[arg-type]  # any key
    assert asked == [{"key": "anaplat_dataset_url", "ti_key": key}]


def test_a_link_that_cannot_be_kept_fails_no_task(dataset: str, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Task):
        def xcom_push(self, key: str, value: Any) -> None:
            raise OSError("the API server is gone")

    operator = SimpleNamespace(anaplat_conn_id="anaplat_default", log=logging.getLogger("links"))
    context: Any = {"ti": Broken()}
    AnaplatDatasetLink().note(operator, context, {"dsId": dataset, "dirId": "root"})
    assert "has no link 'Dataset': the API server is gone" in caplog.text


def test_an_address_with_a_password_is_in_no_link(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    connect(host="https://ann:hunter2hunter2@bi.example.com", password="the application token")
    operator = SimpleNamespace(anaplat_conn_id="anaplat_default", log=logging.getLogger("links"))
    task = Task()
    context: Any = {"ti": task}

    AnaplatDatasetLink().note(operator, context, {"dsId": "ds1", "dirId": "root"})

    assert task.xcoms == {}
    assert not hasattr(operator, "anaplat_links")
    assert "The task has no link" in caplog.text
    assert "hunter2" not in caplog.text
