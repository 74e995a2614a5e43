"""Deployments as they are met: tokens that end and are displaced, refreshes by GET, and no token in a log."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import requests
from conftest import LONG, TEXTS, numbers
from support.running import AIRFLOW_2
from support.steps import Steps, wait

from airflow_provider_anaplat._airflow.releases import TaskDeferred
from airflow_provider_anaplat.operators.cards import AnaplatExportCardOperator
from airflow_provider_anaplat.operators.refresh import AnaplatRefreshDatasetOperator
from airflow_provider_anaplat.operators.rows import AnaplatExportRowsOperator
from airflow_provider_anaplat.simulator import Simulator
from airflow_provider_anaplat.simulator.platform import DEFAULT_LOGIN
from airflow_provider_anaplat.simulator.replies import Fault, Reply
from airflow_provider_anaplat.simulator.server import Deployment

Connect = Callable[..., None]
EXPORTS = 16


@pytest.fixture
def anaplat_deployment(request: pytest.FixtureRequest) -> Deployment:
    deployment: Deployment = getattr(request, "param", "user-token")
    return deployment


@pytest.fixture(autouse=True)
def no_token_in_a_log(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> Any:
    caplog.set_level(logging.DEBUG)
    yield
    tokens = [simulator.token, *(issued.value for issued in simulator.platform.sign_ins.issued)]
    formatter = logging.Formatter("%(message)s")  # with the traceback
    logged = "\n".join([*map(formatter.format, caplog.get_records("call")), *capfd.readouterr()])
    assert [token for token in tokens if token in logged] == []


def ends_the_tokens(simulator: Simulator, after_reads: set[int], operation: str = "read_rows") -> None:
    """Let all user tokens be expired once so many pages have been answered."""
    answered = 0
    lock = threading.Lock()

    def spoil(reply: Reply) -> Reply:
        nonlocal answered
        with lock:
            answered += reply.status == 200
            if answered in after_reads and reply.status == 200:
                simulator.platform.sign_ins.expire()
        return reply

    simulator.inject(operation, Fault(spoil, needs_answer=True), times=None)


def test_an_export_outlives_its_token_twice(simulator: Simulator, connect: Connect, tmp_path: Path) -> None:
    connect(simulator, login=DEFAULT_LOGIN)
    simulator.platform.add_dataset("numbers", numbers(60))
    ends_the_tokens(simulator, {2, 4})
    path = tmp_path / "out.parquet"
    AnaplatExportRowsOperator(
        task_id="export", ds_id="ds1", output_path=str(path), page_size=10, concurrency=1
    ).execute({})

    assert pl.read_parquet(path)["n"].to_list() == list(range(60))
    assert len(simulator.requests("sign_in")) == 3


def test_and_so_does_that_of_a_card(simulator: Simulator, connect: Connect, tmp_path: Path) -> None:
    connect(simulator, login=DEFAULT_LOGIN)
    simulator.platform.add_card("numbers", numbers(60))
    ends_the_tokens(simulator, {2, 4}, "read_card")
    path = tmp_path / "card.parquet"
    AnaplatExportCardOperator(task_id="card", card_id="card1", output_path=str(path), page_size=10).execute({})

    assert pl.read_parquet(path)["n"].to_list() == list(range(60))
    assert len(simulator.requests("sign_in")) == 3


def test_sixteen_exports_side_by_side_sign_in_once_for_each_end_of_their_token(
    simulator: Simulator, tmp_path: Path
) -> None:
    """Each runs in a process of its own, as tasks do, and every sign-in displaces the token of all others."""
    simulator.platform.add_dataset("numbers", numbers(40))
    ends_the_tokens(simulator, {20})  # once, while they are all at it
    steps = Steps()

    def run(number: int) -> Any:
        given = (simulator.url, simulator.token, DEFAULT_LOGIN, "ds1", str(tmp_path), f"{number}.csv")
        return steps.run("export", *given)

    with ThreadPoolExecutor(EXPORTS) as pool:
        assert list(pool.map(run, range(EXPORTS))) == [{"rows": 40}] * EXPORTS
    assert simulator.platform.sign_ins.displaces
    # One in the beginning, and one when the token had ended: whoever comes later takes what is shared.
    assert len(simulator.requests("sign_in")) == 2
    for number in range(EXPORTS):
        assert pl.read_csv(tmp_path / f"{number}.csv")["n"].to_list() == list(range(40))


@pytest.fixture(scope="module")
def steps() -> Steps:
    return Steps()


@pytest.mark.parametrize("way", ["poked", "rescheduled", "deferred"])
@pytest.mark.parametrize("anaplat_deployment", ["user-token", "get-refresh"], indirect=True)
def test_every_way_of_waiting_ends_alike(
    way: str, steps: Steps, simulator: Simulator, connect: Connect, anaplat_deployment: Deployment
) -> None:
    if AIRFLOW_2 and way == "rescheduled":
        pytest.skip("Airflow 2 asks its database when a rescheduled task began")
    connect(simulator, login=DEFAULT_LOGIN if anaplat_deployment == "user-token" else "")
    simulator.platform.add_dataset("new", TEXTS, (None, "处理中", "FINISHED"))
    arguments = {"ds_id": "ds1", "poke_interval": 0.1, "timeout": LONG}

    assert wait(steps, "AnaplatDatasetTaskSensor", way, arguments)["returned"]["status"] == "FINISHED"
    assert simulator.requests("sign_in") == []  # the dataset list takes the application token


@pytest.mark.parametrize("deferrable", [False, True])
@pytest.mark.parametrize("anaplat_deployment", ["get-refresh"], indirect=True)
def test_a_refresh_by_get(simulator: Simulator, connect: Connect, deferrable: bool) -> None:
    connect(simulator, extra={"refresh_style": "get"})
    dataset = simulator.platform.add_dataset("sales", TEXTS)
    before = dataset.utime

    def operator() -> AnaplatRefreshDatasetOperator:
        return AnaplatRefreshDatasetOperator(
            task_id="refresh", ds_id="ds1", poll_interval=0.05, timeout=LONG, probe="task", deferrable=deferrable
        )

    try:
        result = operator().execute({})
    except TaskDeferred as deferral:
        event = json.loads(json.dumps(asyncio.run(_first_event(deferral.trigger.serialize()))))
        result = operator().resume_execution(str(deferral.method_name), {"event": event}, {})
    assert result["taskId"] == "refresh-ds1"
    assert dataset.utime >= before + timedelta(seconds=1)
    (request,) = simulator.requests("refresh_dataset")
    assert (request.query, request.body) == (f"token={simulator.token}", {})


async def _first_event(serialized: tuple[str, dict[str, Any]]) -> Any:
    path, kwargs = json.loads(json.dumps(serialized))
    module, _, name = path.rpartition(".")
    async for event in getattr(importlib.import_module(module), name)(**kwargs).run():
        return event.payload
    raise AssertionError("the trigger ended without an event")


@pytest.mark.parametrize(
    ("anaplat_deployment", "method", "path", "header", "body", "status"),
    [
        ("contract", "POST", "data-source/ds1/columns", "simulator-token", {}, 200),
        ("contract", "POST", "user/loginId/sign-in", None, {"token": "simulator-token", "loginId": "a"}, 404),
        ("contract", "GET", "data-source/ds1/refresh?token=simulator-token", None, None, 405),
        ("user-token", "POST", "data-source/ds1/columns", "simulator-token", {}, 401),
        ("user-token", "POST", "data-source/list", None, {"token": "simulator-token"}, 200),
        ("get-refresh", "POST", "data-source/ds1/refresh", None, {"token": "simulator-token"}, 405),
        ("get-refresh", "GET", "data-source/ds1/refresh?token=simulator-token", None, None, 200),
        ("get-refresh", "GET", "data-source/ds1/refresh?token=wrong", None, None, 403),
    ],
    indirect=["anaplat_deployment"],
)
def test_each_deployment_is_strict(
    simulator: Simulator, method: str, path: str, header: str | None, body: Any, status: int
) -> None:
    simulator.platform.add_dataset("texts", TEXTS)
    headers = {"content-type": "application/json"} | ({"X-Auth-Token": header} if header else {})
    data = None if body is None else json.dumps(body)
    logging.getLogger("urllib3").debug("These requests show the token themselves")
    logging.disable()
    try:
        url = f"{simulator.url}/public-api/{path}"
        assert requests.request(method, url, data=data, headers=headers, timeout=LONG).status_code == status
    finally:
        logging.disable(logging.NOTSET)
