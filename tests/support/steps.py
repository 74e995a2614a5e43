"""The steps of a waiting task, each run in a process of its own, as Airflow runs them."""

from __future__ import annotations

import asyncio
import importlib
import json
import multiprocessing
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_anaplat._airflow.releases import AirflowRescheduleException, TaskDeferred
from airflow_provider_anaplat.client.client import AnaplatClient
from airflow_provider_anaplat.output.formats import CsvSink
from airflow_provider_anaplat.output.place import Place
from airflow_provider_anaplat.rows.export import ExportPlan, export_rows
from airflow_provider_anaplat.rows.pages import RowQuery
from airflow_provider_anaplat.rows.targets import FileTarget
from airflow_provider_anaplat.sensors.datasets import AnaplatDatasetFreshnessSensor, AnaplatDatasetTaskSensor
from airflow_provider_anaplat.sensors.subscriptions import AnaplatSubscriptionSensor

SENSORS = {
    sensor.__name__: sensor
    for sensor in (AnaplatDatasetTaskSensor, AnaplatDatasetFreshnessSensor, AnaplatSubscriptionSensor)
}


def execute(name: str, arguments: dict[str, Any], started: str, rescheduled: bool) -> dict[str, Any]:
    """Run a sensor's ``execute`` as a worker would."""
    start = datetime.fromisoformat(started)
    ti: Any = SimpleNamespace(start_date=start, get_first_reschedule_date=lambda _: start if rescheduled else None)
    try:
        return {"returned": SENSORS[name](task_id="wait", **arguments).execute({"ti": ti})}
    except AirflowRescheduleException as again:
        return {"again_at": again.reschedule_date.isoformat()}
    except TaskDeferred as deferral:
        return {"deferred": [*deferral.trigger.serialize(), deferral.method_name]}


def run_trigger(path: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Run a trigger to its first event as a triggerer would."""
    module, _, name = path.rpartition(".")
    trigger = getattr(importlib.import_module(module), name)(**kwargs)

    async def first() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    return {"event": asyncio.run(first())}


def resume(name: str, arguments: dict[str, Any], method: str, event: dict[str, Any]) -> dict[str, Any]:
    """Resume a sensor with an event, in a new worker."""
    sensor = SENSORS[name](task_id="wait", **arguments)
    return {"returned": sensor.resume_execution(method, {"event": event}, {})}


class FileStore:
    """A store of user tokens that processes share: a file for each key."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def get(self, key: str) -> Any:
        path = self._folder / key
        return json.loads(path.read_text()) if path.exists() else None

    def set(self, key: str, kept: Any) -> None:
        new = self._folder / f"{key}.{os.getpid()}"
        new.write_text(json.dumps(dict(kept)))
        new.replace(self._folder / key)


def export(url: str, token: str, login: str, ds_id: str, folder: str, name: str) -> dict[str, Any]:
    """Export a dataset in pages of ten rows, with a user token that is shared through a folder."""
    target = FileTarget(Place(Path(folder, name), CsvSink()))
    plan = ExportPlan(RowQuery(ds_id, page_size=10, concurrency=1), target)
    client = AnaplatClient(url, token, login=login, token_store=FileStore(folder), max_retries=0)
    return {"rows": export_rows(client, plan).rows}


class Steps:
    """Runs steps, each in a fresh process; what goes in and out passes through JSON."""

    def __init__(self) -> None:
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["support.steps"])
        with pytest.MonkeyPatch.context() as patch:  # the fork server finds this module by the environment alone
            patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
            forkserver.ensure_running()
        self.kill_when: Callable[[], bool] | None = None

    def run(self, step: str, *given: Any) -> dict[str, Any]:
        """Run a step to its end, killing it once if that is planned and starting it again, as Airflow does."""
        while True:
            ours, theirs = self._processes.Pipe()
            process = self._processes.Process(
                target=_run, args=(theirs, dict(os.environ), step, json.dumps(given)), daemon=True
            )
            process.start()
            theirs.close()
            while not ours.poll(0.01):
                if self.kill_when is not None and self.kill_when():
                    self.kill_when = None
                    process.kill()
                    break
            else:
                found: dict[str, Any] = json.loads(ours.recv())
                process.join()
                return found
            process.join()


def _run(pipe: Any, environment: dict[str, str], step: str, given: str) -> None:
    os.environ.update(environment)
    try:
        found = globals()[step](*json.loads(given))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the step's end
        found = {"raised": type(error).__name__, "message": str(error)}
    pipe.send(json.dumps(found))


def wait(steps: Steps, name: str, way: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Carry a sensor through all its steps, and return how it ended."""
    arguments = {**arguments, "mode": "reschedule" if way == "rescheduled" else "poke"}
    arguments["deferrable"] = way == "deferred"
    started, rescheduled = datetime.now(UTC).isoformat(), False
    while True:
        found = steps.run("execute", name, arguments, started, rescheduled)
        if "deferred" in found:
            path, kwargs, method = found["deferred"]
            event = steps.run("run_trigger", path, kwargs)["event"]
            return steps.run("resume", name, arguments, method, event)
        if "again_at" not in found:
            return found
        assert datetime.fromisoformat(found["again_at"]) - datetime.now(UTC) < timedelta(seconds=5)
        rescheduled = True
